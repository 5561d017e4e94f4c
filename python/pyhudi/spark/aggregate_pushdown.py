"""Partial aggregates in the tasks of a read: one row for each group crosses to Spark.

Sums of numbers, counts and extremes of simple columns are computed in parts: each task aggregates
its rows, and Spark combines the parts, under the name and type of its own aggregate. All other
aggregates are Spark's alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from pyhudi.slices.task_packing import Pack, read_pack
from pyhudi.spark.column_sql import PLAIN_NAME, plain_name, sql_of
from pyhudi.spark.engine import is_connect

_AGGREGATE = re.compile(
    r"(?P<function>sum|count|min|max)\(`?(?P<column>\w+|\*|unresolvedstar\(\))`?\)"
    r"(?: AS `?(?P<name>\w+)`?)?",
    re.IGNORECASE,
)
_ROWS = "1"
"""Name instead of a column: all rows count."""
_CHUNK = 256 * 1024
"""Rows that are aggregated at a time."""
_WORTH = 2
"""Average rows of a group below which rows are passed on unchanged."""
_MOST = 2**63 - 1


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
            if kinds.is_signed_integer(stored):
                return pa.int64()
            return pa.float64() if stored in (pa.float32(), pa.float64()) else None
        whole = kinds.is_signed_integer(stored) or kinds.is_date32(stored)
        return stored if whole else None

    def whole(self, functions: Any) -> Any:
        """Return Spark's aggregate of the parts.

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
        whole = [part.whole(functions) for part in self.parts]
        return frame.groupBy(*by).agg(*whole) if by else frame.agg(*whole)

    def of_pack(self, pack: Pack[Any]) -> Iterator[pa.RecordBatch]:
        """Yield the parts of a pack's rows."""
        is_worth = True
        for chunk in _chunks(read_pack(pack)):
            if is_worth and _is_exact(chunk, self.parts):
                table = self._group_chunk(chunk) if self.by else self._whole(chunk)
                is_worth = not self.by or table.num_rows * _WORTH <= chunk.num_rows
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

    def _whole(self, chunk: pa.Table) -> pa.Table:
        return self._cast_columns([pa.array([_of_all(chunk, part)]) for part in self.parts])

    def _rows(self, chunk: pa.Table) -> pa.Table:
        """Return a part for each row."""
        columns = [chunk.column(name) for name in self.by]
        return self._cast_columns([*columns, *(_of_each(chunk, part) for part in self.parts)])

    def _cast_columns(self, columns: Sequence[Any]) -> pa.Table:
        fields = zip(columns, self.schema, strict=True)
        return pa.table([column.cast(field.type) for column, field in fields], schema=self.schema)


def parts_of(
    by: Sequence[Any], verb: str, given: tuple[Any, ...], schema: pa.Schema
) -> Parts | None:
    """Return the partial aggregate of groups; None if Spark must aggregate alone.

    by: arguments of `groupBy`. verb, given: the aggregate method and its arguments. schema: schema
    of the rows.
    """
    named = map(plain_name, by)
    grouping = [name for name in named if name is not None and name in schema.names]
    parts = _parse_aggregates(verb, given)
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


def _parse_aggregates(verb: str, given: tuple[Any, ...]) -> list[Part | None]:
    if verb == "count":
        return [Part("count", _ROWS, "count")]
    if verb != "agg":
        are_names = all(isinstance(name, str) and PLAIN_NAME.fullmatch(name) for name in given)
        is_supported = are_names and verb in ("sum", "min", "max")
        return [Part(verb, name, f"{verb}({name})") for name in given] if is_supported else [None]
    if len(given) == 1 and isinstance(given[0], dict):
        # Of several entries, Spark decides the order.
        single = len(given[0]) == 1
        texts = [f"{how}({name})" if single else None for name, how in given[0].items()]
    else:
        texts = [
            None if isinstance(expression, str) else sql_of(expression) for expression in given
        ]
    return [_part(text) for text in texts]


def _part(text: str | None) -> Part | None:
    match = _AGGREGATE.fullmatch(text or "")
    if match is None:
        return None
    function, column, name = match["function"].lower(), match["column"], match["name"]
    if column in ("*", "1", "unresolvedstar()"):
        # The name that Spark chooses otherwise differs by release.
        return Part(function, _ROWS, name) if function == "count" and name else None
    return Part(function, column, name or f"{function}({column})")


def _is_key(stored: pa.DataType) -> bool:
    whole = kinds.is_signed_integer(stored) or kinds.is_date32(stored) or kinds.is_boolean(stored)
    return bool(whole or kinds.is_string(stored) or kinds.is_large_string(stored))


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
            if max_value * chunk.num_rows > _MOST:
                return False
    return True


def _of_all(chunk: pa.Table, part: Part) -> Any:
    if part.column == _ROWS:
        return pa.scalar(chunk.num_rows)
    function: Callable[[Any], Any] = getattr(pc, part.function)
    return function(chunk.column(part.column))


def _of_each(chunk: pa.Table, part: Part) -> Any:
    if part.column == _ROWS:
        return pa.chunked_array([pa.repeat(1, chunk.num_rows)])
    column = chunk.column(part.column)
    return pc.is_valid(column).cast(pa.int64()) if part.function == "count" else column
