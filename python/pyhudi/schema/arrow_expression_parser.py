"""Parses a `pyarrow.compute.Expression` into a tree, and the tree into a condition.

pyarrow has no API to inspect an expression. Its pickled form is one row in Arrow's format: the
columns are the literals with their types, and the schema metadata lists the calls. If the parser
does not understand an expression, there is no tree and the filter prunes nothing; pyarrow still
applies it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as at

from pyhudi.errors import SchemaMismatch
from pyhudi.input.type_tests import is_text
from pyhudi.schema.predicate_literals import fits_column, python_value, to_scalar
from pyhudi.schema.predicates import (
    And,
    Compare,
    Condition,
    In,
    IsNull,
    Not,
    Or,
    column_type,
)

if TYPE_CHECKING:
    import pyarrow.compute as pc
else:
    from pyhudi.schema import lazy_compute as pc

_MAX_LISTED = 1000
"""Only minimum and maximum of a longer list prune files: Python would compare each value."""
_MAX_LEVELS = 200
"""Maximum levels of nested calls, because Python recurses as deep."""
_LINE = re.compile(r"(\w+): '(.*)'")
_COMPARISONS = {
    "equal": ("=", "="),
    "not_equal": ("!=", "!="),
    "less": ("<", ">"),
    "less_equal": ("<=", ">="),
    "greater": (">", "<"),
    "greater_equal": (">=", "<="),
}
"""The operator if the value is the left or the right side."""


@dataclass(frozen=True)
class Field:
    """A column, or a field of a struct in it."""

    path: tuple[str, ...]


@dataclass(frozen=True)
class Literal:
    """A value."""

    value: pa.Scalar


@dataclass(frozen=True)
class Call:
    """A call of an Arrow function."""

    name: str
    arguments: tuple[Node, ...]
    options: Mapping[str, pa.Scalar]


Node = Field | Literal | Call


class _Unreadable(Exception):
    """The expression has an unknown form."""


# --- parsing ------------------------------------------------------------------------------


def tree_of(expression: pc.Expression) -> Node | None:
    """Return the tree of an expression; None if it has none, as with a user-defined function."""
    try:
        _, (written, *_) = expression.__reduce__()
        with pa.ipc.open_file(written) as file:
            row = file.read_all()
        parts = _Parts(row)
        node = parts.node()
        parts.check_over()
    except (pa.ArrowException, _Unreadable, ValueError, TypeError):
        return None
    return node


def fields_of(node: Node) -> set[str]:
    """Return names of the columns that a tree uses."""
    match node:
        case Field(path):
            return {path[0]}
        case Call(_, arguments):
            return set().union(*map(fields_of, arguments))
        case _:
            return set()


class _Parts:
    """The metadata of the row, from left to right: `call: name`, its arguments, `end: name`."""

    def __init__(self, row: pa.Table) -> None:
        self._row = row
        # As a mapping the metadata lose repeated keys; as a string they are complete.
        metadata = row.schema.to_string(truncate_metadata=False, show_field_metadata=False)
        lines = metadata.partition("-- schema metadata --\n")[2].split("\n")
        matches = [_LINE.fullmatch(line) for line in lines]
        self._left = [(part[1], part[2]) for part in matches if part is not None]
        if len(self._left) < len(lines):
            raise _Unreadable
        self._left.reverse()
        self._values = 0
        self._levels = 0

    def node(self) -> Node:
        part, value = self._next()
        if part == "literal":
            return Literal(self._value(value))
        if part == "field_ref":
            return Field((value,))
        if part == "nested_field_ref":
            names = [self._next() for _ in range(int(value))]
            if not names or any(key != "field_ref" for key, _ in names):
                raise _Unreadable
            return Field(tuple(name for _, name in names))
        if part == "call":
            return self._call(value)
        raise _Unreadable

    def _call(self, name: str) -> Call:
        arguments: list[Node] = []
        options: Mapping[str, pa.Scalar] = {}
        self._levels += 1
        if self._levels > _MAX_LEVELS:
            raise _Unreadable
        while self._left and self._left[-1][0] not in ("end", "options"):
            arguments.append(self.node())
        self._levels -= 1
        part, value = self._next()
        if part == "options":
            options = dict(self._value(value).items())
            part, value = self._next()
        if (part, value) != ("end", name):
            raise _Unreadable
        return Call(name, tuple(arguments), options)

    def _value(self, value: str) -> pa.Scalar:
        """Return the next value: the row has them in the order in which the metadata name them."""
        if value != str(self._values):
            raise _Unreadable
        self._values += 1
        return self._row.column(int(value))[0]

    def _next(self) -> tuple[str, str]:
        if not self._left:
            raise _Unreadable
        return self._left.pop()

    def check_over(self) -> None:
        if self._left or self._values != self._row.num_columns or self._row.num_rows != 1:
            raise _Unreadable


# --- the condition --------------------------------------------------------------------------------


def condition_implied_by(node: Node, schema: pa.Schema) -> Condition:
    """Return a condition that every row satisfies for which an expression is true.

    The expression may exclude more rows. It must fit the schema.
    """
    match node:
        case Call("and_kleene", (left, right)):
            return And((condition_implied_by(left, schema), condition_implied_by(right, schema)))
        case Call("if_else", (Call("is_valid", _), then, Literal(other))) if not other.is_valid:
            return condition_implied_by(then, schema)
        case Call("is_in", (Field(path),), {"value_set": pa.ListScalar(values=values)}) if (
            len(values) > _MAX_LISTED
        ):
            return _between(path, values, schema)
        case _:
            return condition_of(node, schema) or And(())


def condition_of(node: Node, schema: pa.Schema) -> Condition | None:
    """Return the condition that equals an expression; None if filters have no such condition.

    Both are true, false and null for the same rows, except for floating-point numbers: conditions
    compare those by the rule of `predicate_comparisons.py`. The expression must fit the schema.
    """
    match node:
        case Call("and_kleene" | "or_kleene" as name, (left, right)):
            parts = condition_of(left, schema), condition_of(right, schema)
            if parts[0] is None or parts[1] is None:
                return None
            both = parts[0], parts[1]
            return And(both) if name == "and_kleene" else Or(both)
        case Call("invert", (inner,)):
            part = condition_of(inner, schema)
            return None if part is None else Not(part)
        case Call("is_valid", (Field(path),)):
            return Not(IsNull(path))
        case Call("is_null", (Field(path),), options) if not _is_true(options.get("nan_is_null")):
            return IsNull(path)
        case Call("is_nan", (Field(path),)):
            return Compare(path, "=", math.nan)
        case Call("if_else", (Call("is_valid", (Field() as field,)), then, Literal(other))):
            # SQL's IN as DuckDB and pyhudi write it: null if the column is null.
            return None if other.is_valid else _one_of(field, then, schema)
        case Call("is_in", (Field(path) as field,), options):
            among = _among(field, options, schema)
            return None if among is None else And((Not(IsNull(path)), among))
        case Call(name, (Field(path), Literal(value))) if name in _COMPARISONS:
            return _comparison(path, _COMPARISONS[name][0], value, schema)
        case Call(name, (Literal(value), Field(path))) if name in _COMPARISONS:
            return _comparison(path, _COMPARISONS[name][1], value, schema)
        case _:
            return None


def _comparison(
    path: tuple[str, ...], op: str, value: pa.Scalar, schema: pa.Schema
) -> Condition | None:
    return Compare(path, op, value.as_py()) if _is_kept(value, column_type(path, schema)) else None


def _one_of(field: Field, node: Node, schema: pa.Schema) -> Condition | None:
    """Match a column that is one of some values; null if the column is null.

    DuckDB compares some of them separately, such as the two zeros.
    """
    match node:
        case Call("or_kleene", (part, Literal(no)) | (Literal(no), part)) if no.as_py() is False:
            return _one_of(field, part, schema)
        case Call("or_kleene", (left, right)):
            parts = _one_of(field, left, schema), _one_of(field, right, schema)
            return None if parts[0] is None or parts[1] is None else Or((parts[0], parts[1]))
        case Call("is_in", (same,), options) if same == field:
            return _among(field, options, schema)
        case Call("equal", (same, Literal(value))) if same == field:
            return _comparison(field.path, "=", value, schema)
        case _:
            return None


def _among(field: Node, options: Mapping[str, pa.Scalar], schema: pa.Schema) -> Condition | None:
    values = options.get("value_set")
    if not isinstance(field, Field) or not isinstance(values, pa.ListScalar) or not values.values:
        return None
    data_type = column_type(field.path, schema)
    # An option of the call decides whether a null among the values matches nulls.
    if not all(_is_kept(value, data_type) for value in values.values):
        return None
    return In(field.path, tuple(values.as_py()))


def _between(path: tuple[str, ...], values: pa.Array[Any], schema: pa.Schema) -> Condition:
    """Match a column between minimum and maximum of many values."""
    data_type = column_type(path, schema)
    if values.null_count or at.is_floating(data_type) or at.is_boolean(data_type):
        return And(())
    low, high = pc.min(values), pc.max(values)
    if not _is_kept(low, data_type) or not _is_kept(high, data_type):
        return And(())
    return And((Compare(path, ">=", low.as_py()), Compare(path, "<=", high.as_py())))


def _is_true(option: pa.Scalar | None) -> bool:
    return option is not None and bool(option.as_py())


def _is_kept(value: pa.Scalar, data_type: pa.DataType) -> bool:
    """Return whether a comparison converts neither the value nor the column."""
    if not value.is_valid or not any(
        is_kind(data_type) and is_value(value.type) for is_kind, is_value in _COMPARED
    ):
        return False
    try:
        converted = python_value(value)
        literal = to_scalar(converted, data_type, "")
    except (SchemaMismatch, ValueError, OverflowError):
        return False  # such as a value that Python does not have
    if converted != converted:  # noqa: PLR0124 - NaN, which conditions compare by their own rule
        return True
    return fits_column(literal, data_type) and bool(literal.as_py() == converted)


_COMPARED = (
    (at.is_integer, at.is_integer),
    (at.is_floating, lambda data_type: at.is_floating(data_type) or at.is_integer(data_type)),
    (at.is_decimal, lambda data_type: at.is_decimal(data_type) or at.is_integer(data_type)),
    (is_text, is_text),
    (at.is_boolean, at.is_boolean),
    (at.is_binary, at.is_binary),
    (
        at.is_fixed_size_binary,
        lambda data_type: at.is_fixed_size_binary(data_type) or at.is_binary(data_type),
    ),
    (at.is_date, at.is_date),
    (at.is_time, at.is_time),
    (at.is_timestamp, at.is_timestamp),
)
"""Types of columns, and of values that pyarrow compares with them without a conversion."""
