"""The index that a write with Hudi's options goes by: the rows are those of Apache Hudi."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import pyhudi
from pyhudi.errors import (
    DuplicateKeyWarning,
    MetadataTableWarning,
    PartitionChangeWarning,
    SchemaMismatch,
)
from pyhudi.spark import write
from tests.helpers.oracle.client import HudiOracle

pytestmark = [pytest.mark.filterwarnings("ignore")]

W = "hoodie.datasource.write."
POLICY = "hoodie.datasource.insert.dup.policy"
OPTIONS = {
    "hoodie.table.name": "t",
    W + "recordkey.field": "id",
    W + "partitionpath.field": "p",
    W + "precombine.field": "ts",
    W + "operation": "upsert",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.embed.timeline.server": "false",
}
DDL = "id string, p string, v long, ts long"
ENABLED = {"hoodie.metadata.global.record.level.index.enable": "true"}
BY_TYPE = {"hoodie.index.type": "RECORD_INDEX", **ENABLED}
BY_PARTITION = {
    "hoodie.index.type": "RECORD_LEVEL_INDEX",
    "hoodie.metadata.record.level.index.enable": "true",
}
SAME_KEY = [("a", "x", 1, 5), ("a", "y", 2, 3)]
ONE_MORE = [("a", "z", 3, 9)]
Row = tuple[str, str, int, int]

STEPS: dict[str, list[tuple[dict[str, str], list[Row]]]] = {
    "no index": [({}, SAME_KEY), ({}, ONE_MORE)],
    "merge-on-read": [({W + "table.type": "MERGE_ON_READ"}, SAME_KEY), ({}, ONE_MORE)],
    "record index": [(BY_TYPE, SAME_KEY), (BY_TYPE, ONE_MORE)],
    "record index, then none": [(BY_TYPE, SAME_KEY[:1]), ({}, SAME_KEY[1:])],
    "record index that nothing goes by": [(ENABLED, SAME_KEY[:1]), (ENABLED, ONE_MORE)],
    "record index by partition, then none": [(BY_PARTITION, SAME_KEY), ({}, SAME_KEY)],
    "global bloom": [
        ({"hoodie.index.type": "GLOBAL_BLOOM"}, rows) for rows in (SAME_KEY, ONE_MORE)
    ],
    "delete": [({}, SAME_KEY), ({W + "operation": "delete"}, SAME_KEY[1:])],
    "insert": [({W + "operation": "insert"}, [*SAME_KEY, *SAME_KEY]), ({}, ONE_MORE)],
    "no ordering": [({W + "precombine.field": ""}, [("a", "x", 1, 5), ("a", "x", 2, 3)])],
}
"""Options and rows of one write after the other."""

HAS = {
    "no index": [*SAME_KEY, *ONE_MORE],
    "merge-on-read": [*SAME_KEY, *ONE_MORE],
    "record index": [("a", "x", 3, 9)],
    "record index, then none": SAME_KEY,
    "record index that nothing goes by": [*SAME_KEY[:1], *ONE_MORE],
    "record index by partition, then none": SAME_KEY,
    "global bloom": ONE_MORE,
    "delete": SAME_KEY[:1],
    "insert": [*SAME_KEY, *SAME_KEY, *ONE_MORE],
    "no ordering": [("a", "x", 2, 3)],
}
"""The rows then."""


def frame(spark: SparkSession, rows: list[Row]) -> DataFrame:
    return spark.createDataFrame(rows, DDL).coalesce(1)


def given(more: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in {**OPTIONS, **more}.items() if text}


def written(spark: SparkSession, base: Path, name: str, **more: str) -> list[Row]:
    for options, rows in STEPS[name]:
        write(frame(spark, rows), base, given({**options, **more}), mode="append")
    return content(base)


def content(base: Path) -> list[Row]:
    found = pyhudi.open_table(base).scan(["id", "p", "v", "ts"]).to_arrow()
    return sorted(tuple(row.values()) for row in found.to_pylist())


@pytest.mark.parametrize("name", STEPS)
def test_write_finds_keys_as_hudi_does(spark: SparkSession, tmp_path: Path, name: str) -> None:
    assert written(spark, tmp_path / "t", name) == sorted(HAS[name])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hudi", "version", "name"),
    [
        ("0.15.0", 6, "no index"),
        ("1.0.2", 8, "record index, then none"),
        ("1.2.0", 9, "merge-on-read"),
    ],
    indirect=["hudi"],
)
def test_write_leaves_the_rows_of_hudi(
    hudi: HudiOracle, spark: SparkSession, tmp_path: Path, version: int, name: str
) -> None:
    """Hudi and pyhudi each write a table by the same options; Hudi reads both."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    written(spark, ours, name, **{"hoodie.write.table.version": str(version)})
    for options, rows in STEPS[name]:
        columns = [dict(zip(("id", "p", "v", "ts"), row, strict=True)) for row in rows]
        asked = {**OPTIONS, **options}
        if ENABLED.items() <= options.items():
            asked["hoodie.metadata.record.index.enable"] = "true"  # As releases before 1.1 call it.
        hudi.write(theirs, rows=columns, schema=DDL, options=asked)
    read = [hudi.read(base, columns=["id", "p", "v", "ts"])["rows"] for base in (ours, theirs)]
    assert read[0] == read[1]
    assert content(theirs) == sorted(HAS[name])


def test_write_removes_a_record_index_that_no_option_asks_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A table of `create_table` has keys over all partitions, until options say otherwise."""
    first = frame(spark, SAME_KEY[:1]).toArrow()
    pyhudi.create_table(tmp_path, first, key="id", partition_by="p", order_by="ts")
    named = {**OPTIONS, "hoodie.table.name": tmp_path.name}
    with warnings.catch_warnings():
        warnings.simplefilter("error", MetadataTableWarning)
        write(frame(spark, SAME_KEY[:1]), tmp_path, named | ENABLED | BY_TYPE, mode="append")
    with pytest.warns(MetadataTableWarning, match=r"record index was removed.*=true"):
        table = write(frame(spark, SAME_KEY), tmp_path, named, mode="append")
    assert "record_index" not in table.config.metadata_partitions
    assert content(tmp_path) == SAME_KEY
    assert not table.check(deep=True).findings


@pytest.mark.parametrize("by", ["no partitions", "by partition", "buckets"])
def test_write_keeps_an_index_that_gives_the_same_rows(
    spark: SparkSession, tmp_path: Path, by: str
) -> None:
    options = {"no partitions": {}, "by partition": BY_PARTITION, "buckets": {}}[by]
    index = "bucket" if by == "buckets" else None
    partition = None if by == "no partitions" else "p"
    first = frame(spark, SAME_KEY[:1]).toArrow()
    made = pyhudi.create_table(
        tmp_path, first, key="id", partition_by=partition, index=index, options=options
    )
    named = {**OPTIONS, "hoodie.table.name": made.name, W + "precombine.field": ""}
    if by == "no partitions":
        named[W + "partitionpath.field"] = ""
    with warnings.catch_warnings():
        warnings.simplefilter("error", MetadataTableWarning)
        table = write(frame(spark, SAME_KEY), tmp_path, given(named), mode="append")
    assert table.config.metadata_partitions == made.config.metadata_partitions
    assert content(tmp_path) == (SAME_KEY[1:] if by == "no partitions" else SAME_KEY)


def test_upsert_of_a_frame_warns_of_rows_dropped_for_other_partitions(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = pyhudi.create_table(
        tmp_path, frame(spark, ONE_MORE).toArrow(), key="id", partition_by="p", order_by="ts"
    )
    data = frame(
        spark, [*SAME_KEY, *SAME_KEY, ("b", "x", 1, 1), ("b", "y", 1, 1), ("c", "x", 1, 1)]
    )
    with pytest.warns(PartitionChangeWarning, match="dropped 2 rows of the data"):
        table.upsert(data)


@pytest.mark.parametrize("verb", ["insert", "bulk_insert", "sorted"])
def test_insert_of_a_frame_warns_of_keys_that_the_record_index_has(
    spark: SparkSession, tmp_path: Path, verb: str
) -> None:
    first = frame(spark, [("a", "x", 1, 1), ("b", "x", 1, 1)]).toArrow()
    table = pyhudi.create_table(tmp_path, first, key="id", partition_by="p", order_by="ts")
    data = frame(spark, [("a", "x", 2, 2), ("b", "y", 2, 2), ("c", "x", 2, 2)])

    def insert(rows: DataFrame, **options: str) -> None:
        opened = pyhudi.open_table(tmp_path, options=options)
        if verb == "sorted":
            opened.bulk_insert(rows, sort="global")
        else:
            getattr(opened, verb)(rows)

    with pytest.warns(DuplicateKeyWarning, match=f"inserted 2 rows.*{POLICY}"):
        insert(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DuplicateKeyWarning)
        insert(frame(spark, ONE_MORE[:1]).withColumn("id", sf.lit("e")))
        insert(data, **{POLICY: "none"})
    assert len(table.refresh().scan().to_arrow()) == 9


@pytest.mark.parametrize("policy", ["drop", "fail"])
def test_insert_of_a_frame_looks_for_keys_by_the_record_index(
    spark: SparkSession, tmp_path: Path, policy: str
) -> None:
    options = {**OPTIONS, **BY_TYPE, W + "operation": "insert", POLICY: policy}
    write(frame(spark, [("a", "x", 1, 1)]), tmp_path / "t", options)
    data = frame(spark, [("a", "y", 2, 2), ("c", "x", 2, 2)])
    if policy == "fail":
        existing = "the table already has 1 of the keys, such as 'a'"
        with pytest.raises(SchemaMismatch, match=existing):
            write(data, tmp_path / "t", options, mode="append")
        return
    write(data, tmp_path / "t", options, mode="append")
    assert content(tmp_path / "t") == [("a", "x", 1, 1), ("c", "x", 2, 2)]
