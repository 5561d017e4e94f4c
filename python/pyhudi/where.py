"""Row filters: one small tree for what callers write, and what is made of it.

`parse_where` takes a SQL expression, a pyarrow expression or filter tuples. From the tree come a
pyarrow expression that filters rows (SQL's three-valued logic: a row stays when the filter is true,
not when it is null) and conjuncts that rule out row groups and partitions. Reading SQL text is
`where_sql.py`'s part, tuples `where_tuples.py`'s, typing literals `where_values.py`'s, comparing
floating numbers `where_floats.py`'s. A pyarrow expression is only evaluated.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.where_floats import among_floats, compare_floats
from pyhudi.where_values import compare, fits_column, is_text, typed_scalar, within_column

if TYPE_CHECKING:
    import pyarrow.compute as pc
else:
    from pyhudi import lazy_compute as pc

Path = tuple[str, ...]
"""A column's name, and below it names of struct fields."""

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_COMPARISONS_MOST = 1000


@dataclass(frozen=True)
class Compare:
    """A column against a value; null where either is null."""

    column: Path
    op: str
    """One of `COMPARISONS`."""
    value: Any


@dataclass(frozen=True)
class In:
    """A column is among values; null where it is null, or where none fits and a value is null."""

    column: Path
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Like:
    """A string column fits a SQL pattern with `%` and `_`."""

    column: Path
    pattern: str


@dataclass(frozen=True)
class IsNull:
    """A column is null."""

    column: Path


@dataclass(frozen=True)
class And:
    """All parts hold."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Or:
    """Some part holds."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Not:
    """The part is false."""

    part: Condition


@dataclass(frozen=True)
class Const:
    """True, false, or null."""

    value: bool | None


Condition = Compare | In | Like | IsNull | And | Or | Not | Const

Conjunct = tuple[str, str, pa.Array]
"""Column, one of `COMPARISONS` or `in`, and the values: what `_native.read_slice` prunes with."""


@dataclass(frozen=True)
class Where:
    """A row filter that fits a table's schema."""

    expression: pc.Expression = field(compare=False)
    """True on the rows to keep."""
    columns: tuple[str, ...]
    """Columns that the filter looks at, and perhaps more, in table order."""
    conjuncts: tuple[Conjunct, ...] = ()
    """Conditions that every kept row meets; there can be more in the expression."""


def parse_where(where: Any, schema: pa.Schema) -> Where:
    """The filter that a caller gave.

    where: a SQL expression as text, a `pyarrow.compute.Expression`, or filter tuples as pyarrow
    takes them: `(column, op, value)` in a list that is a conjunction, or in lists of it that are
    alternatives.

    Raises `ConfigError` for what is none of these, `SchemaMismatch` for columns or values that do
    not fit the schema. A filter of more than 1000 comparisons is a `ConfigError` too; the values of
    an `IN`, and equalities of one column joined by OR, count as one.
    """
    if isinstance(where, pc.Expression):
        return _given_expression(where, schema)
    if isinstance(where, str):
        from pyhudi.where_sql import parse_sql  # noqa: PLC0415 - sqlglot takes a while to import

        condition = parse_sql(where)
    else:
        from pyhudi.where_tuples import from_tuples  # noqa: PLC0415 - it needs the tree above

        condition = from_tuples(where)
    condition = _simplified(condition)
    _check_size(condition)
    names = {path[0] for path in _paths(condition)}
    expression = to_expression(condition, schema)
    columns = tuple(name for name in schema.names if name in names)
    return Where(expression, columns, tuple(_conjuncts(condition, schema)))


def both(one: Where, other: Where | None) -> Where:
    """The filter that wants both; None wants nothing."""
    if other is None:
        return one
    columns = tuple(dict.fromkeys((*one.columns, *other.columns)))
    return Where(one.expression & other.expression, columns, (*one.conjuncts, *other.conjuncts))


def _given_expression(expression: pc.Expression, schema: pa.Schema) -> Where:
    """pyarrow does not tell which fields an expression names, but its text has every name in it."""
    text = str(expression)
    if "FieldPath(" in text:
        raise ConfigError(
            "where: the expression names a column by number",
            hint="Name it by its name: the order of columns is not part of the table.",
        )
    try:
        schema.empty_table().filter(expression)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise SchemaMismatch(f"where: {error}") from error
    return Where(expression, tuple(name for name in schema.names if name in text))


def _simplified(condition: Condition) -> Condition:
    """The same condition with equalities of one column that OR joins as one `In`."""
    match condition:
        case And(parts) | Or(parts) if len(parts) == 1:
            return _simplified(parts[0])
        case And(parts):
            return And(tuple(map(_simplified, parts)))
        case Or(parts):
            return _alternatives(tuple(map(_simplified, parts)))
        case Not(part):
            return Not(_simplified(part))
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
    """The time that Arrow takes grows by the square of the comparisons, and its stack ends."""
    count = _size(condition)
    if count > _COMPARISONS_MOST:
        raise ConfigError(
            f"where: {count} comparisons, and a filter can have {_COMPARISONS_MOST}",
            hint="List the values of one column in an IN, which counts as one.",
        )


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
        case Const():
            return set()
        case Compare(column) | In(column) | Like(column) | IsNull(column):
            return {column}


def to_expression(condition: Condition, schema: pa.Schema) -> pc.Expression:
    """The pyarrow expression of a condition, literals in the types of their columns."""
    match condition:
        case And(parts):
            return reduce(lambda a, b: a & b, (to_expression(part, schema) for part in parts))
        case Or(parts):
            return reduce(lambda a, b: a | b, (to_expression(part, schema) for part in parts))
        case Not(part):
            return ~to_expression(part, schema)
        case Const(value):
            return _boolean(value)
        case IsNull(column):
            column_type(column, schema)
            return pc.field(*column).is_null()
        case Like(column, pattern):
            if not is_text(column_type(column, schema)):
                raise SchemaMismatch(f"where: LIKE needs text, not the column {'.'.join(column)!r}")
            return pc.match_like(pc.field(*column), pattern)
        case Compare(column, op, value):
            return _comparison(column, op, value, schema)
        case In(column, values):
            return _membership(column, values, schema)


def _comparison(column: Path, op: str, value: Any, schema: pa.Schema) -> pc.Expression:
    kind = column_type(column, schema)
    if value is None:
        return _boolean(None)
    literal = typed_scalar(value, kind, ".".join(column))
    left = pc.field(*column)
    if pa.types.is_floating(kind):
        return compare_floats(left, op, literal)
    if literal.type != kind:
        within = within_column(op, literal, kind)
        if isinstance(within, bool):
            return left == left if within else left != left  # noqa: PLR0124 - null where null
        op, literal = within
    return compare(left, op, literal)


def _membership(column: Path, values: Sequence[Any], schema: pa.Schema) -> pc.Expression:
    kind = column_type(column, schema)
    literals = [typed_scalar(v, kind, ".".join(column)) for v in values if v is not None]
    left = pc.field(*column)
    # A number that the column cannot hold is in no row.
    fitting = [one.as_py() for one in literals if one.type == kind]
    if pa.types.is_floating(kind):
        among = among_floats(left, fitting, kind)
    else:
        among = left.isin(pa.array(fitting, kind))
    found = pc.if_else(left.is_valid(), among, _boolean(None))
    return found | _boolean(None) if len(literals) < len(values) else found


def _boolean(value: bool | None) -> pc.Expression:
    return pc.scalar(pa.scalar(value, pa.bool_()))


def column_type(column: Path, schema: pa.Schema) -> pa.DataType:
    """The type of a column or struct field. Raises `SchemaMismatch` with the nearest known name."""
    kind = pa.struct(list(schema))
    for depth, name in enumerate(column):
        known = [kind.field(i).name for i in range(kind.num_fields)] if _is_struct(kind) else []
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            raise SchemaMismatch(
                f"there is no column {'.'.join(column[: depth + 1])!r}",
                hint=f"Did you mean {near[0]!r}?" if near else f"Columns: {', '.join(known)}",
            )
        kind = kind.field(known.index(name)).type
    return kind


def _is_struct(kind: pa.DataType) -> bool:
    return bool(pa.types.is_struct(kind))


def _conjuncts(condition: Condition, schema: pa.Schema) -> list[Conjunct]:
    """The parts, joined by AND, that compare a whole column with values of exactly its type."""
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
    literals = [typed_scalar(value, kind, name) for value in values]
    if not all(fits_column(literal, kind) for literal in literals):
        return []
    if op == "!=" and pa.types.is_floating(kind):
        return []  # NaN is unequal to everything, and statistics do not count it
    return [(name, op, pa.array([literal.as_py() for literal in literals], kind))]
