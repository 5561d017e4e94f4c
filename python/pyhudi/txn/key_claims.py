"""What a commit says of the table's keys: whether each is there once, for all that is known.

Only of tables with a record index, to which it matters (`timeline/unique_keys.py`), and of a first
insert before there is one. That a commit brings no key twice is counted: the index gets as many
keys as there are new rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyhudi.index.choice import last_written
from pyhudi.index.options import PARTITIONED_RECORD_INDEX
from pyhudi.metadata.table import RECORD_INDEX
from pyhudi.timeline.unique_keys import (
    KEYS,
    MAY_REPEAT,
    OVERWRITE_TABLE,
    UNIQUE,
    brings_no_copies,
)

if TYPE_CHECKING:
    from pyhudi.timeline.metadata import WriteStat
    from pyhudi.txn.session import Session


@dataclass(frozen=True)
class KeyClaim:
    """What is known before the files are written."""

    unique: bool
    counted: bool = False
    """Only if no key came twice."""

    def words(self, stats: Iterable[WriteStat], indexed: int | None) -> dict[str, str]:
        """Extra metadata of the commit. indexed: keys that the record index got."""
        unique = self.unique
        if self.counted:
            unique = unique and indexed == sum(stat.num_inserts for stat in stats)
        return {KEYS: UNIQUE if unique else MAY_REPEAT}


def key_claim(session: Session, operation: str) -> KeyClaim | None:
    """The claim of a commit that is about to be written; None: it has nothing to say."""
    config, timeline = session.config, session.timeline
    first = operation == OVERWRITE_TABLE or not last_written(timeline)
    if RECORD_INDEX not in config.metadata_partitions:
        says = first and not brings_no_copies(operation)
        return KeyClaim(unique=False) if says else None
    if not brings_no_copies(operation):
        looked_up = operation == "INSERT" and session.options.insert_duplicates != "none"
        return KeyClaim(first or (looked_up and timeline.keys_are_unique), counted=True)
    options, index = session.options, session.index
    # A key that is looked for in its partition may be in another one, too.
    everywhere = index.is_global or not config.partition_fields
    placed = everywhere or index.kind == PARTITIONED_RECORD_INDEX
    combined = options.combine_upserts or operation != "UPSERT"
    return KeyClaim(placed and combined and timeline.keys_are_unique)
