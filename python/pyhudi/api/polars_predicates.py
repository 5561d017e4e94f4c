"""What a polars predicate implies for single columns, as filter tuples.

Only comparisons of a whole column with values of its own type are taken, by which polars and pyhudi
agree on every row. Whoever scans applies the whole predicate afterwards; so what is not understood,
in whatever form a release of polars writes it, costs reading and nothing else.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import polars as pl

Term = tuple[Any, ...]
"""`(column, op, value)` or `(column, op)`, as `parse_where` takes them."""

_COMPARISONS = {
    "Eq": ("=", "="),
    "NotEq": ("!=", "!="),
    "Lt": ("<", ">"),
    "LtEq": ("<=", ">="),
    "Gt": (">", "<"),
    "GtEq": (">=", "<="),
}
"""As a value on the right side of the column, and on its left."""
_BETWEEN = {
    "Both": (">=", "<="),
    "Left": (">=", "<"),
    "Right": (">", "<="),
    "None": (">", "<"),
}
_TERMS_MOST = 100
"""More conditions than filters have that people write; each costs a pass over the rows."""
_LISTED_MOST = 1000


def terms_implied_by(predicate: pl.Expr, schema: pl.Schema) -> list[Term]:
    """Conditions that hold on every row that a predicate keeps.

    schema: of the frame that it is on.
    """
    try:
        tree = json.loads(predicate.meta.serialize(format="json"))
    except (pl.exceptions.PolarsError, ValueError):
        return []  # a function of the user's own, for one
    return list(_terms(tree, schema))[:_TERMS_MOST]


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
            yield from _of_function(function, inputs, schema)


def _of_function(function: Any, inputs: list[Any], schema: pl.Schema) -> Iterator[Term]:
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
            yield from _among(name, _values(among, schema[name]))


def _comparison_terms(name: str, op: str, node: Any, schema: pl.Schema) -> Iterator[Term]:
    values = _values(node, schema[name])
    if op and values is not None and values.len() == 1:
        yield name, op, values[0]


def _among(name: str, values: pl.Series | None) -> Iterator[Term]:
    """Of many values only the ends, since each would be looked at in Python."""
    if values is None or values.is_empty():
        return
    if values.len() <= _LISTED_MOST:
        yield name, "in", values.to_list()
    elif not values.dtype.is_float():
        yield name, ">=", values.min()
        yield name, "<=", values.max()


def _values(node: Any, kind: pl.DataType) -> pl.Series | None:
    """The values of a literal of a column's type; None for any other, and if one is null."""
    if not _is_constant(node) or not _is_taken(kind):
        return None
    try:
        literal = pl.Expr.deserialize(io.StringIO(json.dumps(node)), format="json")
        values = pl.select(literal).to_series()
    except pl.exceptions.PolarsError:
        return None
    if isinstance(values.dtype, pl.List):
        values = values.explode()
    same = values.dtype == kind or (
        isinstance(kind, pl.Decimal) and isinstance(values.dtype, pl.Decimal)
    )
    if not same or values.null_count() or not _has_python(values):
        return None
    return values


def _has_python(values: pl.Series) -> bool:
    """Whether Python has all of some values: its calendar begins and ends."""
    try:
        _ = values.min(), values.max()
    except (ValueError, OverflowError):
        return False
    return True


def _is_constant(node: Any) -> bool:
    """A literal, or what polars makes of one to give it a type or a time zone."""
    match node:
        case {"Literal": _}:
            return True
        case {"Cast": {"expr": inner}}:
            return _is_constant(inner)
        case {"Function": {"input": [*inputs], "function": {"TemporalExpr": _}}}:
            return all(map(_is_constant, inputs))
        case _:
            return False


def _is_taken(kind: pl.DataType) -> bool:
    """Whether Python has the values of a type as they are."""
    if isinstance(kind, pl.Datetime):
        return kind.time_unit != "ns"
    return kind.is_integer() or kind.is_float() or isinstance(kind, _TAKEN)


# Without bytes: those of a fixed length, which polars does not tell, compare with no others here.
_TAKEN = (pl.String, pl.Boolean, pl.Date, pl.Decimal)
