"""Reads and writes Apache Hudi tables without a JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyhudi.errors import (
    AfterCommitError,
    AfterCommitWarning,
    AfterRollbackError,
    CommitConflict,
    CommitUnknown,
    ConfigError,
    CorruptTable,
    DuplicateKeyWarning,
    HistoryUnavailable,
    HudiError,
    InterruptedAfterCommit,
    InterruptedAfterRollback,
    LockTimeout,
    LockWarning,
    MaintenanceWarning,
    MetadataTableWarning,
    MissingFile,
    PartitionChangeWarning,
    SchemaMismatch,
    StorageError,
    TableNotFound,
    UnsupportedTableFeature,
)

if TYPE_CHECKING:
    from pyhudi._native import __version__
    from pyhudi.api.changes import Changes, Diff
    from pyhudi.api.create import create_table
    from pyhudi.api.display.show import show
    from pyhudi.api.merge_builder import Merge
    from pyhudi.api.scan import Scan
    from pyhudi.api.splits import Split
    from pyhudi.api.table import HudiTable, open_table
    from pyhudi.api.table_exists import table_exists
    from pyhudi.engine.local import LocalEngine
    from pyhudi.engine.protocol import Step
    from pyhudi.input.semi_structured import blob, variant, variant_from_json, variant_to_json
    from pyhudi.input.vectors import vector
    from pyhudi.schema.payloads import register_merger
    from pyhudi.txn.result import WriteResult

__all__ = [
    "AfterCommitError",
    "AfterCommitWarning",
    "AfterRollbackError",
    "Changes",
    "CommitConflict",
    "CommitUnknown",
    "ConfigError",
    "CorruptTable",
    "Diff",
    "DuplicateKeyWarning",
    "HistoryUnavailable",
    "HudiError",
    "HudiTable",
    "InterruptedAfterCommit",
    "InterruptedAfterRollback",
    "LocalEngine",
    "LockTimeout",
    "LockWarning",
    "MaintenanceWarning",
    "Merge",
    "MetadataTableWarning",
    "MissingFile",
    "PartitionChangeWarning",
    "Scan",
    "SchemaMismatch",
    "Split",
    "Step",
    "StorageError",
    "TableNotFound",
    "UnsupportedTableFeature",
    "WriteResult",
    "__version__",
    "blob",
    "create_table",
    "open_table",
    "register_merger",
    "show",
    "table_exists",
    "variant",
    "variant_from_json",
    "variant_to_json",
    "vector",
]

_HOMES = {
    "Changes": "pyhudi.api.changes",
    "Diff": "pyhudi.api.changes",
    "HudiTable": "pyhudi.api.table",
    "LocalEngine": "pyhudi.engine.local",
    "Merge": "pyhudi.api.merge_builder",
    "Scan": "pyhudi.api.scan",
    "Split": "pyhudi.api.splits",
    "Step": "pyhudi.engine.protocol",
    "WriteResult": "pyhudi.txn.result",
    "__version__": "pyhudi._native",
    "blob": "pyhudi.input.semi_structured",
    "create_table": "pyhudi.api.create",
    "open_table": "pyhudi.api.table",
    "register_merger": "pyhudi.schema.payloads",
    "show": "pyhudi.api.display.show",
    "table_exists": "pyhudi.api.table_exists",
    "variant": "pyhudi.input.semi_structured",
    "variant_from_json": "pyhudi.input.semi_structured",
    "variant_to_json": "pyhudi.input.semi_structured",
    "vector": "pyhudi.input.vectors",
}
"""Where the names live that are imported when first used, so that `import pyhudi` stays quick."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'pyhudi' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - only for this

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
