"""The format "pyhudi" of Spark 4 reads what the embedded engine reads."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession

import pyhudi
from pyhudi.errors import ConfigError, HistoryUnavailable, SchemaMismatch
from pyhudi.spark import register_source
from pyhudi.spark.source_filters import pushable
from pyhudi.spark.types import to_wire, wire_schema
from tests.helpers.rows import canonical_rows, difference
from tests.helpers.tables import GoldenTables
from tests.spark.arrow import arrow_table

needs_spark4 = pytest.mark.skipif(
    int(pyspark.__version__.split(".")[0]) < 4, reason="Spark 3.5 has no data sources in Python"
)
pytestmark = pytest.mark.filterwarnings("ignore")  # PySpark's own warnings are not ours to mend

PARTITIONED = "v9_mor_part_avro"
CHANGED = "v9_mor_cdc_data_before_after"


@pytest.fixture(scope="module")
def source(spark: SparkSession) -> SparkSession:
    register_source(spark)
    return spark


def load(spark: SparkSession, base: Path, **options: Any) -> DataFrame:
    return spark.read.format("pyhudi").options(**options).load(str(base))


def assert_same(frame: DataFrame, wanted: pa.Table) -> None:
    found = arrow_table(frame)
    wire = wire_schema(wanted.schema)
    cast = pa.Table.from_batches([to_wire(batch, wire) for batch in wanted.to_batches()], wire)
    assert found.schema.names == wanted.schema.names
    assert difference(canonical_rows(found), canonical_rows(cast)) is None


@needs_spark4
@pytest.mark.parametrize("name", ["v6_mor_part_avro", "v9_cow_all_types", "v9_cow_empty"])
def test_source_reads_snapshot(source: SparkSession, golden: GoldenTables, name: str) -> None:
    base = golden.unpack(name)
    assert_same(load(source, base), pyhudi.open_table(base).scan().to_arrow())


@needs_spark4
def test_register_source_accepts_second_session(
    source: SparkSession, golden: GoldenTables, request: pytest.FixtureRequest
) -> None:
    """It works in any order: PySpark makes a session active that creates a DataFrame."""
    request.addfinalizer(lambda: source.createDataFrame([], "id int"))
    base = golden.unpack(PARTITIONED)
    first, second = source.newSession(), source.newSession()
    register_source(first, hudi=True)
    register_source(second, hudi=True)
    second.createDataFrame([(1,)], "id int")
    register_source(first, hudi=True)
    assert SparkSession.getActiveSession() is second
    count = pyhudi.open_table(base).count()
    for session in (first, second):
        for name in ("pyhudi", "hudi"):
            assert session.read.format(name).load(str(base)).count() == count


@needs_spark4
def test_source_view_keeps_first_snapshot(source: SparkSession, tmp_path: Path) -> None:
    """Spark keeps what it planned, as the docs say: should it do so no more, they are wrong."""
    base, schema = tmp_path / "t", pa.schema([("id", pa.string())])
    pyhudi.create_table(base, schema, key="id")
    source.sql(f"CREATE OR REPLACE TEMPORARY VIEW held USING pyhudi OPTIONS (path '{base}')")
    count = "SELECT count(*) FROM held"
    assert source.sql(count).first() == (0,)
    source.sql("INSERT INTO held VALUES ('a')")
    assert load(source, base).count() == 1
    assert source.sql(count).first() == (0,)


@needs_spark4
def test_spark_s_catalog_has_no_tables_of_it(source: SparkSession, tmp_path: Path) -> None:
    base, schema = tmp_path / "t", pa.schema([("id", pa.string())])
    pyhudi.create_table(base, schema, key="id")
    at = f"USING pyhudi OPTIONS (path '{base}')"
    with pytest.raises(Exception, match="cannot be of this format"):
        source.sql(f"CREATE TABLE bare {at}")
    source.sql(f"CREATE TABLE named (id string) {at}")
    try:
        with pytest.raises(Exception, match="TEMPORARY VIEW"):
            source.sql("SELECT * FROM named").collect()
    finally:
        source.sql("DROP TABLE named")


@needs_spark4
def test_source_supports_every_query_type(source: SparkSession, golden: GoldenTables) -> None:
    base = golden.unpack(CHANGED)
    table = pyhudi.open_table(base)
    first, second, *_ = table.state.timeline.commits
    start, end = str(first.completed), str(second.completed)
    wanted = {
        "read_optimized": ({}, table.scan(read_optimized=True)),
        "snapshot": (
            {"as_of": first.requested, "columns": "name, id", "where": "id > '3'"},
            table.scan(["name", "id"], "id > '3'", as_of=first.requested),
        ),
        "incremental": ({"begin": start, "end": end}, table.incremental(start, end)),
        "cdc": ({"begin": start, "images": "json"}, table.changes(start, images="json")),
    }
    for kind, (options, rows_) in wanted.items():
        assert_same(load(source, base, query_type=kind, **options), rows_.to_arrow())
    # Either time of a commit means it, but for Hudi's own options, which are points in time.
    either = load(source, base, query_type="incremental", begin=first.requested)
    assert_same(either, table.incremental(start).to_arrow())
    hudis = {"hoodie.datasource.read.begin.instanttime": first.requested}
    assert_same(load(source, base, query_type="incremental", **hudis), table.to_arrow())
    assert_same(load(source, base, query_type="cdc", **hudis), table.changes(start).to_arrow())


@needs_spark4
def test_source_schema_selects_columns(source: SparkSession, golden: GoldenTables) -> None:
    base = golden.unpack(PARTITIONED)
    frame = source.read.format("pyhudi").schema("city string, _hoodie_record_key string")
    wanted = pyhudi.open_table(base).scan(["city", "_hoodie_record_key"]).to_arrow()
    assert_same(frame.load(str(base)), wanted)
    with pytest.raises(SchemaMismatch, match="'city'"):
        source.read.format("pyhudi").schema("city long").load(str(base)).collect()


@needs_spark4
def test_source_view_can_be_created_by_sql(source: SparkSession, golden: GoldenTables) -> None:
    base = golden.unpack(PARTITIONED)
    options = f"path '{base}', columns 'city,id'"
    source.sql(f"CREATE OR REPLACE TEMPORARY VIEW live USING pyhudi OPTIONS ({options})")
    wanted = pyhudi.open_table(base).scan(["city", "id"]).to_arrow()
    assert_same(source.table("live"), wanted)


@needs_spark4
def test_source_queries_do_not_share_filters(source: SparkSession, golden: GoldenTables) -> None:
    """As Spark has it where it hands filters over (4.1 to 4.3)."""
    base = golden.unpack(PARTITIONED)
    frame = load(source, base)
    every = pyhudi.open_table(base).scan().count()
    wanted = pyhudi.open_table(base).scan(where="city = 'osaka'").count()
    assert 0 < wanted < every
    source.sql(f"CREATE OR REPLACE TEMPORARY VIEW twice USING pyhudi OPTIONS (path '{base}')")
    for one in (frame, source.table("twice")):
        assert one.where("city = 'osaka'").count() == wanted
        assert one.count() == every
        assert one.where("coalesce(age, 0) >= 0 OR age < 0").count() == every


@needs_spark4
def test_filters_reach_the_files(
    source: SparkSession, golden: GoldenTables, request: pytest.FixtureRequest
) -> None:
    request.addfinalizer(lambda: register_source(source))
    register_source(source, push_filters=True)
    base = golden.unpack(PARTITIONED)
    frame = load(source, base).where("age > 30 AND city IN ('osaka', 'lima') AND name <> 'x'")
    wanted = pyhudi.open_table(base).scan(
        where="age > 30 AND city IN ('osaka', 'lima') AND name <> 'x'"
    )
    assert_same(frame, wanted.to_arrow())
    everything = load(source, base).rdd.getNumPartitions()
    assert load(source, base).where("city = 'osaka'").rdd.getNumPartitions() <= everything
    # A partition that there is not leaves no file to read: Spark then wants one empty task.
    assert load(source, base).where("city = 'nowhere'").count() == 0


@needs_spark4
def test_source_pushes_filters_arrow_evaluates_as_spark() -> None:
    from pyspark.sql import datasource as ds

    instant = dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)
    schema = pa.schema(
        {"i": pa.int32(), "f": pa.float64(), "s": pa.string(), "t": pa.timestamp("us", "UTC")}
    )
    pushed = {
        ("i", ">", 1): ds.GreaterThan(("i",), 1),
        ("i", "in", (1, 2)): ds.In(("i",), (1, None, 2)),
        ("i", "!=", 1): ds.Not(ds.EqualTo(("i",), 1)),
        ("s", "=", "x"): ds.EqualNullSafe(("s",), "x"),
        ("s", "is null"): ds.IsNull(("s",)),
        ("t", "<=", instant): ds.LessThanOrEqual(("t",), instant),
    }
    left = [
        ds.GreaterThan(("f",), 1.0),  # NaN is greater for Spark
        ds.GreaterThan(("f",), 1),
        ds.EqualTo(("i",), True),
        ds.EqualTo(("s", "x"), 1),
        ds.EqualTo(("nope",), 1),
        ds.EqualTo(("t",), instant.replace(tzinfo=None)),
        ds.EqualNullSafe(("i",), None),
        ds.In(("i",), (None,)),
        ds.Not(ds.EqualNullSafe(("i",), 1)),  # true for null
        ds.Not(ds.In(("i",), (1,))),
        ds.StringStartsWith(("s",), "x"),
    ]
    found = pushable([*pushed.values(), *left], schema)
    assert [tuple(map(_plain, one)) for one in found] == list(pushed)


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@needs_spark4
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"as_off": "1"}, "as_of"),
        ({"begin": "1"}, "begin"),
        ({"query_type": "snapshoot"}, "query_type"),
        ({"max_instants_per_batch": "1"}, "max_instants_per_batch"),
        ({"hoodie.nope": "1"}, "hoodie.nope"),
        ({"path": "relative"}, "relative"),
        ({"as_of": "20231301000000"}, "is not a time"),
        ({"query_type": "incremental", "begin": "2023-02-30"}, "is not a time"),
        ({"query_type": "incremental", "begin": "2024-02-01", "end": "2024-01-01"}, "before it"),
    ],
    ids=str,
)
def test_wrong_options_are_told(
    source: SparkSession, golden: GoldenTables, options: dict[str, str], message: str
) -> None:
    options = {"path": str(golden.unpack(PARTITIONED)), **options}
    with pytest.raises(ConfigError, match=message):
        source.read.format("pyhudi").options(**options).load().collect()


@needs_spark4
@pytest.mark.parametrize(
    "options",
    [{"as_of": "2000-01-01"}, {"query_type": "incremental", "end": "2000-01-01"}],
    ids=str,
)
def test_source_reports_time_before_first_commit(
    source: SparkSession, golden: GoldenTables, options: dict[str, str]
) -> None:
    options = {"path": str(golden.unpack(PARTITIONED)), **options}
    with pytest.raises(HistoryUnavailable, match="before the first commit"):
        source.read.format("pyhudi").options(**options).load().collect()


@pytest.mark.spark35
@pytest.mark.skipif(not needs_spark4.args[0], reason="Spark 4 has data sources in Python")
def test_spark_35_is_told(spark: SparkSession) -> None:
    with pytest.raises(ConfigError, match="PySpark 4"):
        register_source(spark)
