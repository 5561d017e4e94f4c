"""Gaps in a metadata table, told from timelines."""

from __future__ import annotations

import pytest

from pyhudi.config.actions import State
from pyhudi.config.options import check_options
from pyhudi.config.table_config import TableConfig
from pyhudi.config.timeline_layout import LAYOUT_1, LAYOUT_2, TimelineLayout
from pyhudi.errors import ConfigError, CorruptTable
from pyhudi.metadata.consistency import check_not_stale
from pyhudi.metadata.index_definitions import index_definitions
from pyhudi.slices.listing import list_files
from pyhudi.timeline import Instant, Timeline
from pyhudi.timeline.archive import Archive
from tests.unit.memory_storage import MemoryStorage

T = [f"2024010100000{n}000" for n in range(9)]


def of_instants(instants: list[Instant], layout: TimelineLayout) -> Timeline:
    config = TableConfig({"hoodie.table.version": "9"})
    return Timeline(MemoryStorage(), layout, instants, Archive(MemoryStorage(), config))


def timeline(*times: str, action: str = "deltacommit", layout: int = 2) -> Timeline:
    chosen = LAYOUT_2 if layout == 2 else LAYOUT_1
    files = [Instant(t, action, State.COMPLETED, t[:-1] + "5", f"{t}.{action}") for t in times]
    return of_instants(files, chosen)


def test_metadata_table_needs_commits_after_first_ordinary_one() -> None:
    check_not_stale(timeline(T[0], T[1], T[2]), timeline("0" * 17, T[1], T[2]))
    with pytest.raises(CorruptTable, match=T[2]):
        check_not_stale(timeline(T[1], T[2], T[3]), timeline("0" * 17, T[1], T[3]))


def test_metadata_table_may_miss_commits_before_initialization() -> None:
    init = Instant("0" * 17, "deltacommit", State.COMPLETED, T[2], "x")
    own = of_instants([init], LAYOUT_2)
    check_not_stale(timeline(T[0], T[1]), own)
    with pytest.raises(CorruptTable, match=r"\.hoodie/metadata is out of date"):
        check_not_stale(timeline(T[3]), own)
    old = timeline(f"{T[1]}010", layout=1)
    check_not_stale(timeline(T[0], T[1], layout=1), old)
    with pytest.raises(CorruptTable, match=r"\.hoodie/metadata is out of date"):
        check_not_stale(timeline(T[2], layout=1), old)
    with pytest.raises(CorruptTable, match=r"\.hoodie/metadata is out of date"):
        check_not_stale(timeline(T[0]), timeline())


def test_plan_before_initialization_is_not_its_start() -> None:
    """Its initial commits are archived, so the first one that is active is one of the last."""

    def late(*times: str) -> Timeline:
        planned = Instant(T[0], "deltacommit", State.COMPLETED, T[6], "x")
        since = [
            Instant(time, "deltacommit", State.COMPLETED, f"{time[:-1]}5", "x") for time in times
        ]
        return of_instants([planned, *since], LAYOUT_2)

    data = late(T[1], T[2], T[3], T[4], T[5])
    check_not_stale(data, late(T[3], T[4], T[5]))
    with pytest.raises(CorruptTable, match=T[4]):
        check_not_stale(data, late(T[3], T[5]))


def test_reopened_instant_is_not_complete() -> None:
    found = timeline(T[0], T[1]).with_reopened({T[1]})
    assert [one.requested for one in found.commits] == [T[0]]
    assert not found.is_committed(T[1])
    assert [one.requested for one in found.pending()] == [T[1]]


def test_options_of_reading_are_checked() -> None:
    for bad in (
        {"hoodie.metadata.enable": "no"},
        {"hoodie.bucket.index.num.buckets": 0},
        {"hoodie.metadata.enabled": "true"},
        {"hoodie.index.type": "nope"},
        {"hoodie.index.type": ""},
    ):
        with pytest.raises(ConfigError, match="hoodie"):
            check_options(bad)


def test_index_definitions_say_what_they_say() -> None:
    path = ".hoodie/.index_defs/index.json"
    text = b'{"indexDefinitions": {"i": {"indexType": "secondary_index", "sourceFields": ["a"]}}}'
    found = index_definitions(MemoryStorage({path: text}), TableConfig({}))
    assert (found["i"].columns, found["i"].version) == (("a",), 1)
    assert index_definitions(MemoryStorage(), TableConfig({})) == {}
    with pytest.raises(CorruptTable, match="index definitions"):
        index_definitions(
            MemoryStorage({path: b'{"indexDefinitions": {"i": {}}}'}), TableConfig({})
        )


class Counting(MemoryStorage):
    listed: list[str]

    def list_dir(self, prefix: str = "") -> object:  # type: ignore[override]
        self.listed = [*getattr(self, "listed", []), prefix]
        return super().list_dir(prefix)


def test_files_of_unwanted_partitions_are_not_listed() -> None:
    files = {f"{day}/{name}": b"" for day in "abc" for name in (".hoodie_partition_metadata", "x")}
    storage = Counting({**files, "d/e/.hoodie_partition_metadata.parquet": b"", "d/e/y": b""})
    found = dict(list_files(storage, lambda path: path in ("b", "d/e")))
    assert sorted(found) == ["b", "d/e"]
    assert "a" not in storage.listed
    assert [entry.name for entry in found["d/e"]] == [".hoodie_partition_metadata.parquet", "y"]
