"""Row filters: one small tree for what callers write, and what is made of it.

`parse_where` takes a SQL expression, a pyarrow expression or filter tuples. From the tree come a
pyarrow expression that filters rows (SQL's three-valued logic: a row stays when the filter is true,
not when it is null) and conjuncts that rule out row groups and partitions. Reading SQL text is
`predicates_sql.py`'s part, tuples `predicates_tuples.py`'s, typing literals
`predicate_literals.py`'s, comparing floating numbers `predicate_floats.py`'s. A pyarrow expression
is only evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.errors import SchemaMismatch
from pyhudi.schema.near_names import near_name
from pyhudi.schema.predicate_floats import among_floats, compare_floats
from pyhudi.schema.predicate_literals import (
    compare,
    is_text,
    typed_scalar,
    within_column,
)

if TYPE_CHECKING:
    import pyarrow.compute as pc
else:
    from pyhudi.schema import lazy_compute as pc

Path = tuple[str, ...]
"""A column's name, and below it names of struct fields."""

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


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


def both(where: Where, other: Where | None) -> Where:
    """The filter that wants both; None wants nothing."""
    if other is None:
        return where
    columns = tuple(dict.fromkeys((*where.columns, *other.columns)))
    return Where(where.expression & other.expression, columns, (*where.conjuncts, *other.conjuncts))


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
    fitting = [literal.as_py() for literal in literals if literal.type == kind]
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
            near = near_name(name, known)
            meant = ".".join((*column[:depth], near or ""))
            raise SchemaMismatch(
                f"there is no column {'.'.join(column[: depth + 1])!r}",
                hint=f"Did you mean {meant!r}?" if near else f"Columns: {', '.join(known)}",
            )
        kind = kind.field(known.index(name)).type
    return kind


def _is_struct(kind: pa.DataType) -> bool:
    return bool(pa.types.is_struct(kind))
