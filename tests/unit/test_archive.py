"""Archived timelines: both formats in real tables, spans of them, and damage."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import pyhudi
from pyhudi import _native
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CorruptTable, UnsupportedTableFeature
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline
from pyhudi.timeline.archive import Archive
from pyhudi.timeline.instant_range import InstantRange
from tests.helpers.tables import GoldenTables, facts, names, unpack

ARCHIVED = [name for name in names() if facts(name)["archived"]]
LOGS = "v6_cow_archived"
LSM = "v9_mor_archived"


def archive(base: Path) -> Archive:
    storage = Storage(str(base))
    return Archive(storage, TableConfig.load(storage))


def completed(name: str) -> list[tuple[str, str]]:
    return sorted(
        (one["requested"], one["action"])
        for one in facts(name)["archived"]
        if one["state"] == "COMPLETED"
    )


@pytest.mark.parametrize("name", ARCHIVED)
def test_has_what_hudi_archived(name: str, golden: GoldenTables) -> None:
    found = archive(golden.unpack(name)).instants()
    assert [(one.requested, one.action) for one in found] == completed(name)


@pytest.mark.parametrize("name", ARCHIVED)
def test_knows_what_an_archived_commit_wrote(name: str, golden: GoldenTables) -> None:
    past = archive(golden.unpack(name))
    for commit in past.commits():
        metadata = past.commit_metadata(commit)
        assert metadata.schema
        assert all(stat.path and stat.file_size_in_bytes > 0 for stat in metadata.write_stats)
        assert metadata.operation_type in ("INSERT", "UPSERT", "COMPACT", "BULK_INSERT")


@pytest.mark.parametrize("name", ARCHIVED)
def test_knows_when_an_archived_instant_was_completed(name: str, golden: GoldenTables) -> None:
    past = archive(golden.unpack(name))
    for one in past.instants():
        assert one.completed is not None
        assert one.completed > one.requested
        assert past.completion_time(one.requested) == one.completed


@pytest.mark.parametrize("name", [LOGS, LSM])
@pytest.mark.parametrize("by_completion", [False, True])
def test_gives_the_instants_of_a_span(name: str, by_completion: bool, golden: GoldenTables) -> None:
    past = archive(golden.unpack(name))
    everything = past.instants()
    third, fifth = everything[2], everything[4]
    after, until = third.requested, fifth.requested
    if by_completion:
        after, until = third.completed or "", fifth.completed or ""
    assert past.instants(InstantRange(after, until, by_completion)) == everything[3:5]
    assert past.instants(InstantRange(None, after, by_completion)) == everything[:3]
    assert past.instants(InstantRange(until, None, by_completion)) == everything[5:]


def test_reads_no_file_twice_that_a_span_cannot_touch(tmp_path: Path) -> None:
    base = unpack(LSM, tmp_path)
    storage = Storage(str(base))
    config = TableConfig.load(storage)
    everything = Archive(storage, config).instants()
    early, late = everything[0], everything[-1]
    assert early.file_name < late.file_name
    file = f".hoodie/timeline/history/{late.file_name}"
    until_early = InstantRange(until=early.requested)
    assert early in Archive(storage, config).instants(until_early)
    (base / file).write_bytes(b"damaged")
    assert early in Archive(storage, config).instants(until_early)
    for past, incremental_range in (
        (archive(base), until_early),
        (Archive(storage, config), InstantRange(after=early.requested)),
    ):
        with pytest.raises(CorruptTable) as raised:
            past.instants(incremental_range)
        assert raised.value.file == file


@pytest.mark.parametrize("name", ["v6_cow_nonpart", "v9_cow_nonpart"])
def test_is_empty_in_a_young_table(name: str, golden: GoldenTables) -> None:
    past = archive(golden.unpack(name))
    assert past.instants() == ()
    assert past.last_clean() is None


@pytest.mark.parametrize("name", [LOGS, LSM])
def test_finds_the_last_clean(name: str, golden: GoldenTables) -> None:
    past = archive(golden.unpack(name))
    clean = past.last_clean()
    assert clean is not None
    assert clean.requested == max(time for time, action in completed(name) if action == "clean")
    assert "earliestCommitToRetain" in (past.read(clean) or {})


def test_archive_counts_repeated_log_once(tmp_path: Path) -> None:
    base = unpack(LOGS, tmp_path)
    folder = base / ".hoodie/archived"
    shutil.copy(folder / ".commits_.archive.2_1-0-1", folder / ".commits_.archive.12_1-0-1")
    found = archive(base).instants()
    assert [(one.requested, one.action) for one in found] == completed(LOGS)


def test_archive_torn_log_loses_last_block_only(tmp_path: Path) -> None:
    base = unpack(LOGS, tmp_path)
    torn = base / ".hoodie/archived/.commits_.archive.6_1-0-1"
    torn.write_bytes(torn.read_bytes()[:-20])
    found = [(one.requested, one.action) for one in archive(base).instants()]
    assert 0 < len(found) < len(completed(LOGS))
    assert set(found) < set(completed(LOGS))


def test_archive_names_file_of_damaged_record(tmp_path: Path) -> None:
    base, path = unpack(LOGS, tmp_path), ".hoodie/archived/.commits_.archive.1_1-0-1"
    start = _native.log_blocks(Storage(str(base)).native, path)[0]["content_offset"]
    data = bytearray((base / path).read_bytes())
    data[start + 8 : start + 12] = b"\x7f\xff\xff\xff"  # the length of the first record
    (base / path).write_bytes(data)
    with pytest.raises(CorruptTable) as raised:
        archive(base).instants()
    assert raised.value.file == path


def test_archive_refuses_other_block_type(tmp_path: Path) -> None:
    base = unpack(LOGS, tmp_path)
    block = _native.rollback_block("20260101000000000", "20260102000000000")
    (base / ".hoodie/archived/.commits_.archive.7_1-0-1").write_bytes(block)
    with pytest.raises(UnsupportedTableFeature, match=r"archive\.7"):
        archive(base).instants()


@pytest.mark.parametrize("name", [LOGS, LSM])
def test_inspect_shows_it_on_demand(name: str, golden: GoldenTables) -> None:
    inspect = pyhudi.open_table(golden.unpack(name)).inspect
    active, everything = inspect.timeline(), inspect.timeline(archived=True)
    assert everything.num_rows == active.num_rows + len(completed(name))
    assert everything["requested"].to_pylist() == sorted(everything["requested"].to_pylist())
    assert set(everything["state"].to_pylist()) == {"COMPLETED"}


def test_is_not_read_by_a_snapshot(tmp_path: Path) -> None:
    base = unpack(LOGS, tmp_path)
    for path in (base / ".hoodie/archived").glob(".commits_.archive.*"):
        path.write_bytes(b"damaged")
    assert pyhudi.open_table(base).scan().count() == facts(LOGS)["expected"]["snapshot"]["count"]
    with pytest.raises(CorruptTable):
        Timeline.load(Storage(str(base)), TableConfig.load(Storage(str(base)))).archive.instants()
