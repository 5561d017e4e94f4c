"""Claims of commits that each key of the table is unique.

A record index depends on them (`timeline/key_uniqueness.py`). So only commits of tables with a
record index make claims, and a table's first insert, since an index may be built later. A commit
proves uniqueness by counts: the index gets as many new keys as there are inserts.
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
    """Whether the table has a record index."""
    preserves: bool
    """Whether the write adds no duplicates: it looks up each key wherever it may be."""

    def before_complete(self, table: TableSnapshot, commit: Commit) -> dict[str, str]:
        """Return the claim. Runs after the metadata table's update, which counts keys.

        Raises `CommitConflict` up to table version 6, which has no completion times, if a
        concurrent commit with the opposite claim would count as newer.
        """
        timeline = table.timeline
        first = self.operation == OVERWRITE_TABLE or not last_written(timeline)
        preserves_uniqueness = preserves_key_uniqueness(self.operation)
        if not self.in_index:
            return {} if not first or preserves_uniqueness else {KEYS: MAY_REPEAT}
        unique = self.preserves and keys_are_unique(timeline)
        if not preserves_uniqueness:
            inserts = sum(stat.num_inserts for stat in commit.metadata.write_stats)
            unique = (first or unique) and commit.keys_indexed == inserts
        last = timeline.last_commit
        hides = last is not None and last.requested > commit.instant
        if hides and not unique and not timeline.completes_in_names and keys_are_unique(timeline):
            msg = f"{last} completed concurrently, and it requires unique keys"
            raise retryable_conflict(msg)
        return {KEYS: UNIQUE if unique else MAY_REPEAT}


def key_claims(context: WriteContext, operation: str) -> list[KeyClaim]:
    """Return the claim of an operation's commit."""
    config, options, index = context.config, context.options, context.index
    in_index = RECORD_INDEX in config.metadata_partitions
    if not preserves_key_uniqueness(operation):
        looked_up = operation == "INSERT" and options.insert_duplicates != "none"
        return [KeyClaim(operation, in_index, preserves=looked_up)]
    # A lookup in one partition misses the key in others.
    everywhere = index.is_global or not config.partition_fields
    looks_everywhere = everywhere or index.is_record_index
    combined = options.combine_upserts or operation != "UPSERT"
    return [KeyClaim(operation, in_index, preserves=looks_everywhere and combined)]
