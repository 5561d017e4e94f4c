"""Rows of a write that do not fit in memory: spilled to local disk by target.

Rows are spilled at most three times: by hash of their keys, if rows of one key must be combined
before they are written; then by file group and by partition, from where each file's task streams
them. Memory holds only a fraction of the limit at any time: a chunk of the data, the keys of a
lookup, one part of the rows. The rows are on the driver's disk, so the local engine writes from
there; an engine of other processes sends each task its rows.
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
from pyhudi.engine.partitioned_spill import PartitionedSpill, RouteRows
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.index import tagging
from pyhudi.index.protocol import TagResult
from pyhudi.slices.tagged_rows import row_numbers
from pyhudi.write.assigned_rows import AssignedLocalRows
from pyhudi.write.existing_keys import count_existing, drop_existing_keys
from pyhudi.write.row_assignment import RowAssigner, slice_tagged
from pyhudi.write.row_counters import RowCounters
from pyhudi.write.row_protocols import AssignedRows, UnassignedRows
from pyhudi.write.write_context import WriteContext

LookUp = Callable[["WriteContext", pa.Table, "pa.Array[Any]"], TagResult]

_PARTS = 64
"""The number of key partitions: data of this many times a spill's memory can be combined."""
_SPILL = 8
"""A spill buffers this part of the limit before it writes."""
_DELETED = "_pyhudi_deleted"


@dataclass(frozen=True)
class SpilledRows:
    """Rows that come in chunks; see `UnassignedRows` for the methods."""

    context: WriteContext
    stack: ExitStack
    """Closes the spills."""
    pieces: Iterator[pa.Table]
    memory_limit: int
    combines_keys: bool = False
    """Rows of one key are combined once they are in one part."""
    counters: RowCounters | None = None
    """See `UnassignedRows`."""
    marked_paths: set[str] = field(default_factory=set)
    """Partition paths of the delete rows that were read so far."""

    def combine(self) -> UnassignedRows:
        """See `UnassignedRows`."""
        return replace(self, combines_keys=True)

    def without_existing_keys(self, *, fail: bool) -> UnassignedRows:
        """See `UnassignedRows`; raises when the chunks are read."""
        pieces = (
            self._keep_rows(piece, drop_existing_keys(self.context, piece, fail=fail))
            for piece in self.pieces
        )
        return replace(self, pieces=pieces)

    def count_existing_keys(self) -> SpilledRows:
        """See `UnassignedRows`; counts when the chunks are read."""
        return replace(self, pieces=map(self._count_known, self.pieces))

    def _count_known(self, piece: pa.Table) -> pa.Table:
        if self.counters is not None:
            self.counters.inserted_duplicates += count_existing(self.context, piece)
        return piece

    def _keep_rows(self, before: pa.Table, after: pa.Table) -> pa.Table:
        return after if self.counters is None else self.counters.count_dropped(before, after)

    def fill_missing_columns(self) -> UnassignedRows:
        """See `UnassignedRows`."""
        raise UnsupportedTableFeature("rows with missing columns do not fit in memory")

    def for_upsert(self) -> AssignedRows:
        """See `UnassignedRows`."""
        return self._assign_by_location(tagging.look_up)

    def for_insert(self, order: tuple[str, ...] = (), *, whole: bool = False) -> AssignedRows:
        """See `UnassignedRows`. Raises `ConfigError` if they must be sorted as a whole."""
        self._check_sorting(whole=whole)
        if self.context.index.has_buckets:
            return self._assign_by_location(tagging.tag_insert, order)
        placed = self._by_partition()
        groups, _ = placed.context.groups(list(placed.inserts))
        return replace(placed, groups=groups)

    def for_new_buckets(self) -> AssignedRows:
        """See `UnassignedRows`."""
        return self._assign_by_location(tagging.tag_new_buckets).also_in(self.marked_paths)

    def for_new_files(
        self,
        order: tuple[str, ...] = (),
        *,
        whole: bool = False,
        counted: bool = True,  # noqa: ARG002 - counting costs nothing
    ) -> AssignedLocalRows:
        """See `UnassignedRows`. Raises `ConfigError` if they must be sorted as a whole."""
        self._check_sorting(whole=whole)
        return self._by_partition(order).also_in(self.marked_paths)

    def _check_sorting(self, *, whole: bool) -> None:
        if whole:
            msg = f"the data are too large to sort in {self.memory_limit} bytes of memory"
            raise ConfigError(msg, hint='Increase memory_limit, or use sort="partition".')

    def _by_partition(self, order: tuple[str, ...] = ()) -> AssignedLocalRows:
        spill: PartitionedSpill[str] = self._spill(order)
        pieces = self._merge_parts(self._by_key()) if self.combines_keys else self.pieces
        for rows in pieces:
            marked = self.context.find_delete_markers(rows)
            self._note(rows, marked)
            live = rows.filter(pc.invert(marked))
            if live.num_rows:
                spill.add(live.column(PARTITION_PATH).combine_chunks(), live)
        return AssignedLocalRows(self.context.recover(), inserts=spill.routes())

    def _note(self, rows: pa.Table, marked: pa.Array[Any]) -> None:
        paths = rows.column(PARTITION_PATH).filter(marked)
        self.marked_paths.update(paths.unique().to_pylist())

    def _assign_by_location(self, find: LookUp, order: tuple[str, ...] = ()) -> AssignedLocalRows:
        """Assign rows to the file groups that have their keys, new rows by partition.

        find: looks keys up in the index. order: sorts each run of a file group's rows in memory.
        """
        parts = self._by_key()
        context = self.context.recover()
        hit, fresh = self._spill(order), self._spill(())
        place = RowAssigner(context, hit, fresh)
        for batch in self._key_batches(parts):
            keys = pa.concat_tables(keys for _, keys in batch)
            deleted = keys.column(_DELETED).combine_chunks()
            self._note(keys, deleted)
            located = find(context, keys.select([RECORD_KEY, PARTITION_PATH]), deleted)
            first = 0
            for rows in self._again([part for part, _ in batch]):
                part = slice_tagged(located.tagged, first, rows.num_rows)
                place.put(rows, TagResult(part, located.groups))
                first += rows.num_rows
        return place.all_rows()

    def _spill(self, order: tuple[str, ...]) -> PartitionedSpill[Any]:
        return self.stack.enter_context(PartitionedSpill(self.memory_limit // _SPILL, order))

    def _by_key(self) -> list[RouteRows]:
        """Partition rows by key, in the order of arrival."""
        spill: PartitionedSpill[int] = self._spill(())
        for rows in self.pieces:
            keys = rows.column(RECORD_KEY).combine_chunks()
            spill.add(_native.key_parts(keys, _PARTS), rows)
        return list(spill.routes().values())

    def _merge_parts(self, parts: list[RouteRows]) -> Iterator[pa.Table]:
        """Rows of parts as they will be written; this first pass counts them."""
        for part in parts:
            part_rows = part.to_table()
            rows = self._one_of_each(part_rows)
            if self.counters is not None:
                self.counters.count_dropped(part_rows, rows)
                crossed = tagging.cross_partition_duplicates(self.context, part_rows, rows)
                self.counters.cross_partition_duplicates += pc.sum(crossed).as_py() or 0
            yield rows

    def _again(self, parts: list[RouteRows]) -> Iterator[pa.Table]:
        for part in parts:
            yield self._one_of_each(part.to_table())

    def _one_of_each(self, rows: pa.Table) -> pa.Table:
        return tagging.combine(self.context, rows) if self.combines_keys else rows

    def _key_batches(self, parts: list[RouteRows]) -> Iterator[list[tuple[RouteRows, pa.Table]]]:
        """Parts with the keys of their rows, in batches small enough for a lookup in memory."""
        batch: list[tuple[RouteRows, pa.Table]] = []
        size = 0
        for part, rows in zip(parts, self._merge_parts(parts), strict=True):
            # A copy of the two columns: data from the core or a file is freed only as a whole.
            keys = rows.select([RECORD_KEY, PARTITION_PATH]).take(row_numbers(rows.num_rows))
            keys = keys.append_column(_DELETED, self.context.find_delete_markers(rows))
            batch.append((part, keys))
            size += keys.nbytes
            if size > self.memory_limit // _SPILL:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch
