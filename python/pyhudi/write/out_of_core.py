"""Writing data that do not fit in memory: brought together on local disk by where they go.

Rows are put aside three times at most: by hash of their keys, if rows of one key must meet before
they are written; then by file group and by partition, from where each file's task streams them.
What is held in memory at any time is a fraction of the limit: a piece of the data, the keys that
are looked up, one part of the rows. The driver's disk holds the rows, so the local engine writes
from there; an engine of other processes sends each task its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.config.index_options import BUCKET
from pyhudi.engine.spill_by_route import Shelf, ShelvedRows
from pyhudi.index import locate
from pyhudi.index.bucket import bucket_of
from pyhudi.index.located import Located
from pyhudi.schema.conform import marked_deleted
from pyhudi.schema.record_keys import PARTITION_PATH, RECORD_KEY
from pyhudi.slices.tagged import Tagged, row_numbers, split, untagged
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.write import plan_rows as plan
from pyhudi.write.incoming import Intake
from pyhudi.write.plan_partitioned import UpdatePart
from pyhudi.write.write_context import Session

LookUp = Callable[["Session", pa.Table, "pa.Array[Any]"], Located]

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
    leaving: dict[int, pa.Array[Any]]
    """Keys that leave a file group for another partition, by its number. In memory."""
    kept_away: int = 0
    """Updates of keys in another partition than their own, which go there."""


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
    stack: ExitStack,
    session: Session,
    shelved: list[ShelvedRows],
    limit: int,
    *,
    combine: bool,
    deletes: bool = True,
    find: LookUp = locate.look_up,
    order: tuple[str, ...] = (),
) -> Parts:
    """The rows by the file group that has their keys, those that none has by partition.

    shelved: as `by_key` gives them. Deletes of keys that are nowhere fall away, all deletes do
    without `deletes`. find: what asks the index. order: columns by which each run of rows of a file
    group in memory is sorted. Raises `CommitConflict` as `plan_rows` does.
    """
    place = _Placing(stack, session, limit, order)
    for batch in _key_batches(session, shelved, limit, combine=combine):
        keys = pa.concat_tables(keys for _, keys in batch)
        deleted = keys.column(_DELETED).combine_chunks()
        located = find(session, keys.select([RECORD_KEY, PARTITION_PATH]), deleted)
        first = 0
        for rows in _again(session, [part for part, _ in batch], combine=combine):
            part = _part_of(located.tagged, first, rows.num_rows)
            place.put(rows, Located(part, located.groups), deletes=deletes)
            first += rows.num_rows
    return place.parts()


# --- by key ---------------------------------------------------------------------------------------


def by_key(stack: ExitStack, intake: Intake) -> list[ShelvedRows]:
    """The rows in parts, with all rows of one key in one of them, in the order they came."""
    shelf: Shelf[int] = stack.enter_context(Shelf(intake.memory_limit // _SHELF))
    for rows in intake.pieces:
        keys = rows.column(RECORD_KEY).combine_chunks()
        shelf.add(_native.key_parts(keys, _PARTS), rows)
    return list(shelf.routes().values())


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
        keys = keys.append_column(_DELETED, _deleted(session, rows))
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


_DELETED = "_pyhudi_deleted"


class _Placing:
    """Puts rows aside by where they go, and counts what each file group gets.

    File groups are numbered as they come up, since each look into the index has its own numbers.
    """

    def __init__(
        self, stack: ExitStack, session: Session, limit: int, order: tuple[str, ...] = ()
    ) -> None:
        self._session = session
        self._hit: Shelf[int] = stack.enter_context(Shelf(limit // _SHELF, order))
        self._fresh: Shelf[str] = stack.enter_context(Shelf(limit // _SHELF))
        self._counts: dict[int, tuple[int, int]] = {}
        self._groups: list[FileGroup] = []
        self._numbers: dict[tuple[str, str], int] = {}
        self._leaving: dict[int, list[pa.Array[Any]]] = {}
        self._kept_away = 0

    def put(self, rows: pa.Table, located: Located, *, deletes: bool) -> None:
        """located: of these rows, as `locate.look_up` gives it."""
        deleted = _deleted(self._session, rows)
        located = locate.settled(self._session, rows, deleted, located)
        self._kept_away += locate.kept_away(self._session, rows, deleted, located)
        tagged = (
            located.tagged
            if deletes
            else located.tagged.only(pc.invert(deleted.take(located.tagged.rows)))
        )
        hit = self._numbered(located.groups, tagged.groups)
        if len(hit):
            homes = pa.array([group.slice.partition for group in self._groups], pa.string())
            part = _with_homes(rows.take(tagged.rows), homes.take(hit))
            self._hit.add(hit, part)
            _count(hit, deleted.take(tagged.rows), self._counts)
        left = self._numbered(located.groups, tagged.left_groups)
        for number, at in split(left, tagged.left_rows):
            keys = rows.column(RECORD_KEY).combine_chunks().take(at)
            self._leaving.setdefault(number, []).append(keys)
        new = untagged(rows.num_rows, tagged)
        new = new.filter(pc.invert(deleted.take(new)))
        if len(new):
            kept = rows.take(new)
            self._fresh.add(kept.column(PARTITION_PATH).combine_chunks(), kept)

    def _numbered(self, groups: list[FileGroup], numbers: pa.Array[Any]) -> pa.Array[Any]:
        """Numbers that stand for file groups in one look-up, as those that stand for them here."""
        known = numbers.unique()
        own = [self._number(groups[number]) for number in known.to_pylist()]
        return pa.array(own, pa.int64()).take(pc.index_in(numbers, value_set=known))

    def _number(self, group: FileGroup) -> int:
        number = self._numbers.setdefault(_identity(self._session, group), len(self._groups))
        if number == len(self._groups):
            plan.check_not_clustered([group])
            self._groups.append(group)
        return number

    def parts(self) -> Parts:
        """All that was put."""
        updates = {
            number: UpdatePart(rows, *self._counts[number])
            for number, rows in self._hit.routes().items()
        }
        fresh = self._fresh.routes()
        for group in self._session.groups(list(fresh))[0]:
            if _identity(self._session, group) not in self._numbers:
                self._groups.append(group)
        leaving = {number: pa.concat_arrays(keys) for number, keys in self._leaving.items()}
        return Parts(updates, fresh, self._groups, leaving, self._kept_away)


def _identity(session: Session, group: FileGroup) -> tuple[str, str]:
    """What a file group is known by: a new bucket by its number, as each look-up names it anew."""
    slice_ = group.slice
    numbered = session.index.kind == BUCKET and not session.index.consistent
    name = f"bucket {bucket_of(slice_.file_id)}" if numbered else slice_.file_id
    return slice_.partition, name


def _with_homes(rows: pa.Table, homes: pa.Array[Any]) -> pa.Table:
    """The rows with the partition paths of the file groups that they go to."""
    at = rows.schema.get_field_index(PARTITION_PATH)
    return rows.set_column(at, rows.schema.field(at), homes)


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
