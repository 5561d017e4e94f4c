"""Access to Spark, which is an extra: loaded by name when a caller passes a frame or engine of it.

Nothing below `pyhudi.spark` imports it, and only `pyhudi.spark` imports PySpark.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def is_spark_frame(data: object) -> bool:
    """Return whether data is a `pyspark.sql.DataFrame`, of a classic or a Spark Connect session."""
    return any(
        base_class.__name__ == "DataFrame" and base_class.__module__.startswith("pyspark.sql.")
        for base_class in type(data).__mro__
    )


def spark(module: str) -> Any:
    """Return a module of `pyhudi.spark`. Raises `ImportError` if PySpark is not installed."""
    return import_module(f"pyhudi.spark.{module}")
