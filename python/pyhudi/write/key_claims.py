"""What a commit says of the table's keys: whether each is there once, for all that is known.

Only of tables with a record index, to which it matters (`timeline/unique_keys.py`), and of a first
insert before there is one. That a commit brings no key twice is counted: the index gets as many
keys as there are new rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.config.metadata_names import RECORD_INDEX
from pyhudi.config.property_names import KEYS
from pyhudi.index.traces import last_written
from pyhudi.slices.table import Commit, Companion, Table
from pyhudi.timeline.unique_keys import (
    MAY_REPEAT,
    OVERWRITE_TABLE,
    UNIQUE,
    brings_no_copies,
    keys_are_unique,
)
from pyhudi.write.write_context import Session


@dataclass(frozen=True)
class KeyClaim(Companion):
    """What is known before the files are written, and said by the commit."""

    unique: bool
    counted: bool = False
    """Only if no key came twice."""

    def before_complete(self, table: Table, commit: Commit) -> dict[str, str]:  # noqa: ARG002
        """The claim; comes after the metadata table, which counts keys."""
        unique = self.unique
        if self.counted:
            inserts = sum(stat.num_inserts for stat in commit.metadata.write_stats)
            unique = unique and commit.keys_indexed == inserts
        return {KEYS: UNIQUE if unique else MAY_REPEAT}


def key_claims(session: Session, operation: str) -> list[KeyClaim]:
    """The claim of a commit that is about to be written; none where it has nothing to say."""
    config, timeline = session.config, session.timeline
    first = operation == OVERWRITE_TABLE or not last_written(timeline)
    if RECORD_INDEX not in config.metadata_partitions:
        says = first and not brings_no_copies(operation)
        return [KeyClaim(unique=False)] if says else []
    if not brings_no_copies(operation):
        looked_up = operation == "INSERT" and session.options.insert_duplicates != "none"
        return [KeyClaim(first or (looked_up and keys_are_unique(timeline)), counted=True)]
    options, index = session.options, session.index
    # A key that is looked for in its partition may be in another one, too.
    everywhere = index.is_global or not config.partition_fields
    placed = everywhere or index.is_record_index
    combined = options.combine_upserts or operation != "UPSERT"
    return [KeyClaim(placed and combined and keys_are_unique(timeline))]
