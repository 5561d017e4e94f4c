"""Merge of a source that does not fit in memory. The rules are those of `merge.py`.

The source is spilled by key hash, then by the file groups that have its keys. The rows of each file
group are matched with its slice chunk by chunk. The results are spilled by target, like the rows of
an upsert.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pa_types

from pyhudi import _native
from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.engine.spill import PartitionedSpill, RouteRows
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
from pyhudi.write.merge_match import Matched, match_rows
from pyhudi.write.merge_planning import (
    MergeClause,
    add_source_keys,
    build_inserts,
    check_clauses,
    check_once,
    match_task,
    tasks_for_groups,
)
from pyhudi.write.row_assignment import RowAssigner, batch_keys, slice_tagged
from pyhudi.write.write_context import WriteContext

_PARTS = 64
"""Number of key partitions."""
_SPILL = 16
"""A spill buffers this part of the limit before it writes."""
_MATCH = 4
"""All tasks together buffer this part of the limit, for source rows and results."""
_SAMPLE = 256
"""Number of a slice's rows that are sampled to estimate the size of a row."""
_WIDE = 32
"""Estimated bytes of a string or of a nested value."""
_KEYS = [RECORD_KEY, PARTITION_PATH]
_MATCH_COUNT, _GROUP = "_pyhudi_match_count", "_pyhudi_group"


@dataclass
class LargeSource:
    """A source in chunks, which can be read only once."""

    schema: pa.Schema
    chunks: Iterator[pa.Table]
    memory_limit: int
    commit_checks: list[CommitCheck] = field(default_factory=list)
    """Checks that no other writer has added a key of the source."""

    @contextmanager
    def merge_parts(
        self, context: WriteContext, clauses: Sequence[MergeClause]
    ) -> Iterator[AssignedLocalRows]:
        """Yield the changes of the merge. Raises as `merge` does."""
        empty = self.schema.empty_table()
        on_match = check_clauses(context, empty, clauses, matched=True)
        on_absence = check_clauses(context, empty, clauses, matched=False)
        add_source_keys(context, empty)
        with ExitStack() as stack:
            spills = _Spills(stack, self.memory_limit)
            parts = self._spill_by_key(context, spills)
            context = context.recover()
            merge_run = _Merge(context, spills, self.schema, on_match, on_absence)
            merge_run.tag(parts)
            merge_run.match()
            merge_run.insert_unmatched()
            partitions = None if context.index.is_global else frozenset(merge_run.partitions)
            self.commit_checks = (
                [] if context.index.has_buckets else [check_partitions_unchanged(partitions)]
            )
            yield replace(merge_run.assigner.all_rows(), groups_read=merge_run.groups_read)

    def _spill_by_key(self, context: WriteContext, spills: _Spills) -> list[RouteRows]:
        """Spill keys and the source's numbered columns by key hash."""
        spill: PartitionedSpill[int] = spills.new()
        for chunk in self.chunks:
            rows = add_source_keys(context, chunk)
            for number, column in enumerate(chunk.columns):
                rows = rows.append_column(_column_name(number), column)
            spill.add(_key_parts(rows), rows)
        return list(spill.routes().values())


def row_bytes(schema: pa.Schema) -> int:
    """Estimate the bytes of a row of a schema."""
    return sum(8 if pa_types.is_primitive(column.type) else _WIDE for column in schema)


def _column_name(number: int) -> str:
    # A source may have a column of any name.
    return f"_pyhudi_source_{number}"


def _key_parts(rows: pa.Table) -> pa.Array[Any]:
    return _native.key_parts(rows.column(RECORD_KEY).combine_chunks(), _PARTS)


@dataclass(frozen=True)
class _Spills:
    stack: ExitStack
    memory_limit: int

    def new(self) -> PartitionedSpill[Any]:
        return self.stack.enter_context(PartitionedSpill(self.memory_limit // _SPILL))


class _Merge:
    """One merge, in three steps: `tag`, `match`, `insert_unmatched`."""

    def __init__(
        self,
        context: WriteContext,
        spills: _Spills,
        source_schema: pa.Schema,
        on_match: tuple[Clause, ...],
        on_absence: tuple[Clause, ...],
    ) -> None:
        self.assigner = RowAssigner(context, spills.new(), spills.new())
        self.partitions: set[str] = set()
        """Partitions of the source's rows."""
        self.groups_read: frozenset[tuple[str, str]] = frozenset()
        """File groups that may have keys of the source."""
        self._context = context
        self._limit = spills.memory_limit
        self._source_schema = source_schema
        self._on_match, self._on_absence = on_match, on_absence
        self._tagged: PartitionedSpill[int] = spills.new()
        self._unmatched: PartitionedSpill[int] = spills.new()

    def tag(self, parts: list[RouteRows]) -> None:
        """Tag rows by the index. Insert untagged rows, and spill the others by file group."""
        deletes = any(clause.values is None for clause in self._on_match)
        for batch in batch_keys(self._keys(parts), self._limit // _SPILL):
            keys = pa.concat_tables(keys for _, keys in batch)
            tag_result = tagging.tag_merge(self._context, keys, deletes=deletes)
            row = 0
            for part, part_keys in batch:
                tagged = slice_tagged(tag_result.tagged, row, part_keys.num_rows)
                self._dispatch(part.to_table(), TagResult(tagged, tag_result.groups))
                row += part_keys.num_rows

    def _keys(self, parts: list[RouteRows]) -> Iterator[tuple[RouteRows, pa.Table]]:
        for part in parts:
            # A copy of two columns: data from a file is freed only as a whole.
            keys = part.to_table().select(_KEYS).take(row_numbers(len(part)))
            check_once(self._context, keys)
            self.partitions.update(keys.column(PARTITION_PATH).unique().to_pylist())
            yield part, keys

    def _dispatch(self, rows: pa.Table, tag_result: TagResult) -> None:
        tagged = tag_result.tagged
        untagged = find_untagged(rows.num_rows, tagged)
        self._insert(rows.take(untagged), pa.nulls(len(untagged), pa.int64()))
        matched = rows.take(tagged.rows).append_column(_MATCH_COUNT, _occurrences(tagged.rows))
        groups = self.assigner.to_group_numbers(tag_result.groups, tagged.groups)
        is_new = pa.array([group.is_new for group in tag_result.groups], pa.bool_()).take(
            tagged.groups
        )
        self._spill_unmatched(matched.filter(is_new), groups.filter(is_new))
        is_existing = pc.invert(is_new)
        self._tagged.add(groups.filter(is_existing), matched.filter(is_existing))

    # --- matched rows ---

    def match(self) -> None:
        """Apply the clauses to tagged rows."""
        routes = self._tagged.routes()
        groups = [self.assigner.groups[number] for number in routes]
        self.groups_read = frozenset(
            (group.slice.partition, group.slice.file_id) for group in groups
        )
        reads = dict(zip(routes, tasks_for_groups(self._context, groups), strict=True))
        chunks = self._chunks(routes, reads)
        engine = self._context.engine
        while chunk_batch := list(islice(chunks, engine.tasks_per_process)):
            tasks = [
                match_task(
                    self._context,
                    reads[number],
                    rows.column(RECORD_KEY).combine_chunks(),
                    self._source(rows),
                    self._on_match,
                )
                for number, rows in chunk_batch
            ]
            results = engine.run(match_rows, tasks, stage=TAG_STAGE, label="match rows")
            for (number, rows), result in zip(chunk_batch, results, strict=True):
                self._collect(number, rows, result)

    def _chunks(
        self, routes: dict[int, RouteRows], reads: dict[int, ReadTask]
    ) -> Iterator[tuple[int, pa.Table]]:
        """Yield the source's rows of each file group in chunks that a task can hold in memory."""
        chunk_bytes = self._limit // (_MATCH * self._context.engine.tasks_per_process)
        width = 0
        for number, rows in routes.items():
            if not width:
                width = _width(reads[number], self._context)
            first, count = 0, _SAMPLE
            while first < len(rows):
                chunk = rows.slice(first, count).to_table()
                yield number, chunk
                first += count
                count = max(chunk_bytes // (width + chunk.nbytes // chunk.num_rows), _SAMPLE)

    def _source(self, rows: pa.Table) -> pa.Table:
        """Return the source's own columns."""
        columns = [rows.column(_column_name(number)) for number in range(len(self._source_schema))]
        return pa.Table.from_arrays(columns, schema=self._source_schema)

    def _collect(self, number: int, rows: pa.Table, result: Matched) -> None:
        if result.updated.num_rows:
            group_numbers = pa.repeat(pa.scalar(number, pa.int64()), result.updated.num_rows)
            self.assigner.add_assigned(result.updated, group_numbers)
        if result.deleted.num_rows:
            self.assigner.delete_keys(number, result.deleted.column(RECORD_KEY).combine_chunks())
        numbers = row_numbers(rows.num_rows)
        unmatched = numbers.filter(pc.invert(pc.is_in(numbers, value_set=result.matched)))
        group_numbers = pa.repeat(pa.scalar(number, pa.int64()), len(unmatched))
        self._spill_unmatched(rows.take(unmatched), group_numbers)

    # --- unmatched rows ---

    def _spill_unmatched(self, rows: pa.Table, group_numbers: pa.Array[Any]) -> None:
        """Spill rows that match no row of a file group."""
        if rows.num_rows:
            self._unmatched.add(_key_parts(rows), rows.append_column(_GROUP, group_numbers))

    def insert_unmatched(self) -> None:
        """Insert rows that match no row of any file group.

        A row goes to its bucket or to the previous location of its key. A deleted key may still be
        in log files of several groups; its row goes to one of them in its partition.
        """
        for part in self._unmatched.routes().values():
            rows = part.to_table().combine_chunks()
            groups = rows.column(_GROUP).combine_chunks()
            is_own_partition = pc.equal(
                rows.column(PARTITION_PATH), self.assigner.partition_paths(groups)
            )
            own_group = pc.if_else(
                is_own_partition.combine_chunks(), groups, pa.scalar(None, pa.int64())
            )
            keys = rows.select([*_KEYS, _MATCH_COUNT]).append_column("group", own_group)
            keys = keys.append_column("row", row_numbers(rows.num_rows))
            sums = [("row", "min"), ("row", "count"), ("group", "min")]
            unmatched = keys.group_by([*_KEYS, _MATCH_COUNT], use_threads=False).aggregate(sums)
            unmatched = unmatched.filter(
                pc.equal(unmatched.column("row_count"), unmatched.column(_MATCH_COUNT))
            )
            self._insert(rows.take(unmatched["row_min"]), unmatched["group_min"].combine_chunks())

    def _insert(self, rows: pa.Table, group_numbers: pa.Array[Any]) -> None:
        numbers = row_numbers(rows.num_rows)
        keyed, source = rows.select(_KEYS), self._source(rows)
        inserts = build_inserts(self._context, source, keyed, numbers, self._on_absence)
        self.assigner.add_assigned(inserts.rows, group_numbers.take(inserts.numbers))


def _occurrences(rows: pa.Array[Any]) -> pa.Array[Any]:
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
