"""Telling a Spark DataFrame from other data, without Spark."""

from __future__ import annotations


def is_spark_frame(data: object) -> bool:
    """Whether the data are a `pyspark.sql.DataFrame`, of a classic session or of Spark Connect."""
    return any(
        kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql.")
        for kind in type(data).__mro__
    )
