"""Archiving: the files of both formats, merged and cleaned, and which instants go."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi import _native
from pyhudi.config.actions import CLEAN, COMMIT, COMPACTION, DELTA_COMMIT, State
from pyhudi.config.option_parsing import option_names
from pyhudi.config.options import check_options
from pyhudi.config.retention_options import ArchiveOptions, CleanOptions, HistoryOptions
from pyhudi.config.table_config import TableConfig
from pyhudi.config.timeline_layout import LAYOUT_1, LAYOUT_2, TimelineLayout
from pyhudi.errors import ConfigError, CorruptTable, MetadataTableWarning, UnsupportedTableFeature
from pyhudi.services import archiving as service
from pyhudi.services.archiving import ArchivingPolicy
from pyhudi.storage.storage import Storage
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline, archiving
from pyhudi.timeline.archive_lsm import LsmHistory
from pyhudi.timeline.archive_lsm_write import ArchivedInstant, add_to_history, merge_and_clean
from pyhudi.timeline.lsm_manifest import current_manifest, manifest_numbers
from tests.helpers.metadata_table import metadata_table
from tests.helpers.tables import unpack
from tests.unit.memory_storage import MemoryStorage
from tests.unit.test_savepoints import made, timeline_of

HISTORY = HistoryOptions()
FOLDER = "history"
TABLES = ["v6_cow_archived", "v6by12_cow_archived", "v8_cow_archived", "v9_mor_archived"]


NAMED = {"hoodie.table.name": "t", "hoodie.table.type": "MERGE_ON_READ"}


def time(number: int) -> str:
    return f"{20260101000000000 + number}"


def one(number: int, size: int = 10) -> ArchivedInstant:
    text = f"{number:0{size}}".encode()
    return ArchivedInstant(time(number), time(number + 5), DELTA_COMMIT, text, None)


def history(storage: Storage) -> list[str]:
    return sorted(instant.requested for instant in LsmHistory(storage, FOLDER).instants(None))


# --- the LSM history ------------------------------------------------------------------------------


def test_files_are_merged_level_by_level_and_all_instants_stay(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    for number in range(0, 222, 2):
        add_to_history(storage, FOLDER, [one(number + 1), one(number)])
        merge_and_clean(storage, FOLDER, HISTORY)
        assert history(storage) == [time(n) for n in range(number + 2)]
    names = sorted(path.name for path in (tmp_path / FOLDER).glob("*.parquet"))
    listed = current_manifest(storage, FOLDER).files
    assert [name[-9] for name in sorted(listed, key=lambda name: name[-9])] == ["0", "1", "2"]
    assert f"{time(0)}_{time(199)}_2.parquet" in listed
    assert all((tmp_path / FOLDER / name).stat().st_size == size for name, size in listed.items())
    # What the newest manifests name is there, and nothing else.
    assert len(manifest_numbers(storage, FOLDER)) <= 5
    assert set(listed) <= set(names)
    assert len(names) < 25
    rows = pq.read_table(tmp_path / FOLDER / f"{time(0)}_{time(199)}_2.parquet").to_pylist()
    assert [row["metadata"] for row in rows] == [f"{n:010}".encode() for n in range(200)]


def test_archive_file_has_avro_header(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    add_to_history(storage, FOLDER, [one(1)])
    (path,) = (tmp_path / FOLDER).glob("*.parquet")
    facts = pq.read_metadata(path).metadata
    assert facts[b"writer.model.name"] == b"avro"
    assert json.loads(facts[b"parquet.avro.schema"])["name"] == "HoodieLSMTimelineInstant"


def test_archive_adds_each_instant_once(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    for _ in range(2):
        add_to_history(storage, FOLDER, [one(1), one(2)])
    assert current_manifest(storage, FOLDER).number == 1
    add_to_history(storage, FOLDER, [])
    assert history(storage) == [time(1), time(2)]


def test_archive_does_not_merge_large_files(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    add_to_history(storage, FOLDER, [ArchivedInstant(time(0), time(1), COMMIT, _noise(9_000))])
    for number in range(1, 10):
        add_to_history(storage, FOLDER, [one(number)])
    merge_and_clean(storage, FOLDER, HistoryOptions(merged_bytes=8_000))
    names = sorted(current_manifest(storage, FOLDER).files)
    assert names[0] == f"{time(0)}_{time(0)}_0.parquet"
    assert any(name.endswith("_1.parquet") for name in names)
    assert history(storage) == [time(number) for number in range(10)]


def test_archive_merge_stops_at_size_limit(tmp_path: Path) -> None:
    """As Hudi, which checks the size after it has added a file, and reads all files of a level."""
    storage = Storage(str(tmp_path))
    for number in range(2):
        large = ArchivedInstant(time(number), time(9), COMMIT, _noise(9_000))
        add_to_history(storage, FOLDER, [large])
    for number in range(2, 5):
        add_to_history(storage, FOLDER, [one(number)])
    merge_and_clean(storage, FOLDER, HistoryOptions(merged_files=4, merged_bytes=3_000))
    # The first two are left where they are; the third and the fourth are more than that together.
    names = sorted(current_manifest(storage, FOLDER).files)
    assert names == [
        f"{time(0)}_{time(0)}_0.parquet",
        f"{time(1)}_{time(1)}_0.parquet",
        f"{time(2)}_{time(3)}_1.parquet",
        f"{time(4)}_{time(4)}_0.parquet",
    ]
    assert history(storage) == [time(number) for number in range(5)]


@pytest.mark.parametrize(("merged", "levels"), [(1, {0}), (2, {1, 2, 3}), (3, {0, 1, 2})])
def test_archive_merges_file_count_and_keeps_manifest_count(
    tmp_path: Path, merged: int, levels: set[int]
) -> None:
    storage, options = Storage(str(tmp_path)), HistoryOptions(merged_files=merged, kept_manifests=2)
    kept = set()
    for number in range(14):
        add_to_history(storage, FOLDER, [one(number)])
        merge_and_clean(storage, FOLDER, options)
        kept.add(len(manifest_numbers(storage, FOLDER)))
    found = current_manifest(storage, FOLDER).files
    assert {int(name[-9]) for name in found} == levels
    # And those of the merges that were just done.
    assert max(kept) == 2 + (max(levels) if merged > 1 else 0)
    assert history(storage) == [time(number) for number in range(14)]


def test_archive_options_refuse_bad_numbers_and_removed_names() -> None:
    for name in option_names(HistoryOptions):
        with pytest.raises(ConfigError, match=name):
            check_options({name: "0"})
    with pytest.raises(
        ConfigError, match=r"archive\.merge\.enable[^$]*timeline\.compaction\.batch\.size"
    ):
        check_options({"hoodie.archive.merge.enable": "true"})


def _noise(size: int) -> bytes:
    import random

    return random.Random(size).randbytes(size)


@pytest.mark.parametrize("change", range(1, 8))
def test_archive_crash_loses_and_repeats_no_instant(change: int) -> None:
    storage = MemoryStorage()
    for number in range(3):
        add_to_history(storage, FOLDER, [one(number)])
    storage.changes, storage.fail_at = 0, change
    try:
        add_to_history(storage, FOLDER, [one(3)])
        merge_and_clean(storage, FOLDER, HISTORY)
    except ConnectionError:
        storage.fail_at = 0
        add_to_history(storage, FOLDER, [one(3)])
        merge_and_clean(storage, FOLDER, HISTORY)
    names = [f"{time(number)}_{time(number)}_0.parquet" for number in range(4)]
    assert sorted(current_manifest(storage, FOLDER).files) == names
    assert all(f"{FOLDER}/{name}" in storage.files for name in names)


def test_archive_names_damaged_manifest() -> None:
    storage = MemoryStorage({f"{FOLDER}/_version_": b"4", f"{FOLDER}/manifest_4": b"{}"})
    with pytest.raises(CorruptTable, match="manifest_4"):
        current_manifest(storage, FOLDER)
    assert current_manifest(MemoryStorage(), FOLDER).number == 0
    storage = MemoryStorage({f"{FOLDER}/manifest_{n}": b'{"files": []}' for n in (9, 10)})
    assert current_manifest(storage, FOLDER).number == 10


# --- both formats, in metadata tables of Hudi -----------------------------------------------------


@pytest.mark.parametrize("name", TABLES)
def test_archived_instants_keep_their_content(name: str, tmp_path: Path) -> None:
    base = unpack(name, tmp_path)
    own = metadata_table(Storage(str(base)))
    before = own.timeline.archive.instants()
    gone = own.timeline.filter_completed()[:6]
    assert {one.action for one in gone} >= {COMMIT, DELTA_COMMIT}
    said = {one.requested: own.timeline.commit_metadata(one) for one in gone}
    times = [own.timeline.completion_time(one.requested) for one in gone]
    archiving.archive(own.storage, own.config, own.timeline, gone, HISTORY)
    after = own.reload().timeline
    assert after.filter_completed() == own.timeline.filter_completed()[6:]
    assert not after.pending()
    found = after.archive.instants()
    assert [one.requested for one in found] == [one.requested for one in (*before, *gone)]
    assert [after.archive.completion_time(one.requested) for one in gone] == times
    for one in found[len(before) :]:
        metadata = after.archive.commit_metadata(one)
        assert metadata.write_stats
        assert [stat.path for stat in metadata.write_stats] == [
            stat.path for stat in said[one.requested].write_stats
        ]
    assert pyhudi.open_table(str(base)).check(deep=True).ok


def test_archive_log_block_has_ten_records(tmp_path: Path) -> None:
    base = unpack("v6_cow_archived", tmp_path)
    own = metadata_table(Storage(str(base)))
    archiving.archive(
        own.storage, own.config, own.timeline, own.timeline.filter_completed()[:5], HISTORY
    )
    folder = own.config.history_folder
    newest = f"{folder}/.commits_.archive.5_1-0-1"
    blocks = _native.log_blocks(own.storage.native, newest)
    assert [list(block["header"]) for block in blocks] == [["SCHEMA"]] * 2
    assert len(_native.log_records(own.storage.native, newest)) == 15


def test_archive_keeps_unsupported_actions(tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = made(base, 6)
    table.savepoint("saved")
    timeline = timeline_of(base)
    with pytest.raises(UnsupportedTableFeature, match="savepoint"):
        archiving.archive(
            table.storage, table.config, timeline, timeline.filter_completed(), HISTORY
        )
    assert timeline_of(base).instants == timeline.instants


# --- which instants -------------------------------------------------------------------------------


def timeline(layout: TimelineLayout, *instants: tuple[int, str, State]) -> Timeline:
    """Completed ones take no time."""
    storage = MemoryStorage()
    for number, action, state in instants:
        for reached in list(State)[: state.rank + 1]:
            name = layout.file_name(time(number), action, reached, time(number))
            storage.files[layout.path(name)] = b""
    version = {"hoodie.table.version": "6" if layout is LAYOUT_1 else "9"}
    config = TableConfig(NAMED | version)
    return Timeline.load(storage, config)


def deltas(*numbers: int) -> list[tuple[int, str, State]]:
    return [(number, DELTA_COMMIT, State.COMPLETED) for number in numbers]


def chosen(own: Timeline, least: int, compact_after: int = 10) -> list[int]:
    table = cast(TableSnapshot, SimpleNamespace(timeline=own))
    policy = ArchivingPolicy(least, least + 1, CleanOptions(), compact_after)
    found = service._choose_commits(table, policy, least).instants
    return [int(one.requested) - int(time(0)) for one in found]


@pytest.mark.parametrize("layout", [LAYOUT_1, LAYOUT_2])
def test_archive_keeps_needed_commits(layout: TimelineLayout) -> None:
    compacted = (5, COMPACTION, State.COMPLETED)
    some = [*deltas(1, 2, 3, 4), compacted, *deltas(6, 7, 8)]
    assert chosen(timeline(layout, *some), least=2) == [1, 2, 3, 4]
    assert chosen(timeline(layout, *some), least=6) == [1, 2]
    # The next compaction counts three delta commits from the sixth on.
    assert chosen(timeline(layout, *some), least=1, compact_after=3) == [1, 2, 3, 4, 5]
    pending = (3, DELTA_COMMIT, State.INFLIGHT)
    assert chosen(timeline(layout, *deltas(1, 2), pending, *some[3:]), least=1) == [1]
    assert chosen(timeline(layout, pending, *deltas(4, 5, 6)), least=1) == []
    # Nothing was compacted yet: all of them count.
    assert chosen(timeline(layout, *deltas(*range(1, 9))), least=1) == []
    assert chosen(timeline(layout, *deltas(*range(1, 9))), least=1, compact_after=3) == [
        1,
        2,
        3,
        4,
        5,
    ]


def test_archive_keeps_instants_pending_writes_need() -> None:
    """The second commit was requested before the third, and complete after the fourth began."""
    storage = MemoryStorage()
    pending = LAYOUT_2.file_name(time(40), COMMIT, State.REQUESTED, "")
    names = [
        LAYOUT_2.file_name(time(begun), COMMIT, State.COMPLETED, time(done))
        for begun, done in [(10, 11), (20, 45), (30, 31), (50, 51), (60, 61)]
    ]
    storage.files = {LAYOUT_2.path(name): b"" for name in (pending, *names)}
    own = Timeline.load(storage, TableConfig({"hoodie.table.version": "9"} | NAMED))
    assert chosen(own, least=1) == [10]


def test_archive_keeps_instants_cleaning_retains() -> None:
    policy = ArchivingPolicy(4, 8, CleanOptions(commits=20), compact_after=10)
    assert service._commit_limits(timeline(LAYOUT_2, *deltas(*range(20))), policy) == (4, 8)
    assert service._commit_limits(timeline(LAYOUT_2, *deltas(*range(24))), policy) == (21, 25)
    policy = replace(policy, min_commits=21, max_commits=31)
    assert service._commit_limits(timeline(LAYOUT_2, *deltas(*range(24))), policy) == (21, 31)


def test_archive_counts_services_separately_up_to_version_6() -> None:
    cleans = [(number, CLEAN, State.COMPLETED) for number in range(8)]
    gone = service._choose_services(timeline(LAYOUT_1, *cleans), min_commits=3, max_commits=7)
    assert [one.requested for one in gone] == [time(number) for number in range(5)]
    assert service._choose_services(timeline(LAYOUT_1, *cleans), min_commits=3, max_commits=8) == []
    assert service._choose_services(timeline(LAYOUT_2, *cleans), min_commits=3, max_commits=7) == []


@pytest.mark.parametrize("name", TABLES)
def test_metadata_archive_keeps_instants_of_data_table(name: str, tmp_path: Path) -> None:
    base = unpack(name, tmp_path)
    options = {
        "hoodie.metadata.compact.max.delta.commits": "2",
        "hoodie.keep.min.commits": "1",
        "hoodie.keep.max.commits": "2",
    }
    table = pyhudi.open_table(str(base), options=options)
    start = min(one.requested for one in table.state.timeline.commits)
    before = len(metadata_table(table.storage).timeline.archive.instants())
    table.upsert(table.scan().to_arrow().slice(0, 2))
    own = metadata_table(table.storage)
    archived = own.timeline.archive.instants()
    assert len(archived) > before
    assert max(one.requested for one in archived) < start
    times = {one.requested for one in own.timeline.filter_completed(DELTA_COMMIT)}
    assert times >= {one.requested for one in table.refresh().state.timeline.commits}
    found = table.check(deep=True)
    assert found.ok, str(found)


def test_archive_failure_is_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise OSError("no space")

    monkeypatch.setattr(service, "archive", broken)
    options = {
        "hoodie.metadata.compact.max.delta.commits": "2",
        "hoodie.keep.min.commits": "1",
        "hoodie.keep.max.commits": "2",
    }
    table = pyhudi.open_table(str(unpack("v9_mor_archived", tmp_path)), options=options)
    with pytest.warns(MetadataTableWarning, match="no space"):
        table.upsert(table.scan().to_arrow().slice(0, 2))
    assert table.check(deep=True).ok


def test_options_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"hoodie\.keep\.max\.commits is 20, not more than"):
        ArchiveOptions.of({"hoodie.keep.max.commits": "20"})
    with pytest.raises(ConfigError, match=r"hoodie\.keep\.min\.commits"):
        ArchiveOptions.of({"hoodie.keep.min.commits": "few"})
    assert ArchiveOptions.of({"hoodie.keep.min.commits": "25"}).max_commits == 30
    options = ArchiveOptions()
    assert (options.keeping(3, None).max_commits, options.keeping(None, 40).min_commits) == (13, 30)
    assert options.keeping(None, 5).min_commits == 1
    with pytest.raises(ConfigError, match="not more than"):
        options.keeping(5, 5)
