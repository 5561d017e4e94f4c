"""Parses a caller's filter: SQL, tuples or an expression, simplified and limited in size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.schema.arrow_expression_parser import condition_implied_by, fields_of, tree_of
from pyhudi.schema.predicate_floats import in_column
from pyhudi.schema.predicate_literals import fits_column, plain_texts, to_scalar
from pyhudi.schema.predicates import (
    And,
    Compare,
    Computed,
    Condition,
    Conjunct,
    Const,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Path,
    Where,
    column_type,
    format_expression,
    to_expression,
)

if TYPE_CHECKING:
    import pyarrow.compute as pc
else:
    from pyhudi.schema import lazy_compute as pc

_COMPARISONS_MOST = 1000


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
        from pyhudi.schema.predicates_sql import parse_sql  # noqa: PLC0415 - sqlglot takes a while to import

        condition = parse_sql(where)
    else:
        from pyhudi.schema.predicates_tuples import from_tuples  # noqa: PLC0415 - it needs the tree above

        condition = from_tuples(where)
    return where_of(condition, schema)


def where_of(condition: Condition, schema: pa.Schema) -> Where:
    """Return the filter of a condition. Raises as `parse_where` does."""
    condition = _simplify(condition)
    _check_size(condition)
    names = {path[0] for path in _paths(condition)}
    expression = to_expression(condition, schema)
    columns = tuple(name for name in schema.names if name in names)
    return Where(expression, columns, tuple(_conjuncts(condition, schema)))


def _from_arrow_expression(expression: pc.Expression, schema: pa.Schema) -> Where:
    """Return a filter that pyarrow evaluates; what it implies for single columns prunes files."""
    tree = tree_of(expression)
    text = "" if tree is not None else format_expression(expression)
    if "FieldPath(" in text:
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
        return Where(expression, tuple(name for name in schema.names if name in text))
    names = fields_of(tree)
    columns = tuple(name for name in schema.names if name in names)
    return Where(expression, columns, tuple(_conjuncts(condition_implied_by(tree, schema), schema)))


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
    found: list[Condition] = []
    for part in parts:
        match part:
            case Compare(column, "=", value):
                values.setdefault(column, []).append(value)
            case In(column, among) if among:
                values.setdefault(column, []).extend(among)
            case _:
                found.append(part)
    for column, given in values.items():
        single = Compare(column, "=", given[0])
        found.append(single if len(given) == 1 else In(column, tuple(given)))
    return found[0] if len(found) == 1 else Or(tuple(found))


def _check_size(condition: Condition) -> None:
    """Limit the comparisons: Arrow's time grows with their square, and its stack ends."""
    count = _size(condition)
    if count > _COMPARISONS_MOST:
        raise ConfigError(
            f"where: {count} comparisons; the maximum is {_COMPARISONS_MOST}",
            hint="List the values of one column in an IN, which counts as one.",
        )


def _size(condition: Condition) -> int:
    match condition:
        case And(parts) | Or(parts):
            return sum(map(_size, parts))
        case Not(part):
            return _size(part)
        case Computed(size=size):
            return size
        case _:
            return 1


def _paths(condition: Condition) -> set[Path]:
    match condition:
        case And(parts) | Or(parts):
            return set().union(*map(_paths, parts))
        case Not(part):
            return _paths(part)
        case Const():
            return set()
        case Computed(columns=columns):
            return set(columns)
        case Compare(column) | In(column) | Like(column) | IsNull(column):
            return {column}


def _conjuncts(condition: Condition, schema: pa.Schema) -> list[Conjunct]:
    """Return the AND-joined parts that compare a whole column with values of exactly its type."""
    match condition:
        case And(parts):
            return [found for part in parts for found in _conjuncts(part, schema)]
        case Compare((name,), op, value) if value is not None:
            return _conjunct(name, op, (value,), schema)
        case In((name,), values) if values and None not in values:
            return _conjunct(name, "in", values, schema)
        case _:
            return []


def _conjunct(name: str, op: str, values: Sequence[Any], schema: pa.Schema) -> list[Conjunct]:
    kind = column_type((name,), schema)
    texts = plain_texts(values, kind)
    if texts is not None:
        return [(name, op, texts)]
    literals = [to_scalar(value, kind, name) for value in values]
    if pa.types.is_floating(kind):
        op, literals = in_column(op, literals, kind)
    if not all(fits_column(literal, kind) for literal in literals):
        return []
    if op == "!=" and pa.types.is_floating(kind):
        return []  # NaN is unequal to everything, and statistics do not count it
    try:
        return [(name, op, pa.array([literal.as_py() for literal in literals], kind))]
    except (OverflowError, ValueError):
        return []  # such as a moment before the year 1, which Python lacks
