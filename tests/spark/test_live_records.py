"""DataFrames with keys that base files contain but log files have deleted.

As `tests/unit/test_live_records.py` has it for Arrow data.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import pyhudi
from pyhudi.spark import SparkEngine
from tests.spark.arrow import frame_of

pytestmark = pytest.mark.filterwarnings("ignore")  # PySpark's own warnings are not ours to mend


def rows(ids: str, value: int) -> pa.Table:
    return pa.table({"id": list(ids), "v": [value] * len(ids)})


def values(uri: str) -> list[tuple[str, int]]:
    table = pyhudi.open_table(uri)
    assert table.check(deep=True).findings == ()
    found = table.scan(["id", "v"]).to_arrow().to_pylist()
    return sorted((row["id"], row["v"]) for row in found)


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE", None])
def test_upserts_and_merges_write_where_a_key_lives(
    spark: SparkSession, tmp_path: Path, index: str | None, version: int
) -> None:
    uri = str(tmp_path / "t")
    schema = rows("a", 0).schema
    table = pyhudi.create_table(uri, schema, key="id", type="mor", version=version, index=index)
    for value in (1, 2):
        table.insert(rows("ab" if value == 1 else "a", value))
        table.delete_keys(pa.table({"id": ["a"]}))
    table = pyhudi.open_table(uri, engine=SparkEngine(spark))
    table.upsert(frame_of(spark, rows("a", 3)))
    assert values(uri) == [("a", 3), ("b", 1)]
    table.delete_keys(pa.table({"id": ["a"]}))
    merge = table.merge(frame_of(spark, rows("a", 4))).when_matched_delete(where="source.v > 5")
    merge.when_not_matched_insert_all().execute()
    assert values(uri) == [("a", 4), ("b", 1)]
    table.upsert(frame_of(spark, rows("a", 5)))
    assert values(uri) == [("a", 5), ("b", 1)]
