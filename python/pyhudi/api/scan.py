"""A lazy scan and its outputs. Nothing is read before an output is asked for.

The scan belongs to the moment at which its table handle was loaded. What is read is planned in
`query/snapshot.py`; the engine runs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from pyhudi.api.memory_budget import task_memory
from pyhudi.api.outputs import check_limit, stream_first
from pyhudi.api.scan_outputs import ScanOutputs
from pyhudi.cached_property import cached_property
from pyhudi.config import argument_checks as arg
from pyhudi.config.formatting import count_text, names_text, shorten
from pyhudi.engine.local import choose_io_engine
from pyhudi.engine.protocol import Engine
from pyhudi.errors import ConfigError
from pyhudi.query.commit_range import IncrementalRange, next_start
from pyhudi.query.concurrent_clean import detect_concurrent_clean
from pyhudi.query.explain import Explanation
from pyhudi.query.file_pruning import select_file_slices
from pyhudi.query.incremental import plan_incremental
from pyhudi.query.snapshot import output_columns, plan_scan, scan_slices
from pyhudi.schema.predicate_parser import parse_where
from pyhudi.schema.predicates import column_type, format_expression
from pyhudi.schema.table_schema import is_meta, narrow_column
from pyhudi.slices.read_tasks import ReadTask, ScanRequest, scan_schema
from pyhudi.slices.row_counts import rows_from_commits
from pyhudi.slices.slices_table import slices_table
from pyhudi.slices.task_packing import task_size
from pyhudi.table.table_snapshot import TableSnapshot


@dataclass(frozen=True)
class Scan(ScanOutputs):
    """Rows of a table, described but not read. Made by `HudiTable.scan` and `incremental`.

    It can be handed to anything that takes Arrow streams (`__arrow_c_stream__`), any number of
    times.
    """

    table: TableSnapshot
    """The table at the moment the scan is about."""
    request: ScanRequest
    engine: Engine
    span: IncrementalRange | None = None
    """The range of an incremental query, None for a scan of all rows."""

    @property
    def shown(self) -> pa.Schema:
        """All columns of the table as scans give them, Hudi's own first."""
        return scan_schema(self.table)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result, in order."""
        shown = self.shown
        return pa.schema([shown.field(name) for name in self.request.output])

    @cached_property
    def tasks(self) -> list[ReadTask]:
        """What there is to read, one picklable task a file slice, for `slices.read.read_task`.

        Raises `UnsupportedTableFeature` for slices whose merge rule pyhudi lacks,
        `HistoryUnavailable` for an incremental range that cannot be read in whole.
        """
        if self.span is not None:
            return plan_incremental(self.table, self.request, self.span)
        return plan_scan(self.table, self.request)

    @property
    def next_start(self) -> str | None:
        """The `start` of the next incremental query, which has each later commit and no other.

        None while the table has no commit. It does not depend on filters and limits.

        Raises `ConfigError` for a scan that is no incremental query, or of an earlier time;
        `HistoryUnavailable` for a hollow commit under `hollow_commits="fail"`.
        """
        if self.span is None:
            hint = "incremental() without bounds has the rows of all commits, and a next_start."
            raise ConfigError("the scan is no incremental query", hint=hint)
        return next_start(self.table, self.span)

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream that reads ahead within bounds.

        Returns:
            Their batches, by partition and file group.

        Raises:
            UnsupportedTableFeature: pyhudi lacks the merge rule of a slice.
            HistoryUnavailable: an incremental range cannot be read in whole; while the stream is
                read, a cleaner or a restore has removed files of the scan's moment.
            CorruptTable: a file is damaged or missing; also while the stream is read.
            ConfigError: the engine gives no Arrow stream.
        """
        return self._stream(self.tasks, self.request.limit)

    def count(self) -> int:
        """How many rows the scan gives.

        Of base files without log files commits tell it, of those that were written by archived
        commits footers do, also with a filter on partition columns alone; else the columns are read
        that matter for it. It runs on every engine.

        Returns:
            The number of rows.

        Raises:
            UnsupportedTableFeature: pyhudi lacks the merge rule of a slice.
            HistoryUnavailable: an incremental range cannot be read in whole.
            CorruptTable: a file is damaged or missing.
        """
        from pyhudi.slices.read import count_task  # noqa: PLC0415 - planning needs no core

        narrow = replace(self, request=replace(self.request, output=(self._narrow_column(),)))
        if self.request.limit is not None:
            return sum(batch.num_rows for batch in narrow.to_reader())

        told, left = rows_from_commits(self.table.timeline, narrow.tasks)

        def counts() -> Iterator[int]:
            label = f"count {self.table.storage.uri}"
            yield from self._engine_for(left).run(count_task, left, label=label)

        return told + (sum(detect_concurrent_clean(counts(), self.table)) if left else 0)

    @arg.check_arguments(column=arg.text)
    def bounds(self, column: str) -> tuple[Any, Any]:
        """The least and the greatest value of a column among the rows, nulls left out.

        Of whole numbers, dates, times and decimals the metadata table's column statistics tell the
        bounds of base files without log files, also with a filter on partition columns alone; all
        else is read. So the answer is that of the rows, whatever tells it.

        Args:
            column: its name.

        Returns:
            Both values as Python objects, both None where there is no value. Floating numbers
            compare as in pyarrow, which leaves NaN out where there is another number.

        Raises:
            SchemaMismatch: there is no such column.
            ConfigError: its values have no order, as those of structs and lists.
            UnsupportedTableFeature: pyhudi lacks the merge rule of a slice, or a bound is a date or
                time beyond those of Python, which end with the year 9999.
            HistoryUnavailable: an incremental range cannot be read in whole.
            CorruptTable: a file is damaged or missing.
        """
        from pyhudi.query.min_max import bounds_from_statistics, bounds_of  # noqa: PLC0415 - few scans need it

        kind = column_type((column,), self.shown)
        scan = replace(self, request=replace(self.request, output=(column,)))
        if self.request.limit is not None:
            return bounds_of(kind, (batch.column(0) for batch in scan.to_reader()))
        told, left = bounds_from_statistics(self.table, scan.request, scan.tasks)
        rows = scan._stream(left, None) if left else ()  # noqa: SLF001 - a scan's own
        return bounds_of(kind, [told, *(batch.column(0) for batch in rows)])

    def plan(self) -> pa.Table:
        """The file slices to be read, without reading them.

        Returns:
            Columns partition, file_id, base_instant, base_file, base_size, log_files, log_size;
            sizes in bytes, base_file null for a slice of log files alone.

        Raises:
            HistoryUnavailable: an incremental range cannot be read in whole.
            CorruptTable: the timeline or the metadata table is damaged.
        """
        if self.span is not None:
            return slices_table([task.slice for task in self.tasks])
        return slices_table(scan_slices(self.table, self.request))

    def explain(self) -> Explanation:
        """How the scan is planned, without reading a row: `print` it.

        Returns:
            Whether the metadata table or storage listed the files, and what each index left out;
            its `pruned` is an Arrow table of the partitions and file slices that are not read.

        Raises:
            ConfigError: it is an incremental query, whose files come from its commits.
            CorruptTable: the timeline is damaged.
        """
        if self.span is not None:
            raise ConfigError("an incremental query takes its files from commits: call plan()")
        return select_file_slices(self.table, self.request).explanation

    def __repr__(self) -> str:
        request = self.request
        kind = "Scan" if self.span is None else "Incremental scan"
        said = [f"{kind} of {self.table.config.name!r}: {names_text(request.output)}"]
        if request.where is not None:
            said.append(f"where {shorten(format_expression(request.where.expression))}")
        if self.span is not None:
            bounds = self.span.start or "the beginning", self.span.end or "the last commit"
            said.append(f"after {bounds[0]}, up to {bounds[1]}")
        if request.limit is not None:
            said.append(f"at most {count_text(request.limit, 'row')}")
        if request.read_optimized:
            said.append("read-optimized")
        return f"<{'; '.join(said)}>"

    def _repr_html_(self) -> str:
        from pyhudi.api.display.scan_html import scan_html  # noqa: PLC0415 - only for notebooks

        return scan_html(self)

    def _at_most(self, most: int) -> pa.RecordBatchReader:
        limit = most if self.request.limit is None else min(most, self.request.limit)
        return self._stream([replace(task, limit=limit) for task in self.tasks], limit)

    def _engine_for(self, tasks: Sequence[ReadTask]) -> Engine:
        """Small files of a bucket are opened many at a time, unless memory is to be shared."""
        if self.request.memory_limit is not None:
            return self.engine
        return choose_io_engine(self.engine, self.table.storage, sum(map(task_size, tasks)))

    def _stream(self, tasks: Sequence[ReadTask], limit: int | None) -> pa.RecordBatchReader:
        from pyhudi.slices.read import read_task  # noqa: PLC0415 - planning needs no core

        label = f"scan {self.table.storage.uri}"
        engine = self._engine_for(tasks)
        rows = stream_first(engine, read_task, tasks, self.schema, label, limit)
        return pa.RecordBatchReader.from_batches(
            self.schema, detect_concurrent_clean(rows, self.table)
        )

    def _narrow_column(self) -> str:
        """A column that is cheap to read, one that the filter reads anyway if it has any."""
        where = self.request.where
        if where is not None and where.columns:
            return where.columns[0]
        return narrow_column(self.table.columns, self.table.config.partition_fields)


def new_scan(
    table: TableSnapshot,
    engine: Engine,
    *,
    columns: Sequence[str] | None,
    where: Any,
    limit: int | None,
    meta_fields: bool,
    read_optimized: bool = False,
    span: IncrementalRange | None = None,
    memory_limit: int | None = None,
) -> Scan:
    """A scan whose arguments fit the table; see `HudiTable.scan` for what they mean and raise.

    span: the range of an incremental query, else None.
    """
    schema = scan_schema(table)
    if isinstance(columns, str):
        raise ConfigError("columns is a string", hint=f"Give a list: [{columns!r}].")
    if columns is not None and not columns:
        raise ConfigError(
            "columns is empty", hint="Leave it out to get all columns; count() counts rows."
        )
    for name in columns or ():
        column_type((name,), schema)
    if columns is not None and len(set(columns)) < len(columns):
        raise ConfigError(f"columns names a column twice: {', '.join(columns)}")
    check_limit(limit)
    output = output_columns(
        schema.names, columns, meta=[n for n in schema.names if is_meta(n)], meta_fields=meta_fields
    )
    request = ScanRequest(
        output=output,
        where=None if where is None else parse_where(where, schema),
        limit=limit,
        read_optimized=read_optimized,
        memory_limit=task_memory(memory_limit, engine),
        two_threads=engine.tasks_per_process > 1,
    )
    return Scan(table, request, engine, span)
