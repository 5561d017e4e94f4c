"""Scans of real tables: arguments, pruning that loses nothing, outputs, tasks that travel."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi import _native
from pyhudi.errors import ConfigError, CorruptTable, SchemaMismatch, UnsupportedTableFeature
from pyhudi.schema.predicate_parser import parse_where
from pyhudi.slices.partition_values import partition_filter, path_values
from pyhudi.slices.read import read_task
from pyhudi.testing import comparable_rows
from tests.helpers.tables import GoldenTables, unpack

PARTITIONED = "v9_mor_log_compaction"
TABLES = (
    PARTITIONED,
    "v6_mor_part_avro",
    "v6_cow_complex_key",
    "v6_cow_typed_partitions",
    "v6_cow_urlencode",
    "v6_cow_timestamp_key",
    "v9_cow_no_partition_columns",
    "v8_mor_consistent",
    "v9_mor_virtual_keys",
    "v9_mor_event_time",
    "v9_cow_by_all_types",
    "v9_cow_by_custom",
    "v9_cow_schema_on_read",
    "v6_mor_schema_on_read",
    "v9_mor_schema_on_read_types",
)


def open_golden(golden: GoldenTables, name: str = PARTITIONED) -> pyhudi.HudiTable:
    return pyhudi.open_table(golden.unpack(name))


@pytest.mark.parametrize("name", TABLES)
def test_scan_filter_equals_filtering_all_rows(name: str, golden: GoldenTables) -> None:
    table = open_golden(golden, name)
    everything = table.scan(meta_fields=True).to_arrow()
    for column in everything.column_names:
        values = everything[column].drop_null().unique()
        if len(values) == 0 or column == "_hoodie_file_name":
            continue
        middle = values[len(values) // 2].as_py()
        for op in ("=", "!=", "<", "<=", ">", ">=", "in"):
            given = [middle, values[0].as_py()] if op == "in" else middle
            filters = [(column, op, given)]
            expression = parse_where(filters, everything.schema).expression
            scan = table.scan(where=filters, meta_fields=True)
            assert comparable_rows(scan) == comparable_rows(everything.filter(expression)), filters


def test_partitions_that_cannot_match_are_not_planned(golden: GoldenTables) -> None:
    table = open_golden(golden)
    everything = table.scan().plan()
    some = table.scan(where="city = 'osaka' AND age > 0").plan()
    assert set(some["partition"].to_pylist()) == {"osaka"}
    assert some.num_rows < everything.num_rows
    assert table.scan(where="city = 'nowhere'").to_arrow().num_rows == 0


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("n = 0", ["n=0/day=2024-02-28"]),
        ("n > 0", ["n=1/day=2024-02-29"]),
        ("day = '2024-02-28'", ["n=0/day=2024-02-28"]),
        ("n = 7", []),
    ],
)
def test_paths_of_numbers_are_told_apart(where: str, kept: list[str], golden: GoldenTables) -> None:
    table = open_golden(golden, "v6_cow_typed_partitions")
    conjuncts = parse_where(where, table.schema).conjuncts
    test = partition_filter(table.config, table.schema, conjuncts)
    paths = ["n=0/day=2024-02-28", "n=1/day=2024-02-29"]
    assert [path for path in paths if test is None or test(path)] == kept


@pytest.mark.parametrize(
    "path",
    ["city=", "town=x"],
)
def test_scan_keeps_partition_with_unknown_value(path: str, golden: GoldenTables) -> None:
    table = open_golden(golden, "v6_cow_urlencode")
    conjuncts = parse_where("city = 'x'", table.schema).conjuncts
    test = partition_filter(table.config, table.schema, conjuncts)
    assert test is not None
    assert test(path)


def test_null_partition_directory_before_version_5_is_text(golden: GoldenTables) -> None:
    text = open_golden(golden, "v4_mor_part")
    values = path_values(text.config, text.schema, "default")
    assert values == {"city": pa.scalar("default")}
    numbers = open_golden(golden, "v6_cow_typed_partitions")
    path = "n=default/day=2024-02-28"
    assert list(path_values(numbers.config, numbers.schema, path)) == ["day"]


def test_columns_come_in_the_order_asked_for_meta_ones_too(golden: GoldenTables) -> None:
    scan = open_golden(golden).scan(columns=["ts", "_hoodie_record_key", "id"])
    assert scan.schema.names == ["ts", "_hoodie_record_key", "id"]
    assert scan.to_arrow().schema == scan.schema


def test_meta_columns_are_in_front_on_request(golden: GoldenTables) -> None:
    table = open_golden(golden)
    assert not [name for name in table.scan().schema.names if name.startswith("_hoodie_")]
    names = table.scan(meta_fields=True).schema.names
    assert names[:2] == ["_hoodie_commit_time", "_hoodie_commit_seqno"]
    assert names[5:] == table.schema.names


def test_scan_filter_may_use_unselected_columns(golden: GoldenTables) -> None:
    table = open_golden(golden)
    wanted = table.scan().to_arrow().filter(pc.field("city") == "quito")["id"]
    found = table.scan(columns=["id"], where="city = 'quito'").to_arrow()
    assert found.column_names == ["id"]
    assert sorted(found["id"].to_pylist()) == sorted(wanted.to_pylist())


@pytest.mark.parametrize("limit", [0, 1, 5, 1000])
def test_scan_limit_returns_prefix(limit: int, golden: GoldenTables) -> None:
    table = open_golden(golden)
    whole = table.scan().to_arrow()
    assert table.scan(limit=limit).to_arrow().equals(whole.slice(0, limit).combine_chunks())
    assert table.scan(limit=limit).count() == min(limit, whole.num_rows)


@pytest.mark.parametrize("name", TABLES)
def test_count_is_the_number_of_rows(name: str, golden: GoldenTables) -> None:
    table = open_golden(golden, name)
    assert table.scan().count() == table.scan().to_arrow().num_rows


def test_count_of_base_files_reads_no_rows(
    golden: GoldenTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = open_golden(golden, "v9_cow_all_types")
    rows = table.scan().to_arrow().num_rows
    monkeypatch.setattr(_native, "read_slice", None)
    assert table.scan().count() == rows > 0


def test_scan_reads_partition_column_alone(golden: GoldenTables) -> None:
    table = open_golden(golden)
    assert comparable_rows(table.scan(columns=["city"])) == comparable_rows(
        table.scan().to_arrow().select(["city"])
    )


def test_read_optimized_reads_no_log_file(golden: GoldenTables) -> None:
    plan = open_golden(golden).scan(read_optimized=True).plan()
    assert not [logs for logs in plan["log_files"].to_pylist() if logs]


def test_tasks_travel_by_pickle(golden: GoldenTables) -> None:
    scan = open_golden(golden).scan(where="age > 20", columns=["id"])
    tasks = pickle.loads(pickle.dumps(scan.tasks))
    batches = [batch for task in tasks for batch in read_task(task)]
    assert comparable_rows(pa.Table.from_batches(batches, scan.schema)) == comparable_rows(scan)


def test_scan_outputs_return_same_rows(golden: GoldenTables) -> None:
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("polars")
    pytest.importorskip("pandas")
    scan = open_golden(golden).scan(columns=["id", "age"])
    expected = comparable_rows(scan)
    assert comparable_rows(scan.to_reader()) == expected
    assert comparable_rows(scan.to_polars()) == expected
    assert comparable_rows(pa.Table.from_pandas(scan.to_pandas(), scan.schema)) == expected
    with duckdb.connect() as connection:
        scan.to_duckdb(connection, "hudi")
        for _ in range(2):
            assert connection.sql("SELECT count(*) FROM hudi").fetchall() == [(len(expected),)]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"columns": ["nmae"]}, SchemaMismatch),
        ({"columns": []}, ConfigError),
        ({"columns": "id"}, ConfigError),
        ({"columns": ["id", "id"]}, ConfigError),
        ({"limit": -1}, ConfigError),
        ({"where": "nmae = 'a'"}, SchemaMismatch),
    ],
)
def test_wrong_arguments_are_told_at_once(
    arguments: dict[str, Any], error: type[Exception], golden: GoldenTables
) -> None:
    with pytest.raises(error):
        open_golden(golden).scan(**arguments)


def test_scan_refuses_unknown_merge_rule_except_read_optimized(tmp_path: Path) -> None:
    base = unpack("v9_mor_event_time", tmp_path)
    with (base / ".hoodie" / "hoodie.properties").open("a", encoding="utf-8") as file:
        file.write("hoodie.record.merge.mode=CUSTOM\nhoodie.record.merge.strategy.id=mine\n")
    table = pyhudi.open_table(base)
    with pytest.raises(UnsupportedTableFeature, match=r"hoodie\.record\.merge\.strategy\.id"):
        table.scan().to_arrow()
    assert table.scan(read_optimized=True).count() > 0


def test_scan_names_damaged_file(golden: GoldenTables, tmp_path: Path) -> None:
    base = tmp_path / "table"
    shutil.copytree(golden.unpack("v9_cow_nonpart"), base)
    damaged = pyhudi.open_table(base).scan().plan()["base_file"][0].as_py()
    (base / damaged).write_bytes(b"PAR1" + bytes(64) + b"PAR1")
    with pytest.raises(CorruptTable) as raised:
        pyhudi.open_table(base).scan().to_arrow()
    assert raised.value.file == damaged


def test_handle_keeps_snapshot_until_refresh(golden: GoldenTables, tmp_path: Path) -> None:
    base = tmp_path / "table"
    shutil.copytree(golden.unpack("v9_mor_no_metadata"), base)
    old, writer = pyhudi.open_table(base), pyhudi.open_table(base)
    before = old.scan().count()
    writer.delete_keys(writer.scan(limit=1).to_arrow())
    assert writer.scan().count() == before - 1
    assert old.scan().count() == before
    assert old.refresh().scan().count() == before - 1


def test_inspect_shows_what_is_on_storage(golden: GoldenTables) -> None:
    inspect = open_golden(golden).inspect
    assert set(inspect.timeline()["state"].to_pylist()) <= {"COMPLETED", "REQUESTED", "INFLIGHT"}
    assert inspect.commits().num_rows > 0
    assert set(inspect.files()["kind"].to_pylist()) == {"base", "log"}
    assert set(inspect.partitions()["partition"].to_pylist()) == {"lisbon", "osaka", "quito"}
    assert inspect.slices().num_rows >= open_golden(golden).scan().plan().num_rows
    logs = inspect.logs()
    read = open_golden(golden).scan().plan()["log_files"].to_pylist()
    assert set(logs["log_file"].to_pylist()) == {name for names in read for name in names}


def test_unknown_options_name_the_nearest(golden: GoldenTables) -> None:
    with pytest.raises(ConfigError, match=r"hoodie\.parquet\.max\.file\.size"):
        pyhudi.open_table(golden.unpack(PARTITIONED), options={"hoodie.parquet.max.fil.size": 1})


def test_scan_names_file_of_undecodable_block(tmp_path: Path) -> None:
    """The Parquet crate panics on some."""
    base = unpack("v9_mor_parquet_log", tmp_path)
    (log,) = base.glob("city=quito/.*_20261121081424632.log.1_*")
    for crc in base.rglob(".*.crc"):
        crc.unlink()
    content = bytearray(log.read_bytes())
    # In the footer, where a column begins: before the file does.
    content[3503] = 1
    log.write_bytes(content)
    with pytest.raises(CorruptTable, match="should not be negative") as caught:
        pyhudi.open_table(base).scan().to_arrow()
    assert caught.value.file == str(log.relative_to(base))
