"""The changes of a merge, computed by Spark: target and source joined, each row with its clause.

Nothing is written here. A row of the result is one row of the table that is updated, deleted or
inserted: its key and partition columns, the number of its clause, and the values that it sets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.spark.clause_types import ClauseValues, by_clause, cast_values, store_values
from pyhudi.spark.column_compatibility import case_counts, quote_name, resolve_name

When = Literal["matched", "not_matched", "not_matched_by_source"]
Action = Literal["update", "delete", "insert"]

CLAUSE = "_pyhudi_clause"
"""Number of the row's clause, from 0 on."""
MOVED = "_pyhudi_moved"
"""Whether the clause changes key or partition columns."""
OLDER = "_pyhudi_older"
"""Whether the clause sets smaller ordering values, so that the row would lose."""
_IN_TARGET, _IN_SOURCE = "_pyhudi_in_target", "_pyhudi_in_source"
_TARGET, _SOURCE = "_pyhudi_target_", "_pyhudi_source_"


@dataclass(frozen=True)
class SparkClause:
    """A clause of the caller."""

    when: When
    action: Action
    condition: str | Column | None = None
    values: Mapping[str, Any] | None = None
    """Values by column. None in an update or insert: all columns of the table, from the source's
    columns of the same names."""


@dataclass(frozen=True)
class MergeTarget:
    """The columns of the table that is merged into, by their roles."""

    columns: tuple[str, ...]
    fixed: tuple[str, ...]
    """Key and partition columns."""
    ordering: tuple[str, ...]
    """Ordering columns; empty if the last write wins."""
    alias: str | None = None
    null_loses: bool = False
    """Whether a row with a null in an ordering column loses to any newer one."""
    casts: bool = False
    """Whether values are cast to the table's types, as Spark casts what is inserted."""


def as_column(value: Any) -> Column:
    """Return a condition or value as a Column: a string is SQL."""
    if isinstance(value, str):
        return sf.expr(value)
    return value if hasattr(value, "eqNullSafe") else sf.lit(value)


def column_of(name: str) -> Column:
    """Return the column of a name, with any characters in it."""
    return sf.col(quote_name(name))


def resolve_clauses(
    target: DataFrame,
    source: DataFrame | None,
    merge_target: MergeTarget,
    clauses: Sequence[SparkClause],
) -> list[SparkClause]:
    """Return the clauses with values under the table's names.

    Raises `SchemaMismatch` for a column that a side does not have, `ConfigError` for a clause
    without values, and for two values of one column.
    """
    case = case_counts(target.sparkSession)
    result = []
    for clause in clauses:
        values: dict[str, Any] | None = None
        if clause.action != "delete" and clause.values is None:
            names = [] if source is None else source.columns
            values = {}
            for name in merge_target.columns:
                at = resolve_name(name, names, case=case)
                if at is None:
                    raise SchemaMismatch(
                        f"the source does not have the column {name!r}",
                        hint="Name the columns that are set, or add it to the source.",
                    )
                values[name] = column_of(_SOURCE + at)
        elif clause.action != "delete":
            values = {}
            for name, value in _assignments_of(clause):
                column = _resolve_column(name, merge_target, case=case)
                if column in values:
                    raise ConfigError(f"a clause sets the column {column!r} twice")
                values[column] = value
        result.append(SparkClause(clause.when, clause.action, clause.condition, values))
    return result


def _assignments_of(clause: SparkClause) -> list[tuple[str, Any]]:
    if not clause.values:
        raise ConfigError("a clause sets no column")
    return list(clause.values.items())


def _resolve_column(name: str, merge_target: MergeTarget, *, case: bool) -> str:
    bare = name
    if merge_target.alias is not None and name.startswith(f"{merge_target.alias}."):
        bare = name[len(merge_target.alias) + 1 :]
    match = resolve_name(bare.strip("`"), merge_target.columns, case=case)
    if match is None:
        raise SchemaMismatch(
            f"the table has no column {name!r}", hint=f"It has {', '.join(merge_target.columns)}."
        )
    return match


def merge_frame(
    target: DataFrame,
    source: DataFrame | None,
    condition: str | Column | None,
    merge_target: MergeTarget,
    clauses: Sequence[SparkClause],
) -> DataFrame:
    """Return the rows that the clauses (of `resolve_clauses`) match; an update has no source."""
    target_columns = dict.fromkeys((*merge_target.fixed, *merge_target.ordering))
    target_rows = target.select(
        "*",
        *(column_of(name).alias(_TARGET + name) for name in target_columns),
        sf.lit(True).alias(_IN_TARGET),
    )
    if merge_target.alias is not None:
        target_rows = target_rows.alias(merge_target.alias)
    both = target_rows
    if source is not None:
        source_rows = source.select(
            "*",
            *(column_of(name).alias(_SOURCE + name) for name in source.columns),
            sf.lit(True).alias(_IN_SOURCE),
        )
        both = target_rows.join(source_rows, as_column(condition), _join(clauses))
    number: Column | None = None
    for at, clause in enumerate(clauses):
        holds = _applies(clause, alone=source is None)
        number = (sf if number is None else number).when(holds, sf.lit(at))
    types = {field.name: field.dataType for field in target.schema}
    set_columns = dict.fromkeys(name for clause in clauses for name in clause.values or {})
    chosen = sf.col(CLAUSE)
    rows = both.withColumn(CLAUSE, number).where(chosen.isNotNull())
    set_values = {
        name: _values_of_column(name, clauses)
        for name in set_columns
        if name not in merge_target.fixed
    }
    fixed = {name: _values_of_fixed_column(name, clauses) for name in merge_target.fixed}
    changes_fixed = _differs(merge_target.fixed, clauses, chosen).alias(MOVED)
    if merge_target.casts:
        kept = [chosen, changes_fixed, *(column_of(_TARGET + name) for name in target_columns)]
        by_column = {**set_values, **fixed}
        rows, set_values = store_values(rows, by_column, types, chosen, kept, len(clauses))
        changes_fixed = sf.col(MOVED)
    else:
        set_values = cast_values(rows, {**set_values, **fixed}, types, chosen)
    computed = rows.select(
        *(_key_column(set_values[name], chosen).alias(name) for name in fixed),
        *(
            by_clause(set_values[name], chosen).alias(name)
            for name in set_values
            if name not in fixed
        ),
        chosen,
        changes_fixed,
        *(column_of(_TARGET + name) for name in merge_target.ordering),
    )
    # From the computed values: a non-deterministic expression may give another one each time.
    older = _is_older(merge_target, types, clauses, chosen).alias(OLDER)
    return computed.select(*(column_of(name) for name in set_values), chosen, MOVED, older)


def _join(clauses: Sequence[SparkClause]) -> str:
    requested = {clause.when for clause in clauses}
    if {"not_matched", "not_matched_by_source"} <= requested:
        return "full_outer"
    if "not_matched" in requested:
        return "right_outer"
    return "left_outer" if "not_matched_by_source" in requested else "inner"


def _applies(clause: SparkClause, *, alone: bool) -> Column:
    """Return whether a row matches a clause's type and condition; null counts as no."""
    holds = sf.lit(True)
    if not alone:
        in_target, in_source = sf.col(_IN_TARGET).isNotNull(), sf.col(_IN_SOURCE).isNotNull()
        matches = {
            "matched": in_target & in_source,
            "not_matched": ~in_target & in_source,
            "not_matched_by_source": in_target & ~in_source,
        }
        holds = matches[clause.when]
    return holds if clause.condition is None else holds & as_column(clause.condition)


def _values_of_column(name: str, clauses: Sequence[SparkClause]) -> ClauseValues:
    return [
        (at, as_column(clause.values[name]))
        for at, clause in enumerate(clauses)
        if clause.values is not None and name in clause.values
    ]


def _values_of_fixed_column(name: str, clauses: Sequence[SparkClause]) -> ClauseValues:
    """Return inserted values of a key or partition column, and last the table's own value."""
    values = [
        (at, as_column((clause.values or {}).get(name)))
        for at, clause in enumerate(clauses)
        if clause.action == "insert"
    ]
    return [*values, (len(clauses), column_of(_TARGET + name))]


def _key_column(values: ClauseValues, chosen: Column) -> Column:
    """Return a key or partition column: the table's own value, or that of the insert clause."""
    *inserted, (_, own) = values
    return by_clause(inserted, chosen).otherwise(own) if inserted else own


def _updates(names: Sequence[str], clauses: Sequence[SparkClause]) -> list[tuple[int, SparkClause]]:
    """Return the updates that set one of the columns."""
    return [
        (at, clause)
        for at, clause in enumerate(clauses)
        if clause.action == "update" and set(names) & set(clause.values or {})
    ]


def _differs(fixed: Sequence[str], clauses: Sequence[SparkClause], chosen: Column) -> Column:
    flags = []
    for at, clause in _updates(fixed, clauses):
        same = [
            as_column(value).eqNullSafe(column_of(_TARGET + name))
            for name, value in (clause.values or {}).items()
            if name in fixed
        ]
        flags.append((at, ~reduce(lambda left, right: left & right, same)))
    return _is_true(flags, chosen)


def _is_older(
    merge_target: MergeTarget,
    types: Mapping[str, st.DataType],
    clauses: Sequence[SparkClause],
    chosen: Column,
) -> Column:
    flags = []
    for at, clause in _updates(merge_target.ordering, clauses):
        values = clause.values or {}
        own = {name: column_of(_TARGET + name) for name in merge_target.ordering}
        new = {
            name: column_of(name) if name in values else own[name] for name in merge_target.ordering
        }
        older = _ordering_struct(new, types) < _ordering_struct(own, types)
        if merge_target.null_loses:
            older = reduce(lambda left, right: left & right.isNotNull(), own.values(), older)
        flags.append((at, older))
    return _is_true(flags, chosen)


def _is_true(values: ClauseValues, chosen: Column) -> Column:
    """Return whether a row's clause has a true value; null and no value count as no."""
    return sf.coalesce(by_clause(values, chosen), sf.lit(False)) if values else sf.lit(False)


def _ordering_struct(columns: Mapping[str, Column], types: Mapping[str, st.DataType]) -> Column:
    """Return ordering columns for comparison; null counts as zero if the type has one.

    The order is that of `rust/merge/src/ordering.rs`; in a struct, null is smaller than all other
    values.
    """
    compared = []
    for name, column in columns.items():
        zero = _zero(types[name])
        counted = column if zero is None else sf.coalesce(column, zero)
        compared.append(counted.alias(name))
    return sf.struct(*compared)


def _zero(data_type: st.DataType) -> Column | None:
    if isinstance(data_type, st.NumericType):
        return sf.lit(0).cast(data_type)
    return sf.expr(_ZEROS[type(data_type)]) if type(data_type) in _ZEROS else None


_ZEROS = {
    st.DateType: "DATE '1970-01-01'",
    st.TimestampType: "timestamp_micros(0)",
    st.TimestampNTZType: "TIMESTAMP_NTZ '1970-01-01 00:00:00'",
}
