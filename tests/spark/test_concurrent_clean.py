"""A clean deletes files of a snapshot while a DataFrame of it is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import pyhudi
from pyhudi.spark import SparkEngine
from pyhudi.write.write_context import WriteContext
from tests.spark.arrow import frame_of

pytestmark = pytest.mark.filterwarnings("ignore")  # PySpark's own warnings are not ours to mend

BUCKETS = {"hoodie.bucket.index.num.buckets": "2"}


def rows(ids: str, value: int) -> pa.Table:
    return pa.table({"id": list(ids), "v": [value] * len(ids)})


def upsert(table: pyhudi.HudiTable, spark: SparkSession) -> dict[str, int]:
    table.upsert(frame_of(spark, rows("ax", 1)))
    return {"a": 1, "b": 9, "x": 1}


def merge(table: pyhudi.HudiTable, spark: SparkSession) -> dict[str, int]:
    merge = table.merge(frame_of(spark, rows("ax", 1))).when_matched_update({"v": "v + 10"})
    merge.when_not_matched_insert_all().execute()
    return {"a": 19, "b": 9, "x": 1}


def delete_keys(table: pyhudi.HudiTable, spark: SparkSession) -> dict[str, int]:
    table.delete_keys(frame_of(spark, rows("ax", 1).select(["id"])))
    return {"b": 9}


ON_EXECUTORS = pytest.mark.on_executors
LISTINGS = [
    (upsert, 1),
    pytest.param(upsert, 2, marks=ON_EXECUTORS),
    (merge, 1),
    pytest.param(merge, 2, marks=ON_EXECUTORS),
    pytest.param(merge, 3, marks=ON_EXECUTORS),
    (delete_keys, 1),
    pytest.param(delete_keys, 2, marks=ON_EXECUTORS),
]
"""Verbs, and each time that they ask for file groups: writes on the driver ask once."""


@pytest.mark.parametrize(("verb", "before"), LISTINGS)
@pytest.mark.parametrize("index", [None, "SIMPLE", "GLOBAL_SIMPLE", "BUCKET"])
def test_write_is_retried_after_concurrent_clean(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    index: str | None,
    verb: Any,
    before: int,
) -> None:
    """before: which of its questions for file groups comes after the clean."""
    uri = str(tmp_path / "t")
    options = BUCKETS if index == "BUCKET" else {}
    schema = rows("a", 0).schema
    pyhudi.create_table(uri, schema, key="id", index=index, options=options)
    other = pyhudi.open_table(uri, options=options)
    other.insert(rows("ab", 0))
    table = pyhudi.open_table(uri, engine=SparkEngine(spark), options=options)
    listed, calls = WriteContext.groups, 0

    def groups(self: WriteContext, partitions: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == before:
            monkeypatch.setattr(WriteContext, "groups", listed)
            other.upsert(rows("ab", 8))
            other.upsert(rows("ab", 9))
            assert other.clean(retain=1).files_removed
        return listed(self, partitions)

    monkeypatch.setattr(WriteContext, "groups", groups)
    expected = verb(table, spark)
    assert calls >= before
    table = pyhudi.open_table(uri, options=options)
    found = table.scan(["id", "v"]).to_arrow().to_pylist()
    assert sorted((row["id"], row["v"]) for row in found) == sorted(expected.items())
    assert table.check(deep=True).findings == ()
