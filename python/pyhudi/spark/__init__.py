"""Spark as an engine: the only package that imports pyspark.

Driver and executors need the pyhudi wheel and PySpark 3.5 or 4.x, and nothing else: no Hudi JAR.
"""

from typing import Any

from pyhudi.spark.create import create_table
from pyhudi.spark.delta_style_table import HudiTable
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.hudi_format import read, write
from pyhudi.spark.procedures import register_procedures
from pyhudi.spark.read import read_incremental
from pyhudi.spark.register import register, register_source
from pyhudi.spark.sink import sink

__all__ = [
    "HudiTable",
    "SparkEngine",
    "create_table",
    "read",
    "read_incremental",
    "register",
    "register_procedures",
    "register_source",
    "sink",
    "write",
]


def __getattr__(name: str) -> Any:
    if name == "HudiDataSource":  # PySpark 3.5 has no data sources in Python
        from pyhudi.spark.source import HudiDataSource  # noqa: PLC0415

        return HudiDataSource
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
