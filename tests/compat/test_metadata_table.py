"""The metadata tables of golden tables: what they say is so, and damage to them costs no row."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.config.metadata_names import COLUMN_STATS, PARTITION_STATS, RECORD_INDEX
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import MetadataTableWarning
from pyhudi.metadata.reader import MetadataTable
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.listing import GivenFiles
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline
from tests.helpers.refused import REFUSED
from tests.helpers.rows import canonical_rows
from tests.helpers.tables import GoldenTables, names, unpack

pytestmark = pytest.mark.in_parts

NO_METADATA = {"hoodie.metadata.enable": "false"}
ALL_STATS = ["v6_cow_all_stats", "v9_cow_all_stats", "v9_mor_all_stats"]
WITH_LOCATIONS = [*ALL_STATS, "v6_cow_record_index", "v9_cow_record_index", "v9_mor_record_index"]


def readable() -> list[str]:
    return [name for name in names() if name not in REFUSED]


def opened(golden: GoldenTables, name: str) -> tuple[HudiTable, MetadataTable]:
    table = pyhudi.open_table(str(golden.unpack(name)))
    state = table.state
    return table, MetadataTable(state.storage, state.config, state.timeline)


def as_lines(table: HudiTable, *, read_optimized: bool = False) -> list[str]:
    rows = table.scan(meta_fields=True, read_optimized=read_optimized).to_arrow()
    return sorted(canonical_rows(rows))


@pytest.mark.parametrize("read_optimized", [False, True])
@pytest.mark.parametrize("name", readable())
def test_rows_are_the_same_with_and_without_it(
    name: str, read_optimized: bool, golden: GoldenTables
) -> None:
    base = str(golden.unpack(name))
    plain, used = pyhudi.open_table(base, options=NO_METADATA), pyhudi.open_table(base)
    expected = as_lines(plain, read_optimized=read_optimized)
    assert as_lines(used, read_optimized=read_optimized) == expected
    by_metadata = "by the metadata table" in str(used.scan().explain())
    assert by_metadata == ("files" in used.config.metadata_partitions)


@pytest.mark.parametrize("name", readable())
def test_metadata_files_lists_every_committed_base_file(name: str, golden: GoldenTables) -> None:
    table = pyhudi.open_table(str(golden.unpack(name)))
    if "files" not in table.config.metadata_partitions:
        pytest.skip("no metadata table")
    _, metadata = opened(golden, name)
    state = table.state
    facts = (state.storage, state.config, state.timeline)
    listed = FileSystemView(*facts)
    files = GivenFiles(metadata.data_files(metadata.data_partitions()))
    known = FileSystemView(*facts, files=files)
    assert known.partitions == listed.partitions
    assert [one.base for one in known.all_slices()] == [one.base for one in listed.all_slices()]


@pytest.mark.parametrize("name", ["v6_cow_all_stats", "v9_cow_all_stats"])
def test_statistics_are_those_of_the_data(name: str, golden: GoldenTables) -> None:
    table, metadata = opened(golden, name)
    slices = FileSystemView(*_facts(table)).slices()
    checked = 0
    for one in slices:
        if one.logs or one.base is None:
            continue
        where = [("_hoodie_file_name", "=", one.base.name)]
        rows = table.scan(where=where, meta_fields=True).to_arrow()
        for column in ("id", "name", "age", "amount", "ts", "city", "_hoodie_commit_time"):
            values = rows[column]
            stats = metadata.partition(COLUMN_STATS).stats(
                column, values.type, pa.array([one.partition]), pa.array([one.base.name])
            )
            found = {key: values[0] for key, values in stats.to_pydict().items()}
            assert found["value_count"] == len(values), column
            assert found["null_count"] == values.null_count, column
            assert (found["min"], found["max"]) == (
                pc.min(values).as_py(),
                pc.max(values).as_py(),
            ), column
            checked += 1
    assert checked


@pytest.mark.parametrize("name", ["v9_cow_all_stats", "v9_cow_event_time", "v8_cow_event_time"])
def test_partition_statistics_hold_for_all_rows(name: str, golden: GoldenTables) -> None:
    table, metadata = opened(golden, name)
    rows = table.scan(meta_fields=True).to_arrow()
    for path in metadata.data_partitions():
        inside = rows.filter(pc.field("_hoodie_partition_path") == path)
        for column in ("id", "ts"):
            stats = metadata.partition(PARTITION_STATS).stats(
                column, inside[column].type, pa.array([path])
            )
            assert stats["min"][0].is_valid
            assert stats["min"][0].as_py() <= pc.min(inside[column]).as_py()
            assert stats["max"][0].as_py() >= pc.max(inside[column]).as_py()


@pytest.mark.parametrize("name", WITH_LOCATIONS)
def test_record_index_names_file_group_of_each_key(name: str, golden: GoldenTables) -> None:
    table, metadata = opened(golden, name)
    columns = ["_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"]
    rows = table.scan(columns=columns).to_arrow().to_pylist()
    index = metadata.partition(RECORD_INDEX)
    found = {row["key"]: row for row in index.locations([r[columns[0]] for r in rows]).to_pylist()}
    for key, partition, file in (tuple(row.values()) for row in rows):
        assert found[key]["partition"] == partition
        assert file.startswith(found[key]["file_id"])
    assert index.locations(["no such key"]).num_rows == 0
    assert {row["key"] for row in index.locations().to_pylist()} == found.keys()


Damage = Callable[[Path], None]


def gone(metadata: Path) -> None:
    shutil.rmtree(metadata)


def without_properties(metadata: Path) -> None:
    (metadata / ".hoodie/hoodie.properties").unlink()


def behind(metadata: Path) -> None:
    newest = max(
        (p for p in metadata.rglob("*.deltacommit") if not p.name.startswith("0000")),
        key=lambda path: path.name,
    )
    for path in newest.parent.glob(newest.name[:17] + "*"):
        path.unlink()


def newest_log(metadata: Path) -> Path:
    return max((metadata / "files").glob(".files-*.log.*"), key=_log_order)


def _log_order(path: Path) -> tuple[str, int]:
    match = re.search(r"_(\d+)\.log\.(\d+)", path.name)
    assert match
    return match[1], int(match[2])


def without_a_log(metadata: Path) -> None:
    newest_log(metadata).unlink()


def cut_log(metadata: Path) -> None:
    log = newest_log(metadata)
    log.write_bytes(log.read_bytes()[:-100])


def empty_log(metadata: Path) -> None:
    newest_log(metadata).write_bytes(b"")


def scrambled_log(metadata: Path) -> None:
    log = newest_log(metadata)
    data = bytearray(log.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 2000] = bytes(2000)
    log.write_bytes(bytes(data))


def without_base(metadata: Path) -> None:
    for path in (metadata / "files").glob("*.hfile"):
        path.unlink()


def cut_base(metadata: Path) -> None:
    for path in (metadata / "files").glob("*.hfile"):
        path.write_bytes(path.read_bytes()[:-10])


def torn_commit(metadata: Path) -> None:
    newest = max(metadata.rglob("2*.deltacommit"), key=lambda path: path.name)
    newest.write_bytes(newest.read_bytes()[:40])


DAMAGES: list[Damage] = [
    gone,
    without_properties,
    behind,
    without_a_log,
    cut_log,
    empty_log,
    scrambled_log,
    without_base,
    cut_base,
    torn_commit,
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("name", ["v6_mor_compaction", "v9_cow_all_stats", "v9_mor_archived"])
def test_damage_costs_a_warning_and_no_row(name: str, damage: Damage, tmp_path: Path) -> None:
    base = unpack(name, tmp_path)
    expected = as_lines(pyhudi.open_table(str(base), options=NO_METADATA))
    damage(base / ".hoodie/metadata")
    with pytest.warns(MetadataTableWarning, match=r"metadata table is not used"):
        assert as_lines(pyhudi.open_table(str(base))) == expected


@pytest.mark.parametrize("part", ["column_stats", "partition_stats", "record_index"])
def test_damage_to_an_index_costs_a_warning_and_no_row(part: str, tmp_path: Path) -> None:
    base = unpack("v9_cow_all_stats", tmp_path)
    for log in (base / ".hoodie/metadata" / part).glob(".*.log.*"):
        log.write_bytes(log.read_bytes()[:-200])
    table = pyhudi.open_table(str(base))
    # Of keys that are given the record index is asked first, and then no other.
    where = "id = 'k001'" if part == "record_index" else "id >= 'k001' AND id <= 'k001'"
    with pytest.warns(MetadataTableWarning, match=part):
        assert table.scan(where=where).count() == 1


def test_metadata_reader_ignores_uncommitted_delta_commit(tmp_path: Path) -> None:
    """As after a crash between the metadata table's commit and the table's own."""
    base = unpack("v9_cow_all_stats", tmp_path)
    newest = max((base / ".hoodie/timeline").glob("*_*.commit"), key=lambda path: path.name)
    newest.unlink()
    plain, used = pyhudi.open_table(str(base), options=NO_METADATA), pyhudi.open_table(str(base))
    assert as_lines(used) == as_lines(plain)
    _, metadata = used, MetadataTable(*_facts(used))
    instant = newest.name[:17]
    listed = metadata.partition("files").files()["name"].to_pylist()
    assert not [name for name in listed if instant in name]
    assert used.scan(where="id >= 'k000'").count() == plain.scan(where="id >= 'k000'").count()


def _facts(table: HudiTable) -> tuple[Storage, TableConfig, Timeline]:
    state = table.state
    return (state.storage, state.config, state.timeline)
