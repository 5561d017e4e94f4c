"""New instants: their files come once, in both layouts, and their times only rise."""

from __future__ import annotations

import time

import pytest

from pyhudi.clock import SystemClock, Zone, format_instant
from pyhudi.config.table_config import TableConfig
from pyhudi.config.timeline_layout import LAYOUT_1, LAYOUT_2
from pyhudi.errors import CommitConflict, SchemaMismatch
from pyhudi.timeline import InstantGenerator, State, Timeline, TimelineLayout, instant_files
from pyhudi.timeline.serde import container_record, encode_container
from tests.unit.memory_storage import MemoryStorage, StillClock

LAYOUTS = [LAYOUT_1, LAYOUT_2]


def written(layout: TimelineLayout, action: str) -> MemoryStorage:
    storage = MemoryStorage()
    instant_files.request(layout, storage, "1", action, b"plan")
    instant_files.start(layout, storage, "1", action)
    complete(layout, storage, "1", action, "2", b"done")
    return storage


def complete(
    layout: TimelineLayout,
    storage: MemoryStorage,
    time: str,
    action: str,
    completion: str,
    data: bytes,
) -> None:
    instant_files.check_inflight(layout, storage, time, action)
    instant_files.publish(layout, storage, time, action, completion, data)


def test_files_of_layout_1() -> None:
    assert written(LAYOUT_1, "commit").files == {
        ".hoodie/1.commit.requested": b"plan",
        ".hoodie/1.inflight": b"",
        ".hoodie/1.commit": b"done",
    }


def test_files_of_layout_2() -> None:
    assert written(LAYOUT_2, "clustering").files == {
        ".hoodie/timeline/1.clustering.requested": b"plan",
        ".hoodie/timeline/1.clustering.inflight": b"",
        ".hoodie/timeline/1_2.replacecommit": b"done",
    }


@pytest.mark.parametrize("layout", LAYOUTS)
def test_instant_states_follow_each_other(layout: TimelineLayout) -> None:
    storage = written(layout, "deltacommit")
    files = dict(storage.files)
    with pytest.raises(CommitConflict, match=r"1\.deltacommit\.requested"):
        instant_files.request(layout, storage, "1", "deltacommit", b"other")
    with pytest.raises(CommitConflict, match=r"1\.deltacommit\.inflight"):
        instant_files.start(layout, storage, "1", "deltacommit", b"other")
    with pytest.raises(CommitConflict, match=r"1\.deltacommit"):
        complete(layout, storage, "1", "deltacommit", "9", b"other")
    assert storage.files == files


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rolled_back_instant_cannot_complete(layout: TimelineLayout) -> None:
    storage = MemoryStorage()
    instant_files.request(layout, storage, "1", "deltacommit", b"plan")
    with pytest.raises(CommitConflict, match="rolled back"):
        complete(layout, storage, "1", "deltacommit", "2", b"done")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_removing_states(layout: TimelineLayout) -> None:
    storage = written(layout, "compaction")
    for state in reversed(State):
        assert instant_files.remove(layout, storage, "1", "compaction", state)
        assert not instant_files.remove(layout, storage, "1", "compaction", state)
    assert storage.files == {}


def generator(last: str = "", zone: Zone = "UTC") -> tuple[InstantGenerator, StillClock]:
    clock = StillClock()
    made = InstantGenerator(clock, zone)
    if last:
        config = TableConfig({"hoodie.table.name": "t", "hoodie.table.version": "9"})
        files = {config.layout.path(f"1_{last}.commit"): b""}
        made.observe(Timeline.load(MemoryStorage(files), config))
    return made, clock


def test_instants_rise_by_a_millisecond_while_the_clock_stands() -> None:
    made, clock = generator()
    start = clock.ms
    instants = [made.next() for _ in range(5)]
    assert instants == [format_instant(start + n, "UTC") for n in range(5)]


def test_clock_that_is_a_little_behind_is_waited_for() -> None:
    made, clock = generator(format_instant(StillClock().ms + 40, "UTC"))
    assert made.next() == format_instant(clock.ms, "UTC")
    assert clock.slept == [0.041]


def test_clock_that_is_far_behind_is_jumped_over() -> None:
    made, clock = generator("29991231235959999")
    assert made.next() == "30000101000000000"
    assert made.next() == "30000101000000001"
    assert clock.slept == []


@pytest.mark.parametrize(
    ("last", "following"),
    [
        ("29991231235959", "30000101000000000"),
        ("29991231235959999006", "30000101000000000"),
        ("99990000000000000", "99990000000000001"),
    ],
)
def test_other_forms_of_instants_are_passed(last: str, following: str) -> None:
    made, _ = generator(last)
    assert made.next() == following
    assert following > last


def test_local_time_that_is_set_back_does_not_set_instants_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        made, clock = generator(zone="LOCAL")
        clock.ms = 1_698_541_199_999  # 2023-10-29, the last millisecond of summer time
        assert made.next() == "20231029025959999"
        clock.ms += 1
        assert made.next() == "20231029030000000"
    finally:
        monkeypatch.undo()
        time.tzset()


CLEAN_OF_0_11 = {
    "startCleanTime": "1",
    "timeTakenInMillis": 1,
    "totalFilesDeleted": 0,
    "earliestCommitToRetain": "",
    "partitionMetadata": {},
    "version": 2,
}


@pytest.mark.parametrize("more", [{}, {"lastCompletedCommitTimestamp": None}])
def test_record_of_older_release_uses_defaults(more: dict[str, None]) -> None:
    given = CLEAN_OF_0_11 | more
    data = encode_container("HoodieCleanMetadata", given, SystemClock())
    assert container_record(data, "a.clean") == {
        **CLEAN_OF_0_11,
        "lastCompletedCommitTimestamp": "",
        "bootstrapPartitionMetadata": None,
        "extraMetadata": None,
    }


def test_field_without_default_is_required() -> None:
    given = {name: value for name, value in CLEAN_OF_0_11.items() if name != "startCleanTime"}
    with pytest.raises(SchemaMismatch, match="startCleanTime"):
        encode_container("HoodieCleanMetadata", given, SystemClock())


def test_null_texts_of_a_json_commit_are_left_out() -> None:
    given = {"extraMetadata": {"checkpoint": None, "schema": "{}"}, "partitionToWriteStats": {}}
    data = encode_container("HoodieCommitMetadata", given, SystemClock())
    assert container_record(data, "a.commit")["extraMetadata"] == {"schema": "{}"}
