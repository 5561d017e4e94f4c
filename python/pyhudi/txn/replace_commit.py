"""Replace commits: their action, and the content of their requested file.

`write/overwrite.py` determines the replaced file groups.
"""

from __future__ import annotations

from pyhudi.clock import Clock
from pyhudi.config.actions import COMMIT, DELTA_COMMIT, REPLACE_COMMIT
from pyhudi.config.table_config import TableConfig
from pyhudi.config.table_version import TableVersion
from pyhudi.timeline import serde

INSERT_OVERWRITE = "INSERT_OVERWRITE"
INSERT_OVERWRITE_TABLE = "INSERT_OVERWRITE_TABLE"
DELETE_PARTITION = "DELETE_PARTITION"

REPLACING = frozenset({INSERT_OVERWRITE, INSERT_OVERWRITE_TABLE, DELETE_PARTITION})
"""Operations whose action is a replace commit, on both table types."""


def action_of(config: TableConfig, operation: str) -> str:
    """Return the action of an operation (`CommitUtils.getCommitActionType`, Hudi 1.2.0)."""
    if operation in REPLACING:
        return REPLACE_COMMIT
    return DELTA_COMMIT if config.is_merge_on_read else COMMIT


def content_of_request(version: TableVersion, operation: str, clock: Clock) -> bytes:
    """Return the content of an operation's requested file: empty except for replace commits.

    A replace commit has a plan without a clustering (as 0.15.0, 1.0.2 and 1.2.0 write it).
    """
    if operation not in REPLACING:
        return b""
    plan: dict[str, object] = {}
    if operation == DELETE_PARTITION and version.delete_partition_is_named:
        plan = {"operationType": operation, "extraMetadata": {}, "version": 1}
    return serde.encode_container("HoodieRequestedReplaceMetadata", plan, clock)
