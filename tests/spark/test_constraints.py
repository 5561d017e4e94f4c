"""Writes of Spark DataFrames check the constraints of a table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import pyhudi
from pyhudi.errors import ConstraintViolation
from pyhudi.spark import SparkEngine

pytestmark = pytest.mark.filterwarnings("ignore")  # of PySpark 3.5

WRITES: dict[str, Callable[[pyhudi.HudiTable, DataFrame], Any]] = {
    "upsert": lambda table, rows: table.upsert(rows),
    "bulk_insert": lambda table, rows: table.bulk_insert(rows),
    "merge": lambda table, rows: (
        table.merge(rows).when_matched_update_all().when_not_matched_insert_all().execute()
    ),
    "update": lambda table, _: table.update("id < 5", {"low": "cast(id as int)"}),
}


def _update_badly(table: pyhudi.HudiTable, _: DataFrame) -> None:
    table.update("id < 5", {"low": "10"})


@pytest.mark.spark35
@pytest.mark.parametrize("write", WRITES)
def test_spark_writes_check_constraints(spark: SparkSession, tmp_path: Path, write: str) -> None:
    rows = spark.range(40).selectExpr("id", "0 as low", "cast(9 as int) as high")
    table = pyhudi.create_table(
        str(tmp_path / "t"),
        rows,
        key="id",
        engine=SparkEngine(spark),
        constraints={"order": "low <= high"},
    )
    WRITES[write](table, rows.limit(20))
    bad = spark.range(30, 50).selectExpr("id", "cast(id as int) as low", "cast(9 as int) as high")
    before = pyhudi.open_table(table.uri).count()
    fails = WRITES[write] if write != "update" else _update_badly
    with pytest.raises(ConstraintViolation, match="the constraint 'order'"):
        fails(table, bad)
    assert pyhudi.open_table(table.uri).count() == before
