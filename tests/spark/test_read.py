"""Tables that Apache Hudi wrote read the same through Spark tasks, with the wheel only."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession

import pyhudi
from pyhudi.errors import (
    ConfigError,
    CorruptTable,
    SchemaMismatch,
    TableNotFound,
    UnsupportedTableFeature,
)
from pyhudi.schema import payloads
from pyhudi.spark import SparkEngine, read, read_incremental
from pyhudi.spark.types import to_wire, wire_schema
from tests.helpers.rows import canonical_rows, difference
from tests.helpers.tables import Case, GoldenTables, cases
from tests.spark.arrow import arrow_table

pytestmark = pytest.mark.filterwarnings("ignore")  # PySpark's own warnings are not ours to mend

TABLES = [
    "v6_mor_part_avro",
    "v8_mor_part_avro",
    "v9_mor_part_avro",
    "v6_cow_all_types",
    "v9_cow_all_types",
    "v9_mor_all_types",
    "v9_mor_consistent",
    "v9_mor_orc",
    "v6_cow_orc",
    "v9_cow_no_partition_columns",
]
CASES = [
    case
    for case in cases()
    # Of a table's many reads in the past, one of each kind.
    if case.table in TABLES and case.number in (None, 1)
]
PARTITIONED = "v9_mor_part_avro"


def local(base: Path, **arguments: Any) -> pa.Table:
    """What the embedded engine reads, in the types that Spark has."""
    table = pyhudi.open_table(base).scan(**arguments).to_arrow()
    wire = wire_schema(table.schema)
    return pa.Table.from_batches([to_wire(batch, wire) for batch in table.to_batches()], wire)


def assert_same(frame: DataFrame, wanted: pa.Table) -> None:
    found = arrow_table(frame)
    assert found.schema.names == wanted.schema.names
    assert found.schema.types == wanted.schema.types
    assert difference(canonical_rows(found), canonical_rows(wanted)) is None


@pytest.mark.parametrize("case", CASES, ids=str)
def test_reads_what_hudi_reads(spark: SparkSession, golden: GoldenTables, case: Case) -> None:
    base = golden.unpack(case.table)
    if case.kind == "incremental":
        frame = read_incremental(
            spark, base, case.asked["begin"], case.asked["end"], meta_fields=True
        )
    else:
        optimized = case.kind == "read_optimized"
        as_of = case.asked.get("as_of")
        frame = read(spark, base, meta_fields=True, read_optimized=optimized, as_of=as_of)
    assert case.mismatch(arrow_table(frame)) is None


@pytest.mark.spark35
@pytest.mark.parametrize("name", TABLES)
def test_reads_what_the_embedded_engine_reads(
    spark: SparkSession, golden: GoldenTables, name: str
) -> None:
    base = golden.unpack(name)
    assert_same(read(spark, base), local(base))


@pytest.mark.spark35
@pytest.mark.parametrize(
    "where",
    ["age > 30 AND city = 'osaka'", [("age", "<=", 30)], pc.field("age") > 40, "name IS NULL"],
    ids=["sql", "tuples", "expression", "nothing"],
)
def test_filters(spark: SparkSession, golden: GoldenTables, where: Any) -> None:
    base = golden.unpack(PARTITIONED)
    assert_same(read(spark, base, where=where), local(base, where=where))


def test_columns_in_the_order_asked_for_beside_a_filter_on_another(
    spark: SparkSession, golden: GoldenTables
) -> None:
    base = golden.unpack(PARTITIONED)
    arguments: dict[str, Any] = {
        "columns": ["ts", "_hoodie_record_key", "id"],
        "where": "age > 20",
    }
    frame = read(spark, base, **arguments)
    assert frame.columns == arguments["columns"]
    assert_same(frame, local(base, **arguments))


def test_small_slices_are_packed(spark: SparkSession, golden: GoldenTables) -> None:
    base = golden.unpack(PARTITIONED)
    slices = pyhudi.open_table(base).scan().plan().num_rows
    assert 2 <= read(spark, base).rdd.getNumPartitions() < slices
    most = "spark.sql.files.maxPartitionBytes"
    spark.conf.set(most, "1b")
    try:
        assert read(spark, base).rdd.getNumPartitions() == slices
    finally:
        spark.conf.unset(most)


@pytest.mark.spark35
@pytest.mark.parametrize("limit", [0, 1, 7, 1000])
def test_limit(spark: SparkSession, golden: GoldenTables, limit: int) -> None:
    base = golden.unpack(PARTITIONED)
    everything = canonical_rows(local(base))
    found = canonical_rows(arrow_table(read(spark, base, limit=limit)))
    assert len(found) == min(limit, len(everything))
    assert set(found) <= set(everything)


def test_read_empty_table_returns_schema(spark: SparkSession, golden: GoldenTables) -> None:
    base = golden.unpack("v9_cow_empty")
    frame = read(spark, base)
    assert frame.columns == pyhudi.open_table(base).schema.names
    assert frame.count() == 0


def test_spark_goes_on_with_the_rows(spark: SparkSession, golden: GoldenTables) -> None:
    base = golden.unpack(PARTITIONED)
    grouped = read(spark, base).groupBy("city").count().collect()
    wanted = pa.TableGroupBy(local(base), "city").aggregate([("id", "count")]).to_pylist()
    assert {row["city"]: row["count"] for row in grouped} == {
        row["city"]: row["id_count"] for row in wanted
    }


def test_read_resolves_relative_path_on_driver(
    spark: SparkSession, golden: GoldenTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = golden.unpack(PARTITIONED)
    wanted = local(base)
    monkeypatch.chdir(base.parent)
    assert_same(read(spark, base.name), wanted)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"columns": ["nope"]}, SchemaMismatch),
        ({"where": "nope = 1"}, SchemaMismatch),
        ({"limit": -1}, ConfigError),
        ({"options": {"hoodie.nope": "1"}}, ConfigError),
    ],
)
def test_wrong_arguments_are_refused_without_a_job(
    spark: SparkSession, golden: GoldenTables, arguments: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        read(spark, golden.unpack(PARTITIONED), **arguments)


def test_read_raises_where_no_table_exists(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TableNotFound):
        read(spark, tmp_path / "nothing")


def test_read_refuses_unsupported_table_by_name(spark: SparkSession, tmp_path: Path) -> None:
    from tests.helpers.tables import unpack

    base = unpack("v9_cow_nonpart", tmp_path)
    with (base / ".hoodie" / "hoodie.properties").open("a", encoding="utf-8") as properties:
        properties.write("hoodie.table.base.file.format=LANCE\n")
    with pytest.raises(UnsupportedTableFeature, match=r"hoodie\.table\.base\.file\.format"):
        read(spark, base)


@pytest.mark.spark35
def test_read_sends_registered_merger_to_executors(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.helpers.tables import unpack

    def lowest_ts(older: pa.RecordBatch, newer: pa.RecordBatch) -> pa.RecordBatch:
        ts = pc.min_element_wise(older["ts"], newer["ts"])
        return newer.set_column(newer.schema.get_field_index("ts"), "ts", ts)

    strategy = "1897ef5f-18bc-4557-939c-9d6a8afd1519"
    plain, base = (unpack("v9_mor_commit_time", tmp_path / name) for name in ("plain", "custom"))
    with (base / ".hoodie" / "hoodie.properties").open("a", encoding="utf-8") as file:
        file.write(f"hoodie.record.merge.mode=CUSTOM\nhoodie.record.merge.strategy.id={strategy}\n")
    with pytest.raises(UnsupportedTableFeature, match=strategy):
        read(spark, base)
    monkeypatch.setitem(payloads._registered, strategy, (lowest_ts, None))
    assert_same(read(spark, base), local(base))
    assert canonical_rows(local(base)) != canonical_rows(local(plain))


@pytest.mark.spark35
def test_read_names_damaged_file(spark: SparkSession, tmp_path: Path, golden: GoldenTables) -> None:
    from tests.helpers.tables import unpack

    base = unpack("v9_cow_nonpart", tmp_path)
    for path in base.rglob("*.parquet"):
        path.write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(CorruptTable, match=r"\.parquet"):
        read(spark, base).collect()


def reckoned(frame: DataFrame) -> int:
    """What Spark takes the size of a DataFrame for."""
    plan = frame._jdf.queryExecution().optimizedPlan()  # noqa: SLF001 - told to nobody else
    return int(str(plan.stats().sizeInBytes()))


def joins(frame: DataFrame) -> set[str]:
    plan = frame._jdf.queryExecution().sparkPlan().toString()  # noqa: SLF001
    return {name for name in ("BroadcastHashJoin", "SortMergeJoin") if name in plan}


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_spark_is_told_how_large_a_table_is(spark: SparkSession, tmp_path: Path, kind: Any) -> None:
    count = 20_000
    text = [sha256(str(n).encode()).hexdigest() for n in range(count)]
    data = pa.table({"id": range(count), "part": [n % 3 for n in range(count)], "text": text})
    options = {"hoodie.metadata.enable": "false"}
    table = pyhudi.create_table(
        tmp_path, data, key="id", partition_by="part", type=kind, options=options
    )
    table.upsert(data.slice(0, 5))
    slices = table.scan().plan()
    size = pc.sum(slices["base_size"]).as_py() + pc.sum(slices["log_size"]).as_py()
    whole = read(spark, tmp_path)
    assert size <= reckoned(whole) < 2 * size
    assert reckoned(read(spark, tmp_path, columns=["id"])) < reckoned(whole)
    assert reckoned(whole.limit(3)) < 1000
    assert whole.count() == count
    assert {row[0] for row in whole.select("id").collect()} == set(range(count))
    other = read(spark, tmp_path, columns=["id"], where="part = 1").withColumnRenamed("id", "one")
    pair = other.join(whole, whole["id"] == other["one"])
    threshold = "spark.sql.autoBroadcastJoinThreshold"
    try:
        spark.conf.set(threshold, str(size // 100))
        assert joins(pair) == {"SortMergeJoin"}
        spark.conf.set(threshold, str(size * 10))
        again = whole.join(other, whole["id"] == other["one"])
        assert joins(again) == {"BroadcastHashJoin"}
        assert again.count() == pair.count() == len([n for n in range(count) if n % 3 == 1])
    finally:
        spark.conf.unset(threshold)


def test_changes_and_differences_have_a_size(spark: SparkSession, tmp_path: Path) -> None:
    text = [sha256(str(n).encode()).hexdigest() for n in range(1000)]
    data = pa.table({"id": range(1000), "text": text})
    options = {"hoodie.table.cdc.enabled": "true"}
    first = pyhudi.create_table(tmp_path, data, key="id", options=options)
    before = first.state.timeline.commits[-1].requested
    after = first.upsert(data.set_column(1, "text", pa.array(text[::-1]))).instant
    table = pyhudi.open_table(tmp_path, engine=SparkEngine(spark))
    changes, diff = table.changes().to_spark(), table.diff(before, after).to_spark()
    assert (changes.count(), diff.count()) == (2000, 1000)
    size = pc.sum(table.scan().plan()["base_size"]).as_py()
    assert reckoned(changes) > size
    assert reckoned(diff) > size
