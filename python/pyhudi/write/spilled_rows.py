"""Rows of a write that do not fit in memory: brought together on local disk by where they go.

Rows are put aside three times at most: by hash of their keys, if rows of one key must meet before
they are written; then by file group and by partition, from where each file's task streams them.
What is held in memory at any time is a fraction of the limit: a piece of the data, the keys that
are looked up, one part of the rows. The driver's disk holds the rows, so the local engine writes
from there; an engine of other processes sends each task its rows.
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
from pyhudi.index.tag_result import TagResult
from pyhudi.slices.tagged_rows import row_numbers
from pyhudi.write.assigned_rows import PlacedRows
from pyhudi.write.existing_keys import count_existing, drop_existing_keys
from pyhudi.write.row_assignment import RowAssigner, slice_tagged
from pyhudi.write.row_counters import RowCounters
from pyhudi.write.rows import AssignedRows, Rows
from pyhudi.write.write_context import WriteContext

LookUp = Callable[["WriteContext", pa.Table, "pa.Array[Any]"], TagResult]

_PARTS = 64
"""So many parts of keys: data of that many times a spill's memory are brought together."""
_SPILL = 8
"""A spill holds this part of the limit before it writes."""
_DELETED = "_pyhudi_deleted"


@dataclass(frozen=True)
class SpilledRows:
    """Rows that come in pieces; see `Rows` for what its methods mean."""

    context: WriteContext
    stack: ExitStack
    """Closes what is put aside."""
    pieces: Iterator[pa.Table]
    memory_limit: int
    one_a_key: bool = False
    """Rows of one key become one, once they have met."""
    tally: RowCounters | None = None
    """See `Rows`."""
    marked_paths: set[str] = field(default_factory=set)
    """Partition paths of the rows that delete, as far as they were taken."""

    def combine(self) -> Rows:
        """See `Rows`."""
        return replace(self, one_a_key=True)

    def without_existing_keys(self, *, fail: bool) -> Rows:
        """See `Rows`; raises when the pieces are taken."""
        pieces = (
            self._keep_rows(piece, drop_existing_keys(self.context, piece, fail=fail))
            for piece in self.pieces
        )
        return replace(self, pieces=pieces)

    def count_known(self) -> SpilledRows:
        """See `Rows`; counts when the pieces are taken."""
        return replace(self, pieces=map(self._count_known, self.pieces))

    def _count_known(self, piece: pa.Table) -> pa.Table:
        if self.tally is not None:
            self.tally.known += count_existing(self.context, piece)
        return piece

    def _keep_rows(self, before: pa.Table, after: pa.Table) -> pa.Table:
        return after if self.tally is None else self.tally.count_dropped(before, after)

    def fill_missing_columns(self) -> Rows:
        """See `Rows`."""
        raise UnsupportedTableFeature("rows with missing columns do not fit in memory")

    def for_upsert(self) -> AssignedRows:
        """See `Rows`."""
        return self._assign_by_location(tagging.look_up)

    def for_insert(self, order: tuple[str, ...] = (), *, whole: bool = False) -> AssignedRows:
        """See `Rows`. Raises `ConfigError` where they shall be sorted as a whole."""
        self._check_sorting(whole=whole)
        if self.context.index.has_buckets:
            return self._assign_by_location(tagging.tag_insert, order)
        placed = self._by_partition()
        groups, _ = placed.context.groups(list(placed.inserts))
        return replace(placed, groups=groups)

    def for_new_buckets(self) -> AssignedRows:
        """See `Rows`."""
        return self._assign_by_location(tagging.tag_new_buckets).also_in(self.marked_paths)

    def for_new_files(
        self,
        order: tuple[str, ...] = (),
        *,
        whole: bool = False,
        counted: bool = True,  # noqa: ARG002 - counting costs nothing
    ) -> PlacedRows:
        """See `Rows`. Raises `ConfigError` where they shall be sorted as a whole."""
        self._check_sorting(whole=whole)
        return self._by_partition(order).also_in(self.marked_paths)

    def _check_sorting(self, *, whole: bool) -> None:
        if whole:
            msg = f"the data are too large to sort in {self.memory_limit} bytes of memory"
            raise ConfigError(msg, hint='Increase memory_limit, or use sort="partition".')

    def _by_partition(self, order: tuple[str, ...] = ()) -> PlacedRows:
        spill: PartitionedSpill[str] = self._spill(order)
        pieces = self._merge_parts(self._by_key()) if self.one_a_key else self.pieces
        for rows in pieces:
            marked = self.context.find_delete_markers(rows)
            self._note(rows, marked)
            kept = rows.filter(pc.invert(marked))
            if kept.num_rows:
                spill.add(kept.column(PARTITION_PATH).combine_chunks(), kept)
        return PlacedRows(self.context.recover(), inserts=spill.routes())

    def _note(self, rows: pa.Table, marked: pa.Array[Any]) -> None:
        paths = rows.column(PARTITION_PATH).filter(marked)
        self.marked_paths.update(paths.unique().to_pylist())

    def _assign_by_location(self, find: LookUp, order: tuple[str, ...] = ()) -> PlacedRows:
        """By the file group that has their keys, those that none has by partition.

        find: what asks the index, by keys. order: of each run of rows of a file group in memory.
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
        """In parts, with all rows of one key in one of them, in the order they came."""
        spill: PartitionedSpill[int] = self._spill(())
        for rows in self.pieces:
            keys = rows.column(RECORD_KEY).combine_chunks()
            spill.add(_native.key_parts(keys, _PARTS), rows)
        return list(spill.routes().values())

    def _merge_parts(self, parts: list[RouteRows]) -> Iterator[pa.Table]:
        """The rows of parts as they are to be written, and counted: for the first time."""
        for part in parts:
            given = part.to_table()
            rows = self._one_of_each(given)
            if self.tally is not None:
                self.tally.count_dropped(given, rows)
                crossed = tagging.cross_partition_duplicates(self.context, given, rows)
                self.tally.cross_partition_duplicates += pc.sum(crossed).as_py() or 0
            yield rows

    def _again(self, parts: list[RouteRows]) -> Iterator[pa.Table]:
        for part in parts:
            yield self._one_of_each(part.to_table())

    def _one_of_each(self, rows: pa.Table) -> pa.Table:
        return tagging.combine(self.context, rows) if self.one_a_key else rows

    def _key_batches(self, parts: list[RouteRows]) -> Iterator[list[tuple[RouteRows, pa.Table]]]:
        """Parts with the keys of their rows, so many at once that these are looked up in memory."""
        held: list[tuple[RouteRows, pa.Table]] = []
        size = 0
        for part, rows in zip(parts, self._merge_parts(parts), strict=True):
            # A copy of the two columns: what came from the core or a file is freed only as a whole.
            keys = rows.select([RECORD_KEY, PARTITION_PATH]).take(row_numbers(rows.num_rows))
            keys = keys.append_column(_DELETED, self.context.find_delete_markers(rows))
            held.append((part, keys))
            size += keys.nbytes
            if size > self.memory_limit // _SPILL:
                yield held
                held, size = [], 0
        if held:
            yield held
