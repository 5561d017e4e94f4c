"""Checkpoints of Hudi's streamer: names of the entries in a commit's extra metadata.

A checkpoint says how far a source has been read. It is in the commit of the rows. Commits of other
writers have none, so the newest commit with a checkpoint counts
(`StreamerCheckpointUtils.getLatestCommitMetadataWithValidCheckpointInfo`, 1.2.0). The names depend
on the table version (`CheckpointUtils.shouldTargetCheckpointV2`, 1.2.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.config.table_version import TableVersion

KEY_V1 = "deltastreamer.checkpoint.key"
"""`StreamerCheckpointV1.STREAMER_CHECKPOINT_KEY_V1`: up to table version 6."""
RESET_V1 = "deltastreamer.checkpoint.reset_key"
KEY_V2 = "streamer.checkpoint.key.v2"
"""`StreamerCheckpointV2.STREAMER_CHECKPOINT_KEY_V2`: from table version 8 on."""
RESET_V2 = "streamer.checkpoint.reset.key.v2"

SOURCE = "_pyhudi_ingest_source"
"""Entry with the source of the checkpoint, which Hudi does not store."""
AFTER = "_pyhudi_ingest_after"
"""Entry with the instant of the checkpoint that the commit continues, "" for the first one."""


@dataclass(frozen=True)
class StoredCheckpoint:
    """The checkpoint in a commit's extra metadata."""

    key: str
    """How far the source is read; "" if the commit resets it only."""
    reset_key: str | None
    """The position that the user asked for in place of an earlier checkpoint."""
    source: str | None
    """The source; None if Hudi wrote the commit."""


def checkpoint_of(extra_metadata: Mapping[str, str]) -> StoredCheckpoint | None:
    """Return the checkpoint of a commit; None if it has none."""
    for key, reset_key in ((KEY_V2, RESET_V2), (KEY_V1, RESET_V1)):
        if extra_metadata.get(key) or extra_metadata.get(reset_key):
            return StoredCheckpoint(
                extra_metadata.get(key) or "",
                extra_metadata.get(reset_key) or None,
                extra_metadata.get(SOURCE),
            )
    return None


def checkpoint_entries(version: TableVersion, key: str, reset_key: str | None) -> dict[str, str]:
    """Return the entries of a commit that has a checkpoint.

    reset_key: the position that the user asked for, if any.
    """
    names = (KEY_V2, RESET_V2) if version.checkpoint_names_are_v2 else (KEY_V1, RESET_V1)
    values = (key, reset_key)
    return {name: value for name, value in zip(names, values, strict=True) if value is not None}
