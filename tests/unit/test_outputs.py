"""Outputs of all lazy rows, and scans that are read in parts."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi.errors import ConfigError, CorruptTable
from pyhudi.testing import comparable_rows
from tests.helpers.engine_rows import odd_rows, odd_table
from tests.helpers.recording_engine import RecordingEngine

NO_METADATA = {"hoodie.metadata.enable": "false"}


@pytest.fixture(scope="module")
def engine() -> RecordingEngine:
    return RecordingEngine()


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory, engine: RecordingEngine) -> pyhudi.HudiTable:
    return odd_table(tmp_path_factory.mktemp("table") / "odd", engine=engine)


# --- frames and streams ---------------------------------------------------------------------------


def test_pandas_types_can_be_chosen(table: pyhudi.HudiTable) -> None:
    scan = table.scan(columns=["n", "text", "day", "flag"])
    assert scan.to_pandas()["n"].dtype == "float64"
    nullable = scan.to_pandas(types_mapper={pa.int32(): pd.Int32Dtype()}.get)
    assert nullable["n"].dtype == pd.Int32Dtype()
    arrow = scan.to_pandas(dtype_backend="pyarrow")
    assert {kind.pyarrow_dtype for kind in arrow.dtypes} == set(scan.schema.types)
    assert comparable_rows(pa.Table.from_pandas(arrow)) == comparable_rows(scan)
    assert scan.to_pandas(date_as_object=False)["day"].dtype.kind == "M"


def test_unknown_pandas_types_raise(table: pyhudi.HudiTable) -> None:
    with pytest.raises(ConfigError, match="numpy_nullable"):
        table.scan().to_pandas(dtype_backend="numpy")
    with pytest.raises(ConfigError, match="dtype_backend"):
        table.scan().to_pandas(dtype_backend="pyarrow", types_mapper=lambda _: None)


def test_dates_beyond_those_of_python_say_how_pandas_has_them(tmp_path: Path) -> None:
    days = pa.array([4_000_000], pa.int32()).cast(pa.date32())
    table = pyhudi.create_table(tmp_path / "t", pa.table({"id": [1], "d": days}), key="id")
    with pytest.raises(ConfigError, match=r"year 12921(.|\n)*date_as_object=False"):
        table.scan().to_pandas()
    assert table.scan().to_pandas(date_as_object=False)["d"].dtype.kind == "M"
    assert pa.Table.from_pandas(table.scan().to_pandas(dtype_backend="pyarrow"))["d"][0] == days[0]


def test_scan_schema_needs_no_read(table: pyhudi.HudiTable, engine: RecordingEngine) -> None:
    first, last = table.inspect.commits()["requested"].to_pylist()
    engine.forget()
    for rows in (table.scan(columns=["id", "n"]), table.diff(first, last)):
        assert pa.schema(rows) == rows.schema
    assert engine.tasks == []


def test_scan_streams_read_again(table: pyhudi.HudiTable, engine: RecordingEngine) -> None:
    scan = table.scan(columns=["id"])
    engine.forget()
    streams = [pa.RecordBatchReader.from_stream(scan) for _ in range(2)]
    assert comparable_rows(streams[0].read_all()) == comparable_rows(streams[1].read_all())
    assert engine.partitions == ["lisbon", "lisbon", "osaka", "osaka", "rome", "rome"]
    with pytest.raises(StopIteration):
        streams[0].read_next_batch()
    assert pl.DataFrame(scan).height == pl.DataFrame(scan).height == 60


# --- splits ---------------------------------------------------------------------------------------


def test_splits_are_the_scan_in_parts(table: pyhudi.HudiTable) -> None:
    scan = table.scan(columns=["n", "id"], where="n > 3")
    parts = scan.splits()
    assert [part.partition for part in parts] == ["lisbon", "osaka", "rome"]
    assert {part.file_id for part in parts} == set(scan.plan()["file_id"].to_pylist())
    sizes = scan.plan().select(["base_size", "log_size"]).to_pylist()
    assert [part.bytes for part in parts] == [sum(size.values()) for size in sizes]
    assert all(part.schema == scan.schema for part in parts)
    assert pa.concat_tables([part.to_arrow() for part in parts]).equals(scan.to_arrow())
    assert sum(part.count() for part in parts) == scan.count()
    assert sum(map(len, [part.to_pandas() for part in parts])) == scan.count()


READ = """
import pickle, sys
for part in pickle.loads(sys.stdin.buffer.read()):
    print(part.count(), sum(part.to_arrow()["n"].drop_null().to_pylist()))
"""


def test_splits_travel_to_another_process(table: pyhudi.HudiTable) -> None:
    parts = table.scan(where="n > 3").splits()
    done = subprocess.run(
        [sys.executable, "-c", READ], input=pickle.dumps(parts), capture_output=True, check=True
    )
    counts = [tuple(map(int, line.split())) for line in done.stdout.decode().splitlines()]
    assert counts == [(part.count(), sum(part.to_arrow()["n"].to_pylist())) for part in parts]


def test_base_files_are_cut_between_row_groups(tmp_path: Path) -> None:
    # Parts of less than 4 MiB are not made.
    texts = [f"{number:02}" * 200_000 for number in range(24)]
    rows = pa.table({"id": [f"k{number:02}" for number in range(24)], "text": texts})
    table = pyhudi.create_table(tmp_path / "t", rows, key="id", options=NO_METADATA)
    file = next((tmp_path / "t").rglob("*.parquet"))
    pq.write_table(pq.read_table(file), file, row_group_size=4, compression="none")
    scan = table.refresh().scan(columns=["id"])
    parts = scan.splits(max_bytes=1)
    assert len(scan.splits()) == 1
    assert len(parts) == 3
    assert sum(part.bytes for part in parts) == scan.splits()[0].bytes
    assert pa.concat_tables([part.to_arrow() for part in parts]).equals(scan.to_arrow())
    assert max(part.count() for part in parts) < 24


def test_invalid_splits_raise(table: pyhudi.HudiTable) -> None:
    assert table.scan(where="city = 'paris'").splits() == []
    with pytest.raises(ConfigError, match="limit"):
        table.scan(limit=3).splits()
    with pytest.raises(ConfigError, match="max_bytes"):
        table.scan().splits(0)


def test_columns_that_are_shown_as_text_are_text_in_splits(tmp_path: Path) -> None:
    rows = odd_rows().select(["id", "large"])
    table = pyhudi.create_table(
        tmp_path / "t",
        rows,
        key="id",
        partition_by="large:TIMESTAMP",
        options={
            **NO_METADATA,
            "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
            "hoodie.keygen.timebased.output.dateformat": "yyyy",
        },
    )
    scan = table.scan()
    assert pa.concat_tables([part.to_arrow() for part in scan.splits()]).schema == scan.schema


def test_split_names_damaged_file(tmp_path: Path) -> None:
    parts = odd_table(tmp_path / "odd").scan().splits()
    for file in (tmp_path / "odd").rglob("*.parquet"):
        file.write_bytes(b"no" * (file.stat().st_size // 2))
    with pytest.raises(CorruptTable):
        parts[0].to_arrow()


def test_table_exports_arrow_stream(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a", "b"], "v": [1, 2]})
    trips = pyhudi.create_table(tmp_path / "t", rows, key="id")
    assert trips.to_arrow().equals(rows)
    chosen = rows.select(["v"]).slice(1)
    assert trips.to_arrow(["v"], "v > 1").equals(chosen)
    assert trips.to_pandas(columns=["v"], where="v > 1").equals(chosen.to_pandas())
    assert trips.to_polars(columns=["v"], where="v > 1").equals(pl.DataFrame(chosen))
    assert pa.table(trips).equals(rows)
    assert pl.DataFrame(trips).equals(trips.to_polars())
    assert trips.to_pandas(dtype_backend="pyarrow")["v"].tolist() == [1, 2]
    assert duckdb.sql("SELECT sum(v) FROM trips").fetchall() == [(3,)]
    copy = pyhudi.create_table(tmp_path / "copy", trips, key="id", type="mor")
    assert copy.upsert(trips).rows_updated == 2
    assert trips.upsert(trips, commit_id="again").rows_updated == 2
    assert pickle.loads(pickle.dumps(trips)).to_arrow().equals(rows)
