"""Claims of a commit about the table's keys: whether each key is known to be unique.

Claims are made only for tables with a record index, which depends on them
(`timeline/key_uniqueness.py`), and for a first insert before there is one. A commit proves unique
keys by counting: the index gets as many keys as there are new rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.config.metadata_names import RECORD_INDEX
from pyhudi.config.property_names import KEYS
from pyhudi.errors import retryable_conflict
from pyhudi.index.detection import last_written
from pyhudi.table.participants import Commit, CommitParticipant
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.key_uniqueness import (
    MAY_REPEAT,
    OVERWRITE_TABLE,
    UNIQUE,
    keys_are_unique,
    preserves_key_uniqueness,
)
from pyhudi.write.write_context import WriteContext


@dataclass(frozen=True)
class KeyClaim(CommitParticipant):
    """The effect of one write on the uniqueness of keys."""

    operation: str
    in_index: bool
    """The table has a record index."""
    keeps: bool
    """The write looked up every key in all its possible locations, or counts every new key."""

    def before_complete(self, table: TableSnapshot, commit: Commit) -> dict[str, str]:
        """Return the claim; runs after the metadata table, which counts keys.

        Raises `CommitConflict` up to table version 6, which has no completion times, if a commit
        with the opposite claim would count as the newest.
        """
        timeline = table.timeline
        first = self.operation == OVERWRITE_TABLE or not last_written(timeline)
        no_copies = preserves_key_uniqueness(self.operation)
        if not self.in_index:
            return {} if not first or no_copies else {KEYS: MAY_REPEAT}
        unique = self.keeps and keys_are_unique(timeline)
        if not no_copies:
            inserts = sum(stat.num_inserts for stat in commit.metadata.write_stats)
            unique = (first or unique) and commit.keys_indexed == inserts
        last = timeline.last_commit
        hides = last is not None and last.requested > commit.instant
        if hides and not unique and not timeline.completes_in_names and keys_are_unique(timeline):
            msg = f"{last} completed concurrently, and it requires unique keys"
            raise retryable_conflict(msg)
        return {KEYS: UNIQUE if unique else MAY_REPEAT}


def key_claims(context: WriteContext, operation: str) -> list[KeyClaim]:
    """Return the claim of a commit that is about to be written."""
    config, options, index = context.config, context.options, context.index
    in_index = RECORD_INDEX in config.metadata_partitions
    if not preserves_key_uniqueness(operation):
        looked_up = operation == "INSERT" and options.insert_duplicates != "none"
        return [KeyClaim(operation, in_index, keeps=looked_up)]
    # A key that is looked up in its partition may also be in another one.
    everywhere = index.is_global or not config.partition_fields
    placed = everywhere or index.is_record_index
    combined = options.combine_upserts or operation != "UPSERT"
    return [KeyClaim(operation, in_index, keeps=placed and combined)]
