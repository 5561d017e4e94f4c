"""Writing data that do not fit in memory: brought together on local disk by where they go.

Rows are put aside three times at most: by hash of their keys, if rows of one key must meet before
they are written; then by file group and by partition, from where each file's task streams them.
What is held in memory at any time is a fraction of the limit: a piece of the data, the keys that
are looked up, one part of the rows. The driver's disk holds the rows, so the local engine writes
from there; an engine of other processes sends each task its rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.index import locate
from pyhudi.keys import PARTITION_PATH, RECORD_KEY
from pyhudi.plan import write as plan
from pyhudi.plan.parts import UpdatePart
from pyhudi.plan.write import FileGroup, Tagged, row_numbers, untagged
from pyhudi.shelf import Shelf, ShelvedRows
from pyhudi.txn.rows import marked_deleted

if TYPE_CHECKING:
    from pyhudi.txn.intake import Intake
    from pyhudi.txn.session import Session

_PARTS = 64
"""So many parts of keys: data of that many times a shelf's memory are brought together."""
_SHELF = 8
"""A shelf holds this part of the limit before it writes."""


@dataclass
class Parts:
    """What is to be written, by where it goes; on disk as long as the shelves are open."""

    updates: dict[int, UpdatePart]
    """By number of the file group."""
    inserts: dict[str, ShelvedRows]
    """By partition path."""
    groups: list[FileGroup]


def by_partition(
    stack: ExitStack,
    session: Session,
    intake: Intake,
    *,
    combine: bool,
    order: tuple[str, ...] = (),
) -> dict[str, ShelvedRows]:
    """The rows by partition path, for a write that does not ask where keys are.

    combine: rows of one key become one. order: columns by which each run of rows in memory is
    sorted. Rows that are marked as deletes stay out.
    """
    shelf: Shelf[str] = stack.enter_context(Shelf(intake.memory_limit // _SHELF, order))
    pieces = intake.pieces
    if combine:
        pieces = _again(session, by_key(stack, intake), combine=True)
    for rows in pieces:
        kept = rows.filter(pc.invert(_deleted(session, rows)))
        if kept.num_rows:
            shelf.add(kept.column(PARTITION_PATH).combine_chunks(), kept)
    return shelf.routes()


def by_location(
    stack: ExitStack, session: Session, shelved: list[ShelvedRows], limit: int, *, combine: bool
) -> Parts:
    """The rows by the file group that has their keys, those that none has by partition.

    shelved: as `by_key` gives them. Deletes of keys that are nowhere fall away. Raises
    `CommitConflict` as `plan_rows` does.
    """
    groups, slices = session.groups(_partitions(shelved))
    hit: Shelf[int] = stack.enter_context(Shelf(limit // _SHELF))
    fresh: Shelf[str] = stack.enter_context(Shelf(limit // _SHELF))
    counts: dict[int, tuple[int, int]] = {}
    for batch in _key_batches(session, shelved, limit, combine=combine):
        keys = pa.concat_tables(keys for _, keys in batch)
        tagged = locate.in_slices(session, keys, slices)
        plan.check_not_clustered(groups[number] for number, _ in tagged.by_group())
        first = 0
        for rows in _again(session, [part for part, _ in batch], combine=combine):
            _place(session, rows, _part_of(tagged, first, rows.num_rows), hit, fresh, counts)
            first += rows.num_rows
    updates = {number: UpdatePart(rows, *counts[number]) for number, rows in hit.routes().items()}
    return Parts(updates, fresh.routes(), groups)


# --- by key ---------------------------------------------------------------------------------------


def by_key(stack: ExitStack, intake: Intake) -> list[ShelvedRows]:
    """The rows in parts, with all rows of one key in one of them, in the order they came."""
    shelf: Shelf[int] = stack.enter_context(Shelf(intake.memory_limit // _SHELF))
    for rows in intake.pieces:
        keys = rows.column(RECORD_KEY).combine_chunks()
        shelf.add(_native.key_parts(keys, _PARTS), rows)
    return list(shelf.routes().values())


def _partitions(shelved: list[ShelvedRows]) -> list[str]:
    found: set[str] = set()
    for batch in chain.from_iterable(rows.batches() for rows in shelved):
        found.update(batch.column(PARTITION_PATH).unique().to_pylist())
    return sorted(found)


def _combine(session: Session, rows: pa.Table, *, combine: bool) -> pa.Table:
    return locate.combined(session, rows) if combine else rows


def _key_batches(
    session: Session, shelved: list[ShelvedRows], limit: int, *, combine: bool
) -> Iterator[list[tuple[ShelvedRows, pa.Table]]]:
    """Parts with the keys of their rows, so many at once that the keys are looked up in memory."""
    held: list[tuple[ShelvedRows, pa.Table]] = []
    size = 0
    for part in shelved:
        rows = _combine(session, part.to_table(), combine=combine)
        # A copy of the two columns: what came from the core or a file is freed only as a whole.
        keys = rows.select([RECORD_KEY, PARTITION_PATH]).take(row_numbers(rows.num_rows))
        held.append((part, keys))
        size += keys.nbytes
        if size > limit // _SHELF:
            yield held
            held, size = [], 0
    if held:
        yield held


def _again(session: Session, parts: list[ShelvedRows], *, combine: bool) -> Iterator[pa.Table]:
    for part in parts:
        yield _combine(session, part.to_table(), combine=combine)


# --- by place -------------------------------------------------------------------------------------


def _part_of(tagged: Tagged, first: int, count: int) -> Tagged:
    """What is known of some rows, numbered from 0."""
    after = pc.greater_equal(tagged.rows, first)
    inside = pc.and_(after, pc.less(tagged.rows, first + count))
    rows = pc.subtract(tagged.rows.filter(inside), pa.scalar(first, pa.int64()))
    return Tagged(rows, tagged.groups.filter(inside))


def _place(
    session: Session,
    rows: pa.Table,
    tagged: Tagged,
    hit: Shelf[int],
    fresh: Shelf[str],
    counts: dict[int, tuple[int, int]],
) -> None:
    """Puts rows aside by file group or partition, and counts rows and deletes of each group."""
    deleted = _deleted(session, rows)
    if len(tagged.rows):
        hit.add(tagged.groups, rows.take(tagged.rows))
        _count(tagged.groups, deleted.take(tagged.rows), counts)
    new = untagged(rows.num_rows, tagged)
    new = new.filter(pc.invert(deleted.take(new)))
    if len(new):
        kept = rows.take(new)
        fresh.add(kept.column(PARTITION_PATH).combine_chunks(), kept)


def _count(
    groups: pa.Array[Any], deleted: pa.Array[Any], counts: dict[int, tuple[int, int]]
) -> None:
    table = pa.table({"group": groups, "deleted": deleted.cast(pa.int64())})
    found = table.group_by("group").aggregate([("deleted", "count"), ("deleted", "sum")])
    for one in found.to_pylist():
        before = counts.get(one["group"], (0, 0))
        counts[one["group"]] = (before[0] + one["deleted_count"], before[1] + one["deleted_sum"])


def _deleted(session: Session, rows: pa.Table) -> pa.Array[Any]:
    merge = session.config.merge
    return marked_deleted(rows, merge.delete_field, merge.delete_marker)
