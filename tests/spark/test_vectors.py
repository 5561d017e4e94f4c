"""VECTOR columns on Spark: arrays that DataFrames write and read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as st

import pyhudi
from pyhudi import SchemaMismatch
from pyhudi.spark import SparkEngine, read
from tests.helpers.tables import GoldenTables, facts

pytestmark = [
    pytest.mark.spark35,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own warnings are not ours to mend
]

SCHEMA = st.StructType(
    [
        st.StructField("id", st.StringType()),
        st.StructField("f", st.ArrayType(st.FloatType())),
        st.StructField("b", st.ArrayType(st.ByteType())),
        st.StructField("ts", st.LongType()),
    ]
)
ROWS: list[dict[str, Any]] = [
    {"id": "a", "f": [0.5, 1.0, 2.0, 3.0], "b": [1, -1], "ts": 1},
    {"id": "b", "f": None, "b": [0, 0], "ts": 1},
]


def sorted_rows(frame: Any) -> list[dict[str, Any]]:
    return [row.asDict() for row in frame.orderBy("id").collect()]


def test_vectors_are_arrays_that_spark_writes_and_reads(
    spark: SparkSession, tmp_path: Path
) -> None:
    base = str(tmp_path / "t")
    columns = [("id", pa.string()), ("f", pyhudi.vector(4)), ("b", pyhudi.vector(2, "int8"))]
    schema = pa.schema([*columns, ("ts", pa.int64())])
    engine = SparkEngine(spark)
    table = pyhudi.create_table(base, schema, key="id", order_by="ts", type="mor", engine=engine)
    table.upsert(spark.createDataFrame(ROWS, SCHEMA))
    changed = {**ROWS[0], "f": [9.0, 9.0, 9.0, 9.0], "ts": 2}
    table.upsert(spark.createDataFrame([changed], SCHEMA))
    frame = read(spark, base)
    assert sorted_rows(frame.select("id", "f", "b", "ts")) == [changed, ROWS[1]]
    assert pyhudi.open_table(base).scan().to_arrow().schema.field("f").type.list_size == 4
    short = {**ROWS[0], "f": [9.0], "ts": 3}
    with pytest.raises(SchemaMismatch, match="'f'"):
        table.upsert(spark.createDataFrame([short], SCHEMA))


def test_vectors_of_hudi_are_arrays(spark: SparkSession, golden: GoldenTables) -> None:
    name = "v9_mor_vector"
    frame = read(spark, str(golden.unpack(name)))
    rows = {row["id"]: row["f"] for row in facts(name)["expected"]["snapshot"]["rows"]}
    with_nan = ("k000", "k012")
    found = {row.id: row.f for row in frame.where("id > 'k000'").collect() if row.id != "k012"}
    assert found == {key: row for key, row in rows.items() if key not in with_nan}
