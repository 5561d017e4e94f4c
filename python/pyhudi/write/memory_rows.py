"""Rows of a write in memory; `row_protocols.py` documents the methods."""

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
from pyhudi.write.assigned_rows import AssignedLocalRows, DeletedKeys, GroupRows, with_partition
from pyhudi.write.duplicate_policy import count_existing, drop_existing_keys
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
            self.counters.count_combined(self.context, self.rows, combined)
        return replace(self, rows=combined)

    def without_existing_keys(self, *, fail: bool) -> UnassignedRows:
        """See `UnassignedRows`."""
        rows = drop_existing_keys(self.context, self.rows, fail=fail)
        if self.counters is not None:
            self.counters.count_dropped(self.rows, rows)
        return replace(self, rows=rows)

    def count_existing_keys(self) -> MemoryRows:
        """See `UnassignedRows`."""
        if self.counters is not None:
            self.counters.inserted_duplicates += count_existing(self.context, self.rows)
        return self

    def fill_missing_columns(self) -> UnassignedRows:
        """See `UnassignedRows`."""
        context = self.context.recover()
        return replace(self, context=context, rows=whole_rows(context, self.rows))

    def for_upsert(self) -> AssignedRows:
        """See `UnassignedRows`."""
        context, rows = self.context.recover(), self.rows
        is_delete = context.find_delete_markers(rows)
        tag_result = tagging.tag_upsert(context, rows, is_delete)
        kept = tagging.count_kept_in_partition(context, rows, is_delete, tag_result)
        return replace(assign_rows(context, rows, is_delete, tag_result), kept_in_partition=kept)

    def for_insert(
        self,
        order: tuple[str, ...] = (),
        *,
        is_global: bool = False,  # noqa: ARG002 - all rows are here
    ) -> AssignedRows:
        """See `UnassignedRows`."""
        return self._assign(tagging.tag_insert, order)

    def for_new_buckets(self) -> AssignedRows:
        """See `UnassignedRows`."""
        return self._assign(tagging.tag_new_buckets, ()).with_partitions(self._paths_of_deletes())

    def _assign(self, tag: Any, order: tuple[str, ...]) -> AssignedLocalRows:
        rows = self._without_deletes()
        if order:
            rows = rows.take(_sort_indices(rows, order))
        context = self.context.recover()
        none = pa.repeat(pa.scalar(value=False), rows.num_rows)
        return assign_rows(context, rows, none, tag(context, rows, none))

    def for_new_files(
        self,
        order: tuple[str, ...] = (),
        *,
        is_global: bool = False,  # noqa: ARG002 - all rows are here
        counted: bool = True,  # noqa: ARG002 - counting costs nothing
    ) -> AssignedLocalRows:
        """See `UnassignedRows`."""
        rows = self._without_deletes()
        paths, row_order = _paths(rows), row_numbers(rows.num_rows)
        if order:
            row_order = _sort_indices(rows, order)
            paths = paths.take(row_order)
        inserts = {
            partition: rows.take(part) if order else SelectedRows(rows, part)
            for partition, part in group_values(paths, row_order)
        }
        assigned = AssignedLocalRows(self.context.recover(), inserts=inserts)
        return assigned.with_partitions(self._paths_of_deletes())

    def _paths_of_deletes(self) -> list[str]:
        """Return the partition paths of delete rows."""
        is_delete = self.context.find_delete_markers(self.rows)
        paths: list[str] = _paths(self.rows).filter(is_delete).unique().to_pylist()
        return paths

    def _without_deletes(self) -> pa.Table:
        is_delete = self.context.find_delete_markers(self.rows)
        return self.rows.filter(pc.invert(is_delete)) if pc.any(is_delete).as_py() else self.rows


def _sort_indices(rows: pa.Table, order: tuple[str, ...]) -> pa.Array[Any]:
    keys = [(name, "ascending") for name in order]
    return pc.sort_indices(rows, sort_keys=keys).cast(pa.int64())


def _paths(rows: pa.Table) -> pa.Array[Any]:
    return rows.column(PARTITION_PATH).combine_chunks()


def assign_rows(
    context: WriteContext, rows: pa.Table, is_delete: pa.Array[Any], tag_result: TagResult
) -> AssignedLocalRows:
    """Assign tagged rows to file groups, the others to partitions. Drop deletes of missing keys.

    is_delete: for each row whether it deletes its key.
    """
    tagged, groups = tag_result.tagged, tag_result.groups
    inserted = find_untagged(rows.num_rows, tagged)
    inserted = inserted.filter(pc.invert(is_delete.take(inserted)))
    updates, deletes = dict(tagged.by_group()), tagged.deletes_by_group()
    if updates or deletes:
        # Taking rows from many chunks scans all chunks for each group.
        rows = rows.combine_chunks()
    keys, base_rows = rows.column(RECORD_KEY), tagged.base_rows_by_group()
    return AssignedLocalRows(
        context,
        groups,
        updates={
            number: GroupRows(
                with_partition(rows.take(at), groups[number].slice.partition),
                len(at),
                pc.sum(is_delete.take(at)).as_py() or 0,
                base_rows.get(number),
            )
            for number, at in updates.items()
        },
        deletes={
            number: DeletedKeys(keys.take(at).combine_chunks()) for number, at in deletes.items()
        },
        inserts={
            path: SelectedRows(rows, part)
            for path, part in group_values(_paths(rows).take(inserted), inserted)
        },
        missing_keys=_select_missing(rows, tagged),
    )


def _select_missing(keys: pa.Table, tagged: Tagged) -> pa.Table:
    """Return a copy of the missing keys, since rows are released file by file."""
    return keys.select([RECORD_KEY, PARTITION_PATH]).take(find_untagged(keys.num_rows, tagged))


def assign_deletes(
    context: WriteContext, keys: pa.Table, *, in_partitions: bool
) -> AssignedLocalRows:
    """Assign keys to delete to file groups, by the index of a recovered table.

    keys: columns record key and partition path. The path is ignored unless `in_partitions`.
    """
    tag_result = tagging.tag_delete(context, keys, in_partitions=in_partitions)
    record_keys = keys.column(RECORD_KEY).combine_chunks()
    base_rows = tag_result.tagged.base_rows_by_group()
    deletes = {
        number: DeletedKeys(record_keys.take(at), base_rows.get(number))
        for number, at in tag_result.tagged.by_group()
    }
    missing_keys = _select_missing(keys, tag_result.tagged)
    if not in_partitions:
        missing_keys = missing_keys.drop_columns([PARTITION_PATH])
    return AssignedLocalRows(context, tag_result.groups, deletes=deletes, missing_keys=missing_keys)
