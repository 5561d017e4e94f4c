"""Loading timelines of both layouts: names, states, and the questions readers ask."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.clock import SystemClock
from pyhudi.config.table_config import TableConfig
from pyhudi.config.timeline_layout import LAYOUT_1, LAYOUT_2, TimelineLayout
from pyhudi.errors import CorruptTable
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Instant, State, Timeline
from pyhudi.timeline.serde import encode_container
from tests.helpers.tables import GoldenTables, facts, names
from tests.unit.memory_storage import MemoryStorage

LAYOUTS = [LAYOUT_1, LAYOUT_2]
OLD = {
    "hoodie.table.name": "t",
    "hoodie.table.version": "6",
    "hoodie.table.timeline.timezone": "UTC",
}
NEW = {**OLD, "hoodie.table.version": "9"}


def timeline(properties: dict[str, str], *file_names: str, modified_ms: int = 0) -> Timeline:
    config = TableConfig(properties)
    files = {config.layout.path(name): b"" for name in file_names}
    return Timeline.load(MemoryStorage(files, modified_ms=modified_ms), config)


def summary(loaded: Timeline) -> list[tuple[str, str, str]]:
    return [(i.requested, i.action, i.state.value.lower()) for i in loaded.instants]


class TestNames:
    @pytest.mark.parametrize("layout", LAYOUTS)
    @pytest.mark.parametrize(
        ("name", "action", "state"),
        [
            ("1.commit.requested", "commit", State.REQUESTED),
            ("1.inflight", "commit", State.INFLIGHT),
            ("1.commit", "commit", State.COMPLETED),
            ("1.deltacommit.inflight", "deltacommit", State.INFLIGHT),
            ("1.compaction.requested", "compaction", State.REQUESTED),
            ("1.logcompaction.inflight", "logcompaction", State.INFLIGHT),
            ("1.replacecommit.inflight", "replacecommit", State.INFLIGHT),
            ("1.savepoint", "savepoint", State.COMPLETED),
            ("1.indexing", "indexing", State.COMPLETED),
        ],
    )
    def test_file_names_of_both_layouts_parse(
        self, layout: TimelineLayout, name: str, action: str, state: State
    ) -> None:
        parsed = layout.parse(name)
        assert parsed is not None
        assert (parsed.requested, parsed.action, parsed.state) == ("1", action, state)
        assert parsed.completed is None

    @pytest.mark.parametrize("layout", LAYOUTS)
    @pytest.mark.parametrize(
        "name",
        [
            "hoodie.properties",
            "1.commit.0a1b2c3d-1111-4222-8333-444455556666",
            ".1.commit.crc",
            "1.commit.crc",
            "1.commits",
            "1.compaction",
            "1.clustering",
            "1.logcompaction",
            "1_2.commit.inflight",
            "1_2.inflight",
            "1_2_3.commit",
            "x.commit",
            "1",
            "1.requested",
            "1.parquet",
            "\N{ARABIC-INDIC DIGIT ONE}.commit",
        ],
    )
    def test_foreign_file_names_are_ignored(self, layout: TimelineLayout, name: str) -> None:
        assert layout.parse(name) is None

    def test_layout_2_file_names_parse(self) -> None:
        for name in ("1_2.commit", "1_2.replacecommit", "1.clustering.requested"):
            assert LAYOUT_1.parse(name) is None
            assert LAYOUT_2.parse(name) is not None

    def test_completion_time(self) -> None:
        parsed = LAYOUT_2.parse("1_2.deltacommit")
        assert parsed is not None
        assert (parsed.requested, parsed.completed) == ("1", "2")

    @pytest.mark.parametrize("layout", LAYOUTS)
    @pytest.mark.parametrize("state", list(State))
    @pytest.mark.parametrize("action", ["commit", "deltacommit", "rollback", "compaction"])
    def test_made_names_parse_back(self, layout: TimelineLayout, state: State, action: str) -> None:
        parsed = layout.parse(layout.file_name("1", action, state, "2"))
        assert parsed is not None
        assert parsed.requested == "1"
        assert parsed.state is state
        done = "commit" if action == "compaction" and state is State.COMPLETED else action
        assert parsed.action == done


class TestStates:
    def test_furthest_state_counts(self) -> None:
        loaded = timeline(
            OLD, "1.commit.requested", "1.inflight", "1.commit", "2.commit.requested", "2.inflight"
        )
        assert summary(loaded) == [("1", "commit", "completed"), ("2", "commit", "inflight")]
        assert [i.requested for i in loaded.filter_completed()] == ["1"]
        assert [i.file_name for i in loaded.pending("commit")] == ["2.inflight"]
        assert loaded.pending("deltacommit") == ()

    def test_completed_compaction_is_a_commit(self) -> None:
        states = ("1.compaction.requested", "1.compaction.inflight")
        assert summary(timeline(OLD, *states)) == [("1", "compaction", "inflight")]
        assert summary(timeline(OLD, *states, "1.commit")) == [("1", "commit", "completed")]
        assert summary(timeline(NEW, *states, "1_2.commit")) == [("1", "commit", "completed")]

    def test_completed_clustering_is_a_replace_commit(self) -> None:
        states = ("1.clustering.requested", "1.clustering.inflight")
        assert summary(timeline(NEW, *states)) == [("1", "clustering", "inflight")]
        assert summary(timeline(NEW, *states, "1_2.replacecommit")) == [
            ("1", "replacecommit", "completed")
        ]

    def test_savepoint_stands_beside_its_commit(self) -> None:
        loaded = timeline(OLD, "1.commit", "1.savepoint.inflight", "1.savepoint")
        assert summary(loaded) == [("1", "commit", "completed"), ("1", "savepoint", "completed")]

    def test_pending_compactions(self) -> None:
        loaded = timeline(NEW, "1.compaction.requested", "2.logcompaction.requested")
        assert loaded.times_of_pending_compactions() == {"1"}

    def test_find(self) -> None:
        loaded = timeline(NEW, "1.compaction.requested", "2_3.commit")
        assert loaded.find("1", "compaction") == loaded.instants[0]
        assert loaded.find("2", "compaction") == loaded.instants[1]
        assert loaded.find("2", "clean") is None

    def test_instant_lists_all_its_files(self) -> None:
        loaded = timeline(NEW, "1.compaction.requested", "1.compaction.inflight", "1_2.commit")
        assert [file.file_name for file in loaded.files(loaded.instants[0])] == [
            "1.compaction.requested",
            "1.compaction.inflight",
            "1_2.commit",
        ]


class TestCommitted:
    def test_completed_commit(self) -> None:
        loaded = timeline(NEW, "3_4.commit", "5.deltacommit.inflight", "6_7.clean")
        assert loaded.is_committed("3")
        assert not loaded.is_committed("5")
        assert not loaded.is_committed("6")
        assert loaded.last_commit == Instant("3", "commit", State.COMPLETED, "4", "3_4.commit")

    def test_older_than_the_timeline_was_archived(self) -> None:
        loaded = timeline(NEW, "3_4.commit")
        assert loaded.is_committed("2")
        assert not loaded.is_committed("31")

    def test_pending_is_not_committed_however_old(self) -> None:
        loaded = timeline(OLD, "1.deltacommit.inflight", "3.deltacommit")
        assert loaded.first_active == "3"
        assert not loaded.is_committed("1")
        assert loaded.is_committed("2")

    def test_timeline_may_start_at_savepoint(self) -> None:
        """As in Hudi 0.15.0, 1.0.2 and 1.2.0, whose readers do not look at savepoints there."""
        loaded = timeline(OLD, "2.commit", "2.savepoint", "5.commit")
        assert loaded.first_active == "2"
        assert loaded.is_committed("1")
        assert not loaded.is_committed("3")

    def test_pending_compaction_can_be_the_start(self) -> None:
        assert timeline(OLD, "2.compaction.requested", "3.deltacommit").first_active == "2"

    def test_empty_timeline(self) -> None:
        loaded = timeline(NEW)
        assert loaded.instants == ()
        assert loaded.last_commit is None
        assert loaded.latest_time() is None
        assert not loaded.is_committed("1")


class TestCompletionTimes:
    def test_completion_time_is_in_file_name(self) -> None:
        loaded = timeline(NEW, "1_3.commit", "2.deltacommit.inflight")
        assert loaded.completion_time("1") == "3"
        assert loaded.completion_time("2") is None
        assert loaded.completion_time("0") is None
        assert loaded.latest_time() == "3"

    @pytest.mark.parametrize("properties", [OLD, NEW])
    def test_modification_time_stands_in(self, properties: dict[str, str]) -> None:
        loaded = timeline(properties, "1.commit", modified_ms=1_700_000_000_123)
        assert loaded.completion_time("1") == "20231114221320123"

    def test_modification_times_do_not_make_the_clock_run_ahead(self) -> None:
        assert timeline(OLD, "1.commit", modified_ms=1_700_000_000_123).latest_time() == "1"


class TestContent:
    def load(self, data: bytes) -> tuple[Timeline, Instant]:
        config = TableConfig(OLD)
        storage = MemoryStorage({".hoodie/1.commit": data, ".hoodie/1.commit.requested": b""})
        loaded = Timeline.load(storage, config)
        return loaded, loaded.instants[0]

    def test_empty_file_is_default_metadata(self) -> None:
        loaded, instant = self.load(b"")
        assert loaded.read(instant) is None
        assert loaded.plan(instant) is None
        assert loaded.inflight(instant) is None
        assert loaded.commit_metadata(instant).write_stats == ()

    @pytest.mark.parametrize(
        ("data", "offset"),
        [(b'{"a" : ', 7), (b'{"\xff": 1}', 2), (b"[]", 0), (b'{"\xc3\xa9" x', 6)],
    )
    def test_damage_names_file_and_offset(self, data: bytes, offset: int) -> None:
        loaded, instant = self.load(data)
        with pytest.raises(CorruptTable, match=r"\.hoodie/1\.commit") as error:
            loaded.read(instant)
        assert (error.value.file, error.value.offset) == (".hoodie/1.commit", offset)

    @pytest.mark.parametrize(
        "data", [b'{"partitionToWriteStats" : [ 1 ]}', b'{"partitionToWriteStats" : {"p" : 1}}']
    )
    def test_other_json_is_no_commit_metadata(self, data: bytes) -> None:
        loaded, instant = self.load(data)
        with pytest.raises(CorruptTable, match="not commit metadata"):
            loaded.commit_metadata(instant)

    def test_deeply_nested_json_is_damage(self) -> None:
        loaded, instant = self.load(b'{"a":' * 100_000)
        with pytest.raises(CorruptTable, match=r"\.hoodie/1\.commit"):
            loaded.read(instant)

    @pytest.mark.parametrize("damage", [b"cut", b'"fields"', b'"record"', b"avro.schema"])
    def test_damaged_container_names_the_file(self, damage: bytes) -> None:
        saved = {"savepointedBy": "", "savepointedAt": 1, "comments": "", "partitionMetadata": {}}
        whole = encode_container("HoodieSavepointMetadata", saved, SystemClock())
        assert damage in whole or damage == b"cut"
        data = b"Obj\x01\x02" if damage == b"cut" else whole.replace(damage, damage.upper(), 1)
        loaded, instant = self.load(data)
        with pytest.raises(CorruptTable) as error:
            loaded.read(instant)
        assert error.value.file == ".hoodie/1.commit"


@pytest.mark.parametrize("name", names())
def test_hudis_own_timelines(name: str, golden: GoldenTables) -> None:
    storage = Storage(str(golden.unpack(name)))
    config = TableConfig.load(storage)
    loaded = Timeline.load(storage, config)
    known = facts(name)["timeline"]
    assert summary(loaded) == sorted(
        (one["requested"], one["action"], one["state"].lower()) for one in known
    )
    if config.layout.completion_in_name:
        completed = {(one["requested"], one["action"]): one["completed"] for one in known}
        assert all(i.completed == completed[i.requested, i.action] for i in loaded.instants)
    for instant in loaded.instants:
        content = loaded.read(instant)
        assert content is not None or not instant.is_completed
        loaded.plan(instant)
        loaded.inflight(instant)


def test_unfinished_rename_of_another_writer_is_no_instant(
    tmp_path: Path, golden: GoldenTables
) -> None:
    folder = shutil.copytree(golden.unpack("v9_mor_no_metadata"), tmp_path / "t")
    storage = Storage(str(folder))
    config = TableConfig.load(storage)
    before = Timeline.load(storage, config).instants
    name = f"{before[-1].file_name}.0a1b2c3d-1111-4222-8333-444455556666"
    storage.put(config.layout.path(name), b"half")
    assert Timeline.load(storage, config).instants == before


@pytest.mark.parametrize("damage", ["folder", "path"])
def test_missing_timeline_directory_raises(damage: str, tmp_path: Path) -> None:
    rows = pa.table({"id": ["a"], "ts": [1]})
    table = pyhudi.create_table(tmp_path, rows, key="id", order_by="ts", type="mor")
    timeline_folder, named = tmp_path / ".hoodie/timeline", ".hoodie/timeline"
    if damage == "folder":
        timeline_folder.rename(tmp_path / "kept")
    else:
        properties, named = tmp_path / ".hoodie/hoodie.properties", ".hoodie/time"
        text = properties.read_text()
        assert "hoodie.timeline.path=timeline" in text
        properties.write_text(text.replace("path=timeline", "path=time"))
        with pytest.raises(CorruptTable, match=f"{named} is missing"):
            table.refresh()
    for use in (lambda: pyhudi.open_table(tmp_path), lambda: table.upsert(rows)):
        with pytest.raises(CorruptTable, match=f"{named} is missing") as error:
            use()
        assert error.value.file == named
    if damage == "folder":
        assert not timeline_folder.exists()
        (tmp_path / "kept").rename(timeline_folder)
        assert pyhudi.open_table(tmp_path).scan().to_arrow().num_rows == 1


def test_new_table_has_timeline_directory(tmp_path: Path) -> None:
    pyhudi.create_table(tmp_path, pa.schema([("id", pa.string())]), key="id")
    shutil.rmtree(tmp_path / ".hoodie/timeline/history")
    assert pyhudi.open_table(tmp_path).scan().to_arrow().num_rows == 0


@pytest.mark.parametrize("properties", [OLD, NEW])
def test_load_parses_equal_listings_once(properties: dict[str, str]) -> None:
    config = TableConfig(properties)
    path = config.layout.path
    storage = MemoryStorage({path("1.commit.requested"): b"", path("other"): b""}, modified_ms=1)
    first, second = Timeline.load(storage, config), Timeline.load(storage, config)
    assert second.instants is first.instants
    assert second.other_entries == first.other_entries
    storage.put(path("1.inflight"), b"")
    storage.put(path("2.commit.requested"), b"")
    third = Timeline.load(storage, config)
    assert summary(third) == [("1", "commit", "inflight"), ("2", "commit", "requested")]
    assert summary(first) == [("1", "commit", "requested")]
