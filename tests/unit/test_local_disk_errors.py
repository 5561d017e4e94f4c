"""Errors of the local disk, such as no space or a missing directory, with hints."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import ConfigError, CorruptTable, HudiTable, StorageError, TableNotFound

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("note", pa.string())])


def rows(count: int, p: str = "a") -> pa.Table:
    notes = [f"{number * 2654435761 % 2**32:x}" for number in range(count)]
    return pa.table({"id": range(count), "p": [p] * count, "note": notes}, schema=SCHEMA)


def make(folder: Path, count: int = 3) -> HudiTable:
    table = pyhudi.create_table(folder / "t", SCHEMA, key="id", partition_by="p", type="mor")
    table.upsert(rows(count))
    return table


SMALL_FILES = """
import resource, sys
import pyarrow as pa
import pyhudi
from pyhudi.engine.spill import Spill

def told(call):
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
    try:
        call()
    except pyhudi.StorageError as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

table = pyhudi.open_table(sys.argv[1])
told(lambda: table.scan(memory_limit=1 << 20).to_arrow())
batch = pa.record_batch({"n": pa.array(range(3_000), pa.int64())})
spill = Spill(batch.schema, in_memory=0)
spill.add(batch)
told(lambda: list(spill.read()))
"""


def test_full_local_disk_raises_storage_error(tmp_path: Path) -> None:
    table = make(tmp_path, 20_000)
    table.upsert(rows(20_000))
    done = subprocess.run(
        [sys.executable, "-c", SMALL_FILES, table.uri], capture_output=True, text=True, check=True
    )
    of_core, of_python = done.stdout.split("local files failed: ")[1:]
    assert f"in {tempfile.gettempdir()} (TMPDIR): " in of_core
    assert "raise ulimit -f" in of_core
    assert "Set TMPDIR to another directory" in of_python


def test_missing_local_directory_overwrites_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(StorageError, match="TMPDIR"):
        pyhudi.create_table(table.uri, SCHEMA, key="id", mode="overwrite")
    assert table.refresh().scan().count() == 3


def test_process_without_working_directory_uses_absolute_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path)
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    try:
        table.upsert(rows(4))
        assert pyhudi.open_table(tmp_path / "t").scan().count() == 4
        with pytest.raises(ConfigError, match="absolute"):
            pyhudi.open_table("t")
    finally:
        os.chdir(tmp_path)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["files", "column_stats", "record_index"])
def test_write_raises_if_metadata_partition_is_missing(tmp_path: Path, name: str) -> None:
    table = make(tmp_path)
    shutil.rmtree(tmp_path / "t" / ".hoodie" / "metadata" / name)
    with pytest.raises(CorruptTable, match="rebuild_metadata"):
        table.upsert(rows(2, "b"))
    table.rebuild_metadata()
    table.upsert(rows(5))
    assert table.scan().count() == 5
    assert list(table.check(deep=True).findings) == []


@pytest.mark.parametrize(
    "verb",
    ["rebuild_metadata", "restore", "rollback", "upsert", "compact", "clean", "create_index"],
)
def test_moved_table_leaves_nothing_at_old_place(tmp_path: Path, verb: str) -> None:
    table = make(tmp_path)
    instant = table.upsert(rows(1)).instant
    arguments: dict[str, tuple[object, ...]] = {
        "restore": (instant,), "rollback": (instant,), "upsert": (rows(1),),
        "create_index": ("bloom_filters",),
    }  # fmt: skip
    (tmp_path / "t").rename(tmp_path / "moved")
    with pytest.raises(TableNotFound):
        getattr(table, verb)(*arguments.get(verb, ()))
    assert [path.name for path in tmp_path.iterdir()] == ["moved"]
