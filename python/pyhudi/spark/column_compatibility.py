"""How the columns of a DataFrame fit those of a table, at any depth; by types alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.types as at
from pyspark.sql import DataFrame, SparkSession

from pyhudi.errors import SchemaMismatch
from pyhudi.input.exact_casts import UTC_ZONES
from pyhudi.schema.computed_columns import project_values
from pyhudi.spark.case_sensitivity import resolve_name
from pyhudi.spark.executor_steps import arrow_schema
from pyhudi.write.merge_clauses import Clause, join_sides

Met: TypeAlias = "tuple[str, pa.DataType | None, pa.DataType]"
"""A column or what is below one: where it is, its type in the data, None without it, and in the
table."""


def missing_columns(given: pa.Schema, wanted: pa.Schema, *, case: bool) -> list[str]:
    """What the data lack of the table's columns and fields, with dots before fields.

    case: names that differ in case alone are different.
    """
    return [path for path, kind, _ in _match_fields(given, wanted, "", case=case) if kind is None]


def check_zones(frame: DataFrame, wanted: Iterable[pa.Field[Any]]) -> None:
    """Raises `SchemaMismatch` for moments that would come into a column without a zone.

    They have other digits in UTC than the session shows, unless its zone is UTC. wanted: columns of
    the table.
    """
    given = arrow_schema(frame)
    _check_met(frame.sparkSession, _match_fields(given, wanted, "", case=True))


def check_set_zones(
    spark: SparkSession, source: pa.Schema, target: pa.Schema, clauses: Iterable[Clause]
) -> None:
    """The same for what the clauses of a merge set."""
    both = join_sides(source.empty_table(), target.empty_table())
    for clause in clauses:
        for name, value in (clause.values or {}).items():
            made = project_values(both, {name: value.expression}).schema.field(0).type
            _check_met(spark, _match_types(made, value.kind, name, case=True))


def _check_met(spark: SparkSession, met: Iterable[Met]) -> None:
    bare = [
        path
        for path, given, wanted in met
        if given is not None
        and at.is_timestamp(given)
        and at.is_timestamp(wanted)
        and given.tz is not None
        and wanted.tz is None
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
    given: Iterable[pa.Field[Any]], wanted: Iterable[pa.Field[Any]], prefix: str, *, case: bool
) -> Iterator[Met]:
    by_name = {field.name: field.type for field in given}
    for field in wanted:
        found = resolve_name(field.name, by_name, case=case)
        kind = None if found is None else by_name[found]
        yield from _match_types(kind, field.type, prefix + field.name, case=case)


def _match_types(
    given: pa.DataType | None, wanted: pa.DataType, path: str, *, case: bool
) -> Iterator[Met]:
    yield path, given, wanted
    if given is None:
        return
    if at.is_struct(given) and at.is_struct(wanted):
        yield from _match_fields(given, wanted, f"{path}.", case=case)
    elif at.is_map(given) and at.is_map(wanted):
        yield from _match_types(given.key_type, wanted.key_type, f"{path}.key", case=case)
        yield from _match_types(given.item_type, wanted.item_type, f"{path}.value", case=case)
    elif at.is_list(given) and (at.is_list(wanted) or at.is_large_list(wanted)):
        yield from _match_types(given.value_type, wanted.value_type, f"{path}.element", case=case)
