"""Column names as a session compares them: by `spark.sql.caseSensitive`."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession

from pyhudi.errors import SchemaMismatch


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
    """Return the frame with its columns renamed to the equivalent names."""
    targets = list(names)
    case = case_counts(frame.sparkSession)
    new = [resolve_name(name, targets, case=case) or name for name in frame.columns]
    return frame if new == frame.columns else frame.toDF(*new)
