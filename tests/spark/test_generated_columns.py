"""Writes of Spark DataFrames compute and check generated columns, on driver and executors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import pyhudi
from pyhudi.errors import ConstraintViolation, UnsupportedTableFeature
from pyhudi.spark import SparkEngine

pytestmark = pytest.mark.filterwarnings("ignore")  # of PySpark 3.5

COLUMNS = ("id", "timestamp_micros(id * 3600000000) as at", "cast(id as string) as name")
WRITES: dict[str, Callable[[pyhudi.HudiTable, DataFrame], Any]] = {
    "upsert": lambda table, rows: table.upsert(rows),
    "bulk_insert": lambda table, rows: table.bulk_insert(rows),
    "merge": lambda table, rows: (
        table.merge(rows).when_matched_update_all().when_not_matched_insert_all().execute()
    ),
    "overwrite": lambda table, rows: table.overwrite(rows),
}


@pytest.fixture(autouse=True)
def utc_session(spark: SparkSession) -> Iterator[None]:
    """Spark's functions use the session's zone, pyhudi's use UTC."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    yield
    spark.conf.set("spark.sql.session.timeZone", str(zone))


def make(spark: SparkSession, base: Path, rows: DataFrame) -> pyhudi.HudiTable:
    return pyhudi.create_table(
        str(base),
        rows,
        key="id",
        partition_by=pyhudi.month("at"),
        engine=SparkEngine(spark),
        generated={"part": pyhudi.bucket("name", 8), "number": pyhudi.bucket("id", 8)},
    )


@pytest.mark.spark35
@pytest.mark.parametrize("size", [30, 12_000], ids=["driver", "executors"])
@pytest.mark.parametrize("write", WRITES)
def test_spark_writes_compute_generated_columns(
    spark: SparkSession, tmp_path: Path, write: str, size: int
) -> None:
    table = make(spark, tmp_path / "t", spark.range(size).selectExpr(*COLUMNS))
    rows = spark.range(size, size + size // 2).selectExpr(*COLUMNS)
    WRITES[write](table, rows)
    frame = spark.createDataFrame(pyhudi.open_table(table.uri).to_pandas())
    wrong = frame.where(
        "at_month != year(at) * 100 + month(at) OR part != pmod(hash(name), 8) "
        "OR number != pmod(hash(id), 8) OR at_month IS NULL OR part IS NULL"
    )
    assert wrong.count() == 0
    count = frame.count()
    bad = rows.selectExpr("*", "1 as part")
    with pytest.raises(ConstraintViolation, match="generated column 'part'"):
        WRITES[write](table, bad)
    assert pyhudi.open_table(table.uri).count() == count


@pytest.mark.spark35
@pytest.mark.parametrize("size", [30, 12_000], ids=["driver", "executors"])
def test_validators_see_spark_writes(spark: SparkSession, tmp_path: Path, size: int) -> None:
    table = make(spark, tmp_path / "t", spark.range(5).selectExpr(*COLUMNS))
    counts = []

    def validate(commit: pyhudi.PendingCommit) -> None:
        counts.append((commit.rows().count(), commit.scan_after().count()))
        if commit.scan_after().count() > size:
            raise ValueError("too many rows")

    validated = table.with_validators(validate)
    validated.upsert(spark.range(size).selectExpr(*COLUMNS))
    with pytest.raises(ValueError, match="too many"):
        validated.upsert(spark.range(size, size + 1).selectExpr(*COLUMNS))
    assert counts == [(size, size), (1, size + 1)]
    assert table.refresh().count() == size
    with pytest.raises(UnsupportedTableFeature, match="Spark DataFrame"):
        table.upsert(spark.range(2).selectExpr(*COLUMNS), rejected=tmp_path / "rejected")
