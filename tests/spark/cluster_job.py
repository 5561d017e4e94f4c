"""A program that `test_cluster.py` runs: driver and executors share nothing but storage and wheel.

python cluster_job.py <folder of the table> [<archive of the executors' packages>]
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import pyhudi
from pyhudi.spark import read
from pyhudi.spark.engine import SMALL_CALL_OPTION


def main(base: str, archive: str | None = None) -> None:
    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    outside = shutil.which("python3", path=str(Path(sys.base_prefix, "bin")))
    os.environ["PYSPARK_PYTHON"] = (outside or "python3") if archive else sys.executable
    builder = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.executor.memory", "512m")
        .config("spark.sql.shuffle.partitions", "4")
        .config(SMALL_CALL_OPTION, "0")
    )
    path = os.environ.get("PYTHONPATH", "")
    if archive:
        builder = builder.config("spark.archives", f"{archive}#packages")
        path = "./packages"
    spark = builder.config("spark.executorEnv.PYTHONPATH", path).getOrCreate()

    def rows(first: int, stop: int, v: int) -> object:
        key = sf.format_string("k%05d", sf.col("id"))
        part = sf.concat(sf.lit("p"), sf.col("id") % 3)
        return spark.range(first, stop, 1, 4).select(
            key.alias("id"), part.alias("part"), sf.lit(v).cast("long").alias("v")
        )

    schema = pyhudi.open_table(base).schema
    table = pyhudi.open_table(base)
    table.insert(rows(0, 3000, 1))
    table.upsert(rows(2000, 4000, 2))
    assert schema.names == ["id", "part", "v"]
    frame = read(spark, base)
    found = {row["v"]: row["count"] for row in frame.groupBy("v").count().collect()}
    assert found == {1: 2000, 2: 2000}, found
    tasks = spark.range(0, 8, 1, 8).mapInArrow(_process, "process long, wheel string")
    found = tasks.distinct().collect()
    assert len({row["process"] for row in found}) > 1, "all tasks ran in one process"
    if archive:
        assert all("/packages/pyhudi/" in row["wheel"] for row in found), found
    spark.stop()
    shutil.rmtree(Path(os.environ["SPARK_HOME"], "work"), ignore_errors=True)


def _process(batches: object) -> object:
    import pyarrow as pa

    import pyhudi

    for _ in batches:  # type: ignore[attr-defined]
        yield pa.record_batch({"process": [os.getppid()], "wheel": [pyhudi.__file__]})


if __name__ == "__main__":
    main(*sys.argv[1:])
