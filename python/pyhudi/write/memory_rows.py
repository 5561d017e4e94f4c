"""Rows of a write that are in memory: see `row_protocols.py` for the methods."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.index import tagging
from pyhudi.index.protocol import TagResult
from pyhudi.slices.row_selection import SelectedRows
from pyhudi.slices.tagged_rows import Tagged, find_untagged, group_values, row_numbers
from pyhudi.write.assigned_rows import AssignedLocalRows, DeletedKeys, GroupRows, in_partition
from pyhudi.write.existing_keys import count_existing, drop_existing_keys
from pyhudi.write.partial_update import whole_rows
from pyhudi.write.row_counters import RowCounters
from pyhudi.write.row_protocols import AssignedRows, UnassignedRows
from pyhudi.write.write_context import WriteContext


@dataclass(frozen=True)
class MemoryRows:
    """Rows in one table."""

    context: WriteContext
    rows: pa.Table
    """Record key and partition path are the first columns."""
    counters: RowCounters | None = None
    """See `UnassignedRows`."""

    def combine(self) -> UnassignedRows:
        """See `UnassignedRows`."""
        combined = tagging.combine(self.context, self.rows)
        if self.counters is not None:
            crossed = tagging.cross_partition_duplicates(self.context, self.rows, combined)
            self.counters.cross_partition_duplicates += pc.sum(crossed).as_py() or 0
        return self._keep_rows(combined)

    def without_existing_keys(self, *, fail: bool) -> UnassignedRows:
        """See `UnassignedRows`."""
        return self._keep_rows(drop_existing_keys(self.context, self.rows, fail=fail))

    def count_existing_keys(self) -> MemoryRows:
        """See `UnassignedRows`."""
        if self.counters is not None:
            self.counters.inserted_duplicates += count_existing(self.context, self.rows)
        return self

    def _keep_rows(self, rows: pa.Table) -> MemoryRows:
        if self.counters is not None:
            self.counters.count_dropped(self.rows, rows)
        return replace(self, rows=rows)

    def fill_missing_columns(self) -> UnassignedRows:
        """See `UnassignedRows`."""
        context = self.context.recover()
        return replace(self, context=context, rows=whole_rows(context, self.rows))

    def for_upsert(self) -> AssignedRows:
        """See `UnassignedRows`."""
        context, rows = self.context.recover(), self.rows
        marked = context.find_delete_markers(rows)
        located = tagging.tag_upsert(context, rows, marked)
        kept_in_partition = tagging.count_kept_in_partition(context, rows, marked, located)
        return replace(
            assign_rows(context, rows, marked, located), kept_in_partition=kept_in_partition
        )

    def for_insert(
        self,
        order: tuple[str, ...] = (),
        *,
        whole: bool = False,  # noqa: ARG002 - all rows are here
    ) -> AssignedRows:
        """See `UnassignedRows`."""
        return self._assign(tagging.tag_insert, order)

    def for_new_buckets(self) -> AssignedRows:
        """See `UnassignedRows`."""
        return self._assign(tagging.tag_new_buckets, ()).also_in(self._paths_of_deletes())

    def _assign(self, find: Any, order: tuple[str, ...]) -> AssignedLocalRows:
        rows = self._live()
        if order:
            rows = rows.take(_sort_indices(rows, order))
        context = self.context.recover()
        none = pa.repeat(pa.scalar(value=False), rows.num_rows)
        return assign_rows(context, rows, none, find(context, rows, none))

    def for_new_files(
        self,
        order: tuple[str, ...] = (),
        *,
        whole: bool = False,  # noqa: ARG002 - all rows are here
        counted: bool = True,  # noqa: ARG002 - counting costs nothing
    ) -> AssignedLocalRows:
        """See `UnassignedRows`."""
        rows = self._live()
        paths, numbers = _paths(rows), row_numbers(rows.num_rows)
        if order:
            numbers = _sort_indices(rows, order)
            paths = paths.take(numbers)
        inserts = {
            partition: rows.take(part) if order else SelectedRows(rows, part)
            for partition, part in group_values(paths, numbers)
        }
        placed = AssignedLocalRows(self.context.recover(), inserts=inserts)
        return placed.also_in(self._paths_of_deletes())

    def _paths_of_deletes(self) -> list[str]:
        """Return the partition paths of delete rows."""
        marked = self.context.find_delete_markers(self.rows)
        paths: list[str] = _paths(self.rows).filter(marked).unique().to_pylist()
        return paths

    def _live(self) -> pa.Table:
        marked = self.context.find_delete_markers(self.rows)
        return self.rows.filter(pc.invert(marked)) if pc.any(marked).as_py() else self.rows


def _sort_indices(rows: pa.Table, order: tuple[str, ...]) -> pa.Array[Any]:
    keys = [(name, "ascending") for name in order]
    return pc.sort_indices(rows, sort_keys=keys).cast(pa.int64())


def _paths(rows: pa.Table) -> pa.Array[Any]:
    return rows.column(PARTITION_PATH).combine_chunks()


def assign_rows(
    context: WriteContext, rows: pa.Table, marked_deleted: pa.Array[Any], located: TagResult
) -> AssignedLocalRows:
    """Assign rows by the result of an index. Deletes of missing keys are dropped.

    marked_deleted: for each row whether it deletes its key.
    """
    tagged, groups = located.tagged, located.groups
    new = find_untagged(rows.num_rows, tagged)
    new = new.filter(pc.invert(marked_deleted.take(new)))
    updates, deletes = dict(tagged.by_group()), tagged.leaving()
    if updates or deletes:
        # One chunk, because taking rows from many chunks scans all of them for each group.
        rows = rows.combine_chunks()
    keys, base_rows = rows.column(RECORD_KEY), tagged.base_rows_by_group()
    return AssignedLocalRows(
        context,
        groups,
        updates={
            number: GroupRows(
                in_partition(rows.take(at), groups[number].slice.partition),
                len(at),
                pc.sum(marked_deleted.take(at)).as_py() or 0,
                base_rows.get(number),
            )
            for number, at in updates.items()
        },
        deletes={
            number: DeletedKeys(keys.take(at).combine_chunks()) for number, at in deletes.items()
        },
        inserts={
            path: SelectedRows(rows, part)
            for path, part in group_values(_paths(rows).take(new), new)
        },
        missing_keys=_select_missing(rows, tagged),
    )


def _select_missing(keys: pa.Table, tagged: Tagged) -> pa.Table:
    """Return the missing keys, as a copy, since the rows are released file by file."""
    return keys.select([RECORD_KEY, PARTITION_PATH]).take(find_untagged(keys.num_rows, tagged))


def assign_deletes(
    context: WriteContext, keys: pa.Table, *, in_partitions: bool
) -> AssignedLocalRows:
    """Assign keys to delete, by the index of a recovered table.

    keys: columns record key and partition path. The path counts only if keys are looked up
    `in_partitions`.
    """
    located = tagging.tag_delete(context, keys, in_partitions=in_partitions)
    record_keys, base_rows = (
        keys.column(RECORD_KEY).combine_chunks(),
        located.tagged.base_rows_by_group(),
    )
    deletes = {
        number: DeletedKeys(record_keys.take(at), base_rows.get(number))
        for number, at in located.tagged.by_group()
    }
    missing_keys = _select_missing(keys, located.tagged)
    if not in_partitions:
        missing_keys = missing_keys.drop_columns([PARTITION_PATH])
    return AssignedLocalRows(context, located.groups, deletes=deletes, missing_keys=missing_keys)
