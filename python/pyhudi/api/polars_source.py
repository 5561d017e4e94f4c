"""A scan as a source of polars queries: columns, filters and row limits go into the scan.

polars plans a query before it requests rows. polars' own filter expression is applied again here,
so the scan may use only a part of it: comparisons of a whole column with values of its own type, on
which polars and pyhudi agree for every row. An expression that is not supported, in the format of
any polars release, only costs reading.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import polars as pl
import pyarrow as pa
from polars.io.plugins import register_io_source

from pyhudi.api.splits import push_into_scan
from pyhudi.errors import ConfigError
from pyhudi.schema.predicate_parser import parse_where
from pyhudi.schema.predicates import Where

if TYPE_CHECKING:
    from pyhudi.api.scan import Scan

_MIN_RELEASE = (1, 35)
"""Earlier releases refuse filters of decimals; those before 1.22 lose filters that they cannot push
down, so that queries return other rows."""


def lazy_frame(scan: Scan) -> pl.LazyFrame:
    """Return the rows of a scan as a LazyFrame; each query reads again.

    Raises `ConfigError` for an old polars.
    """
    check_release(pl.__version__)
    schema = _frame(scan.schema.empty_table()).schema

    def source(
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        _batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        columns = list(schema) if with_columns is None else with_columns
        return _frames(scan, columns, predicate, n_rows)

    return register_io_source(source, schema=schema)


def check_release(version: str) -> None:
    """Raise `ConfigError` for a polars release that returns wrong rows."""
    if tuple(int(part) for part in version.split(".")[:2]) < _MIN_RELEASE:
        raise ConfigError(
            f"polars {version} loses filters of lazy queries over this source, or refuses them",
            hint="Use polars 1.35 or later, or to_polars().",
        )


def _frames(
    scan: Scan, columns: list[str], predicate: pl.Expr | None, n_rows: int | None
) -> Iterator[pl.DataFrame]:
    """Yield at least one frame, because releases before 1.30 fail without one.

    n_rows: rows of the scan; the predicate is applied to these.
    """
    filter_columns = [] if predicate is None else predicate.meta.root_names()
    read = list(dict.fromkeys((*columns, *filter_columns))) or scan.schema.names[:1]
    where = None
    if predicate is not None and n_rows is None and scan.request.limit is None:
        where = _where(predicate, scan.schema)
    rows = push_into_scan(scan, read, where, n_rows)
    empty = True
    for batch in rows.to_reader():
        yield _select(pa.Table.from_batches([batch]), columns, predicate)
        empty = False
    if empty:
        yield _select(rows.schema.empty_table(), columns, predicate)


def _where(predicate: pl.Expr, schema: pa.Schema) -> Where | None:
    terms = terms_implied_by(predicate, _frame(schema.empty_table()).schema)
    return parse_where(terms, schema) if terms else None


def _select(rows: pa.Table, columns: list[str], predicate: pl.Expr | None) -> pl.DataFrame:
    frame = _frame(rows)
    return (frame if predicate is None else frame.filter(predicate)).select(columns)


def _frame(rows: pa.Table) -> pl.DataFrame:
    return cast("pl.DataFrame", pl.from_arrow(rows))


Term = tuple[Any, ...]
"""A condition `(column, op, value)` or `(column, op)`, as `parse_where` accepts it."""

_COMPARISONS = {
    "Eq": ("=", "="),
    "NotEq": ("!=", "!="),
    "Lt": ("<", ">"),
    "LtEq": ("<=", ">="),
    "Gt": (">", "<"),
    "GtEq": (">=", "<="),
}
"""Operators for a value on the right side of the column, and on its left."""
_BETWEEN = {
    "Both": (">=", "<="),
    "Left": (">=", "<"),
    "Right": (">", "<="),
    "None": (">", "<"),
}
_MAX_TERMS = 100
"""Maximum number of conditions; each costs a pass over the rows."""
_MAX_LISTED = 1000


def terms_implied_by(predicate: pl.Expr, schema: pl.Schema) -> list[Term]:
    """Return conditions that hold on every row that a predicate keeps.

    schema: the schema of the predicate's frame.
    """
    try:
        tree = json.loads(predicate.meta.serialize(format="json"))
    except (pl.exceptions.PolarsError, ValueError):
        return []  # for example a Python function of the user
    return list(_terms(tree, schema))[:_MAX_TERMS]


def _terms(node: Any, schema: pl.Schema) -> Iterator[Term]:
    match node:
        case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
            yield from _terms(left, schema)
            yield from _terms(right, schema)
        case {"BinaryExpr": {"left": {"Column": str(name)}, "op": str(op), "right": value}}:
            yield from _comparison_terms(name, _COMPARISONS.get(op, ("", ""))[0], value, schema)
        case {"BinaryExpr": {"left": value, "op": str(op), "right": {"Column": str(name)}}}:
            yield from _comparison_terms(name, _COMPARISONS.get(op, ("", ""))[1], value, schema)
        case {"Column": str(name)}:
            yield name, "=", True
        case {"Function": {"input": [*inputs], "function": {"Boolean": function}}}:
            yield from _function_terms(function, inputs, schema)


def _function_terms(function: Any, inputs: list[Any], schema: pl.Schema) -> Iterator[Term]:
    match function, inputs:
        case "IsNull", [{"Column": str(name)}]:
            yield name, "is null"
        case "IsNotNull", [{"Column": str(name)}]:
            yield name, "is not null"
        case "Not", [{"Column": str(name)}] if schema[name] == pl.Boolean:
            yield name, "=", False
        case {"IsBetween": {"closed": str(closed)}}, [{"Column": str(name)}, low, high]:
            ops = _BETWEEN.get(closed, ("", ""))
            yield from _comparison_terms(name, ops[0], low, schema)
            yield from _comparison_terms(name, ops[1], high, schema)
        case (("IsIn" | {"IsIn": _}), [{"Column": str(name)}, among]):
            yield from _list_terms(name, _values(among, schema[name]))


def _comparison_terms(name: str, op: str, node: Any, schema: pl.Schema) -> Iterator[Term]:
    values = _values(node, schema[name])
    if op and values is not None and values.len() == 1:
        yield name, op, values[0]


def _list_terms(name: str, values: pl.Series | None) -> Iterator[Term]:
    """Yield conditions of a list; of a long one only its bounds, to save time in Python."""
    if values is None or values.is_empty():
        return
    if values.len() <= _MAX_LISTED:
        yield name, "in", values.to_list()
    elif not values.dtype.is_float():
        yield name, ">=", values.min()
        yield name, "<=", values.max()


def _values(node: Any, data_type: pl.DataType) -> pl.Series | None:
    """Return the values of a literal of a column's type; None if it is another, or has a null."""
    if not _is_constant(node) or not _is_supported(data_type):
        return None
    try:
        literal = pl.Expr.deserialize(io.StringIO(json.dumps(node)), format="json")
        values = pl.select(literal).to_series()
    except pl.exceptions.PolarsError:
        return None
    if isinstance(values.dtype, pl.List):
        values = values.explode()
    same = values.dtype == data_type or (
        isinstance(data_type, pl.Decimal) and isinstance(values.dtype, pl.Decimal)
    )
    if not same or values.null_count() or not _fits_python(values):
        return None
    return values


def _fits_python(values: pl.Series) -> bool:
    """Return whether Python can hold all values: its calendar has bounds."""
    try:
        _ = values.min(), values.max()
    except (ValueError, OverflowError):
        return False
    return True


def _is_constant(node: Any) -> bool:
    """Return whether a node is a literal, possibly with a cast or a time zone."""
    match node:
        case {"Literal": _}:
            return True
        case {"Cast": {"expr": inner}}:
            return _is_constant(inner)
        case {"Function": {"input": [*inputs], "function": {"TemporalExpr": _}}}:
            return all(map(_is_constant, inputs))
        case _:
            return False


def _is_supported(data_type: pl.DataType) -> bool:
    """Return whether Python holds the values of a type unchanged."""
    if isinstance(data_type, pl.Datetime):
        return data_type.time_unit != "ns"
    return data_type.is_integer() or data_type.is_float() or isinstance(data_type, _SUPPORTED)


# Without bytes: polars hides the length of fixed-size bytes, which compare with no others here.
_SUPPORTED = (pl.String, pl.Boolean, pl.Date, pl.Decimal)
