"""Merge rules by column on the Spark engine: executors combine rows as threads do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import pyhudi
import pyhudi.spark
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.spark import SparkHudiTable
from tests.helpers.table_builder import Kind

pytestmark = [
    pytest.mark.spark35,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own warnings are not ours to mend
]

DDL = "id string, clicks bigint, tags array<string>, name string"
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("clicks", pa.int64()),
        ("tags", pa.list_(pa.string())),
        ("name", pa.string()),
    ]
)
RULES = {"clicks": "sum", "tags": "append"}


def rows_of(table: pyhudi.HudiTable) -> list[tuple[Any, ...]]:
    stored = pyhudi.open_table(table.uri)
    return [tuple(row.values()) for row in stored.to_arrow().sort_by("id").to_pylist()]


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_spark_combines_rows_by_rules(spark: SparkSession, tmp_path: Path, kind: Kind) -> None:
    base = tmp_path / "t"
    table = pyhudi.spark.create_table(spark, base, DDL, key="id", type=kind, merge_rules=RULES)
    first = [("a", 1, ["x"], "A"), ("b", 2, ["y"], "B"), ("a", 4, ["z"], "A2")]
    table.upsert(spark.createDataFrame(first, DDL).coalesce(1))
    assert rows_of(table) == [("a", 5, ["x", "z"], "A2"), ("b", 2, ["y"], "B")]
    table.upsert(spark.createDataFrame([("b", 3, ["w"], "B2"), ("c", 1, None, "C")], DDL))
    source = spark.createDataFrame([("a", "S"), ("d", "D")], "id string, name string")
    merge = table.merge(source).when_matched_update({"name": "source.name"})
    merge.when_not_matched_insert({"id": "source.id", "name": "source.name"}).execute()
    expected = [
        ("a", 5, ["x", "z"], "S"),
        ("b", 5, ["y", "w"], "B2"),
        ("c", 1, None, "C"),
        ("d", None, None, "D"),
    ]
    assert rows_of(table) == expected
    frame = pyhudi.spark.read(spark, base).sort("id").collect()
    assert [tuple(row) for row in frame] == expected


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_delta_style_update_keeps_combined_columns(
    spark: SparkSession, tmp_path: Path, kind: Kind
) -> None:
    rows = pa.table(
        {"id": ["a", "b"], "clicks": [1, 2], "tags": [["x"], ["y"]], "name": ["A", "B"]}
    )
    base = tmp_path / "t"
    table = pyhudi.create_table(base, rows.cast(SCHEMA), key="id", type=kind, merge_rules=RULES)
    table.upsert(rows.cast(SCHEMA))
    by_path = SparkHudiTable.forPath(spark, str(base))
    by_path.update("id = 'a'", {"name": "'set'"})
    assert rows_of(table) == [("a", 2, ["x", "x"], "set"), ("b", 4, ["y", "y"], "B")]
    with pytest.raises(UnsupportedTableFeature, match="clicks:sum"):
        by_path.update("id = 'a'", {"clicks": "0"})
