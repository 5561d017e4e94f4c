"""Columns of a base file that repeat one value or the record key, read back by pyarrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import _native
from tests.helpers.core_files import write_base_file

KEY = "_hoodie_record_key"
AVRO = (
    '{"type":"record","name":"t_record","namespace":"hoodie.t","fields":['
    + ",".join(
        f'{{"name":"{name}","type":["null","string"],"default":null}}'
        for name in ("_hoodie_commit_time", KEY, "id", "city", "note")
    )
    + ',{"name":"n","type":["null","long"],"default":null}]}'
)
PAGE_ROWS = 16 * 1024


def rows(first: int, count: int, **columns: Any) -> pa.RecordBatch:
    """Rows in which all columns but two repeat, unless `columns` has others."""
    keys = pa.array([f"key-{number:09}" for number in range(first, first + count)])
    names = {
        "_hoodie_commit_time": pa.array(["20260101000000000"] * count),
        KEY: keys,
        "id": keys,
        "city": pa.array(["a city with a name of more than the bytes of a bound" * 2] * count),
        "note": pa.array([f"note {number % 7}" for number in range(count)]),
        "n": pa.array(range(first, first + count), pa.int64()),
    }
    return pa.RecordBatch.from_pydict({**names, **columns})


def written(folder: Path, batches: list[pa.RecordBatch], **spec: Any) -> pq.ParquetFile:
    store = _native.Store(str(folder))
    table = pa.Table.from_batches(batches)
    write_base_file(store, "b.parquet", table, avro_schema=AVRO, **spec)
    read = pq.ParquetFile(folder / "b.parquet")
    assert read.read().equals(table.cast(read.schema_arrow))
    return read


def encoded_alone(folder: Path, table: pa.Table) -> pq.ColumnChunkMetaData:
    """The first column of a file of the same settings, without repeated pages: in small batches."""
    store = _native.Store(str(folder))
    batches = table.to_batches(max_chunksize=1000)
    write_base_file(store, "alone.parquet", pa.Table.from_batches(batches), avro_schema=AVRO)
    return pq.ParquetFile(folder / "alone.parquet").metadata.row_group(0)


@pytest.mark.parametrize("count", [2048, PAGE_ROWS, 2 * PAGE_ROWS + 1, 3 * PAGE_ROWS, 70_000])
def test_base_file_repeats_pages_of_one_value(tmp_path: Path, count: int) -> None:
    group = written(tmp_path, [rows(0, count)]).metadata.row_group(0)
    alone = encoded_alone(tmp_path, pa.table(rows(0, count)))
    for at in range(group.num_columns):
        repeated, plain = group.column(at), alone.column(at)
        assert repeated.path_in_schema == plain.path_in_schema
        assert repeated.num_values == count
        assert repeated.statistics.equals(plain.statistics)
        # Page headers differ by the bytes of their numbers.
        sizes = repeated.total_uncompressed_size / plain.total_uncompressed_size
        assert 0.5 < sizes < 2, (repeated, plain)
    key, copy = group.column(1), group.column(2)
    assert key.total_compressed_size == copy.total_compressed_size
    assert key.statistics.equals(copy.statistics)
    assert copy.encodings == key.encodings


def test_base_file_has_all_values_if_repetition_ends(tmp_path: Path) -> None:
    other = {"city": pa.array(["x", *["y"] * 4999]), "id": pa.array(["other"] * 5000)}
    nulls = {"_hoodie_commit_time": pa.nulls(3000, pa.string()), "id": pa.nulls(3000, pa.string())}
    for number, batches in enumerate(
        [
            [rows(0, 40_000), rows(40_000, 5000, **other)],
            [rows(0, 3000), rows(3000, 3000, **nulls), rows(6000, 3000)],
            [rows(0, 3000, **nulls), rows(3000, 3000)],
            [rows(0, 1), rows(1, 40_000)],
            [rows(0, 40_000), rows(40_000, 1, city=pa.array([""]))],
        ]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        written(folder, batches)


@pytest.mark.parametrize("spec", [{"dictionary": False}, {"codec": "snappy"}, {"codec": "gzip"}])
def test_repeated_pages_have_the_settings_of_the_file(tmp_path: Path, spec: dict[str, Any]) -> None:
    read = written(tmp_path, [rows(0, 50_000)], **spec)
    assert read.metadata.row_group(0).column(0).compression == spec.get("codec", "zstd").upper()


def test_row_groups_repeat_pages_each_on_its_own(tmp_path: Path) -> None:
    read = written(tmp_path, [rows(0, 60_000), rows(60_000, 60_000)], row_group_bytes=400_000)
    assert read.num_row_groups > 1
    for number in range(read.num_row_groups):
        group = read.read_row_group(number)
        assert group.column("id").equals(group.column(KEY))


def test_page_index_of_repeated_pages_finds_rows(tmp_path: Path) -> None:
    """The core skips pages by their offsets."""
    store = _native.Store(str(tmp_path))
    table = pa.Table.from_batches([rows(0, 100_000)])
    write_base_file(store, "b.parquet", table, avro_schema=AVRO)
    reader, _ = _native.read_slice(
        store,
        base="b.parquet",
        logs=[],
        schema=table.schema,
        columns=table.schema.names,
        merge_mode="COMMIT_TIME_ORDERING",
        filters=[("n", "=", pa.array([77_777], pa.int64()))],
    )
    found = pa.Table.from_batches(list(reader), table.schema)
    assert found.slice(0, 1).to_pylist() == table.slice(77_777, 1).to_pylist()
