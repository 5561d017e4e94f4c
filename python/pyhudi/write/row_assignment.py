"""Assignment of rows that do not fit in memory; they are spilled by target.

Keys are looked up chunk by chunk. Each lookup numbers its file groups from 0; `RowAssigner` numbers
all of them, in order of appearance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.engine.spill import PartitionedSpill, RouteRows
from pyhudi.index import tagging
from pyhudi.index.protocol import TagResult
from pyhudi.slices.tagged_rows import Tagged, find_untagged, group_values
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.write.assigned_rows import AssignedLocalRows, DeletedKeys, GroupRows, with_partition
from pyhudi.write.pending_clustering import check_update_allowed
from pyhudi.write.write_context import WriteContext


class RowAssigner:
    """Spills rows by target and counts the rows of each file group."""

    def __init__(
        self, context: WriteContext, updates: PartitionedSpill[int], inserts: PartitionedSpill[str]
    ) -> None:
        self.groups: list[FileGroup] = []
        """File groups by number."""
        self._context = context
        self._updates = updates
        self._inserts = inserts
        self._counts: dict[int, tuple[int, int]] = {}
        self._numbers: dict[tuple[str, str], int] = {}
        self._deletes: dict[int, list[pa.Array[Any]]] = {}
        self._kept_in_partition = 0

    def add(self, rows: pa.Table, tag_result: TagResult) -> None:
        """Add rows that are merged by key. tag_result: the tags of these rows."""
        is_delete = self._context.find_delete_markers(rows)
        tag_result = tagging.resolve_partition_moves(self._context, rows, is_delete, tag_result)
        self._kept_in_partition += tagging.count_kept_in_partition(
            self._context, rows, is_delete, tag_result
        )
        tagged = tag_result.tagged
        group_numbers = self.to_group_numbers(tag_result.groups, tagged.groups)
        self._add_updates(rows.take(tagged.rows), group_numbers, is_delete.take(tagged.rows))
        old_groups = self.to_group_numbers(tag_result.groups, tagged.left_groups)
        for number, at in group_values(old_groups, tagged.left_rows):
            self.delete_keys(number, rows.column(RECORD_KEY).combine_chunks().take(at))
        untagged = find_untagged(rows.num_rows, tagged)
        self._add_inserts(rows.take(untagged), is_delete.take(untagged))

    def add_assigned(self, rows: pa.Table, at: pa.Array[Any]) -> None:
        """Add rows with known targets. at: the file group number of each row; null for inserts."""
        is_delete = self._context.find_delete_markers(rows)
        is_assigned, is_new = pc.is_valid(at), pc.is_null(at)
        self._add_updates(
            rows.filter(is_assigned), at.filter(is_assigned), is_delete.filter(is_assigned)
        )
        self._add_inserts(rows.filter(is_new), is_delete.filter(is_new))

    def delete_keys(self, number: int, keys: pa.Array[Any]) -> None:
        """Add record keys to delete from a file group."""
        self._deletes.setdefault(number, []).append(keys)

    def partition_paths(self, groups: pa.Array[Any]) -> pa.Array[Any]:
        """Return the partition path of each numbered file group."""
        paths = [group.slice.partition for group in self.groups]
        return pa.array(paths, pa.string()).take(groups)

    def to_group_numbers(
        self, groups: Sequence[FileGroup], numbers: pa.Array[Any]
    ) -> pa.Array[Any]:
        """Translate the file group numbers of one lookup to those of this object."""
        distinct = numbers.unique()
        translated = [self._number(groups[number]) for number in distinct.to_pylist()]
        return pa.array(translated, pa.int64()).take(pc.index_in(numbers, value_set=distinct))

    def all_rows(self) -> AssignedLocalRows:
        """Return all added rows."""
        inserts = self._inserts.routes()
        new_buckets = self._context.groups(list(inserts))[0]
        new_buckets = [
            group for group in new_buckets if self._group_key(group) not in self._numbers
        ]
        return AssignedLocalRows(
            self._context,
            [*self.groups, *new_buckets],
            {
                number: GroupRows(rows, *self._counts[number])
                for number, rows in self._updates.routes().items()
            },
            {number: DeletedKeys(pa.concat_arrays(keys)) for number, keys in self._deletes.items()},
            inserts,
            self._kept_in_partition,
        )

    def _add_updates(self, rows: pa.Table, groups: pa.Array[Any], is_delete: pa.Array[Any]) -> None:
        if rows.num_rows:
            self._updates.add(groups, with_partition(rows, self.partition_paths(groups)))
            _count(groups, is_delete, self._counts)

    def _add_inserts(self, rows: pa.Table, is_delete: pa.Array[Any]) -> None:
        kept = rows.filter(pc.invert(is_delete))
        if kept.num_rows:
            self._inserts.add(kept.column(PARTITION_PATH).combine_chunks(), kept)

    def _number(self, group: FileGroup) -> int:
        number = self._numbers.setdefault(self._group_key(group), len(self.groups))
        if number == len(self.groups):
            check_update_allowed(self._context, [group])
            self.groups.append(group)
        return number

    def _group_key(self, group: FileGroup) -> tuple[str, str]:
        # A file id does not identify a new bucket: each lookup generates another one.
        return self._context.index.location_of(group.slice)


def batch_keys(
    keyed_parts: Iterable[tuple[RouteRows, pa.Table]], max_bytes: int
) -> Iterator[list[tuple[RouteRows, pa.Table]]]:
    """Yield parts of the rows with their keys, in batches whose keys fit in memory for a lookup."""
    batch: list[tuple[RouteRows, pa.Table]] = []
    size = 0
    for part, keys in keyed_parts:
        batch.append((part, keys))
        size += keys.nbytes
        if size > max_bytes:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def slice_tagged(tagged: Tagged, first: int, count: int) -> Tagged:
    """Return the tags of a range of rows, which is numbered from 0."""
    after = pc.greater_equal(tagged.rows, first)
    inside = pc.and_(after, pc.less(tagged.rows, first + count))
    rows = pc.subtract(tagged.rows.filter(inside), pa.scalar(first, pa.int64()))
    return Tagged(rows, tagged.groups.filter(inside))


def _count(
    groups: pa.Array[Any], is_delete: pa.Array[Any], counts: dict[int, tuple[int, int]]
) -> None:
    table = pa.table({"group": groups, "deleted": is_delete.cast(pa.int64())})
    sums = table.group_by("group").aggregate([("deleted", "count"), ("deleted", "sum")])
    for row in sums.to_pylist():
        total = counts.get(row["group"], (0, 0))
        counts[row["group"]] = (total[0] + row["deleted_count"], total[1] + row["deleted_sum"])
