"""Generated columns: stored columns whose values are computed from other columns of the row.

A write that does not have a generated column gets it computed; if it has the column, the values
must be the same. The expressions are a property of pyhudi's own, so Apache Hudi's writers do not
compute them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at
from sqlglot import exp

from pyhudi import _native
from pyhudi.config.formatting import count_text
from pyhudi.config.meta_columns import META_COLUMNS
from pyhudi.config.property_names import GENERATED_COLUMNS
from pyhudi.errors import (
    ConfigError,
    ConstraintViolation,
    SchemaMismatch,
    UnsupportedTableFeature,
    without_hint,
)
from pyhudi.schema.assignments import set_value
from pyhudi.schema.column_transforms import (
    ColumnTransform,
    buckets_of,
    can_hash,
    canonical_sql,
    quote_column,
)
from pyhudi.schema.computed_columns import SetValue, project, project_values
from pyhudi.schema.predicates import column_type
from pyhudi.schema.sql_parser import parse_one


@dataclass(frozen=True)
class GeneratedColumn:
    """A column with the expression that its values have."""

    name: str
    sql: str
    sources: tuple[str, ...]
    """The columns that the expression uses."""
    value: SetValue
    """The expression; for buckets, the value that is hashed."""
    buckets: int | None = None

    def compute(self, rows: pa.Table) -> pa.ChunkedArray[Any]:
        """Return the value of each row. Raises `SchemaMismatch` if one cannot be computed."""
        narrow = rows.select(list(self.sources))
        try:
            if self.buckets is None:
                return project(narrow, {self.name: self.value}).column(0)
            hashed = project_values(narrow, {self.name: self.value.expression}).column(0)
        except SchemaMismatch as error:
            hint = "CASE WHEN condition THEN value END computes a value for some rows only."
            msg = f"the generated column {self.name!r}, {self.sql}: {without_hint(error)}"
            raise SchemaMismatch(msg, hint=hint) from error
        chunks = [_bucket(chunk, self.buckets) for chunk in hashed.chunks]
        buckets = pa.chunked_array(chunks, pa.int32())
        return self.value.cast_to_column(buckets, self.name)

    def check_sources(self, names: Collection[str]) -> None:
        """Raise `UnsupportedTableFeature` if the input does not have all columns it needs."""
        missing = [source for source in self.sources if source not in names]
        if missing:
            raise UnsupportedTableFeature(
                f"{GENERATED_COLUMNS}: the generated column {self.name!r} uses the column "
                f"{missing[0]!r}, which the input does not have",
                hint="A partial update needs all columns of an expression, or none of them.",
            )

    def find_wrong(self, rows: pa.Table) -> pa.ChunkedArray[Any]:
        """Return for each row whether its value is not that of the expression."""
        stored, computed = rows.column(self.name), self.compute(rows)
        same = pc.fill_null(pc.equal(stored, computed), fill_value=False)
        same = pc.or_(same, pc.and_(pc.is_null(stored), pc.is_null(computed)))
        if at.is_floating(stored.type):
            both_nan = pc.and_(pc.is_nan(stored), pc.is_nan(computed))
            same = pc.or_(same, pc.fill_null(both_nan, fill_value=False))
        return pc.invert(same)

    @property
    def violation(self) -> str:
        """The rule that a row breaks, for messages."""
        return f"the generated column {self.name!r} is not {self.sql}"

    def violation_error(self, rows: pa.Table) -> ConstraintViolation:
        """Return the error for rows with wrong values."""
        first = rows.slice(0, 1)
        expected = self.compute(first).cast(pa.string())[0]
        values = ", ".join(
            f"{name}={first.column(name)[0]}" for name in dict.fromkeys((*self.sources, self.name))
        )
        return ConstraintViolation(
            f"{self.violation} for "
            f"{count_text(rows.num_rows, 'row')}; the first: {values}, expected {expected}",
            constraint=self.name,
            hint="Leave the column out: pyhudi computes it. An update cannot move a row to another "
            "partition; an upsert can.",
        )


def _bucket(values: pa.Array[Any], buckets: int) -> pa.Array[Any]:
    data_type = values.type
    if at.is_timestamp(data_type) or at.is_int64(data_type):
        values = values.cast(pa.int64())
    elif at.is_date(data_type) or at.is_integer(data_type):
        values = values.cast(pa.int32())
    hashes = _native.spark_hashes(values).cast(pa.int64())
    # Hashes may be negative.
    quotient = pc.floor(pc.divide(hashes.cast(pa.float64()), float(buckets))).cast(pa.int64())
    return pc.subtract(hashes, pc.multiply(quotient, buckets)).cast(pa.int32())


def build_generated_column(name: str, sql: object, schema: pa.Schema) -> GeneratedColumn:
    """Check and return a generated column.

    sql: a SQL expression or a `ColumnTransform`. schema: the table's columns; the generated column
    has its type there, or that of the expression if it is not among them.

    Raises `ConfigError` and `SchemaMismatch` for an invalid one.
    """
    if isinstance(sql, ColumnTransform):
        if sql.as_ not in (None, name):
            msg = f"the generated column {name!r} has another name, as_={sql.as_!r}"
            raise ConfigError(msg, hint="Leave as_ out.")
        sql = sql.sql(schema)
    if not isinstance(sql, str) or not sql.strip():
        msg = f"the generated column {name!r} is {sql!r}"
        raise ConfigError(msg, hint="Pass a SQL expression, or a transform such as day('at').")
    what = f"generated column {name!r}"
    paths = _column_paths(sql, what)
    if not paths:
        raise ConfigError(f"{what}: {sql} uses no column", hint="Use a column of the table.")
    sources = tuple(dict.fromkeys(path.split(".")[0] for path in paths))
    if name in sources:
        raise ConfigError(f"{what}: {sql} uses the column itself", hint="Use other columns.")
    sql = canonical_sql(sql, paths[0]) if len(paths) == 1 else sql
    buckets = buckets_of(sql, paths[0]) if len(paths) == 1 else None
    names: dict[tuple[str, ...], pa.Field] = {(field.name,): field for field in schema}
    with _own_hint():
        expression = set_value(
            sql if buckets is None else quote_column(paths[0]), pa.null(), names, what
        ).expression
    data_type = pa.int32()
    if buckets is None:
        data_type = project_values(schema.empty_table(), {name: expression}).schema.field(0).type
    elif not can_hash(column_type(tuple(paths[0].split(".")), schema)):
        msg = f"{what}: the hash of {paths[0]!r} is not supported"
        raise ConfigError(msg, hint="Hash a string, an integer, a date or a timestamp.")
    if at.is_nested(data_type) or at.is_null(data_type):
        raise ConfigError(f"{what}: {sql} has the type {data_type}", hint="Use CAST(x AS type).")
    if name in schema.names:
        data_type = schema.field(name).type
    generated = GeneratedColumn(
        name, sql, sources, SetValue(expression, data_type, is_column=False), buckets
    )
    generated.compute(schema.empty_table())
    return generated


@contextmanager
def _own_hint() -> Iterator[None]:
    """Replace the hint for unsupported syntax: other callers take pyarrow's expressions, too."""
    try:
        yield
    except ConfigError as error:
        if "pyarrow expression" in error.hint:
            error.hint = "The reference of SQL expressions lists the functions."
        raise


def _column_paths(sql: str, what: str) -> tuple[str, ...]:
    paths = {
        ".".join(part.name for part in column.parts): None
        for column in parse_one(sql, what).find_all(exp.Column)
    }
    return tuple(paths)


def add_generated_fields(
    schema: pa.Schema, expressions: Mapping[str, object]
) -> tuple[pa.Schema, dict[str, str]]:
    """Return the columns of a new table with the generated ones, and their SQL expressions.

    Raises `ConfigError` and `SchemaMismatch` for invalid expressions.
    """
    for name, sql in expressions.items():
        if name in META_COLUMNS:
            msg = f"the generated column {name!r} is a meta column of Hudi"
            raise ConfigError(msg, hint="Choose another name.")
        if isinstance(sql, str) and sql.strip():
            paths = _column_paths(sql, f"generated column {name!r}")
            _check_not_generated(name, {path.split(".")[0] for path in paths}, expressions)
    columns = [build_generated_column(name, sql, schema) for name, sql in expressions.items()]
    for column in columns:
        _check_not_generated(column.name, column.sources, expressions)
        if column.name not in schema.names:
            schema = schema.append(pa.field(column.name, column.value.data_type))
    return schema, {column.name: column.sql for column in columns}


def _check_not_generated(
    name: str, sources: Collection[str], expressions: Mapping[str, object]
) -> None:
    """Raise `ConfigError` if an expression uses another generated column."""
    for source in sorted(set(sources) & (expressions.keys() - {name})):
        msg = f"the generated column {name!r} uses the generated column {source!r}"
        raise ConfigError(msg, hint="Use the expression of that column.")
