"""Assignment of rows that do not fit in memory, spilled by their target file.

Keys are looked up chunk by chunk, and each lookup has its own file group numbers: here they are
numbered in order of appearance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.engine.partitioned_spill import PartitionedSpill
from pyhudi.index import tagging
from pyhudi.index.protocol import TagResult
from pyhudi.slices.tagged_rows import Tagged, find_untagged, group_values
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.write.assigned_rows import AssignedLocalRows, DeletedKeys, GroupRows, in_partition
from pyhudi.write.pending_clustering import check_free
from pyhudi.write.write_context import WriteContext


class RowAssigner:
    """Spills rows by their targets, and counts the rows of each file group."""

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
        """Add rows to be merged by key. located: the index's tags of these rows."""
        deleted = self._session.find_delete_markers(rows)
        located = tagging.resolve_partition_moves(self._session, rows, deleted, located)
        self._kept_away += tagging.count_kept_in_partition(self._session, rows, deleted, located)
        tagged = located.tagged
        hit = self.to_group_numbers(located.groups, tagged.groups)
        self._put_hit(rows.take(tagged.rows), hit, deleted.take(tagged.rows))
        left_numbers = self.to_group_numbers(located.groups, tagged.left_groups)
        for number, at in group_values(left_numbers, tagged.left_rows):
            self.delete_keys(number, rows.column(RECORD_KEY).combine_chunks().take(at))
        new = find_untagged(rows.num_rows, tagged)
        self._put_fresh(rows.take(new), deleted.take(new))

    def put_at(self, rows: pa.Table, at: pa.Array[Any]) -> None:
        """Add rows with known targets. at: for each its file group number; null for new rows."""
        deleted = self._session.find_delete_markers(rows)
        is_assigned, is_new = pc.is_valid(at), pc.is_null(at)
        self._put_hit(rows.filter(is_assigned), at.filter(is_assigned), deleted.filter(is_assigned))
        self._put_fresh(rows.filter(is_new), deleted.filter(is_new))

    def delete_keys(self, number: int, keys: pa.Array[Any]) -> None:
        """Add record keys to delete from a file group."""
        self._leaving.setdefault(number, []).append(keys)

    def homes(self, at: pa.Array[Any]) -> pa.Array[Any]:
        """Return the partition paths of file groups by number."""
        paths = [group.slice.partition for group in self.groups]
        return pa.array(paths, pa.string()).take(at)

    def to_group_numbers(
        self, groups: Sequence[FileGroup], numbers: pa.Array[Any]
    ) -> pa.Array[Any]:
        """Translate the file group numbers of one lookup to the numbers here."""
        distinct = numbers.unique()
        own = [self._number(groups[number]) for number in distinct.to_pylist()]
        return pa.array(own, pa.int64()).take(pc.index_in(numbers, value_set=distinct))

    def all_rows(self) -> AssignedLocalRows:
        """Return all added rows."""
        fresh = self._fresh.routes()
        new_buckets = self._session.groups(list(fresh))[0]
        new_buckets = [group for group in new_buckets if self._place(group) not in self._numbers]
        return AssignedLocalRows(
            self._session,
            [*self.groups, *new_buckets],
            {
                number: GroupRows(rows, *self._counts[number])
                for number, rows in self._hit.routes().items()
            },
            {number: DeletedKeys(pa.concat_arrays(keys)) for number, keys in self._leaving.items()},
            fresh,
            self._kept_away,
        )

    def _put_hit(self, rows: pa.Table, at: pa.Array[Any], deleted: pa.Array[Any]) -> None:
        if rows.num_rows:
            self._hit.add(at, in_partition(rows, self.homes(at)))
            _count(at, deleted, self._counts)

    def _put_fresh(self, rows: pa.Table, deleted: pa.Array[Any]) -> None:
        live = rows.filter(pc.invert(deleted))
        if live.num_rows:
            self._fresh.add(live.column(PARTITION_PATH).combine_chunks(), live)

    def _number(self, group: FileGroup) -> int:
        number = self._numbers.setdefault(self._place(group), len(self.groups))
        if number == len(self.groups):
            check_free(self._session, [group])
            self.groups.append(group)
        return number

    def _place(self, group: FileGroup) -> tuple[str, str]:
        # Each lookup gives new buckets new file ids.
        return self._session.index.place(group.slice)


def slice_tagged(tagged: Tagged, first: int, count: int) -> Tagged:
    """Return the tags of a range of rows, numbered from 0."""
    after = pc.greater_equal(tagged.rows, first)
    inside = pc.and_(after, pc.less(tagged.rows, first + count))
    rows = pc.subtract(tagged.rows.filter(inside), pa.scalar(first, pa.int64()))
    return Tagged(rows, tagged.groups.filter(inside))


def _count(
    groups: pa.Array[Any], deleted: pa.Array[Any], counts: dict[int, tuple[int, int]]
) -> None:
    table = pa.table({"group": groups, "deleted": deleted.cast(pa.int64())})
    sums = table.group_by("group").aggregate([("deleted", "count"), ("deleted", "sum")])
    for row in sums.to_pylist():
        before = counts.get(row["group"], (0, 0))
        counts[row["group"]] = (before[0] + row["deleted_count"], before[1] + row["deleted_sum"])
