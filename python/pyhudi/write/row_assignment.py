"""Rows of a write that do not fit in memory, put aside by the file that they go to.

Whoever places them looks keys up piece by piece, and each look into the index has its own numbers
of file groups: here they are numbered as they come up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.engine.partitioned_spill import PartitionedSpill
from pyhudi.index import tagging
from pyhudi.index.tag_result import TagResult
from pyhudi.slices.tagged_rows import Tagged, find_untagged, group_values
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.write.assigned_rows import GroupRows, LeavingKeys, PlacedRows, in_partition
from pyhudi.write.pending_clustering import check_free
from pyhudi.write.write_context import WriteContext


class RowAssigner:
    """Puts rows aside by where they go, and counts what each file group gets."""

    def __init__(
        self, context: WriteContext, hit: PartitionedSpill[int], fresh: PartitionedSpill[str]
    ) -> None:
        self.groups: list[FileGroup] = []
        """By their numbers here."""
        self._session = context
        self._hit = hit
        self._fresh = fresh
        self._counts: dict[int, tuple[int, int]] = {}
        self._numbers: dict[tuple[str, str], int] = {}
        self._leaving: dict[int, list[pa.Array[Any]]] = {}
        self._kept_away = 0

    def put(self, rows: pa.Table, located: TagResult) -> None:
        """Rows to be merged by key. located: of these rows, as the index gives it."""
        deleted = self._session.find_delete_markers(rows)
        located = tagging.resolve_partition_moves(self._session, rows, deleted, located)
        self._kept_away += tagging.count_kept_in_partition(self._session, rows, deleted, located)
        tagged = located.tagged
        hit = self.to_group_numbers(located.groups, tagged.groups)
        self._put_hit(rows.take(tagged.rows), hit, deleted.take(tagged.rows))
        left = self.to_group_numbers(located.groups, tagged.left_groups)
        for number, at in group_values(left, tagged.left_rows):
            self.delete_keys(number, rows.column(RECORD_KEY).combine_chunks().take(at))
        new = find_untagged(rows.num_rows, tagged)
        self._put_fresh(rows.take(new), deleted.take(new))

    def put_at(self, rows: pa.Table, at: pa.Array[Any]) -> None:
        """Rows whose place is known. at: for each the number of a file group; null for new ones."""
        deleted = self._session.find_delete_markers(rows)
        known, new = pc.is_valid(at), pc.is_null(at)
        self._put_hit(rows.filter(known), at.filter(known), deleted.filter(known))
        self._put_fresh(rows.filter(new), deleted.filter(new))

    def delete_keys(self, number: int, keys: pa.Array[Any]) -> None:
        """Record keys to be deleted from a file group."""
        self._leaving.setdefault(number, []).append(keys)

    def homes(self, at: pa.Array[Any]) -> pa.Array[Any]:
        """The partition paths of file groups by number."""
        paths = [group.slice.partition for group in self.groups]
        return pa.array(paths, pa.string()).take(at)

    def to_group_numbers(
        self, groups: Sequence[FileGroup], numbers: pa.Array[Any]
    ) -> pa.Array[Any]:
        """Numbers that stand for file groups in one look-up, as those that stand for them here."""
        known = numbers.unique()
        own = [self._number(groups[number]) for number in known.to_pylist()]
        return pa.array(own, pa.int64()).take(pc.index_in(numbers, value_set=known))

    def all_rows(self) -> PlacedRows:
        """All that was put."""
        fresh = self._fresh.routes()
        others = self._session.groups(list(fresh))[0]
        others = [group for group in others if self._place(group) not in self._numbers]
        return PlacedRows(
            self._session,
            [*self.groups, *others],
            {
                number: GroupRows(rows, *self._counts[number])
                for number, rows in self._hit.routes().items()
            },
            {number: LeavingKeys(pa.concat_arrays(keys)) for number, keys in self._leaving.items()},
            fresh,
            self._kept_away,
        )

    def _put_hit(self, rows: pa.Table, at: pa.Array[Any], deleted: pa.Array[Any]) -> None:
        if rows.num_rows:
            self._hit.add(at, in_partition(rows, self.homes(at)))
            _count(at, deleted, self._counts)

    def _put_fresh(self, rows: pa.Table, deleted: pa.Array[Any]) -> None:
        kept = rows.filter(pc.invert(deleted))
        if kept.num_rows:
            self._fresh.add(kept.column(PARTITION_PATH).combine_chunks(), kept)

    def _number(self, group: FileGroup) -> int:
        number = self._numbers.setdefault(self._place(group), len(self.groups))
        if number == len(self.groups):
            check_free(self._session, [group])
            self.groups.append(group)
        return number

    def _place(self, group: FileGroup) -> tuple[str, str]:
        # Each look-up names new buckets anew.
        return self._session.index.place(group.slice)


def slice_tagged(tagged: Tagged, first: int, count: int) -> Tagged:
    """What is known of some rows, numbered from 0."""
    after = pc.greater_equal(tagged.rows, first)
    inside = pc.and_(after, pc.less(tagged.rows, first + count))
    rows = pc.subtract(tagged.rows.filter(inside), pa.scalar(first, pa.int64()))
    return Tagged(rows, tagged.groups.filter(inside))


def _count(
    groups: pa.Array[Any], deleted: pa.Array[Any], counts: dict[int, tuple[int, int]]
) -> None:
    table = pa.table({"group": groups, "deleted": deleted.cast(pa.int64())})
    found = table.group_by("group").aggregate([("deleted", "count"), ("deleted", "sum")])
    for row in found.to_pylist():
        before = counts.get(row["group"], (0, 0))
        counts[row["group"]] = (before[0] + row["deleted_count"], before[1] + row["deleted_sum"])
