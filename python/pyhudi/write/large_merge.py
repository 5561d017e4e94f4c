"""Merge of a source that does not fit in memory: it spills until its file groups are matched.

The source is spilled by hash of its keys, then by the file groups that have them. Each file group's
part is matched with its slice chunk by chunk. The results are spilled by target, like the rows of
an upsert. The rules are those of `merge.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from pyhudi import _native
from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.engine.partitioned_spill import PartitionedSpill, RouteRows
from pyhudi.index import tagging
from pyhudi.index.protocol import TagResult
from pyhudi.input.conform import data_schema
from pyhudi.slices.read import read_task
from pyhudi.slices.read_tasks import ReadTask
from pyhudi.slices.tagged_rows import find_untagged, row_numbers
from pyhudi.txn.conflicts import CommitCheck
from pyhudi.write.assigned_rows import AssignedLocalRows
from pyhudi.write.commit_validation import check_partitions_unchanged
from pyhudi.write.execute import TAG_STAGE
from pyhudi.write.merge_clauses import Clause
from pyhudi.write.merge_match import Matched, MatchTask, match_rows
from pyhudi.write.merge_planning import (
    MergeClause,
    add_source_keys,
    build_inserts,
    check_clauses,
    check_once,
    tasks_for_groups,
)
from pyhudi.write.row_assignment import RowAssigner, slice_tagged
from pyhudi.write.write_context import WriteContext

_PARTS = 64
"""The number of key partitions."""
_SPILL = 16
"""A spill buffers this part of the limit before it writes."""
_MATCH = 4
"""All tasks buffer this part of the limit, for source rows and results."""
_SAMPLE = 256
"""Rows of a slice that are sampled for their width."""
_KEYS = [RECORD_KEY, PARTITION_PATH]
_PLACES, _AT = "_pyhudi_places", "_pyhudi_at"


@dataclass
class LargeSource:
    """A source in chunks, which can be read once."""

    schema: pa.Schema
    pieces: Iterator[pa.Table]
    memory_limit: int
    commit_checks: list[CommitCheck] = field(default_factory=list)
    """Checks at the commit that no other write has added a key of the source."""

    @contextmanager
    def merge_parts(
        self, context: WriteContext, clauses: Sequence[MergeClause]
    ) -> Iterator[AssignedLocalRows]:
        """The changes that the source's rows lead to. Raises as `merge` does."""
        empty = self.schema.empty_table()
        on_match = check_clauses(context, empty, clauses, matched=True)
        on_absence = check_clauses(context, empty, clauses, matched=False)
        add_source_keys(context, empty)
        with ExitStack() as stack:
            spills = _Spills(stack, self.memory_limit)
            parts = self._by_key(context, spills)
            context = context.recover()
            work = _Merge(context, spills, self.schema, on_match, on_absence)
            work.locate(parts)
            work.match()
            work.insert_lost()
            partitions = None if context.index.is_global else frozenset(work.partitions)
            self.commit_checks = (
                [] if context.index.has_buckets else [check_partitions_unchanged(partitions)]
            )
            yield replace(work.place.all_rows(), seen=work.seen)

    def _by_key(self, context: WriteContext, spills: _Spills) -> list[RouteRows]:
        """Keys, then the source's columns by number, partitioned by key."""
        spill: PartitionedSpill[int] = spills.new()
        for piece in self.pieces:
            rows = add_source_keys(context, piece)
            for number, column in enumerate(piece.columns):
                rows = rows.append_column(_name(number), column)
            spill.add(_parts(rows), rows)
        return list(spill.routes().values())


def row_bytes(schema: pa.Schema) -> int:
    """Estimate the bytes of a row of a schema."""
    return sum(_WIDE if _is_wide(column.type) else 8 for column in schema)


_WIDE = 32
"""Estimated bytes of a string or of a nested value."""


def _is_wide(data_type: pa.DataType) -> bool:
    return not at.is_primitive(data_type)


def _name(number: int) -> str:
    # A source may have a column of any name.
    return f"_pyhudi_source_{number}"


def _parts(rows: pa.Table) -> pa.Array[Any]:
    return _native.key_parts(rows.column(RECORD_KEY).combine_chunks(), _PARTS)


@dataclass(frozen=True)
class _Spills:
    stack: ExitStack
    memory_limit: int

    def new(self) -> PartitionedSpill[Any]:
        return self.stack.enter_context(PartitionedSpill(self.memory_limit // _SPILL))


class _Merge:
    """The steps of one merge, in their order: `locate`, `match`, `insert_lost`."""

    def __init__(
        self,
        context: WriteContext,
        spills: _Spills,
        source_schema: pa.Schema,
        on_match: tuple[Clause, ...],
        on_absence: tuple[Clause, ...],
    ) -> None:
        self.place = RowAssigner(context, spills.new(), spills.new())
        self.partitions: set[str] = set()
        """Partitions of the source's rows."""
        self.seen: frozenset[tuple[str, str]] = frozenset()
        """File groups that may have keys of the source."""
        self._context = context
        self._limit = spills.memory_limit
        self._source_schema = source_schema
        self._on_match, self._on_absence = on_match, on_absence
        self._waiting: PartitionedSpill[int] = spills.new()
        self._unmatched: PartitionedSpill[int] = spills.new()

    def locate(self, parts: list[RouteRows]) -> None:
        """Tag rows by the index and insert untagged ones. Others wait for their file groups."""
        deletes = any(clause.values is None for clause in self._on_match)
        for some in self._key_batches(parts):
            keys = pa.concat_tables(keys for _, keys in some)
            located = tagging.tag_merge(self._context, keys, deletes=deletes)
            first = 0
            for part, own in some:
                tagged = slice_tagged(located.tagged, first, own.num_rows)
                self._put(part.to_table(), TagResult(tagged, located.groups))
                first += own.num_rows

    def _key_batches(self, parts: list[RouteRows]) -> Iterator[list[tuple[RouteRows, pa.Table]]]:
        batch: list[tuple[RouteRows, pa.Table]] = []
        size = 0
        for part in parts:
            # A copy of two columns: data from a file is freed only as a whole.
            keys = part.to_table().select(_KEYS).take(row_numbers(len(part)))
            check_once(self._context, keys)
            self.partitions.update(keys.column(PARTITION_PATH).unique().to_pylist())
            batch.append((part, keys))
            size += keys.nbytes
            if size > self._limit // _SPILL:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def _put(self, rows: pa.Table, located: TagResult) -> None:
        tagged = located.tagged
        nowhere = find_untagged(rows.num_rows, tagged)
        self._insert(rows.take(nowhere), pa.nulls(len(nowhere), pa.int64()))
        matched = rows.take(tagged.rows).append_column(_PLACES, _times(tagged.rows))
        groups = self.place.to_group_numbers(located.groups, tagged.groups)
        new = pa.array([group.is_new for group in located.groups], pa.bool_()).take(tagged.groups)
        self._lose(matched.filter(new), groups.filter(new))
        old = pc.invert(new)
        self._waiting.add(groups.filter(old), matched.filter(old))

    # --- matched rows
    # ---------------------------------------------------------------------------------

    def match(self) -> None:
        """Apply the clauses to rows that the table has."""
        routes = self._waiting.routes()
        groups = [self.place.groups[number] for number in routes]
        self.seen = frozenset((group.slice.partition, group.slice.file_id) for group in groups)
        reads = dict(zip(routes, tasks_for_groups(self._context, groups), strict=True))
        chunks = self._chunks(routes, reads)
        engine = self._context.engine
        while some := list(islice(chunks, engine.tasks_per_process)):
            tasks = [self._task(reads[number], rows) for number, rows in some]
            results = engine.run(match_rows, tasks, stage=TAG_STAGE, label="match rows")
            for (number, rows), result in zip(some, results, strict=True):
                self._take(number, rows, result)

    def _chunks(
        self, routes: dict[int, RouteRows], reads: dict[int, ReadTask]
    ) -> Iterator[tuple[int, pa.Table]]:
        """Parts of the source's rows of one file group, so that a task fits in memory."""
        share = self._limit // (_MATCH * self._context.engine.tasks_per_process)
        width = 0
        for number, rows in routes.items():
            if not width:
                width = _width(reads[number], self._context)
            first, count = 0, _SAMPLE
            while first < len(rows):
                some = rows.slice(first, count).to_table()
                yield number, some
                first += count
                count = max(share // (width + some.nbytes // some.num_rows), _SAMPLE)

    def _task(self, read: ReadTask, rows: pa.Table) -> MatchTask:
        keys = rows.column(RECORD_KEY).combine_chunks()
        context = self._context
        return MatchTask(
            read,
            keys,
            self._source(rows),
            self._on_match,
            context.options.null_elements,
            context.ignored_values,
        )

    def _source(self, rows: pa.Table) -> pa.Table:
        """Return the source's own columns."""
        columns = [rows.column(_name(number)) for number in range(len(self._source_schema))]
        return pa.Table.from_arrays(columns, schema=self._source_schema)

    def _take(self, number: int, rows: pa.Table, result: Matched) -> None:
        if result.updated.num_rows:
            at = pa.repeat(pa.scalar(number, pa.int64()), result.updated.num_rows)
            self.place.put_at(result.updated, at)
        if result.deleted.num_rows:
            self.place.delete_keys(number, result.deleted.column(RECORD_KEY).combine_chunks())
        numbers = row_numbers(rows.num_rows)
        missed = numbers.filter(pc.invert(pc.is_in(numbers, value_set=result.matched)))
        at = pa.repeat(pa.scalar(number, pa.int64()), len(missed))
        self._lose(rows.take(missed), at)

    # --- unmatched rows
    # -------------------------------------------------------------------------------

    def _lose(self, rows: pa.Table, at: pa.Array[Any]) -> None:
        """Spill rows without a live row in a file group."""
        if rows.num_rows:
            self._unmatched.add(_parts(rows), rows.append_column(_AT, at))

    def insert_lost(self) -> None:
        """Insert rows without a live row in any file group.

        They go to their buckets, or to the previous location of their keys. A deleted key may still
        be in log files of several groups; its row goes to one in its partition.
        """
        for part in self._unmatched.routes().values():
            rows = part.to_table().combine_chunks()
            groups = rows.column(_AT).combine_chunks()
            own = pc.equal(rows.column(PARTITION_PATH), self.place.homes(groups))
            home = pc.if_else(own.combine_chunks(), groups, pa.scalar(None, pa.int64()))
            keys = rows.select([*_KEYS, _PLACES]).append_column("home", home)
            keys = keys.append_column("row", row_numbers(rows.num_rows))
            sums = [("row", "min"), ("row", "count"), ("home", "min")]
            unmatched = keys.group_by([*_KEYS, _PLACES], use_threads=False).aggregate(sums)
            unmatched = unmatched.filter(
                pc.equal(unmatched.column("row_count"), unmatched.column(_PLACES))
            )
            self._insert(rows.take(unmatched["row_min"]), unmatched["home_min"].combine_chunks())

    def _insert(self, rows: pa.Table, at: pa.Array[Any]) -> None:
        numbers = row_numbers(rows.num_rows)
        keyed, source = rows.select(_KEYS), self._source(rows)
        inserts = build_inserts(self._context, source, keyed, numbers, self._on_absence)
        self.place.put_at(inserts.rows, at.take(inserts.numbers))


def _times(rows: pa.Array[Any]) -> pa.Array[Any]:
    """Return for each number how often it occurs."""
    counted = pa.table({"row": rows}).group_by("row").aggregate([("row", "count")])
    distinct = counted.column("row").combine_chunks()
    return counted.column("row_count").combine_chunks().take(pc.index_in(rows, value_set=distinct))


def _width(read: ReadTask, context: WriteContext) -> int:
    """Estimate the bytes of a matched row in memory, from a sample of the slice."""
    rows = pa.Table.from_batches(
        read_task(replace(read, limit=_SAMPLE)),
        pa.schema([read.schema.field(name) for name in read.output]),
    )
    min_width = row_bytes(data_schema(context.schema.arrow))
    width: int = rows.nbytes // max(rows.num_rows, 1)
    return max(width, min_width)
