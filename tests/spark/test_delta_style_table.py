"""The Delta-style table: Spark's conditions choose the changed rows, in one commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import pyhudi
from pyhudi.errors import ConfigError, MissingFile, SchemaMismatch, UnsupportedTableFeature
from pyhudi.spark import SparkEngine, SparkHudiTable, create_table, delta_style_dml, read, sql
from pyhudi.spark.delta_style_merge_frame import OLDER, MergeTarget, SparkClause, merge_frame
from pyhudi.spark.engine import SMALL_CALL_OPTION
from tests.helpers.table_builder import TableBuilder, numbered
from tests.helpers.tables import unpack

pytestmark = [pytest.mark.spark35, pytest.mark.filterwarnings("ignore")]

TABLE = TableBuilder(
    {
        "id": (pa.string(), numbered()),
        "part": (pa.string(), lambda number: f"p{number % 2}"),
        "v": (pa.int64(), 1),
        "at": (pa.timestamp("ms", "UTC"), lambda number: number * 1000),
    },
    partition_by="part",
    metadata=False,
)
Row = tuple[str, int | None]


def made(base: Path, count: int = 6, **more: Any) -> Path:
    TABLE.make(base, first=range(count), **more)
    return base


def content(base: Path) -> list[Row]:
    found = pyhudi.open_table(base).scan(["id", "v"]).to_arrow().to_pylist()
    return sorted((row["id"], row["v"]) for row in found)


def source(spark: SparkSession, *given: tuple[str, str, int | None]) -> DataFrame:
    return spark.createDataFrame(list(given), "id string, part string, v long")


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_delete_and_update_take_conditions_of_spark(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    base = made(tmp_path / "t", kind=kind)
    table = SparkHudiTable.forPath(spark, base)
    result = table.delete("regexp_like(id, '^k[01]$') AND year(at) = 1969")
    assert (result.rows_deleted, content(base)[0]) == (2, ("k2", 1))
    result = table.alias("t").update(
        sf.col("t.part") == "p0", {"t.v": "t.v + length(id)", "AT": sf.lit(None)}
    )
    assert result.rows_updated == 2
    assert content(base) == [("k2", 3), ("k3", 1), ("k4", 3), ("k5", 1)]
    stored = pyhudi.open_table(base).scan(["at"], "id = 'k3'").to_arrow()
    assert stored.column("at").to_pylist()[0].timestamp() == 3
    assert not table.update("v > 100", {"v": 0}).committed
    assert table.delete().rows_deleted == 4


@pytest.mark.parametrize("small_bytes", ["0", "1000000"])
@pytest.mark.parametrize("name", ["n", "row"])
def test_change_takes_table_whose_only_column_is_its_key(
    spark: SparkSession, tmp_path: Path, name: str, small_bytes: str
) -> None:
    """Whatever the name of the column is: pyhudi's own columns have reserved names."""
    schema = pa.schema([(name, pa.string())])
    pyhudi.create_table(tmp_path, schema, key=name).insert(pa.table([["a", "b", "c"]], schema))
    spark.conf.set(SMALL_CALL_OPTION, small_bytes)
    table = SparkHudiTable.forPath(spark, tmp_path)
    assert table.delete(f"upper({name}) = 'A'").rows_deleted == 1
    sql(spark, f"DELETE FROM hudi.`{tmp_path}` t WHERE t.{name} = concat('', 'b')")
    source = spark.createDataFrame([("c",), ("d",)], f"{name} string")
    merge = table.alias("t").merge(source.alias("s"), f"t.{name} = s.{name}")
    assert merge.whenNotMatchedInsertAll().execute().rows_inserted == 1
    left = pyhudi.open_table(tmp_path).scan().to_arrow()
    assert sorted(left[name].to_pylist()) == ["c", "d"]


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_delete_by_comparisons_shuffles_nothing(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    """The tasks that read the rows find their keys; a second job writes the files."""
    base = made_with_unique_keys(tmp_path / "t", kind=kind)
    table = SparkHudiTable.forPath(spark, base)
    assert table.delete(sf.col("v").eqNullSafe(1) & (sf.col("id") < "k3")).rows_deleted == 3
    assert content(base) == [("k3", 1), ("k4", 1), ("k5", 1)]
    assert len(jobs_of_changes(spark, base)) <= 3
    assert not table.delete("v > 7").committed


@pytest.mark.on_executors
def test_delete_of_many_keys_shuffles_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta_style_dml, "_MAX_KEY_BYTES", 2)
    base = made_with_unique_keys(tmp_path / "t")
    assert SparkHudiTable.forPath(spark, base).delete("id < 'k3'").rows_deleted == 3
    assert content(base) == [("k3", 1), ("k4", 1), ("k5", 1)]
    assert len(jobs_of_changes(spark, base)) > 3


def made_with_unique_keys(base: Path, **more: Any) -> Path:
    """A table whose commits prove that each key is in it once: an insert does not."""
    TABLE.make(base, **more).upsert(TABLE.rows(range(6)))
    return base


def jobs_of_changes(spark: SparkSession, base: Path) -> list[int]:
    group = f"pyhudi change: {pyhudi.open_table(base).uri}"
    return list(spark.sparkContext.statusTracker().getJobIdsForGroup(group))


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_merge_applies_first_matching_clause(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    base = made(tmp_path / "t", kind=kind)
    given = source(spark, ("k0", "p0", 5), ("k1", "p1", 6), ("k2", "p0", 7), ("k8", "p0", 8))
    given = given.union(source(spark, ("k9", "p1", 9)))
    merge = SparkHudiTable.forPath(spark, base).alias("t").merge(given.alias("s"), "t.id = s.id")
    result = (
        merge.whenMatchedDelete("s.v = 5")
        .whenMatchedUpdate(sf.col("s.v") == 6, {"v": "s.v * 10 + t.v"})
        .whenMatchedUpdate(set={"v": sf.col("s.v")})
        .whenNotMatchedInsert("s.v = 8", {"id": "s.id", "part": "s.part", "v": "s.v"})
        .whenNotMatchedBySourceUpdate("t.id = 'k3'", {"v": "-t.v"})
        .whenNotMatchedBySourceDelete("t.id = 'k4'")
        .execute()
    )
    assert content(base) == [("k1", 61), ("k2", 7), ("k3", -1), ("k5", 1), ("k8", 8)]
    assert (result.rows_inserted, result.rows_updated, result.rows_deleted) == (1, 3, 2)
    assert pyhudi.open_table(base).history().num_rows == 2


def test_merge_star_takes_all_source_columns(spark: SparkSession, tmp_path: Path) -> None:
    base = made(tmp_path / "t", 2)
    given = source(spark, ("k0", "p0", 5), ("k7", "p1", 6)).withColumn("at", sf.lit(None))
    given = given.withColumn("at", sf.col("at").cast("timestamp")).withColumnRenamed("v", "V")
    merge = SparkHudiTable.forPath(spark, base).alias("t").merge(given.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert content(base) == [("k0", 5), ("k1", 1), ("k7", 6)]
    with pytest.raises(SchemaMismatch, match="does not have the column 'at'"):
        merge_of(spark, base, given.drop("at")).whenMatchedUpdateAll().execute()


def merge_of(spark: SparkSession, base: Path, given: DataFrame, on: str = "t.id = s.id") -> Any:
    return SparkHudiTable.forPath(spark, base).alias("t").merge(given.alias("s"), on)


def test_several_source_rows_of_one_target_row_are_an_error(
    spark: SparkSession, tmp_path: Path
) -> None:
    base = made(tmp_path / "t", 3)
    given = source(spark, ("k0", "p0", 5), ("k0", "p0", 6))
    with pytest.raises(SchemaMismatch, match="several rows of the source match"):
        merge_of(spark, base, given).whenMatchedUpdate(set={"v": "s.v"}).execute()
    with pytest.raises(SchemaMismatch, match="several rows of the source match"):
        merge_of(spark, base, given).whenMatchedDelete("s.v > 0").execute()
    assert content(base) == [("k0", 1), ("k1", 1), ("k2", 1)]
    merge_of(spark, base, given).whenMatchedUpdate("s.v = 6", {"v": "s.v"}).execute()
    assert content(base)[0] == ("k0", 6)
    merge_of(spark, base, given).whenMatchedDelete().execute()
    assert content(base) == [("k1", 1), ("k2", 1)]


def test_merge_refuses_condition_without_key(spark: SparkSession, tmp_path: Path) -> None:
    base = made(tmp_path / "t", 3, order_by="v")
    before = content(base)
    table = SparkHudiTable.forPath(spark, base)
    given = source(spark, ("k0", "p0", 5))
    insert = {"id": "s.id", "part": "s.part", "v": "s.v"}
    with pytest.raises(SchemaMismatch, match="existing keys"):
        merge_of(spark, base, given, "t.v = s.v").whenNotMatchedInsert(values=insert).execute()
    for change in ({"id": "'x'"}, {"part": "'p9'"}):
        with pytest.raises(ConfigError, match="key or partition columns"):
            table.update("id = 'k1'", change)
    with pytest.raises(ConfigError, match="smaller values"):
        table.update("id = 'k1'", {"v": "v - 1"})
    with pytest.raises(SchemaMismatch, match="no column 'w'"):
        table.update("id = 'k1'", {"w": "1"})
    with pytest.raises(ConfigError, match="sets no column"):
        table.update("id = 'k1'")
    with pytest.raises(ConfigError, match="the column 'v' twice"):
        table.update("id = 'k1'", {"v": "v + 1", "V": "v + 2"})
    assert content(base) == before
    assert table.update("id = 'k1'", {"id": "concat('k', 1)", "v": "v + 1"}).rows_updated == 1


def test_merge_compares_values_as_stored(spark: SparkSession) -> None:
    """Were it worked out twice, a row could lose unseen."""
    target = spark.range(100).selectExpr("string(id) id", "0L v")
    facts = MergeTarget(("id", "v"), ("id",), ("v",))
    clause = SparkClause("matched", "update", None, {"v": "floor(rand() * 9) - 4"})
    found = merge_frame(target, None, None, facts, [clause]).collect()
    assert [row[OLDER] for row in found] == [row["v"] < 0 for row in found]
    assert 0 < sum(row[OLDER] for row in found) < 100


@pytest.mark.parametrize("null_loses", [False, True])
@pytest.mark.parametrize(
    ("kind", "below", "above"),
    [
        ("bigint", "-5", "5"),
        ("decimal(9,2)", "-0.01", "0.01"),
        ("double", "-1e-9", "1e-9"),
        ("date", "1969-12-31", "1970-01-02"),
        ("timestamp", "1969-12-31 00:00:00Z", "1970-01-01 00:00:01Z"),
        ("timestamp_ntz", "1969-12-31 23:59:59", "1970-01-01 00:00:01"),
        ("string", "", "a"),
    ],
)
def test_merge_compares_null_ordering_values(
    spark: SparkSession, kind: str, below: str, above: str, *, null_loses: bool
) -> None:
    """As zero, where the type has one; on copy-on-write a stored one loses."""
    texts = [None, below, above]
    pairs = [(f"{old}", old, new) for old in texts for new in texts]
    target = spark.createDataFrame(pairs, "id string, v string, new string")
    target = target.selectExpr("id", f"CAST(v AS {kind}) v", f"CAST(new AS {kind}) new")
    facts = MergeTarget(("id", "v", "new"), ("id",), ("v",), null_loses=null_loses)
    clause = SparkClause("matched", "update", None, {"v": "new", "new": "new"})
    found = merge_frame(target, None, None, facts, [clause]).collect()
    rank = {None: 0, below: 1 if kind == "string" else -1, above: 2}
    wanted = [rank[new] < rank[old] and not (null_loses and old is None) for _, old, new in pairs]
    assert [row[OLDER] for row in found] == wanted


@pytest.mark.parametrize("name", ["v9_mor_payload_partial_update", "v6_mor_payload_partial_update"])
def test_merge_refuses_value_that_means_none(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    base = unpack(name, tmp_path)
    table = SparkHudiTable.forPath(spark, base)
    row = pyhudi.open_table(base).scan().to_arrow().to_pylist()[0]
    this = f"id = '{row['id']}'"
    with pytest.raises(UnsupportedTableFeature, match="None in column 'name'"):
        table.update(this, {"name": sf.lit(None)})
    given = spark.createDataFrame([(row["id"], None)], "id string, name string")
    merge = pyhudi.open_table(base, engine=SparkEngine(spark)).merge(given)
    with pytest.raises(UnsupportedTableFeature, match="None in column 'name'"):
        merge.when_matched_update({"name": "source.name"}).execute()
    with pytest.raises(ConfigError, match="smaller values"):
        table.update(this, {"ts": "ts - 1"})
    assert table.update(this, {"name": "'new'", "ts": "ts + 1"}).rows_updated == 1


def test_merge_refuses_to_set_debezium_sequence(spark: SparkSession, tmp_path: Path) -> None:
    table = SparkHudiTable.forPath(spark, unpack("v6_mor_payload_mysql_debezium", tmp_path))
    with pytest.raises(UnsupportedTableFeature, match="an update of '_event_seq'"):
        table.update(None, {"_event_seq": "'1.2'"})


def test_times_with_and_without_zone_become_each_other_by_the_sessions(
    spark: SparkSession, tmp_path: Path
) -> None:
    base = tmp_path / "t"
    ddl = "id string, at timestamp, local timestamp_ntz, many array<struct<at: timestamp>>"
    create_table(spark, base, ddl, key="id")
    source = spark.sql(
        "SELECT 'a' id, TIMESTAMP_NTZ '2024-06-01 00:00:00' at, TIMESTAMP '2024-06-02 00:00:00'"
        " local, array(struct(TIMESTAMP_NTZ '2024-06-03 00:00:00' at)) many"
    )
    merge = SparkHudiTable.forPath(spark, base).alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenNotMatchedInsertAll().execute()
    shown = read(spark, base).selectExpr("string(at)", "string(local)", "string(many[0].at)")
    assert [*shown.collect()[0]] == [f"2024-06-0{day} 00:00:00" for day in (1, 2, 3)]


def test_missing_file_raises_missing_file(spark: SparkSession, tmp_path: Path) -> None:
    base = made(tmp_path / "t", kind="mor", metadata=True)
    pyhudi.open_table(base).upsert(TABLE.rows(range(6), v=2))
    for log in base.glob("*/.*.log.*"):
        log.unlink()
    with pytest.raises(MissingFile, match=r"Call refresh\(\)") as raised:
        SparkHudiTable.forPath(spark, base).update("v = 2", {"v": "3"})
    assert ".log." in str(raised.value.file)


def test_copies_of_a_key_are_not_changed_unasked(spark: SparkSession, tmp_path: Path) -> None:
    base = made(tmp_path / "t", 2)
    pyhudi.open_table(base).insert(TABLE.rows(range(1), v=2))
    table = SparkHudiTable.forPath(spark, base)
    with pytest.raises(SchemaMismatch, match="cannot distinguish them"):
        table.delete("v = 2")
    with pytest.raises(SchemaMismatch, match="cannot distinguish them"):
        table.update("v = 2", {"v": "3"})
    assert content(base) == [("k0", 1), ("k0", 2), ("k1", 1)]
    table.delete("id = 'k0'")
    assert content(base) == [("k1", 1)]


def test_rows_without_keys_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    base = made(tmp_path / "t", 2, key=None)
    with pytest.raises(UnsupportedTableFeature, match="recordkey"):
        SparkHudiTable.forPath(spark, base).delete("v = 1")


def test_frame_is_replanned_after_concurrent_commit(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = made(tmp_path / "t", 2)
    opened: Any = vars(delta_style_dml)["open_write"]
    others = [5]

    def overtaken(*args: Any) -> Any:
        if others:
            pyhudi.open_table(base).update("id = 'k0'", {"v": others.pop()})
        return opened(*args)

    monkeypatch.setattr(delta_style_dml, "open_write", overtaken)
    SparkHudiTable.forPath(spark, base).update("id = 'k0'", {"v": "v + 1"})
    assert content(base) == [("k0", 6), ("k1", 1)]


def test_table_shows_history_and_restores(spark: SparkSession, tmp_path: Path) -> None:
    base = made(tmp_path / "t", 3)
    table = SparkHudiTable.forPath(spark, base)
    assert SparkHudiTable.isHudiTable(spark, base)
    assert not SparkHudiTable.isHudiTable(spark, tmp_path / "none")
    first = table.history(1).collect()[0]["instant"]
    table.delete("id = 'k0'")
    assert [row["operation"] for row in table.history().collect()] == ["DELETE", "INSERT"]
    detail = table.detail().collect()[0]
    assert (detail["recordKeys"], detail["type"], detail["numPartitions"]) == (["id"], "cow", 2)
    assert table.toDF().count() == 2
    with pytest.raises(ConfigError, match="instant"):
        table.restoreToVersion(3)
    table.restoreToVersion(first)
    assert len(content(base)) == 3
    assert table.optimize().executeCompaction().service == "cluster"
    assert table.clean().service == "clean"
