"""A program that `test_archive.py` submits: it writes and reads a table with an archive's packages.

python archive_job.py BASE
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import pyhudi
from pyhudi.spark import read


def main(base: str) -> None:
    spark = SparkSession.builder.getOrCreate()
    rows = spark.range(0, 1000, 1, 2).select(
        sf.format_string("k%05d", sf.col("id")).alias("id"),
        sf.concat(sf.lit("c"), sf.col("id") % 3).alias("city"),
        sf.lit(2).cast("long").alias("v"),
    )
    pyhudi.open_table(base).upsert(rows)
    assert read(spark, base).where("v = 2").count() == 1000
    workers = spark.range(0, 4, 1, 4).mapInArrow(_environment, "python string, wheel string")
    for python, wheel in workers.distinct().collect():
        assert python.endswith("/environment/bin/python"), python
        assert "/environment/lib/" in wheel, wheel
    spark.stop()


def _environment(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import sys

    import pyarrow as pa

    import pyhudi

    for _ in batches:
        yield pa.RecordBatch.from_pydict({"python": [sys.executable], "wheel": [pyhudi.__file__]})


if __name__ == "__main__":
    main(*sys.argv[1:])
