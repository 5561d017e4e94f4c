"""Spark, which is an extra: found by name where somebody hands over a frame or an engine of it.

Nothing below `pyhudi.spark` imports it, and PySpark is imported there alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def is_spark_frame(data: object) -> bool:
    """Whether the data are a `pyspark.sql.DataFrame`, of a classic session or of Spark Connect."""
    return any(
        kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql.")
        for kind in type(data).__mro__
    )


def spark(module: str) -> Any:
    """A module of `pyhudi.spark`. Raises `ImportError` where PySpark is not installed."""
    return import_module(f"pyhudi.spark.{module}")
