"""Parses a caller's filter: SQL, tuples or an expression, simplified and limited in size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.schema.arrow_expression_parser import condition_implied_by, fields_of, tree_of
from pyhudi.schema.predicate_comparisons import conjuncts_of
from pyhudi.schema.predicate_literals import python_value
from pyhudi.schema.predicates import (
    COMPARISONS,
    And,
    Compare,
    Condition,
    Conjunct,
    In,
    IsNull,
    Not,
    Or,
    Path,
    Where,
    check_size,
    column_type,
    format_expression,
    to_expression,
)

if TYPE_CHECKING:
    import pyarrow.compute as pc
else:
    from pyhudi.schema import lazy_compute as pc


def parse_where(where: Any, schema: pa.Schema) -> Where:
    """Parse the filter of a caller.

    where: a SQL expression as a string, a `pyarrow.compute.Expression`, or filter tuples as in
    pyarrow: `(column, op, value)` in a list that is a conjunction, or in a list of such lists that
    are alternatives.

    Raises `ConfigError` for anything else, `SchemaMismatch` for columns or values that do not fit
    the schema. A filter of more than 1000 comparisons and calls is a `ConfigError` too; the values
    of an `IN`, and equalities of one column joined by OR, count as one.
    """
    if isinstance(where, pc.Expression):
        return _from_arrow_expression(where, schema)
    if isinstance(where, str):
        from pyhudi.schema.sql_filters import parse_sql_filter  # noqa: PLC0415 - sqlglot takes a while to import

        return parse_sql_filter(where, schema)
    return where_of(_from_tuples(where), schema)


def where_of(condition: Condition, schema: pa.Schema) -> Where:
    """Return the filter of a condition. Raises as `parse_where` does."""
    condition = _simplify(condition)
    check_size(_size(condition))
    names = {path[0] for path in _paths(condition)}
    expression = to_expression(condition, schema)
    columns = tuple(name for name in schema.names if name in names)
    return Where(expression, columns, _conjuncts(condition, schema))


def _from_arrow_expression(expression: pc.Expression, schema: pa.Schema) -> Where:
    """Return a filter that pyarrow evaluates; what it implies for single columns prunes files."""
    tree = tree_of(expression)
    formatted = "" if tree is not None else format_expression(expression)
    if "FieldPath(" in formatted:
        raise ConfigError(
            "where: the expression names a column by number",
            hint="Use its name: the order of columns is not part of the table.",
        )
    try:
        schema.empty_table().filter(expression)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, KeyError) as error:
        raise SchemaMismatch(f"where: {error}") from error
    if tree is None:
        # Its string contains every name.
        return Where(expression, tuple(name for name in schema.names if name in formatted))
    names = fields_of(tree)
    columns = tuple(name for name in schema.names if name in names)
    return Where(expression, columns, _conjuncts(condition_implied_by(tree, schema), schema))


def _simplify(condition: Condition) -> Condition:
    """Return the same condition with OR-joined equalities of one column as one `In`."""
    match condition:
        case And(parts) | Or(parts) if len(parts) == 1:
            return _simplify(parts[0])
        case And(parts):
            return And(tuple(map(_simplify, parts)))
        case Or(parts):
            return _alternatives(tuple(map(_simplify, parts)))
        case Not(part):
            return Not(_simplify(part))
        case _:
            return condition


def _alternatives(parts: Iterable[Condition]) -> Condition:
    values: dict[Path, list[Any]] = {}
    alternatives: list[Condition] = []
    for part in parts:
        match part:
            case Compare(column, "=", value):
                values.setdefault(column, []).append(value)
            case In(column, among) if among:
                values.setdefault(column, []).extend(among)
            case _:
                alternatives.append(part)
    for column, equals in values.items():
        single = Compare(column, "=", equals[0])
        alternatives.append(single if len(equals) == 1 else In(column, tuple(equals)))
    return alternatives[0] if len(alternatives) == 1 else Or(tuple(alternatives))


def _size(condition: Condition) -> int:
    match condition:
        case And(parts) | Or(parts):
            return sum(map(_size, parts))
        case Not(part):
            return _size(part)
        case _:
            return 1


def _paths(condition: Condition) -> set[Path]:
    match condition:
        case And(parts) | Or(parts):
            return set().union(*map(_paths, parts))
        case Not(part):
            return _paths(part)
        case Compare(column) | In(column) | IsNull(column):
            return {column}


def _conjuncts(condition: Condition, schema: pa.Schema) -> tuple[Conjunct, ...]:
    """Return the AND-joined parts that compare a whole column with values of exactly its type."""
    match condition:
        case And(parts):
            return tuple(conjunct for part in parts for conjunct in _conjuncts(part, schema))
        case Compare((name,), op, value):
            return conjuncts_of(name, column_type((name,), schema), op, (value,))
        case In((name,), values):
            return conjuncts_of(name, column_type((name,), schema), "in", values)
        case _:
            return ()


# --- filter tuples --------------------------------------------------------------------------------


def _from_tuples(filters: Any) -> Condition:
    """Return the condition of pyarrow-style filters. Raises `ConfigError` for another shape."""
    if not _is_list(filters) or not filters:
        raise ConfigError(
            f"where: {filters!r} is not a filter",
            hint="Pass a SQL expression, a pyarrow expression, or a list of (column, op, value).",
        )
    if isinstance(filters[0], str):
        msg = f"where: {filters!r} is one condition, not a list of them"
        raise ConfigError(msg, hint=f"Pass a list: [{tuple(filters)!r}].")
    if all(_is_list(group) and group and _is_list(group[0]) for group in filters):
        return Or(tuple(_all_of(group) for group in filters))
    return _all_of(filters)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _all_of(filters: Iterable[Any]) -> Condition:
    return And(tuple(_from_tuple(condition) for condition in filters))


def _from_tuple(condition: Any) -> Condition:
    if not _is_list(condition) or len(condition) not in (2, 3) or not isinstance(condition[0], str):
        raise ConfigError(f"where: {condition!r} is not (column, op, value)")
    column, op = (condition[0],), " ".join(str(condition[1]).lower().split())
    if op in ("is null", "is not null") and (len(condition) == 2 or condition[2] is None):
        return IsNull(column) if op == "is null" else Not(IsNull(column))
    if len(condition) == 2 or condition[2] is None:
        raise ConfigError(
            f"where: {condition!r} has no value", hint='Use (column, "is null") to find nulls.'
        )
    value = _python_value(condition[2])
    if op in ("in", "not in"):
        if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
            raise ConfigError(f"where: {condition!r} needs a list of values")
        among = In(column, tuple(map(_python_value, value)))
        return among if op == "in" else Not(among)
    op = {"==": "=", "<>": "!="}.get(op, op)
    if op not in COMPARISONS:
        raise ConfigError(
            f"where: the operator {condition[1]!r} is unknown",
            hint=f"Choose one of {', '.join(COMPARISONS)}, in, not in, is null, is not null.",
        )
    return Compare(column, op, value)


def _python_value(value: Any) -> Any:
    """Convert a scalar of Arrow or NumPy to a Python value; return any other value as it is."""
    try:
        if isinstance(value, pa.Scalar):
            return python_value(value)
        if getattr(value, "shape", None) == ():
            return pa.array(value.reshape(1))[0].as_py()
    except (pa.ArrowException, OverflowError, ValueError) as error:
        # It may not be printed either.
        raise ConfigError(
            f"where: a value cannot be converted to Python: {error}", hint="Pass a Python value."
        ) from error
    return value
