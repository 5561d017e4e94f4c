"""Decoding a base file with two threads, without the key column: same rows and errors."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi import _native
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import CorruptTable

SCHEMA = pa.schema(
    [("id", pa.string()), ("ts", pa.int64()), ("fare", pa.float64()), ("note", pa.string())]
)
COUNT = 60_000
"""Enough for a second thread to be begun."""


def data(numbers: range, ts: int) -> pa.Table:
    columns = [
        [f"key-{number:012}-of-many" for number in numbers],
        [ts] * len(numbers),
        [number / 7 for number in numbers],
        [f"a note of {ts} about {number}, long enough to matter" for number in numbers],
    ]
    return pa.table(columns, schema=SCHEMA)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables") / "table"
    table = pyhudi.create_table(str(path), SCHEMA, key="id", order_by="ts", type="mor", version=9)
    table.insert(data(range(COUNT), 10))
    table.upsert(data(range(0, COUNT, 7), 20))
    table.upsert(data(range(0, COUNT, 14), 5))
    table.delete_keys(data(range(3, COUNT, 50), 0).select(["id"]))
    return path


def rows(path: Path, threads: int, columns: list[str], *, meta: bool = False) -> pa.Table:
    table = pyhudi.open_table(path, engine=LocalEngine(threads))
    return table.scan(columns, meta_fields=meta).to_arrow().combine_chunks()


@pytest.mark.parametrize("columns", [["id", "ts", "fare", "note"], ["note", "fare"], ["fare"]])
def test_rows_and_their_order_are_those_of_one_thread(folder: Path, columns: list[str]) -> None:
    assert rows(folder, 2, columns).equals(rows(folder, 1, columns))


def test_parallel_columns_input_is_large_enough(folder: Path) -> None:
    (base,) = folder.glob("*.parquet")
    group = pq.ParquetFile(base).metadata.row_group(0)
    assert group.total_byte_size > 4 << 20


def test_key_field_equals_stored_key(folder: Path) -> None:
    by_field = rows(folder, 2, ["id", "note"])
    by_key = rows(folder, 2, ["_hoodie_record_key", "note"])
    assert by_field.column("id").equals(by_key.column("_hoodie_record_key"))
    assert by_field.column("note").equals(by_key.column("note"))


def test_records_are_merged_by_the_stored_key(folder: Path) -> None:
    (task,) = pyhudi.open_table(folder).scan(["id", "fare"]).tasks
    assert task.merge.plain_key == "id"
    assert task.merge.key_fields == ("_hoodie_record_key",)


@pytest.mark.parametrize("column", ["_hoodie_record_key", "id", "fare", "note"])
def test_damage_is_noticed_in_every_column(folder: Path, tmp_path: Path, column: str) -> None:
    (base,) = folder.glob("*.parquet")
    group = pq.ParquetFile(base).metadata.row_group(0)
    chunks = [group.column(at) for at in range(group.num_columns)]
    (chunk,) = [one for one in chunks if one.path_in_schema == column]
    middle = chunk.data_page_offset + chunk.total_compressed_size // 2
    content = bytearray(base.read_bytes())
    content[middle : middle + 2000] = bytes(2000)
    (tmp_path / base.name).write_bytes(content)
    with pytest.raises(CorruptTable):
        _read_all(tmp_path, base.name)


def _read_all(folder: Path, name: str) -> pa.Table:
    store = _native.Store(str(folder))
    _, schema = _native.base_file_schema(store, name)
    reader, _ = _native.read_slice(
        store,
        base=name,
        logs=[],
        schema=schema,
        columns=schema.names,
        merge_mode="COMMIT_TIME_ORDERING",
        two_threads=True,
    )
    return reader.read_all()
