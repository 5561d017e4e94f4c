"""Compares a DataFrame's columns and nested fields with those of a table, by name and type.

A session compares names by `spark.sql.caseSensitive`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.types as at
from pyspark.sql import DataFrame, SparkSession

from pyhudi.errors import SchemaMismatch
from pyhudi.input.exact_casts import UTC_ZONES
from pyhudi.schema.computed_columns import project_values
from pyhudi.spark.executor_steps import arrow_schema
from pyhudi.write.merge_clauses import Clause, join_sides

ColumnMatch: TypeAlias = "tuple[str, pa.DataType | None, pa.DataType]"
"""A column or a nested field: its path, its type in the data (None if missing) and in the table."""


def missing_columns(input_schema: pa.Schema, table_schema: pa.Schema, *, case: bool) -> list[str]:
    """Return the table's columns and fields that the data do not have, with dotted paths.

    case: names that differ only in case are different.
    """
    return [
        path
        for path, data_type, _ in _match_fields(input_schema, table_schema, "", case=case)
        if data_type is None
    ]


def check_zones(frame: DataFrame, columns: Iterable[pa.Field[Any]]) -> None:
    """Raise `SchemaMismatch` for timestamps with a zone that go into a column without one.

    Their digits in UTC differ from what the session displays, unless its zone is UTC. wanted:
    columns of the table.
    """
    input_schema = arrow_schema(frame)
    _check_time_zones(frame.sparkSession, _match_fields(input_schema, columns, "", case=True))


def check_set_zones(
    spark: SparkSession, source: pa.Schema, target: pa.Schema, clauses: Iterable[Clause]
) -> None:
    """Check the values that the clauses of a merge set, as `check_zones` does."""
    both = join_sides(source.empty_table(), target.empty_table())
    for clause in clauses:
        for name, value in (clause.values or {}).items():
            value_type = project_values(both, {name: value.expression}).schema.field(0).type
            _check_time_zones(spark, _match_types(value_type, value.data_type, name, case=True))


def _check_time_zones(spark: SparkSession, matches: Iterable[ColumnMatch]) -> None:
    bare = [
        path
        for path, input_type, table_type in matches
        if input_type is not None
        and at.is_timestamp(input_type)
        and at.is_timestamp(table_type)
        and input_type.tz is not None
        and table_type.tz is None
    ]
    zone = spark.conf.get("spark.sql.session.timeZone") if bare else None
    if bare and zone not in UTC_ZONES:
        raise SchemaMismatch(
            f"column {bare[0]!r} has timestamps of the session's time zone {zone}, and the "
            "table's timestamps have no time zone",
            hint="Cast it to timestamp_ntz, which keeps the displayed time, or set "
            "spark.sql.session.timeZone to UTC.",
        )


def _match_fields(
    input_fields: Iterable[pa.Field[Any]],
    table_fields: Iterable[pa.Field[Any]],
    prefix: str,
    *,
    case: bool,
) -> Iterator[ColumnMatch]:
    by_name = {field.name: field.type for field in input_fields}
    for field in table_fields:
        match = resolve_name(field.name, by_name, case=case)
        data_type = None if match is None else by_name[match]
        yield from _match_types(data_type, field.type, prefix + field.name, case=case)


def _match_types(
    input_type: pa.DataType | None, table_type: pa.DataType, path: str, *, case: bool
) -> Iterator[ColumnMatch]:
    yield path, input_type, table_type
    if input_type is None:
        return
    if at.is_struct(input_type) and at.is_struct(table_type):
        yield from _match_fields(input_type, table_type, f"{path}.", case=case)
    elif at.is_map(input_type) and at.is_map(table_type):
        yield from _match_types(input_type.key_type, table_type.key_type, f"{path}.key", case=case)
        yield from _match_types(
            input_type.item_type, table_type.item_type, f"{path}.value", case=case
        )
    elif at.is_list(input_type) and (at.is_list(table_type) or at.is_large_list(table_type)):
        yield from _match_types(
            input_type.value_type, table_type.value_type, f"{path}.element", case=case
        )


def case_counts(spark: SparkSession) -> bool:
    """Return whether names that differ only in case are different."""
    return str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"


def resolve_name(name: str, names: Iterable[str], *, case: bool) -> str | None:
    """Return the one of the names that a name refers to, or None.

    Raises `SchemaMismatch` if it refers to several.
    """
    candidates = list(names)
    if name in candidates or case:
        return name if name in candidates else None
    matches = [each for each in candidates if each.lower() == name.lower()]
    if len(matches) > 1:
        raise SchemaMismatch(f"{name!r} means several columns: {', '.join(matches)}")
    return matches[0] if matches else None


def quote_name(name: str) -> str:
    """Quote a column's name for Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def rename_columns(frame: DataFrame, names: Iterable[str]) -> DataFrame:
    """Return the frame with the table's names for columns that the session treats as equal.

    Raises `SchemaMismatch` if two columns have one name in the table.
    """
    targets = list(names)
    if set(targets).issuperset(frame.columns):
        return frame
    case = case_counts(frame.sparkSession)
    new = [resolve_name(name, targets, case=case) or name for name in frame.columns]
    twice = next((name for name in new if name in targets and new.count(name) > 1), None)
    if twice is not None:
        same = [old for old, name in zip(frame.columns, new, strict=True) if name == twice]
        raise SchemaMismatch(
            f"the columns {', '.join(map(repr, same))} are both {twice!r} in the table",
            hint="Drop one, or set spark.sql.caseSensitive to true.",
        )
    return frame if new == frame.columns else frame.toDF(*new)


def match_case(
    spark: SparkSession, names: Iterable[str], columns: Iterable[str]
) -> tuple[str, ...]:
    """Return `match_names` by the rule of a session."""
    return match_names(names, columns, case=case_counts(spark))


def match_names(names: Iterable[str], columns: Iterable[str], *, case: bool) -> tuple[str, ...]:
    """Return names of columns, or paths in them, as the columns are written.

    A name may have a key type after a colon. Unknown names stay as they are. case: whether names
    that differ only in case are different.
    """
    targets = list(columns)
    result = []
    for name in names:
        column, colon, key_type = name.partition(":")
        top, dot, rest = column.partition(".")
        match = resolve_name(top, targets, case=case) or top
        result.append(f"{match}{dot}{rest}{colon}{key_type}")
    return tuple(result)
