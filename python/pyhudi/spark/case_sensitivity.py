"""Names of columns as a session compares them: by `spark.sql.caseSensitive`."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession

from pyhudi.errors import SchemaMismatch


def case_counts(spark: SparkSession) -> bool:
    """Whether names that differ in case alone are different."""
    return str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"


def resolve_name(name: str, names: Iterable[str], *, case: bool) -> str | None:
    """The one of some names that a name means, or None.

    Raises `SchemaMismatch` where it means several.
    """
    given = list(names)
    if name in given or case:
        return name if name in given else None
    found = [each for each in given if each.lower() == name.lower()]
    if len(found) > 1:
        raise SchemaMismatch(f"{name!r} means several columns: {', '.join(found)}")
    return found[0] if found else None


def quote_name(name: str) -> str:
    """A column's name as Spark's SQL takes it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def rename_columns(frame: DataFrame, names: Iterable[str]) -> DataFrame:
    """The frame, its columns under those of some names that mean the same."""
    known = list(names)
    case = case_counts(frame.sparkSession)
    new = [resolve_name(name, known, case=case) or name for name in frame.columns]
    return frame if new == frame.columns else frame.toDF(*new)
