"""A lazy scan and its outputs. Nothing is read before you ask for an output.

A scan reads the snapshot of its table handle. `query/file_pruning.py` plans what to read; the
engine reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.api.operation_events import as_operation, report_rows
from pyhudi.api.outputs import check_limit, stream_first
from pyhudi.api.scan_outputs import ScanOutputs
from pyhudi.cached_property import cached_property
from pyhudi.config import argument_checks as arg
from pyhudi.config.formatting import count_text, names_text, shorten
from pyhudi.engine.local import LocalEngine, choose_engine
from pyhudi.engine.memory_pool import task_memory
from pyhudi.engine.protocol import Engine
from pyhudi.errors import ConfigError
from pyhudi.input.semi_structured import in_schema
from pyhudi.query.commit_range import IncrementalRange, next_start
from pyhudi.query.concurrent_clean import detect_concurrent_clean
from pyhudi.query.explain import Explanation
from pyhudi.query.file_pruning import output_columns, plan_scan, scan_slices, select_file_slices
from pyhudi.query.incremental import plan_incremental
from pyhudi.schema.predicate_parser import parse_where
from pyhudi.schema.predicates import column_type, format_expression
from pyhudi.schema.statement_time import StatementTime
from pyhudi.schema.table_schema import is_meta, narrow_column
from pyhudi.slices.file_slices import slices_table
from pyhudi.slices.read import count_task, read_task
from pyhudi.slices.read_tasks import ReadTask, ScanRequest
from pyhudi.slices.row_counts import rows_from_commits
from pyhudi.slices.task_packing import task_size
from pyhudi.table.scan_columns import scan_schema
from pyhudi.table.table_snapshot import TableSnapshot

if TYPE_CHECKING:
    from pyhudi.config.memory_size import MemorySize
    from pyhudi.query.key_reader import KeyReaders


@dataclass(frozen=True)
class Scan(ScanOutputs):
    """Rows of a table that are described but not read, made by `HudiTable.scan` and `incremental`.

    You can pass a scan to anything that reads Arrow streams (`__arrow_c_stream__`), any number of
    times.
    """

    table: TableSnapshot
    """The snapshot of the table."""
    request: ScanRequest
    engine: Engine
    incremental_range: IncrementalRange | None = None
    """The range of an incremental query; None for a scan of all rows."""
    key_readers: KeyReaders | None = field(default=None, compare=False)
    """The lookup state of the handle; None if the scan is of another snapshot."""

    @property
    def table_schema(self) -> pa.Schema:
        """All columns of the table in scans, Hudi's meta columns first."""
        return scan_schema(self.table)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result, in order."""
        table_schema = self.table_schema
        return pa.schema([table_schema.field(name) for name in self.request.output])

    @cached_property
    def tasks(self) -> Sequence[ReadTask]:
        """Picklable tasks for `slices.read.read_task`, one for each file slice.

        A task is made when it is asked for, so a table may have millions of file slices.

        Raises `UnsupportedTableFeature` if pyhudi does not support the merge rule of a slice, and
        `HistoryUnavailable` if an incremental range cannot be read completely.
        """
        if self.incremental_range is not None:
            return plan_incremental(self.table, self.request, self.incremental_range)
        return plan_scan(self.table, self.request)

    @property
    def position(self) -> str | None:
        """The position after this scan: a `start` of `incremental`, `changes` and `stream`.

        They have each later commit then, no other. It is None while the table has no commit,
        and does not depend on filters and limits.

        Raises `ConfigError` for a scan of an earlier time, and `HistoryUnavailable` for a hollow
        commit under `hollow_commits="fail"`.
        """
        return next_start(self.table, self.incremental_range or IncrementalRange(None, None))

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream with bounded read-ahead.

        Returns:
            A reader of the record batches, by partition and file group.

        Raises:
            UnsupportedTableFeature: pyhudi does not support the merge rule of a slice.
            HistoryUnavailable: an incremental range cannot be read completely; or, while you read
                the stream, a cleaner or a restore has removed files of the scan's snapshot.
            CorruptTable: a file is damaged or missing; also while you read the stream.
            ConfigError: the engine does not give Arrow streams.
        """
        return report_rows(self.uri, self.table_name, self._operation, self._open)

    def _open(self) -> pa.RecordBatchReader:
        rows = self._rows_of_keys()
        return (
            rows.to_reader() if rows is not None else self._stream(self.tasks, self.request.limit)
        )

    @property
    def _operation(self) -> str:
        """Name of the read in events."""
        return "scan" if self.incremental_range is None else "incremental"

    @property
    def uri(self) -> str:
        """Location of the table."""
        return self.table.storage.uri

    @property
    def table_name(self) -> str:
        """Name of the table."""
        return self.table.config.name

    @arg.check_arguments()
    @as_operation
    def count(self) -> int:
        """Count the rows of the scan.

        For base files without log files, the count comes from the commits, or from the footers if
        the commits are archived; also with a filter on partition columns only. Otherwise pyhudi
        reads the columns of the filter. The count runs on every engine.

        Returns:
            The number of rows.

        Raises:
            UnsupportedTableFeature: pyhudi does not support the merge rule of a slice.
            HistoryUnavailable: an incremental range cannot be read completely.
            CorruptTable: a file is damaged or missing.
            ConfigError: an argument is unknown.
        """
        narrow = replace(self, request=replace(self.request, output=(self._narrow_column(),)))
        rows = narrow._rows_of_keys()  # noqa: SLF001 - a scan's own
        if rows is not None:
            return int(rows.num_rows)
        if self.request.limit is not None:
            return sum(batch.num_rows for batch in narrow.to_reader())

        counted, rest = rows_from_commits(self.table.timeline, narrow.tasks)

        def counts() -> Iterator[int]:
            label = f"count {self.table.storage.uri}"
            yield from self._engine_for(rest).run(count_task, rest, label=label)

        return counted + (sum(detect_concurrent_clean(counts(), self.table)) if rest else 0)

    @arg.check_arguments()
    @as_operation
    def bounds(self, column: str) -> tuple[Any, Any]:
        """Return the minimum and the maximum of a column among the rows, ignoring nulls.

        For integers, dates, times and decimals, the metadata table's column statistics give the
        bounds of base files without log files, also with a filter on partition columns only.
        Everything else is read. The result is exact in both cases.

        Args:
            column: name of the column.

        Returns:
            Both values as Python objects, or twice None if there is no value. Floating-point
            numbers compare as in pyarrow, which ignores NaN if there is another number.

        Raises:
            SchemaMismatch: there is no such column.
            ConfigError: the values have no order, such as structs and lists.
            UnsupportedTableFeature: pyhudi does not support the merge rule of a slice, or a bound
                is a date or time outside of Python's range, which ends with the year 9999.
            HistoryUnavailable: an incremental range cannot be read completely.
            CorruptTable: a file is damaged or missing.
        """
        from pyhudi.query.min_max import bounds_from_statistics, bounds_of  # noqa: PLC0415 - few scans need it

        data_type = column_type((column,), self.table_schema)
        scan = replace(self, request=replace(self.request, output=(column,)))
        if self.request.limit is not None:
            return bounds_of(data_type, (batch.column(0) for batch in scan.to_reader()))
        from_statistics, rest = bounds_from_statistics(self.table, scan.request, scan.tasks)
        rows = scan._stream(rest, None) if rest else ()  # noqa: SLF001 - a scan's own
        return bounds_of(data_type, [from_statistics, *(batch.column(0) for batch in rows)])

    def plan(self) -> pa.Table:
        """List the file slices to be read, without reading them.

        Returns:
            Columns partition, file_id, base_instant, base_file, base_size, log_files, log_size;
            sizes in bytes, base_file null for a slice of log files only.

        Raises:
            HistoryUnavailable: an incremental range cannot be read completely.
            CorruptTable: the timeline or the metadata table is damaged.
        """
        if self.incremental_range is not None:
            return slices_table([task.slice for task in self.tasks])
        return slices_table(scan_slices(self.table, self.request))

    def explain(self) -> Explanation:
        """Explain the plan of the scan without reading a row: `print` the result.

        Returns:
            Whether the metadata table or the storage listed the files, and what each index pruned;
            its `pruned` is an Arrow table of the partitions and file slices that are not read.

        Raises:
            ConfigError: the scan is an incremental query, whose files come from its commits.
            CorruptTable: the timeline is damaged.
        """
        if self.incremental_range is not None:
            raise ConfigError("an incremental query takes its files from commits: call plan()")
        return select_file_slices(self.table, self.request).explanation

    def __repr__(self) -> str:
        request = self.request
        name = "Scan" if self.incremental_range is None else "Incremental scan"
        parts = [f"{name} of {self.table.config.name!r}: {names_text(request.output)}"]
        if request.where is not None:
            parts.append(f"where {shorten(format_expression(request.where.expression))}")
        if self.incremental_range is not None:
            bounds = (
                self.incremental_range.start or "the beginning",
                self.incremental_range.end or "the last commit",
            )
            parts.append(f"after {bounds[0]}, up to {bounds[1]}")
        if request.limit is not None:
            parts.append(f"at most {count_text(request.limit, 'row')}")
        if request.read_optimized:
            parts.append("read-optimized")
        return f"<{'; '.join(parts)}>"

    def _repr_html_(self) -> str:
        from pyhudi.api.notebook_html.table_html import scan_html  # noqa: PLC0415 - only for notebooks

        return scan_html(self)

    def _first_rows(self, max_rows: int) -> pa.RecordBatchReader:
        return report_rows(
            self.uri, self.table_name, self._operation, partial(self._open_first, max_rows)
        )

    def _open_first(self, max_rows: int) -> pa.RecordBatchReader:
        limit = max_rows if self.request.limit is None else min(max_rows, self.request.limit)
        rows = self._rows_of_keys()
        if rows is not None:
            return rows.slice(0, limit).to_reader()
        return self._stream([replace(task, limit=limit) for task in self.tasks], limit)

    def _rows_of_keys(self) -> pa.Table | None:
        """Return the rows if the filter lists record keys that the record index locates."""
        if self.key_readers is None or self.request.where is None:
            return None
        from pyhudi.api.key_scan import read_listed_keys  # noqa: PLC0415 - few scans need it

        return read_listed_keys(self, self.key_readers)

    def _engine_for(self, tasks: Sequence[ReadTask]) -> Engine:
        """Return an engine that opens small files on object storage concurrently.

        The scan's own engine is used if tasks share a memory limit.
        """
        if self.request.memory_limit is not None or not isinstance(self.engine, LocalEngine):
            return self.engine
        size = sum(map(task_size, tasks))
        return choose_engine(self.engine, self.table.storage, size=size)

    def _stream(self, tasks: Sequence[ReadTask], limit: int | None) -> pa.RecordBatchReader:
        label = f"scan {self.table.storage.uri}"
        engine = self._engine_for(tasks)
        rows = stream_first(engine, read_task, tasks, self.schema, label, limit)
        batches = in_schema(detect_concurrent_clean(rows, self.table), self.schema)
        return pa.RecordBatchReader.from_batches(self.schema, batches)

    def _narrow_column(self) -> str:
        """Return a column that is cheap to read: one of the filter if there is a filter."""
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
    incremental_range: IncrementalRange | None = None,
    memory_limit: MemorySize | None = None,
    key_readers: KeyReaders | None = None,
) -> Scan:
    """Return a scan after checking its arguments; see `HudiTable.scan`.

    incremental_range: the range of an incremental query, else None.
    key_readers: of the handle whose snapshot is scanned, else None.
    """
    schema = scan_schema(table)
    if isinstance(columns, str):
        raise ConfigError("columns is a string", hint=f"Pass a list: [{columns!r}].")
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
        where=None if where is None else parse_where(StatementTime(table.clock).fix(where), schema),
        limit=limit,
        read_optimized=read_optimized,
        memory_limit=task_memory(memory_limit, engine),
        two_threads=engine.tasks_per_process > 1,
    )
    return Scan(table, request, engine, incremental_range, key_readers)
