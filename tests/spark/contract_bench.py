"""The Spark engine as the contract suite of `tests/engine` sees it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

from pyhudi.spark import SparkEngine
from pyhudi.spark.types import spark_schema
from tests.engine.conftest import Bench
from tests.spark.arrow import arrow_table, frame_of
from tests.spark.session import spark_session


def spark_bench() -> Bench:
    spark = spark_session()
    engine = SparkEngine(spark)

    def counted(table: pa.Table, folder: str) -> DataFrame:
        def body(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                Path(folder, f"{uuid.uuid4()}.evaluated").touch()
                yield batch

        return frame_of(spark, table).mapInArrow(body, spark_schema(table.schema))

    return Bench(
        name="spark",
        engine=engine,
        retrying=engine,
        rows=lambda table: frame_of(spark, table),
        counted=counted,
        table=arrow_table,
    )
