"""Log records beyond the memory limit: the same rows, from local files."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import repeat
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import _native
from pyhudi.errors import ConfigError, StorageError, UnsupportedTableFeature
from pyhudi.slices.read import read_task
from tests.helpers import log_bytes
from tests.helpers.core_files import write_base_file, write_log_files
from tests.helpers.tables import GoldenTables, names

MERGE_ON_READ = [name for name in names() if name.startswith(("v6_mor_payload", "v9_mor"))]
SCHEMA = pa.schema([("_hoodie_record_key", pa.string()), ("n", pa.int64()), ("text", pa.string())])
AVRO = _native.avro_schema(SCHEMA, "r", "n")


def rows(batches: list[pa.RecordBatch]) -> list[str]:
    return sorted(str(row) for batch in batches for row in batch.to_pylist())


@pytest.mark.parametrize("name", MERGE_ON_READ)
def test_rows_are_the_same_when_nothing_fits_in_memory(name: str, golden: GoldenTables) -> None:
    try:
        tasks = pyhudi.open_table(golden.unpack(name)).scan(meta_fields=True).tasks
    except UnsupportedTableFeature as refused:
        pytest.skip(str(refused))
    for task in tasks:
        spilled = replace(task, memory_limit=4000)
        assert rows(list(read_task(spilled))) == rows(list(read_task(task)))


def batch(numbers: list[int], text: str) -> pa.Table:
    keys = [f"k{number:07}" for number in numbers]
    return pa.table([keys, numbers, [text] * len(keys)], schema=SCHEMA)


@pytest.fixture
def store(tmp_path: Path) -> _native.Store:
    store = _native.Store(str(tmp_path))
    write_base_file(store, "b.parquet", batch(list(range(3000)), "base"), avro_schema=AVRO)
    for log in range(4):
        changed = batch(list(range(log, 5000, 2)), f"log {log} " + "x" * 200)
        path = f".l{log}"
        write_log_files(
            store, repeat(path).__next__, instant=str(log), avro_schema=AVRO, rows=changed
        )
    return store


def read(
    store: _native.Store, memory_limit: int | None, folder: str | None = None
) -> tuple[pa.Table, _native.MergeStats]:
    reader, stats = _native.read_slice(
        store,
        base="b.parquet",
        logs=[f".l{log}" for log in range(4)],
        schema=SCHEMA,
        columns=SCHEMA.names,
        merge_mode="COMMIT_TIME_ORDERING",
        memory_limit=memory_limit,
        spill_folder=folder,
    )
    return reader.read_all().sort_by("n"), stats


def test_merge_drops_superseded_records_before_spilling(store: _native.Store) -> None:
    whole, _ = read(store, None)
    limited, stats = read(store, 32 << 20)
    assert stats.spilled_parts == 0
    assert limited.equals(whole)


def test_parts_that_are_still_too_large_are_split_again(store: _native.Store) -> None:
    # Rows that Parquet packs: a block's size says little about the memory that its records take.
    for log in range(4):
        header = log_bytes.headers(str(log), AVRO)
        changed = batch(list(range(log, 5000, 2)), f"log {log} " + "x" * 200)
        store.put(f".l{log}", log_bytes.parquet_block(header, changed))
    whole, in_memory = read(store, None)
    limited, stats = read(store, 200_000)
    assert stats.spilled_parts > 24
    assert limited.equals(whole)
    for count in ("base_rows", "log_records", "updated", "deleted", "inserted"):
        assert getattr(stats, count) == getattr(in_memory, count), count


def test_spill_to_unusable_directory_raises(store: _native.Store, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="memory_limit"):
        read(store, 100_000, str(tmp_path / "missing"))


def test_spill_leaves_nothing_on_disk(store: _native.Store, tmp_path: Path) -> None:
    folder = tmp_path / "spill"
    folder.mkdir()
    read(store, 100_000, str(folder))
    assert not list(folder.iterdir())


def test_memory_limit_refuses_senseless_values(golden: GoldenTables) -> None:
    table = pyhudi.open_table(golden.unpack("v9_mor_event_time"))
    with pytest.raises(ConfigError, match="memory_limit"):
        table.scan(memory_limit=10)


MIB = 1 << 20
LIMIT = 32 * MIB
READ = """
import json, sys
import pyarrow as pa, pyarrow.compute as pc
from pyhudi import _native

folder, logs, limit = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
schema = pa.schema([("_hoodie_record_key", pa.string()), ("n", pa.int64()), ("text", pa.string())])
reader, stats = _native.read_slice(
    _native.Store(folder), base="b.parquet", logs=logs, schema=schema, columns=schema.names,
    merge_mode="COMMIT_TIME_ORDERING", memory_limit=limit,
)
count = total = letters = 0
for batch in reader:
    count += batch.num_rows
    total += pc.sum(batch["n"]).as_py()
    letters += pc.sum(pc.binary_length(batch["text"])).as_py()
with open("/proc/self/status") as status:
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
print(json.dumps([count, total, letters, peak * 1024]))
"""
"""Not `ru_maxrss`: in a child process that counts what its parent held."""


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the peak memory")
@pytest.mark.slow
def test_logs_of_ten_times_the_limit_are_read_within_it(tmp_path: Path) -> None:
    store = _native.Store(str(tmp_path))
    base = batch(list(range(20_000)), "base")
    write_base_file(store, "b.parquet", base, avro_schema=AVRO)
    width, rows_of_log = 20_000, 4400
    newest: dict[int, int] = {}
    logs = [f".l{log}" for log in range(4)]
    for log, path in enumerate(logs):
        # One block of 84 MiB each; half of its keys come again in the next one.
        numbers = list(range(log * rows_of_log // 2, log * rows_of_log // 2 + rows_of_log))
        newest.update(dict.fromkeys(numbers, width + log))
        changed = batch(numbers, "x" * (width + log))
        write_log_files(
            store, repeat(path).__next__, instant=str(log), avro_schema=AVRO, rows=changed
        )
    assert sum((tmp_path / path).stat().st_size for path in logs) > 10 * LIMIT
    count, total, letters, peak = peak_of(tmp_path, logs)
    assert count == 20_000
    assert total == sum(range(20_000))
    assert letters == sum(newest.values()) + len("base") * (20_000 - len(newest))
    assert peak < LIMIT + 300 * MIB


def peak_of(folder: Path, logs: Sequence[str], limit: int | None = LIMIT) -> list[int]:
    """Count, sum of `n`, letters of `text` and peak memory in bytes of a process that reads."""
    arguments = [str(folder), json.dumps(logs), json.dumps(limit)]
    done = subprocess.run(
        [sys.executable, "-c", READ, *arguments], check=True, capture_output=True, text=True
    )
    found: list[int] = json.loads(done.stdout)
    return found
