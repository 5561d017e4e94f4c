"""Row filters: a pyarrow expression that filters rows, and conjuncts that prune files.

A row stays if the filter is true, not if it is null (SQL's three-valued logic).
`predicate_parser.py` accepts SQL, filter tuples and pyarrow expressions; `sql_filters.py`
translates SQL. Tuples and pyarrow expressions become the small tree of conditions of this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.schema.list_functions import with_list_functions
from pyhudi.schema.predicate_comparisons import among_values, compare_value
from pyhudi.suggestions import did_you_mean

if TYPE_CHECKING:
    import pyarrow.compute as pc
else:
    from pyhudi.schema import lazy_compute as pc

Path = tuple[str, ...]
"""A column's name, followed by names of struct fields."""

_META = "_hoodie_"
"""Prefix of column names that are suggested only for names with the prefix."""

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_MAX_COMPARISONS = 1000


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


Condition = Compare | In | IsNull | And | Or | Not

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
        return with_list_functions(lambda: rows.filter(where.expression))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ConfigError(
            f"where: the filter cannot be computed for a row: {error}",
            hint="CASE WHEN condition THEN value END computes a value for some rows only.",
        ) from error


def check_size(comparisons: int) -> None:
    """Limit the comparisons of a filter: Arrow's time grows with their square, and its stack ends.

    Raises `ConfigError`.
    """
    if comparisons > _MAX_COMPARISONS:
        raise ConfigError(
            f"where: {comparisons} comparisons; the maximum is {_MAX_COMPARISONS}",
            hint="List the values of one column in an IN, which counts as one.",
        )


def to_expression(condition: Condition, schema: pa.Schema) -> pc.Expression:
    """Return the pyarrow expression of a condition, with literals in the types of their columns."""
    match condition:
        case And(parts):
            return reduce(lambda a, b: a & b, (to_expression(part, schema) for part in parts))
        case Or(parts):
            return reduce(lambda a, b: a | b, (to_expression(part, schema) for part in parts))
        case Not(part):
            return ~to_expression(part, schema)
        case IsNull(column):
            column_type(column, schema)
            return pc.field(*column).is_null()
        case Compare(column, op, value):
            data_type = column_type(column, schema)
            return compare_value(pc.field(*column), data_type, op, value, ".".join(column))
        case In(column, values):
            data_type = column_type(column, schema)
            return among_values(pc.field(*column), data_type, values, ".".join(column))


def column_type(column: Path, schema: pa.Schema, hint: str = "") -> pa.DataType:
    """Return the type of a column or struct field.

    hint: another possible cause. Raises `SchemaMismatch` with the nearest known
    name.
    """
    data_type = pa.struct(list(schema))
    for depth, name in enumerate(column):
        names = (
            [data_type.field(i).name for i in range(data_type.num_fields)]
            if pa.types.is_struct(data_type)
            else []
        )
        if name not in names:
            raise SchemaMismatch(
                f"there is no column {'.'.join(column[: depth + 1])!r}",
                hint=f"{_closest_column(column[:depth], name, names)} {hint}".strip(),
            )
        data_type = data_type.field(names.index(name)).type
    return data_type


def _closest_column(above: Path, name: str, names: Sequence[str]) -> str:
    prefix = "".join(f"{part}." for part in above)
    data_columns = [column for column in names if not column.startswith(_META)] or names
    meant = did_you_mean(name, names, prefix=prefix, similarity=0.5)
    return meant or f"Columns: {', '.join(data_columns)}."
