"""Row filters: one small tree for all forms of a caller's filter, and what is built from it.

`parse_where` accepts a SQL expression, a pyarrow expression or filter tuples. The tree becomes a
pyarrow expression that filters rows (SQL's three-valued logic: a row stays if the filter is true,
not if it is null) and conjuncts that prune row groups and partitions. `predicates_sql.py` parses
SQL, `predicates_tuples.py` tuples, `predicate_literals.py` types literals, `predicate_floats.py`
compares floating-point numbers, `predicate_computed.py` has SQL computations. A pyarrow expression
is only evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.schema.like_patterns import matching
from pyhudi.schema.predicate_literals import is_text
from pyhudi.schema.predicate_values import among_values, boolean, compare_value
from pyhudi.schema.suggestions import closest_name

if TYPE_CHECKING:
    import pyarrow.compute as pc
else:
    from pyhudi.schema import lazy_compute as pc

Path = tuple[str, ...]
"""A column's name, followed by names of struct fields."""

_META = "_hoodie_"
"""Prefix of column names that are suggested only for names with the prefix."""

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Compare:
    """Compares a column with a value; null if either is null."""

    column: Path
    op: str
    """One of `COMPARISONS`."""
    value: Any


@dataclass(frozen=True)
class In:
    """A column is among values; null if it is null, or if none matches and a value is null."""

    column: Path
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Like:
    """A string column matches a SQL pattern with `%` and `_`."""

    column: Path
    pattern: str


@dataclass(frozen=True)
class IsNull:
    """A column is null."""

    column: Path


@dataclass(frozen=True)
class And:
    """All parts are true."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Or:
    """Some part is true."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Not:
    """The part is false."""

    part: Condition


@dataclass(frozen=True)
class Const:
    """True, false, or null."""

    value: bool | None


@dataclass(frozen=True)
class Computed:
    """A SQL computation over columns; it prunes no file."""

    expression: Callable[[pa.Schema], pc.Expression]
    """Builds it for a schema. Raises `ConfigError` and `SchemaMismatch`."""
    columns: tuple[Path, ...]
    size: int
    """The number of comparisons and calls in it."""


Condition = Compare | In | Like | IsNull | And | Or | Not | Const | Computed

Conjunct = tuple[str, str, pa.Array]
"""Column, one of `COMPARISONS` or `in`, and the values with which `_native.read_slice` prunes."""


@dataclass(frozen=True)
class Where:
    """A row filter that fits a table's schema."""

    expression: pc.Expression = field(compare=False)
    """True for the rows to keep."""
    columns: tuple[str, ...]
    """Columns that the filter uses, and perhaps more, in table order."""
    conjuncts: tuple[Conjunct, ...] = ()
    """Conditions that every kept row satisfies; the expression may have more."""


def format_expression(expression: pc.Expression) -> str:
    """Format an expression as pyarrow prints it."""
    try:
        return str(expression)
    except UnicodeDecodeError as error:
        # pyarrow truncates long lists of values, also within a character.
        return error.object.decode(errors="replace")


def both(where: Where, other: Where | None) -> Where:
    """Return the conjunction of two filters; None filters nothing."""
    if other is None:
        return where
    columns = tuple(dict.fromkeys((*where.columns, *other.columns)))
    return Where(where.expression & other.expression, columns, (*where.conjuncts, *other.conjuncts))


def filter_rows(rows: pa.Table, where: Where) -> pa.Table:
    """Return the rows for which a filter is true.

    Raises `ConfigError` if it cannot be computed for a row, as when a number overflows.
    """
    try:
        return rows.filter(where.expression)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ConfigError(
            f"where: the filter cannot be computed for a row: {error}",
            hint="CASE WHEN condition THEN value END computes a value for some rows only.",
        ) from error


def to_expression(condition: Condition, schema: pa.Schema) -> pc.Expression:
    """Return the pyarrow expression of a condition, with literals in the types of their columns."""
    match condition:
        case And(parts):
            return reduce(lambda a, b: a & b, (to_expression(part, schema) for part in parts))
        case Or(parts):
            return reduce(lambda a, b: a | b, (to_expression(part, schema) for part in parts))
        case Not(part):
            return ~to_expression(part, schema)
        case Const(value):
            return boolean(value)
        case IsNull(column):
            column_type(column, schema)
            return pc.field(*column).is_null()
        case Like(column, pattern):
            if not is_text(column_type(column, schema)):
                raise SchemaMismatch(
                    f"where: LIKE needs a string, not the column {'.'.join(column)!r}"
                )
            function, options = matching(pattern)
            return getattr(pc, function)(pc.field(*column), options=options)
        case Compare(column, op, value):
            kind = column_type(column, schema)
            return compare_value(pc.field(*column), kind, op, value, ".".join(column))
        case In(column, values):
            kind = column_type(column, schema)
            return among_values(pc.field(*column), kind, values, ".".join(column))
        case Computed(expression):
            return expression(schema)


def column_type(column: Path, schema: pa.Schema, hint: str = "") -> pa.DataType:
    """Return the type of a column or struct field.

    hint: another possible cause if there is none. Raises `SchemaMismatch` with the nearest known
    name.
    """
    kind = pa.struct(list(schema))
    for depth, name in enumerate(column):
        known = [kind.field(i).name for i in range(kind.num_fields)] if _is_struct(kind) else []
        if name not in known:
            raise SchemaMismatch(
                f"there is no column {'.'.join(column[: depth + 1])!r}",
                hint=f"{_closest_column(column[:depth], name, known)} {hint}".strip(),
            )
        kind = kind.field(known.index(name)).type
    return kind


def _closest_column(above: Path, name: str, known: Sequence[str]) -> str:
    near = closest_name(name, known)
    if near:
        return f"Did you mean {'.'.join((*above, near))!r}?"
    own = [each for each in known if not each.startswith(_META)] or known
    return f"Columns: {', '.join(own)}."


def _is_struct(kind: pa.DataType) -> bool:
    return bool(pa.types.is_struct(kind))
