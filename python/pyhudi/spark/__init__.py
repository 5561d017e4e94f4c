"""Spark as an engine: the only package that imports pyspark.

Driver and executors need the pyhudi wheel and PySpark 3.5 or 4.x, and no Hudi JAR. Rows of a
DataFrame (`write_rows.py`) never reach the driver: the same functions make and look up keys in
`mapInArrow` steps, on a context that is sent along (`executor_context.py`). The driver counts
(`assigned_frame.py`), and one `exchange` brings each file's rows to the task that writes it
(`file_routing.py`). If all slices are base files with plain columns, Spark reads the files itself
(`native_parquet.py`, decision 24). Spark 4's data source (`source.py`, `stream.py`) plans in a
worker without a session. A stream's offset is the time of a commit; a sink's is the batch number
in its commits.
"""

from typing import Any

from pyhudi.spark.create import create_table
from pyhudi.spark.delta_style_table import SparkHudiTable
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.hudi_format import read, write
from pyhudi.spark.procedures import register_procedures
from pyhudi.spark.read import read_incremental
from pyhudi.spark.register import register, register_source
from pyhudi.spark.sink import sink

__all__ = [
    "SparkEngine",
    "SparkHudiTable",
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
