"""Incremental queries: ranges, hollow commits, history that is gone, and outputs as a scan's."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.clock import format_instant, parse_instant
from pyhudi.errors import ConfigError, HistoryUnavailable, UnsupportedTableFeature
from pyhudi.slices.read import read_task
from pyhudi.testing import comparable_rows
from tests.helpers.appended_logs import appended_to
from tests.helpers.pending_compaction import request_compaction
from tests.helpers.refused import REFUSED
from tests.helpers.tables import GoldenTables, facts, names, unpack

pytestmark = pytest.mark.in_parts

COMMIT_TIME = "_hoodie_commit_time"


def opened(golden: GoldenTables, name: str) -> pyhudi.HudiTable:
    return pyhudi.open_table(golden.unpack(name))


def commits(table: pyhudi.HudiTable) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.inspect.commits().to_pylist()
    return found


ANSWERING = [
    name
    for name in names()
    if "virtual" not in name
    and not name.endswith("_inflight")
    and not {name, f"{name}-snapshot"} & REFUSED.keys()
    # Their partition columns are not decoded in incremental queries.
    and "encode" not in name
]


@pytest.mark.parametrize("name", ANSWERING)
def test_incremental_whole_range_is_snapshot(name: str, golden: GoldenTables) -> None:
    table = opened(golden, name)
    assert comparable_rows(table.incremental(meta_fields=True)) == comparable_rows(
        table.scan(meta_fields=True)
    )
    for earliest in ("earliest", "000", "00000000000000000"):
        assert table.incremental(earliest).count() == table.scan().count()


def test_incremental_excludes_start_and_includes_end(golden: GoldenTables) -> None:
    for name, time in (("v6_cow_nonpart", "requested"), ("v9_cow_nonpart", "completed")):
        table = opened(golden, name)
        first, second = commits(table)[:2]
        found = table.incremental(first[time], second[time], columns=[COMMIT_TIME]).to_arrow()
        assert set(found[COMMIT_TIME].to_pylist()) == {second["requested"]}
        assert table.incremental(second[time], second[time]).count() == 0


def test_bounds_take_other_forms_of_time(golden: GoldenTables) -> None:
    table = opened(golden, "v9_cow_nonpart")
    first = commits(table)[0]
    for time in (first["requested"], first["completed"]):
        text = f"{time[:4]}-{time[4:6]}-{time[6:8]}T{time[8:10]}:{time[10:12]}:{time[12:14]}"
        scan = table.incremental(f"{text}.{time[14:]}Z")
        assert comparable_rows(scan) == comparable_rows(table.incremental(first["completed"]))
    with pytest.raises(ConfigError, match="is not a time"):
        table.incremental("recently")


@pytest.mark.parametrize("name", ["v6_cow_nonpart", "v8_cow_nonpart", "v9_mor_part_avro"])
def test_incremental_refuses_empty_range(name: str, golden: GoldenTables) -> None:
    table = opened(golden, name)
    time = "requested" if table.version < 8 else "completed"
    first, second = (one[time] for one in commits(table)[:2])
    with pytest.raises(ConfigError, match=f"ends at {first}, before it begins at {second}"):
        table.incremental(second, first)
    with pytest.raises(HistoryUnavailable, match=f"before the first commit, {first}"):
        table.incremental(end=format_instant(parse_instant(first, "UTC") - 1, "UTC"))
    for end in ("earliest", "000", "20231301000000", "2023-02-30"):
        with pytest.raises(ConfigError, match="is not a time"):
            table.incremental(end=end)
    assert table.incremental(first, first).count() == 0
    assert table.incremental("2099-01-01").count() == 0


def test_incremental_end_may_be_archived(golden: GoldenTables) -> None:
    for name in ("v6_cow_archived", "v9_cow_archived"):
        table = opened(golden, name)
        archived = table.inspect.timeline(archived=True).to_pylist()
        time = "requested" if table.version < 8 else "completed"
        first = min(one[time] for one in archived if one["action"] == "commit")
        table.incremental(end=first)
        with pytest.raises(HistoryUnavailable, match=f"before the first commit, {first}"):
            table.incremental(end=format_instant(parse_instant(first, "UTC") - 1, "UTC"))


def test_incremental_is_lazy_with_scan_outputs(golden: GoldenTables) -> None:
    table = opened(golden, "v9_mor_part_avro")
    start = commits(table)[1]["completed"]
    scan = table.incremental(start, columns=["id", "city"], where="age > 10")
    everything = table.incremental(start).to_arrow()
    wanted = [row for row in everything.to_pylist() if row["age"] > 10]
    found = scan.to_arrow()
    assert found.schema == scan.schema
    assert sorted(found["id"].to_pylist()) == sorted(row["id"] for row in wanted)
    assert scan.count() == len(wanted)
    assert table.incremental(start, limit=2).count() == 2
    assert 0 < scan.plan().num_rows == len(scan.tasks)
    tasks = pickle.loads(pickle.dumps(scan.tasks))  # noqa: S301
    assert sum(batch.num_rows for task in tasks for batch in read_task(task)) == len(wanted)


def test_partitions_that_cannot_match_are_not_planned(golden: GoldenTables) -> None:
    table = opened(golden, "v9_mor_part_avro")
    plan = table.incremental(where="city = 'osaka'").plan()
    assert set(plan["partition"].to_pylist()) == {"osaka"}


def test_incremental_plans_changed_groups_only(tmp_path: Path) -> None:
    first = pa.table({"id": ["a", "b"], "city": ["osaka", "quito"], "v": [1, 1]})
    table = pyhudi.create_table(tmp_path / "t", first, key="id", partition_by="city", order_by="v")
    start = commits(table)[0]["completed"]
    table.upsert(pa.table({"id": ["a"], "city": ["osaka"], "v": [2]}))
    scan = table.incremental(start)
    assert scan.plan()["partition"].to_pylist() == ["osaka"]
    assert scan.to_arrow().to_pylist() == [{"id": "a", "city": "osaka", "v": 2}]


@pytest.mark.parametrize("name", ["v6_cow_virtual_keys", "v9_mor_virtual_keys"])
def test_incremental_needs_meta_columns(name: str, golden: GoldenTables) -> None:
    with pytest.raises(UnsupportedTableFeature, match=r"hoodie\.populate\.meta\.fields"):
        opened(golden, name).incremental()


class TestHollowCommits:
    @pytest.mark.parametrize("name", ["v6_cow_inflight", "v6_mor_inflight"])
    def test_stop_every_range_or_end_it(self, name: str, golden: GoldenTables) -> None:
        table = opened(golden, name)
        first, second, _ = commits(table)
        scan = table.incremental(first["requested"], second["requested"])
        with pytest.raises(HistoryUnavailable, match="incomplete"):
            scan.to_arrow()
        blocked = table.incremental(hollow_commits="block")
        assert comparable_rows(blocked) == comparable_rows(table.scan(as_of=second["requested"]))

    def test_do_not_matter_to_ranges_of_completion_times(self, tmp_path: Path) -> None:
        base = unpack("v6_cow_inflight", tmp_path)
        times = [one["requested"] for one in commits(pyhudi.open_table(base))]
        # The second commit is completed last.
        order = (times[0], times[2], times[1])
        done = [f"2026112209000{number}000" for number in range(3)]
        for time, end in zip(order, done, strict=True):
            seconds = parse_instant(end, "UTC") / 1000
            os.utime(base / f".hoodie/{time}.commit", (seconds, seconds))
        table = pyhudi.open_table(base)
        for number, time in enumerate(order):
            start = done[number - 1] if number else None
            scan = table.incremental(
                start, done[number], hollow_commits="transition_time", columns=[COMMIT_TIME]
            )
            assert set(scan.to_arrow()[COMMIT_TIME].to_pylist()) == {time}

    def test_are_no_matter_from_version_8_on(self, golden: GoldenTables) -> None:
        table = opened(golden, "v8_mor_inflight")
        assert comparable_rows(table.incremental()) == comparable_rows(table.scan())

    def test_want_a_known_policy(self, golden: GoldenTables) -> None:
        table = opened(golden, "v6_cow_inflight")
        with pytest.raises(ConfigError, match="hollow_commits"):
            table.incremental(hollow_commits="ignore")  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="transition_time"):
            table.incremental(hollow_commits="transition_time", fallback_full_scan=True)


class TestHistoryThatIsGone:
    @pytest.mark.parametrize("name", ["v6_cow_clean_commits", "v9_cow_clean_commits"])
    def test_is_an_error_or_a_full_scan(self, name: str, golden: GoldenTables) -> None:
        table = opened(golden, name)
        time = "requested" if table.version < 8 else "completed"
        first, second = commits(table)[:2]
        incremental_range = (first[time], second[time])
        refused = table.incremental(*incremental_range, fallback_full_scan=False)
        with pytest.raises(HistoryUnavailable, match="has been cleaned since"):
            refused.to_arrow()
        found = table.incremental(
            *incremental_range, fallback_full_scan=True, meta_fields=True
        ).to_arrow()
        current = table.scan(
            meta_fields=True, where=[(COMMIT_TIME, "=", second["requested"])]
        ).to_arrow()
        assert comparable_rows(found) == comparable_rows(current)
        assert found.num_rows > 0

    def test_is_told_of_where_hudi_is_silent(self, golden: GoldenTables) -> None:
        table = opened(golden, "v9_cow_clean_commits")
        first, second = commits(table)[:2]
        scan = table.incremental(first["completed"], second["completed"])
        with pytest.warns(UserWarning, match="has been cleaned since"):
            scan.to_arrow()

    @pytest.mark.parametrize("name", ["v6_cow_archived", "v6_mor_archived", "v9_mor_archived"])
    def test_is_read_from_the_archive(self, name: str, golden: GoldenTables) -> None:
        table = opened(golden, name)
        time = "requested" if table.version < 8 else "completed"
        past = table.inspect.timeline(archived=True).to_pylist()
        first = min(one[time] for one in past if one["action"].endswith("commit"))
        later = table.incremental(first, columns=[COMMIT_TIME]).to_arrow()
        all_rows = table.scan(columns=[COMMIT_TIME]).to_arrow()
        kept = [row for row in all_rows[COMMIT_TIME].to_pylist() if row > past[0]["requested"]]
        assert sorted(later[COMMIT_TIME].to_pylist()) == sorted(kept)

    @pytest.mark.parametrize("name", ["v6_cow_archived", "v9_mor_archived"])
    def test_with_the_archive_is_an_error(self, name: str, tmp_path: Path) -> None:
        base = unpack(name, tmp_path)
        past = facts(name)["archived"][0]["requested"]
        shutil.rmtree(base / (".hoodie/archived" if name[1] == "6" else ".hoodie/timeline/history"))
        scan = pyhudi.open_table(base).incremental(past, fallback_full_scan=True)
        with pytest.raises(HistoryUnavailable, match="neither on the active"):
            scan.to_arrow()


@pytest.mark.parametrize("version", [6, 8, 9])
def test_incremental_ignores_clustering_after_range(version: Any, tmp_path: Path) -> None:
    """Hudi 1.2.0 loses them."""
    small = {"hoodie.parquet.small.file.limit": "0"}
    rows = [pa.table({"id": [name], "city": ["x"], "v": [1]}) for name in "abcd"]
    pyhudi.create_table(tmp_path / "t", rows[0], key="id", partition_by="city", version=version)
    table = pyhudi.open_table(tmp_path / "t", options=small)
    table.insert(rows[1])
    table.insert(rows[2])
    assert table.cluster(execute=False).scheduled
    table.insert(rows[3])
    time = "completed" if version >= 8 else "requested"
    start, end = (commits(table)[at][time] for at in (0, -1))
    before = comparable_rows(table.incremental(start, end, meta_fields=False))
    assert len(before) == 3
    assert table.cluster(schedule=False).instants
    assert comparable_rows(table.incremental(start, end)) == before
    assert table.incremental(end).count() == 0


def shared_log(base: Path, version: Any, *, pending: bool) -> tuple[pyhudi.HudiTable, list[str]]:
    """A table whose second and third commit are in one log file, and times of its commits.

    It has that from before an upgrade, if its version is above 6. pending: a compaction was planned
    after the first commit and is done after the third.
    """
    options = {"hoodie.metadata.enable": "false"}
    rows = [pa.table({"id": list(keys), "v": [v] * len(keys)}) for v, keys in enumerate(KEYS)]
    table = pyhudi.create_table(base, rows[0], key="id", type="mor", version=6, options=options)
    if pending:
        request_compaction(table)
    table.upsert(rows[1])
    table.upsert(rows[2])
    table = appended_to(table)
    table.compact()
    if version > 6:
        table.upgrade(version)
    table = pyhudi.open_table(base)
    written = [one for one in commits(table) if one["action"] == "deltacommit"]
    return table, [one["completed" if version > 6 else "requested"] for one in written]


KEYS = ("abc", "ab", "a")


@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_incremental_reads_log_file_later_commits_appended_to(
    version: Any, pending: bool, tmp_path: Path
) -> None:
    """Nor is it after an upgrade, from which on no commit appends to the log files of others."""
    table, times = shared_log(tmp_path / "t", version, pending=pending)
    found = [
        sorted(
            (row["id"], row["v"])
            for row in table.incremental(*incremental_range).to_arrow().to_pylist()
        )
        for incremental_range in ((None, times[1]), times[:2], times[1:], (times[0], times[2]))
    ]
    assert found == [
        [("a", 1), ("b", 1), ("c", 0)],
        [("a", 1), ("b", 1)],
        [("a", 2)],
        [("a", 2), ("b", 1)],
    ]
