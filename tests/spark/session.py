"""One Spark session for all tests of a run, set up so that failed tasks are tried again."""

from __future__ import annotations

import importlib
import os
import sys
from functools import cache
from tempfile import mkdtemp

from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

SHIPPED = (
    "tests.engine.faulty",
    "tests.engine.jobs",
    "tests.spark.arrow",
    "tests.spark.contract_bench",
    "tests.spark.test_engine",
    "tests.spark.test_job_watch",
    "tests.spark.test_types",
    "tests.spark.test_write_frames",
)
"""Modules whose functions travel by value: executors have the wheel, not the tests."""


@cache
def spark_session() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2,3]")  # two at once, three tries
        .appName("pyhudi tests")
        .config("spark.ui.enabled", "false")
        # No code runs here long enough to pay for the second compiler.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.warehouse.dir", mkdtemp(prefix="pyhudi-warehouse-"))
        .config("spark.sql.session.timeZone", "America/Los_Angeles")  # not what the rows have
        .getOrCreate()
    )
    for name in SHIPPED:
        cloudpickle.register_pickle_by_value(importlib.import_module(name))
    return spark


def is_by_spark(frame: DataFrame) -> bool:
    """Whether Spark reads the table's files itself."""
    return "FileScan parquet" in _plan(frame)


def is_by_pyhudi(frame: DataFrame) -> bool:
    """Whether tasks of pyhudi read files of the table."""
    return "MapInArrow" in _plan(frame)


def _plan(frame: DataFrame) -> str:
    plan: str = frame._jdf.queryExecution().executedPlan().toString()  # noqa: SLF001
    return plan
