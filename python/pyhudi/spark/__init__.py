"""Spark as an engine: the only package that imports pyspark.

Driver and executors need the pyhudi wheel and PySpark 3.5 or 4.x, and no Hudi JAR. A few rows of a
DataFrame are fetched and written by the driver (`small_frames.py`, decision 29). More rows
(`write_rows.py`) never reach it: the same functions make and look up keys in `mapInArrow` steps,
with a pickled context (`executor_steps.py`). The driver counts (`assigned_frame.py`), and one
`exchange` routes each file's rows to the task that writes it (`file_routing.py`). If all slices are
base files with unencoded columns, Spark reads the files itself (`native_parquet.py`, decision 24).
Spark 4's data source (`source.py`, `stream.py`) plans in a worker without a session. A stream's
offset is the time of a commit; a sink's is the batch number in its commits.
"""

from typing import TYPE_CHECKING

from pyhudi.lazy_names import lazy_names

if TYPE_CHECKING:
    from pyhudi.spark.create import create_table
    from pyhudi.spark.delta_style_table import SparkHudiTable
    from pyhudi.spark.engine import SparkEngine
    from pyhudi.spark.hudi_format import read, write
    from pyhudi.spark.procedures import register_procedures
    from pyhudi.spark.registration import register, register_source
    from pyhudi.spark.session_sql import EnabledSql, enable_sql
    from pyhudi.spark.sql_runner import sql
    from pyhudi.spark.stream_sink import sink
    from pyhudi.spark.to_dataframe import read_incremental

__all__ = [
    "EnabledSql",
    "SparkEngine",
    "SparkHudiTable",
    "create_table",
    "enable_sql",
    "read",
    "read_incremental",
    "register",
    "register_procedures",
    "register_source",
    "sink",
    "sql",
    "write",
]

_MODULES = {
    "EnabledSql": "session_sql",
    "HudiDataSource": "source",  # PySpark 3.5 has no data sources in Python
    "SparkEngine": "engine",
    "SparkHudiTable": "delta_style_table",
    "create_table": "create",
    "enable_sql": "session_sql",
    "read": "hudi_format",
    "read_incremental": "to_dataframe",
    "register": "registration",
    "register_procedures": "procedures",
    "register_source": "registration",
    "sink": "stream_sink",
    "sql": "sql_runner",  # a module `sql` would replace the function
    "write": "hudi_format",
}
"""The module of each name. Names are imported on first use: an executor needs few of them."""

__getattr__, __dir__ = lazy_names(__name__, _MODULES, __all__)
