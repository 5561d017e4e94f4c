"""Aggregates in the tasks of a read: one row for each group crosses to Spark, and none for a count.

Each task computes sums, counts, minimums and maximums of simple columns over its rows, and Spark
combines the parts under the name and type of its own aggregate. Spark alone computes all other
aggregates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from pyhudi.api.scan import Scan
from pyhudi.engine.local import LocalEngine
from pyhudi.engine.protocol import Attempt
from pyhudi.query.concurrent_clean import detect_concurrent_clean
from pyhudi.slices.read import count_task, read_task
from pyhudi.slices.read_tasks import ReadTask
from pyhudi.slices.row_counts import is_whole_base_file, rows_from_commits
from pyhudi.slices.task_packing import (
    Pack,
    PackSizes,
    pack_tasks,
    read_pack,
    split_tasks,
    task_size,
)
from pyhudi.spark.column_compatibility import quote_name
from pyhudi.spark.column_sql import PLAIN_NAME, plain_name, sql_of
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.job_watch import is_connect
from pyhudi.spark.types import spark_schema

_AGGREGATE = re.compile(
    r"(?P<function>sum|count|min|max)\(`?(?P<column>\w+|\*|unresolvedstar\(\))`?\)"
    r"(?: AS `?(?P<name>\w+)`?)?",
    re.IGNORECASE,
)
_ROWS = "1"
"""Instead of a column name: the aggregate counts all rows."""
_CHUNK = 256 * 1024
"""Rows that are aggregated at a time."""
_MIN_GROUP_ROWS = 2
"""Average rows of a group below which rows are passed on unchanged."""
_MAX_LONG = 2**63 - 1


_MAX_DRIVER_FOOTERS = 64
"""Maximum number of footers that the driver reads itself, because a Spark job costs more."""


@dataclass(frozen=True)
class Part:
    """One aggregate of a column."""

    function: str
    column: str
    """Name of the column, `_ROWS` for none."""
    name: str
    """Name of the result."""

    @property
    def part_name(self) -> str:
        """Name of the column with the parts of the tasks."""
        return f"_pyhudi_{self.function}_{self.column}"

    def type_in(self, schema: pa.Schema) -> pa.DataType | None:
        """Return the type of the parts; None if Spark must aggregate alone."""
        if self.function == "count":
            return pa.int64()
        stored = schema.field(self.column).type
        if self.function == "sum":
            if at.is_signed_integer(stored):
                return pa.int64()
            return pa.float64() if stored in (pa.float32(), pa.float64()) else None
        is_integral = at.is_signed_integer(stored) or at.is_date32(stored)
        return stored if is_integral else None

    def of_row(self, functions: Any, schema: pa.Schema) -> Any:
        """Return Spark's column with the part of one row. schema: that of the parts."""
        if self.column == _ROWS:
            return functions.lit(1).cast("bigint").alias(self.part_name)
        value = functions.col(quote_name(self.column))
        value = value.isNotNull() if self.function == "count" else value
        (part_type,) = spark_schema(pa.schema([schema.field(self.part_name)]))
        return value.cast(part_type.dataType).alias(self.part_name)

    def final_aggregate(self, functions: Any) -> Any:
        """Return Spark's aggregate of the parts of all tasks.

        functions: `pyspark.sql.functions` of the session.
        """
        part = functions.col(self.part_name)
        if self.function == "count":
            zero = functions.lit(0).cast("bigint")
            return functions.coalesce(functions.sum(part), zero).alias(self.name)
        return getattr(functions, self.function)(part).alias(self.name)


@dataclass(frozen=True)
class Parts:
    """The result columns of the tasks of one aggregate: grouping columns and parts."""

    by: tuple[str, ...]
    parts: tuple[Part, ...]
    schema: pa.Schema

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        named = (part.column for part in self.parts if part.column != _ROWS)
        return tuple(dict.fromkeys((*self.by, *named)))

    def over(self, frame: Any, by: Sequence[Any]) -> Any:
        """Return Spark's aggregate of a frame of parts. by: the user's grouping columns."""
        of_client = is_connect(frame)
        functions = import_module(f"pyspark.sql.{'connect.' * of_client}functions")
        aggregates = [part.final_aggregate(functions) for part in self.parts]
        return frame.groupBy(*by).agg(*aggregates) if by else frame.agg(*aggregates)

    def of_frame(self, rows: Any) -> Any:
        """Return the parts of each row of a frame that Spark reads itself.

        Spark adds them up in the tasks that read the rows.
        """
        of_client = is_connect(rows)
        functions = import_module(f"pyspark.sql.{'connect.' * of_client}functions")
        parts = [part.of_row(functions, self.schema) for part in self.parts]
        return rows.select(*(functions.col(quote_name(name)) for name in self.by), *parts)

    def of_pack(self, pack: Pack[Any]) -> Iterator[pa.RecordBatch]:
        """Yield the parts of a pack's rows."""
        is_useful = True
        for chunk in _chunks(read_pack(pack)):
            if is_useful and _is_exact(chunk, self.parts):
                table = self._group_chunk(chunk) if self.by else self._aggregate_chunk(chunk)
                is_useful = not self.by or table.num_rows * _MIN_GROUP_ROWS <= chunk.num_rows
            else:
                table = self._rows(chunk)
            yield from table.combine_chunks().to_batches()

    def _group_chunk(self, chunk: pa.Table) -> pa.Table:
        requested: list[Any] = [
            ([], "count_all") if part.column == _ROWS else (part.column, part.function)
            for part in self.parts
        ]
        # Keys come first, then the requested aggregates, whose names may equal those of keys.
        return self._cast_columns(
            chunk.group_by(self.by, use_threads=False).aggregate(requested).columns
        )

    def _aggregate_chunk(self, chunk: pa.Table) -> pa.Table:
        return self._cast_columns(
            [pa.array([_aggregate_column(chunk, part)]) for part in self.parts]
        )

    def _rows(self, chunk: pa.Table) -> pa.Table:
        """Return a part for each row."""
        columns = [chunk.column(name) for name in self.by]
        return self._cast_columns(
            [*columns, *(_values_per_row(chunk, part) for part in self.parts)]
        )

    def _cast_columns(self, columns: Sequence[Any]) -> pa.Table:
        fields = zip(columns, self.schema, strict=True)
        return pa.table([column.cast(field.type) for column, field in fields], schema=self.schema)


def parts_of(
    by: Sequence[Any], method: str, args: tuple[Any, ...], schema: pa.Schema
) -> Parts | None:
    """Return the partial aggregate of groups; None if Spark must aggregate alone.

    by: arguments of `groupBy`. method, args: the aggregate method and its arguments. schema: schema
    of the rows.
    """
    named = map(plain_name, by)
    grouping = [name for name in named if name is not None and name in schema.names]
    parts = _parse_aggregates(method, args)
    if len(grouping) < len(by) or not parts or len(set(grouping)) < len(by):
        return None
    if any(part is None or (part.column not in (*schema.names, _ROWS)) for part in parts):
        return None
    result = tuple(part for part in parts if part is not None)
    types = [part.type_in(schema) for part in result]
    keys = [schema.field(name) for name in grouping]
    if any(part_type is None for part_type in types) or not all(_is_key(key.type) for key in keys):
        return None
    if len({part.part_name for part in result}) < len(result):
        return None
    part_fields = [
        pa.field(part.part_name, part_type) for part, part_type in zip(result, types, strict=True)
    ]
    return Parts(tuple(grouping), result, pa.schema([*keys, *part_fields]))


def _parse_aggregates(method: str, args: tuple[Any, ...]) -> list[Part | None]:
    if method == "count":
        return [Part("count", _ROWS, "count")]
    if method != "agg":
        are_names = all(isinstance(name, str) and PLAIN_NAME.fullmatch(name) for name in args)
        is_supported = are_names and method in ("sum", "min", "max")
        return (
            [Part(method, name, f"{method}({name})") for name in args] if is_supported else [None]
        )
    if len(args) == 1 and isinstance(args[0], dict):
        # Spark decides the order of several entries.
        is_single = len(args[0]) == 1
        aggregates = [
            f"{function}({name})" if is_single else None for name, function in args[0].items()
        ]
    else:
        aggregates = [
            None if isinstance(expression, str) else sql_of(expression) for expression in args
        ]
    return [_part(sql) for sql in aggregates]


def _part(sql: str | None) -> Part | None:
    match = _AGGREGATE.fullmatch(sql or "")
    if match is None:
        return None
    function, column, name = match["function"].lower(), match["column"], match["name"]
    if column in ("*", "1", "unresolvedstar()"):
        # Without an alias, the name that Spark chooses differs by release.
        return Part(function, _ROWS, name) if function == "count" and name else None
    return Part(function, column, name or f"{function}({column})")


def _is_key(stored: pa.DataType) -> bool:
    is_integral = at.is_signed_integer(stored) or at.is_date32(stored) or at.is_boolean(stored)
    return bool(is_integral or at.is_string(stored) or at.is_large_string(stored))


def _chunks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    chunk: list[pa.RecordBatch] = []
    for batch in batches:
        chunk.append(batch)
        if sum(part.num_rows for part in chunk) >= _CHUNK:
            yield pa.Table.from_batches(chunk)
            chunk = []
    if chunk:
        yield pa.Table.from_batches(chunk)


def _is_exact(chunk: pa.Table, parts: Sequence[Part]) -> bool:
    """Return whether no sum of the chunk's rows can overflow, which Arrow does not report."""
    for part in parts:
        if part.function == "sum" and chunk.column(part.column).type == pa.int64():
            ends = pc.min_max(chunk.column(part.column)).as_py()
            max_value = max(abs(ends["min"] or 0), abs(ends["max"] or 0))
            if max_value * chunk.num_rows > _MAX_LONG:
                return False
    return True


def _aggregate_column(chunk: pa.Table, part: Part) -> Any:
    if part.column == _ROWS:
        return pa.scalar(chunk.num_rows)
    function: Callable[[Any], Any] = getattr(pc, part.function)
    return function(chunk.column(part.column))


def _values_per_row(chunk: pa.Table, part: Part) -> Any:
    if part.column == _ROWS:
        return pa.chunked_array([pa.repeat(1, chunk.num_rows)])
    column = chunk.column(part.column)
    return pc.is_valid(column).cast(pa.int64()) if part.function == "count" else column


def count_rows(scan: Scan, engine: SparkEngine, sizes: PackSizes) -> int:
    """Count the rows of a scan, of which no row crosses to Spark. Raises as `Scan.count`.

    scan: of as few columns as possible.
    """
    label = f"count {scan.table.storage.uri}"
    counted, tasks = rows_from_commits(scan.table.timeline, scan.tasks)
    footers = [task for task in tasks if is_whole_base_file(task)]
    remaining = [task for task in tasks if not is_whole_base_file(task)]
    # One task reads a footer; only the other files are worth splitting.
    tasks = split_tasks(remaining, sizes)
    if len(footers) > _MAX_DRIVER_FOOTERS:
        footers, tasks = [], [*footers, *tasks]
    packs = pack_tasks(read_task, tasks, task_size, sizes)

    def counts() -> Iterator[int]:
        yield from LocalEngine().run(count_task, footers, label=label)
        yield from engine.run(_count_pack, packs, label=label)

    return counted + sum(detect_concurrent_clean(counts(), scan.table))


def _count_pack(pack: Pack[ReadTask], attempt: Attempt) -> int:
    return sum(count_task(task, attempt) for task in pack.tasks)
