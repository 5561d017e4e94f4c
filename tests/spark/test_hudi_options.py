"""Hudi's own options map: what a write and a query do with it, and the page that shows it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import CharType, StructType, VarcharType

import pyhudi
from pyhudi.config.option_parsing import as_tuple
from pyhudi.config.options import CREATE_OPTIONS, KNOWN_OPTIONS
from pyhudi.errors import ConfigError, SchemaMismatch, UnsupportedTableFeature
from pyhudi.spark import create_table, read, write
from pyhudi.spark.hudi_option_table import OPTIONS, decision
from pyhudi.spark.hudi_options import OPERATIONS, ReadRequest, WriteRequest, check_hudi_options

pytestmark = [pytest.mark.spark35, pytest.mark.filterwarnings("ignore")]

W, R = "hoodie.datasource.write.", "hoodie.datasource.read."
TRIPS = {
    "hoodie.table.name": "trips",
    W + "recordkey.field": "id",
    W + "partitionpath.field": "city",
    W + "precombine.field": "ts",
    W + "hive_style_partitioning": True,
    "hoodie.upsert.shuffle.parallelism": 2,
    "hoodie.datasource.write.row.writer.enable": "true",
    "hoodie.metadata.enable": False,
}
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "hudi-options.md"


def rows(spark: SparkSession, *given: tuple[Any, ...]) -> DataFrame:
    return spark.createDataFrame(list(given), "id string, city string, v long, ts long")


def content(base: Path) -> list[tuple[Any, ...]]:
    found = pyhudi.open_table(base).scan(["id", "city", "v"]).to_arrow()
    return sorted(tuple(row.values()) for row in found.to_pylist())


def test_write_creates_table_and_applies_operations(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "trips"
    first = rows(spark, ("a", "osaka", 1, 1), ("a", "osaka", 2, 2), ("b", "lima", 3, 1))
    table = write(first, base, {**TRIPS, W + "table.type": "MERGE_ON_READ"})
    assert (table.name, table.type) == ("trips", "mor")
    assert content(base) == [("a", "osaka", 2), ("b", "lima", 3)]
    assert (base / "city=osaka").is_dir()

    def wrote(operation: str, *given: tuple[Any, ...], **more: Any) -> list[tuple[Any, ...]]:
        options = {**TRIPS, W + "operation": operation}
        write(rows(spark, *given), base, options | more, mode="append")
        return content(base)

    assert wrote("upsert", ("a", "osaka", 9, 3)) == [("a", "osaka", 9), ("b", "lima", 3)]
    assert wrote("delete", ("b", "lima", 0, 0)) == [("a", "osaka", 9)]
    assert wrote("insert_overwrite", ("d", "lima", 7, 1)) == [("a", "osaka", 9), ("d", "lima", 7)]
    gone = {W + "partitions.to.delete": "city=li*"}
    assert wrote("delete_partition", **gone) == [("a", "osaka", 9)]


def test_rows_are_added_and_partitions_go_by_the_rows_in_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    base = tmp_path / "trips"
    write(rows(spark, ("a", "osaka", 1, 1)), base, TRIPS)
    for operation, given in (
        ("insert", ("c", "lima", 5, 1)),
        ("bulk_insert", ("e", "lima", 8, 1)),
        ("delete_partition", ("", "lima", 0, 0)),
    ):
        options = {**TRIPS, W + "operation": operation}
        write(rows(spark, given), base, options, mode="append")
        if operation == "bulk_insert":
            assert [row[0] for row in content(base)] == ["a", "c", "e"]
    assert content(base) == [("a", "osaka", 1)]


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz", "double"])
def test_overwrite_replaces_partitions_of_rows_only(
    spark: SparkSession, tmp_path: Path, zone: None, kind: str
) -> None:
    values = ("-0.0", "0.0") if kind == "double" else ("2024-03-10 11:30:00", "2024-03-10 07:30:00")
    given = spark.createDataFrame(zip("ab", values, strict=True), "id string, p string")
    given = given.withColumn("p", sf.col("p").cast(kind))
    base, options = tmp_path / "t", {W + "recordkey.field": "id", W + "partitionpath.field": "p"}
    write(given, base, options)
    gone = {**options, W + "operation": "delete_partition"}
    write(given.where("id = 'a'"), base, gone, mode="append")
    assert ids(base) == ["b"]


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The driver's own time zone is four hours from UTC."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "America/New_York")
        time.tzset()
        yield
    time.tzset()


def ids(base: Path) -> list[str]:
    return sorted(pyhudi.open_table(base).scan(["id"]).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize(
    ("named", "left"),
    [("a?*", ["ab", "ax"]), ("[ab]*", ["a?", "ab", "ax"]), ("a%2A", []), ("ab", ["a?", "ax"])],
)
def test_overwrite_pattern_accepts_star_only(
    spark: SparkSession, tmp_path: Path, named: str, left: list[str]
) -> None:
    paths = ["a?", "ab", "ax"]
    given = spark.createDataFrame([(path, path) for path in paths], "id string, p string")
    base, options = tmp_path / "t", {W + "recordkey.field": "id", W + "partitionpath.field": "p"}
    write(given, base, options)
    gone = {W + "operation": "delete_partition", W + "partitions.to.delete": named}
    if named == "[ab]*":
        with pytest.raises(ConfigError, match="no partition is named"):
            write(given, base, options | gone, mode="append")
    else:
        write(given, base, options | gone, mode="append")
    assert ids(base) == left


def test_write_appends_without_key(spark: SparkSession, tmp_path: Path) -> None:
    base, options = tmp_path / "t", {"hoodie.table.name": "things"}
    given = spark.createDataFrame([("a",)], "id string")
    write(given, base, options)
    write(given, base, options, mode="append")
    assert ids(base) == ["a", "a"]


def test_rows_that_were_read_are_not_appended_where_hudi_would_update_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    base, options = tmp_path / "t", {"hoodie.table.name": "things"}
    write(spark.createDataFrame([("a",)], "id string"), base, options)
    changed = read(spark, base, {}).withColumn("id", sf.lit("b"))
    with pytest.raises(UnsupportedTableFeature, match=r"recordkey\.fields.*_hoodie_record_key"):
        write(changed, base, options, mode="append")
    assert ids(base) == ["a"]
    write(changed, base, options | {W + "operation": "bulk_insert"}, mode="append")
    write(read(spark, base, {}, meta_fields=False), base, options, mode="append")
    assert ids(base) == ["a", "a", "b", "b"]


@pytest.mark.parametrize("operation", OPERATIONS[:3] + OPERATIONS[4:6])
def test_first_write_applies_operation(spark: SparkSession, tmp_path: Path, operation: str) -> None:
    base = tmp_path / "trips"
    twice = rows(spark, ("b", "osaka", 1, 1), ("a", "osaka", 1, 1), ("b", "osaka", 2, 2))
    options = {
        **TRIPS,
        W + "operation": operation,
        "hoodie.bulkinsert.sort.mode": "GLOBAL_SORT",
        "hoodie.combine.before.upsert": "false",
    }
    # Into no rows an upsert is an insert.
    done = ["INSERT" if operation == "upsert" else operation.upper()]
    table = write(twice, base, options)
    assert table.history().column("operation").to_pylist() == done
    assert ids(base) == ["a", "b", "b"]
    if operation in OPERATIONS[:3]:
        table = write(twice, base, options, "overwrite")
        assert table.history().column("operation").to_pylist() == done
        assert ids(base) == ["a", "b", "b"]


def test_failed_first_write_keeps_existing_data(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "trips"
    unsorted = {
        **TRIPS,
        W + "operation": "bulk_insert",
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns": "v",
    }
    with pytest.raises(ConfigError, match="sort is none"):
        write(rows(spark, ("a", "osaka", 1, 1)), base, unsorted)
    assert not base.exists()
    write(rows(spark, ("a", "osaka", 1, 1)), base, TRIPS)
    with pytest.raises(ConfigError, match="sort is none"):
        write(rows(spark, ("b", "osaka", 1, 1)), base, unsorted, "overwrite")
    assert content(base) == [("a", "osaka", 1)]


@pytest.mark.parametrize("operation", ["insert_overwrite", "insert_overwrite_table"])
def test_overwrite_adds_new_columns(spark: SparkSession, tmp_path: Path, operation: str) -> None:
    base = tmp_path / "trips"
    write(rows(spark, ("a", "osaka", 1, 1)), base, TRIPS)
    given = rows(spark, ("b", "osaka", 2, 1)).withColumn("new", sf.lit(5))
    write(given, base, {**TRIPS, W + "operation": operation}, mode="append")
    assert pyhudi.open_table(base).scan(["id", "new"]).to_arrow().to_pylist() == [
        {"id": "b", "new": 5}
    ]


def test_modes_do_what_sparks_do(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "trips"
    write(rows(spark, ("a", "osaka", 1, 1)), base, TRIPS, mode="append")
    with pytest.raises(ConfigError, match="exists at"):
        write(rows(spark, ("b", "osaka", 1, 1)), base, TRIPS)
    write(rows(spark, ("b", "osaka", 1, 1)), base, TRIPS, mode="ignore")
    assert content(base) == [("a", "osaka", 1)]
    options = {**TRIPS, W + "operation": "insert_overwrite_table"}
    write(rows(spark, ("c", "osaka", 1, 1)), base, options, mode="overwrite")
    assert content(base) == [("c", "osaka", 1)]
    assert pyhudi.open_table(base).history().num_rows == 2
    write(rows(spark, ("d", "osaka", 1, 1)), base, TRIPS, mode="overwrite")
    assert content(base) == [("d", "osaka", 1)]
    assert pyhudi.open_table(base).history().num_rows == 1


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_overwrite_accepts_rows_of_same_table(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    base = tmp_path / "trips"
    options = {**TRIPS, W + "table.type": kind}
    write(rows(spark, ("a", "osaka", 1, 1), ("b", "lima", 2, 1)), base, options)
    write(rows(spark, ("a", "osaka", 3, 2)), base, options, mode="append")
    write(read(spark, base).selectExpr("id", "city", "v + 10 v", "ts"), base, options, "overwrite")
    assert content(base) == [("a", "osaka", 13), ("b", "lima", 12)]
    assert pyhudi.open_table(base).history().num_rows == 1


def test_write_keeps_callers_cached_frames(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "trips"
    write(rows(spark, ("a", "osaka", 1, 1), ("b", "lima", 2, 1)), base, TRIPS)
    frame = read(spark, base).selectExpr("id", "city", "v + 10 v", "ts").cache()
    assert frame.count() == 2
    write(frame, base, TRIPS, mode="overwrite")
    assert frame.storageLevel.useMemory
    assert {row["v"] for row in frame.collect()} == {11, 12}
    assert content(base) == [("a", "osaka", 11), ("b", "lima", 12)]
    frame.unpersist()


def test_rows_that_cannot_be_written_remove_no_table(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "trips"
    write(rows(spark, ("a", "osaka", 1, 1)), base, TRIPS)
    keyless = rows(spark, ("b", "osaka", 1, 1), (None, "osaka", 2, 1))
    with pytest.raises(SchemaMismatch, match="no record key"):
        write(keyless, base, TRIPS, mode="overwrite")
    failing = rows(spark, ("b", "osaka", 1, 1)).selectExpr("*", "assert_true(id = 'a') w")
    with pytest.raises(Exception, match="is not true"):
        write(
            failing.selectExpr("id", "city", "if(w is null, v, 0) v", "ts"),
            base,
            TRIPS,
            "overwrite",
        )
    assert content(base) == [("a", "osaka", 1)]


def test_queries_are_those_that_the_options_ask_for(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "trips"
    options = {**TRIPS, "hoodie.table.cdc.enabled": "true"}
    write(rows(spark, ("a", "osaka", 1, 1)), base, options)
    first = pyhudi.open_table(base).history().column("instant")[0].as_py()
    write(rows(spark, ("a", "osaka", 2, 2), ("b", "lima", 3, 1)), base, options, mode="append")
    history = pyhudi.open_table(base).history()
    done, last = history.column("completed")[1].as_py(), history.column("instant")[0].as_py()

    def found(**more: str) -> list[Any]:
        names = {"as_of": "as.of.instant", "begin": R + "begin.instanttime"}
        names |= {"query": "hoodie.datasource.query.type"}
        names |= {"form": "hoodie.datasource.query.incremental.format"}
        given = {names[name]: text for name, text in more.items()}
        collected: list[Any] = read(spark, base, given).collect()
        return collected

    assert sorted(row["v"] for row in found()) == [2, 3]
    assert {"_hoodie_commit_time", "_hoodie_record_key"} <= set(found()[0].asDict())
    assert [row["v"] for row in found(as_of=first)] == [1]
    assert sorted(row["v"] for row in found(query="incremental", begin=str(done))) == [2, 3]
    # A commit's requested time is a point in time before it, as in Hudi; for changes as well as in
    # Hudi, it is that commit.
    assert sorted(row["v"] for row in found(query="incremental", begin=last)) == [2, 3]
    assert not found(query="incremental", form="cdc", begin=last)
    changes = found(query="incremental", form="cdc", begin="000")
    assert sorted(row["op"] for row in changes) == ["i", "i", "u"]
    with pytest.raises(ConfigError, match=r"begin\.instanttime"):
        found(query="incremental")


def test_write_checks_options_against_table(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "trips"
    write(rows(spark, ("a", "osaka", 1, 1)), base, TRIPS)
    for name, value in {
        W + "recordkey.field": "city",
        W + "precombine.field": "v",
        W + "partitionpath.field": "",
        "hoodie.table.name": "other",
        W + "table.type": "MERGE_ON_READ",
        W + "hive_style_partitioning": "false",
    }.items():
        with pytest.raises(ConfigError, match="in the table"):
            write(rows(spark, ("b", "lima", 1, 1)), base, {**TRIPS, name: value}, mode="append")
    assert content(base) == [("a", "osaka", 1)]


def test_columns_are_named_as_the_session_compares_names(
    spark: SparkSession, tmp_path: Path
) -> None:
    base = tmp_path / "trips"
    write(rows(spark, ("a", "osaka", 1, 1)), base, {**TRIPS, W + "recordkey.field": "ID"})
    given = rows(spark, ("a", "osaka", 2, 2)).withColumnRenamed("v", "V")
    write(given, base, TRIPS, mode="append")
    assert content(base) == [("a", "osaka", 2)]
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(SchemaMismatch, match="is missing the columns v"):
            write(given, base, TRIPS, mode="append")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_missing_columns_get_nulls_where_an_option_says_so(
    spark: SparkSession, tmp_path: Path
) -> None:
    base = tmp_path / "trips"
    write(rows(spark, ("a", "osaka", 1, 1)), base, TRIPS)
    less = rows(spark, ("b", "osaka", 2, 2)).drop("v")
    with pytest.raises(SchemaMismatch, match="is missing the columns v"):
        write(less, base, TRIPS, mode="append")
    write(less, base, {**TRIPS, W + "reconcile.schema": "true"}, mode="append")
    assert content(base) == [("a", "osaka", 1), ("b", "osaka", None)]


@pytest.mark.parametrize("operation", ["upsert", "insert_overwrite"])
def test_fields_are_missed_at_any_depth(
    spark: SparkSession, tmp_path: Path, operation: str
) -> None:
    base, options = tmp_path / "t", {W + "recordkey.field": "id", W + "operation": operation}
    text = "SELECT 'a' id, named_struct('x', 1{0}) s, array(named_struct('x', 1{0})) l"
    write(spark.sql(text.format(", 'y', 2")), base, options)
    less = spark.sql(text.format(""))
    with pytest.raises(SchemaMismatch, match=r"is missing the columns s\.y, l\.element\.y"):
        write(less, base, options, mode="append")
    write(less, base, {**options, W + "reconcile.schema": "true"}, mode="append")
    assert pyhudi.open_table(base).scan().to_arrow().to_pylist() == [
        {"id": "a", "s": {"x": 1, "y": None}, "l": [{"x": 1, "y": None}]}
    ]


def test_rows_without_key_are_put_aside_on_demand(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "trips"
    given = rows(spark, ("a", "osaka", 1, 1), (None, "osaka", 2, 1), ("", "osaka", 3, 1))
    with pytest.raises(SchemaMismatch, match="null or empty"):
        write(given, base, TRIPS)
    assert not (base / ".hoodie").exists()
    aside: list[int] = []
    write(given, base, TRIPS, set_aside=lambda bad: aside.extend(row["v"] for row in bad.collect()))
    assert sorted(aside) == [2, 3]
    assert content(base) == [("a", "osaka", 1)]


def test_write_rejects_or_writes_each_row_once(spark: SparkSession, tmp_path: Path) -> None:
    base, aside = tmp_path / "t", []
    key = sf.when(sf.rand() < 0.5, sf.col("id").cast("string"))
    given = spark.range(1000).select(key.alias("id"))
    options = {W + "recordkey.field": "id"}
    write(given, base, options, set_aside=lambda bad: aside.append(bad.count()))
    assert len(ids(base)) + aside[0] == 1000
    assert not any(frame.storageLevel.useDisk for frame in (given, given.where(sf.lit(True))))


@pytest.mark.parametrize("form", ["latest_state", "cdc"])
def test_read_refuses_range_in_times_of_other_version(
    form: str, spark: SparkSession, tmp_path: Path
) -> None:
    base = tmp_path / "trips"
    write(rows(spark, ("a", "osaka", 1, 1)), base, {**TRIPS, "hoodie.table.cdc.enabled": "true"})
    asked = {"hoodie.datasource.query.type": "incremental", R + "begin.instanttime": "0"}
    asked["hoodie.datasource.query.incremental.format"] = form
    assert read(spark, base, {**asked, R + "incr.table.version": "8"}).count() == 1
    with pytest.raises(UnsupportedTableFeature, match=r"incr.table.version is 6"):
        read(spark, base, {**asked, R + "incr.table.version": "6"})


def test_create_accepts_ddl_and_struct_schema(spark: SparkSession, tmp_path: Path) -> None:
    ddl = "id string NOT NULL, city string, v long, ts long, tags array<string>, n map<string, int>"
    table = create_table(spark, tmp_path / "a", ddl, key="id", partition_by="city", order_by="ts")
    assert table.inspect.timeline().num_rows == 0
    given = spark.createDataFrame([("a", "osaka", 1, 1, ["x"], {"y": 2})], ddl)
    assert table.upsert(given).rows_inserted == 1
    assert table.scan().to_spark().collect() == given.collect()
    same = create_table(spark, tmp_path / "b", given.schema, key="id")
    assert same.schema == table.schema
    text = create_table(spark, tmp_path / "d", "id VARCHAR (5), `char` char(3)", key="id")
    assert text.schema == pa.schema([("id", pa.string()), ("char", pa.string())])
    types = StructType().add("id", VarcharType(5)).add("char", CharType(3))
    assert create_table(spark, tmp_path / "e", types, key="id").schema == text.schema
    with pytest.raises(UnsupportedTableFeature, match="'wait'"):
        create_table(spark, tmp_path / "c", "id string, wait interval day to second", key="id")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        (W + "operation", "bootstrap", "does not write a DataFrame"),
        (W + "keygenerator.class", "com.example.Mine", "not one of Hudi's"),
        (W + "payload.class", "com.example.Mine", "cannot set for a new table"),
        (W + "insert.drop.duplicates", "true", "insert.dup.policy=drop"),
        ("hoodie.bulkinsert.sort.mode", "PARTITION_PATH_REPARTITION", "GLOBAL_SORT"),
    ],
)
def test_unsupported_option_is_refused_by_name(name: str, value: str, said: str) -> None:
    with pytest.raises(UnsupportedTableFeature, match=re.escape(name)) as caught:
        WriteRequest.of({**TRIPS, name: value})
    assert said in str(caught.value)


def test_names_that_nobody_knows_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"hoodie\.parquet\.max\.file\.size"):
        WriteRequest.of({"hoodie.parquet.max.filesize": "1"})
    with pytest.raises(UnsupportedTableFeature, match="read_optimized"):
        ReadRequest.of({"hoodie.datasource.merge.type": "skip_merge"})


def test_view_type_means_query_type() -> None:
    view, query = "hoodie.datasource.view.type", "hoodie.datasource.query.type"
    begin = {R + "begin.instanttime": "0"}
    for said, meant in (
        ("read_optimized", "snapshot"),
        ("REALTIME", "snapshot"),
        ("incremental", "incremental"),
    ):
        assert ReadRequest.of({view: said, **begin}).query == meant
        assert ReadRequest.of({view: said, query: "read_optimized"}).query == "read_optimized"
    with pytest.raises(ConfigError, match=re.escape(view)):
        ReadRequest.of({view: "snapshot"})


@pytest.mark.parametrize(
    "name",
    [
        "hoodie.datasource.hive_sync.databse",
        "hoodie.datasource.meta.sync.glue.database_name",
        "hoodie.datasource.meta_sync.anything",
        "hoodie.meta.sync.anything",
        "hoodie.meta_sync.anything",
        "hoodie.datasource.hive_sync.use_pre_apache_input_format",
    ],
)
def test_names_about_catalogs_that_nobody_knows_are_refused_where_one_is_told(name: str) -> None:
    for told in ("hoodie.datasource.meta.sync.enable", "hoodie.datasource.hive_sync.enable"):
        with pytest.raises(ConfigError, match=re.escape(name)):
            WriteRequest.of({**TRIPS, name: "x", told: " TRUE "})
        assert name not in WriteRequest.of({**TRIPS, name: "x", told: "false"}).handle
        assert ReadRequest.of({name: "x", told: "true"}).query == "snapshot"


def test_names_about_catalogs_that_change_nothing_pass() -> None:
    harmless = {
        "hoodie.datasource.meta.sync.glue.partition_change_parallelism": "4",
        "hoodie.datasource.hive_sync.bucket_sync_spec": "x",
        "hoodie.datasource.hive_sync.use_pre_apache_input_format": False,
    }
    told = {"hoodie.datasource.hive_sync.enable": True, "hoodie.datasource.hive_sync.table": "t"}
    assert harmless.keys().isdisjoint(WriteRequest.of({**harmless, **told}).handle)


PAYLOAD = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
COMPLEX = "org.apache.hudi.keygen.ComplexKeyGenerator"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({W + "recordkey.field": "a,b"}, {"hoodie.table.recordkey.fields": "b,a"}, "a, b"),
        ({W + "partitionpath.field": "a"}, {"hoodie.table.partition.fields": ""}, "a"),
        ({"hoodie.table.ordering.fields": "a"}, {W + "precombine.field": "b"}, "a"),
        ({W + "table.type": "MERGE_ON_READ"}, {"hoodie.table.type": "COPY_ON_WRITE"}, None),
        ({"hoodie.write.table.version": 9}, {"hoodie.table.version": 8}, " 9"),
        ({"hoodie.table.name": "a"}, {W + "table.name": "b"}, "a"),
        ({W + "keygenerator.type": "SIMPLE"}, {W + "keygenerator.class": COMPLEX}, None),
        (
            {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"},
            {W + "payload.class": PAYLOAD},
            None,
        ),
        (
            {"hoodie.clustering.inline": True},
            {"hoodie.datasource.clustering.inline.enable": False},
            "TRUE",
        ),
    ],
)
def test_conflicting_aliases_are_refused(
    one: dict[str, Any], other: dict[str, Any], same: str | None
) -> None:
    (first,), (second,) = one, other
    for given in ({**one, **other}, {**other, **one}):
        with pytest.raises(ConfigError, match="set only one") as caught:
            WriteRequest.of(given)
        assert first in str(caught.value)
        assert second in str(caught.value)
    WriteRequest.of(one if same is None else {**one, second: same})


def test_names_of_one_key_generator_agree_by_what_they_mean() -> None:
    request = WriteRequest.of(
        {W + "keygenerator.type": "complex_avro", W + "keygenerator.class": COMPLEX}
    )
    assert request.table_options == {"hoodie.table.keygenerator.type": "COMPLEX"}


def test_create_accepts_orc() -> None:
    request = WriteRequest.of(
        {"hoodie.table.base.file.format": "ORC", "hoodie.orc.stripe.size": "1000"}
    )
    assert request.table_options == {"hoodie.table.base.file.format": "ORC"}
    assert request.handle == {"hoodie.orc.stripe.size": "1000"}


@pytest.mark.parametrize("given", [{5: "x"}, {"hoodie.table.name": None}, [("a", "b")]])
def test_options_need_name_and_value(given: Any) -> None:
    for request in (WriteRequest, ReadRequest):
        with pytest.raises(ConfigError):
            request.of(given)


def test_refusals_have_hint_and_harmless_values_pass() -> None:
    for option in OPTIONS:
        if option.fate != "refused":
            continue
        name = as_tuple(option.names)[-1].replace("*", "x")
        side: Any = "read" if option.side == "read" else "write"
        with pytest.raises(UnsupportedTableFeature, match=re.escape(name)) as caught:
            check_hudi_options({name: "what nobody wants"}, side)
        assert caught.value.hint
        for value in option.harmless:
            assert check_hudi_options({name: value}, side) == {}


def test_pyhudi_options_have_one_meaning() -> None:
    """Of payload classes `write` takes those that are merge modes, `create_table` all of Hudi's."""
    shadowed = {name for name in (*KNOWN_OPTIONS, *CREATE_OPTIONS) if decision(name) is not None}
    payloads = {W + "payload.class", "hoodie.compaction.payload.class"}
    assert shadowed == {W + "partitionpath.field", *payloads}
    names = [name for option in OPTIONS for name in as_tuple(option.names)]
    assert len(set(names)) == len(names) > 120


def test_options_page_lists_all_operations() -> None:
    page = PAGE.read_text(encoding="utf-8")
    operations = re.findall(r"^\| `(\w+)` \| `\w+`[,;: |]", page, re.MULTILINE)
    assert sorted(set(operations) - {"append", "overwrite", "ignore"}) == sorted(OPERATIONS)
