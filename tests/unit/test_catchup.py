"""Metadata tables that other writers did not keep: commits or definitions are missing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import CorruptTable, HudiTable, MetadataTableWarning
from pyhudi.admin.run_service import open_for_service
from pyhudi.clock import SystemClock
from pyhudi.config.table_config import TableConfig
from pyhudi.metadata.index_definitions import INDEX_DEFINITIONS, index_definitions
from pyhudi.storage.storage import Storage
from pyhudi.write.table_opening import Handle
from tests.helpers.pairwise import pairwise
from tests.helpers.table_builder import SMALL, TableBuilder
from tests.unit.test_restore import rows_of, sound

CITIES = TableBuilder(
    {"id": (pa.string(), str), "city": (pa.string(), "rome"), "v": (pa.int64(), 1)},
    partition_by="city",
    options=SMALL,
)
INDEXES: dict[str, dict[str, str]] = {
    "default": {},
    "files": {
        "hoodie.metadata.record.index.enable": "false",
        "hoodie.metadata.index.column.stats.enable": "false",
    },
}


def behind(table: HudiTable, base: Path) -> None:
    """Lets the metadata table be as it was before the last commits."""
    before = base.with_name("metadata")
    shutil.copytree(base / ".hoodie/metadata", before)
    table.upsert(CITIES.rows("bc", v=5))
    table.upsert(CITIES.rows("x", city="oslo"))
    table.delete_keys(["d"])
    shutil.rmtree(base / ".hoodie/metadata")
    shutil.copytree(before, base / ".hoodie/metadata")


@pytest.mark.filterwarnings("ignore:.*is out of date")
@pytest.mark.parametrize(
    ("version", "kind", "indexes"), pairwise((6, 8, 9), ("cow", "mor"), tuple(INDEXES))
)
def test_write_adds_commits_that_the_metadata_table_lacks(
    version: int, kind: str, indexes: str, tmp_path: Path
) -> None:
    base = tmp_path / "t"
    table = CITIES.make(base, version=version, kind=kind, first="abcd", options=INDEXES[indexes])
    partitions = table.config.metadata_partitions
    behind(table, base)
    assert "metadata_commit_missing" in {finding.kind for finding in table.refresh().check()}
    table = pyhudi.open_table(base)
    table.upsert(CITIES.rows("cd", v=20))
    assert rows_of(table) == {"a": 1, "b": 5, "c": 20, "d": 20, "x": 1}
    assert table.config.metadata_partitions == partitions
    assert sound(table)


def test_log_file_of_a_lost_delta_commit_is_replaced(tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = CITIES.make(base, first="abc", options=INDEXES["files"])
    lost = table.upsert(CITIES.rows("x", city="oslo")).instant
    for file in (base / ".hoodie/metadata/.hoodie/timeline").glob(f"{lost}*"):
        file.unlink()
    table = pyhudi.open_table(base)
    table.upsert(CITIES.rows("a", v=20))
    assert rows_of(table) == {"a": 20, "b": 1, "c": 1, "x": 1}
    assert sound(table)


def test_metadata_table_behind_a_clean_is_left_to_rebuild_metadata(tmp_path: Path) -> None:
    """Which files the clean removed, no commit tells."""
    base = tmp_path / "t"
    table = CITIES.make(base, first="abcd")
    behind(table, base)
    assert pyhudi.open_table(base).clean(retain=1).instants
    table = pyhudi.open_table(base)
    with pytest.warns(MetadataTableWarning), pytest.raises(CorruptTable, match="rebuild_metadata"):
        table.upsert(CITIES.rows("a", v=20))
    table.rebuild_metadata()
    table.upsert(CITIES.rows("a", v=20))
    assert sound(table)


def undefined(base: Path, version: int) -> HudiTable:
    """A table as Hudi's Java client makes it: column statistics without a definition."""
    options = {
        "hoodie.metadata.record.index.enable": "false",
        "hoodie.metadata.index.column.stats.enable": "true",
    }
    CITIES.make(base, version=version, kind="mor", first="abc", options=options)
    shutil.rmtree(base / ".hoodie/.index_defs")
    storage, clock = Storage(str(base)), SystemClock()
    config = TableConfig.load(storage, clock)
    config.update(storage, {}, clock, removed=(INDEX_DEFINITIONS,))
    return pyhudi.open_table(base)


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("change", ["upsert", "compact", "rebuild"])
def test_column_statistics_get_the_definition_that_they_lack(
    version: int, change: str, tmp_path: Path
) -> None:
    base = tmp_path / "t"
    table = undefined(base, version)
    partitions = table.config.metadata_partitions
    assert "column_stats" in partitions
    if change == "compact":
        table.compact()
    elif change == "rebuild":
        table.rebuild_metadata()
    table.upsert(CITIES.rows("a", v=20))
    assert table.config.metadata_partitions == partitions
    definition = index_definitions(Storage(str(base)), table.config)["column_stats"]
    assert definition.columns[-3:] == ("id", "city", "v")
    assert definition.version == (2 if version == 9 else 1)
    assert table.scan(where="v = 20").to_arrow()["id"].to_pylist() == ["a"]
    assert sound(table)


@pytest.mark.parametrize("service", ["clean", "archive", "maintain"])
def test_service_defines_column_statistics_that_have_no_definition(
    service: str, tmp_path: Path
) -> None:
    table = undefined(tmp_path / "t", 9)
    getattr(table, service)()
    definitions = index_definitions(Storage(table.storage.uri), table.config)
    assert definitions["column_stats"].columns[-3:] == ("id", "city", "v")
    assert sound(table)


def test_service_reads_properties_and_index_definitions_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = CITIES.make(tmp_path / "t", first="abc")
    read: list[str] = []
    plain = Storage.read

    def counted(storage: Storage, path: str) -> bytes:
        read.append(path)
        return plain(storage, path)

    monkeypatch.setattr(Storage, "read", counted)
    handle = Handle.of(table.state, SystemClock())
    read.clear()
    open_for_service(handle, SystemClock(), changes=True)
    for path in (".hoodie/hoodie.properties", ".hoodie/.index_defs/index.json"):
        assert read.count(path) == 1, read
