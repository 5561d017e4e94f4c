"""Rows of a write that do not fit in memory: spilled to local disk by target.

Rows are spilled by key hash if rows of one key must be combined or looked up, then by file group
and partition. The task of each file streams its rows from there. At any time a fraction of the
limit is in memory: a chunk of the data, the keys of a lookup, or one key partition. The local
engine writes from the driver's disk; an engine with other processes sends each task its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.engine.spill import PartitionedSpill, RouteRows
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.index import tagging
from pyhudi.index.protocol import TagResult
from pyhudi.slices.tagged_rows import row_numbers
from pyhudi.write.assigned_rows import AssignedLocalRows
from pyhudi.write.duplicate_policy import count_existing, drop_existing_keys
from pyhudi.write.row_assignment import RowAssigner, batch_keys, slice_tagged
from pyhudi.write.row_counters import RowCounters
from pyhudi.write.row_protocols import AssignedRows, UnassignedRows
from pyhudi.write.write_context import WriteContext

LookUp = Callable[["WriteContext", pa.Table, "pa.Array[Any]"], TagResult]

_PARTS = 64
"""Number of key partitions. Combining loads one at a time, so data may be this much larger."""
_SPILL = 8
"""A spill buffers this part of the limit before it writes."""
_DELETED = "_pyhudi_deleted"


@dataclass(frozen=True)
class SpilledRows:
    """Rows in chunks; see `UnassignedRows` for the methods."""

    context: WriteContext
    stack: ExitStack
    """Closes the spills."""
    chunks: Iterator[pa.Table]
    memory_limit: int
    combines_keys: bool = False
    """Whether rows of one key are combined, which happens within each key partition."""
    counters: RowCounters | None = None
    """See `UnassignedRows`."""
    deleted_paths: set[str] = field(default_factory=set)
    """Partition paths of the delete rows read so far."""

    def combine(self) -> UnassignedRows:
        """See `UnassignedRows`."""
        return replace(self, combines_keys=True)

    def without_existing_keys(self, *, fail: bool) -> UnassignedRows:
        """See `UnassignedRows`; raises when chunks are read."""

        def drop_existing(chunk: pa.Table) -> pa.Table:
            rows = drop_existing_keys(self.context, chunk, fail=fail)
            if self.counters is not None:
                self.counters.count_dropped(chunk, rows)
            return rows

        return replace(self, chunks=map(drop_existing, self.chunks))

    def count_existing_keys(self) -> SpilledRows:
        """See `UnassignedRows`; counts when chunks are read."""

        def count(chunk: pa.Table) -> pa.Table:
            if self.counters is not None:
                self.counters.inserted_duplicates += count_existing(self.context, chunk)
            return chunk

        return replace(self, chunks=map(count, self.chunks))

    def fill_missing_columns(self) -> UnassignedRows:
        """See `UnassignedRows`."""
        raise UnsupportedTableFeature("rows with missing columns do not fit in memory")

    def for_upsert(self) -> AssignedRows:
        """See `UnassignedRows`."""
        return self._assign_by_location(tagging.look_up)

    def for_insert(self, order: tuple[str, ...] = (), *, is_global: bool = False) -> AssignedRows:
        """See `UnassignedRows`. Raises `ConfigError` if `is_global`."""
        self._check_sorting(is_global=is_global)
        if self.context.index.has_buckets:
            return self._assign_by_location(tagging.tag_insert, order)
        assigned = self._spill_by_partition()
        groups, _ = assigned.context.groups(list(assigned.inserts))
        return replace(assigned, groups=groups)

    def for_new_buckets(self) -> AssignedRows:
        """See `UnassignedRows`."""
        return self._assign_by_location(tagging.tag_new_buckets).with_partitions(self.deleted_paths)

    def for_new_files(
        self,
        order: tuple[str, ...] = (),
        *,
        is_global: bool = False,
        counted: bool = True,  # noqa: ARG002 - counting costs nothing
    ) -> AssignedLocalRows:
        """See `UnassignedRows`. Raises `ConfigError` if `is_global`."""
        self._check_sorting(is_global=is_global)
        return self._spill_by_partition(order).with_partitions(self.deleted_paths)

    def _check_sorting(self, *, is_global: bool) -> None:
        if is_global:
            msg = f"the data are too large to sort in {self.memory_limit} bytes of memory"
            raise ConfigError(msg, hint='Increase memory_limit, or use sort="partition".')

    def _spill_by_partition(self, order: tuple[str, ...] = ()) -> AssignedLocalRows:
        spill: PartitionedSpill[str] = self._spill(order)
        chunks = self._merge_parts(self._spill_by_key()) if self.combines_keys else self.chunks
        for rows in chunks:
            is_delete = self.context.find_delete_markers(rows)
            self._note_deleted_paths(rows, is_delete)
            live = rows.filter(pc.invert(is_delete))
            if live.num_rows:
                spill.add(live.column(PARTITION_PATH).combine_chunks(), live)
        return AssignedLocalRows(self.context.recover(), inserts=spill.routes())

    def _note_deleted_paths(self, rows: pa.Table, is_delete: pa.Array[Any]) -> None:
        paths = rows.column(PARTITION_PATH).filter(is_delete)
        self.deleted_paths.update(paths.unique().to_pylist())

    def _assign_by_location(
        self, look_up: LookUp, order: tuple[str, ...] = ()
    ) -> AssignedLocalRows:
        """Assign rows to the file groups with their keys, and new rows to partitions.

        look_up: queries the index. order: columns that sort each run of rows of a file group.
        """
        parts = self._spill_by_key()
        context = self.context.recover()
        updates, inserts = self._spill(order), self._spill(())
        assigner = RowAssigner(context, updates, inserts)
        for batch in batch_keys(self._keys(parts), self.memory_limit // _SPILL):
            keys = pa.concat_tables(keys for _, keys in batch)
            deleted = keys.column(_DELETED).combine_chunks()
            self._note_deleted_paths(keys, deleted)
            tag_result = look_up(context, keys.select([RECORD_KEY, PARTITION_PATH]), deleted)
            row = 0
            for part, _ in batch:
                rows = self._combine_part(part.to_table())
                tagged = slice_tagged(tag_result.tagged, row, rows.num_rows)
                assigner.add(rows, TagResult(tagged, tag_result.groups))
                row += rows.num_rows
        return assigner.all_rows()

    def _spill(self, order: tuple[str, ...]) -> PartitionedSpill[Any]:
        return self.stack.enter_context(PartitionedSpill(self.memory_limit // _SPILL, order))

    def _spill_by_key(self) -> list[RouteRows]:
        """Spill rows by key hash; each part keeps their order."""
        spill: PartitionedSpill[int] = self._spill(())
        for rows in self.chunks:
            keys = rows.column(RECORD_KEY).combine_chunks()
            spill.add(_native.key_parts(keys, _PARTS), rows)
        return list(spill.routes().values())

    def _merge_parts(self, parts: list[RouteRows]) -> Iterator[pa.Table]:
        """Yield the combined rows of each part. This first pass also counts them."""
        for part in parts:
            part_rows = part.to_table()
            rows = self._combine_part(part_rows)
            if self.counters is not None:
                self.counters.count_combined(self.context, part_rows, rows)
            yield rows

    def _combine_part(self, rows: pa.Table) -> pa.Table:
        return tagging.combine(self.context, rows) if self.combines_keys else rows

    def _keys(self, parts: list[RouteRows]) -> Iterator[tuple[RouteRows, pa.Table]]:
        """Yield each part with the keys of its rows, and whether each row deletes its key."""
        for part, rows in zip(parts, self._merge_parts(parts), strict=True):
            # A copy of the two columns: data from the core or a file is freed only as a whole.
            keys = rows.select([RECORD_KEY, PARTITION_PATH]).take(row_numbers(rows.num_rows))
            yield part, keys.append_column(_DELETED, self.context.find_delete_markers(rows))
