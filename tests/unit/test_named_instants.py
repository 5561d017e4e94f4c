"""Which instant a time names, and what the table's verbs make of it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.config.actions import COMMIT, State
from pyhudi.config.timeline_layout import LAYOUT_1, LAYOUT_2, TimelineLayout
from pyhudi.errors import ConfigError, HistoryUnavailable
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Instant, Timeline
from pyhudi.timeline.named_instants import PlainTime, order_time
from pyhudi.txn.transaction import Transaction
from tests.helpers.table_builder import SMALL, TableBuilder
from tests.helpers.tables import GoldenTables

ROWS = TableBuilder(
    {"id": (pa.string(), str), "v": (pa.int64(), 0)},
    options={**SMALL, "hoodie.parquet.small.file.limit": "0"},
)


class NoArchive:
    """An archive that has some instants."""

    def __init__(self, *instants: Instant) -> None:
        self.archived = instants

    def instants(self, incremental_range: Any) -> tuple[Instant, ...]:
        return tuple(filter(incremental_range.contains, self.archived))


def done(requested: int, completed: int | None, action: str = COMMIT) -> Instant:
    return Instant(
        time_of(requested),
        action,
        State.COMPLETED,
        None if completed is None else time_of(completed),
        "",
    )


def time_of(number: int) -> str:
    return f"202611280000{number:05}"


def timeline_of(
    tmp_path: Path,
    *instants: Instant,
    archived: tuple[Instant, ...] = (),
    layout: TimelineLayout = LAYOUT_2,
) -> Timeline:
    archive: Any = NoArchive(*archived)
    return Timeline(Storage(str(tmp_path)), layout, instants, archive)


def test_order_time_is_that_of_the_instant_that_is_named(tmp_path: Path) -> None:
    timeline = timeline_of(
        tmp_path, done(10, 15), done(20, 25), archived=(done(1, 12), done(2, 3, "clean"))
    )
    completions = {10: 15, 15: 15, 20: 25, 25: 25, 1: 12, 12: 12, 2: 3, 3: 3, 11: 11, 99: 99}
    for given, expected in completions.items():
        found = order_time(timeline, time_of(given), by_completion=True)
        assert found == time_of(expected)
    # Archived completions after the start of the active timeline are not looked up in this order.
    requests = {10: 10, 15: 10, 20: 20, 25: 20, 1: 1, 12: 12, 2: 2, 3: 2, 11: 11, 99: 99}
    for given, expected in requests.items():
        found = order_time(timeline, time_of(given), by_completion=False)
        assert found == time_of(expected)


def test_order_time_of_two_instants_is_the_one_of_the_order(tmp_path: Path) -> None:
    timeline = timeline_of(tmp_path, done(10, 20), done(20, 30))
    assert order_time(timeline, time_of(20), by_completion=True) == time_of(20)
    assert order_time(timeline, time_of(20), by_completion=False) == time_of(20)
    archived = timeline_of(tmp_path, done(20, 30), archived=(done(10, 20),))
    assert order_time(archived, time_of(20), by_completion=True) == time_of(20)


def test_order_time_of_a_saved_commit_is_not_its_savepoints(tmp_path: Path) -> None:
    saved = done(10, 50, "savepoint")
    timeline = timeline_of(tmp_path, done(10, 15), saved, done(20, 25))
    assert order_time(timeline, time_of(10), by_completion=True) == time_of(15)
    # What was complete when the savepoint was made is no commit of long ago.
    assert order_time(timeline, time_of(50), by_completion=False) == time_of(50)


def test_order_time_of_commits_that_modification_times_do_not_part(tmp_path: Path) -> None:
    timeline = timeline_of(tmp_path, done(10, 30), done(20, 30), layout=LAYOUT_1)
    with pytest.raises(ConfigError, match=f"several commits: {time_of(10)}, {time_of(20)}"):
        order_time(timeline, time_of(30), by_completion=False)


def test_order_time_of_an_archived_commit_whose_completion_is_unknown(tmp_path: Path) -> None:
    timeline = timeline_of(tmp_path, done(10, 15), archived=(done(1, None),), layout=LAYOUT_1)
    with pytest.raises(HistoryUnavailable, match=f"did not store when .*{time_of(1)}"):
        order_time(timeline, time_of(1), by_completion=True)


@pytest.mark.parametrize("name", ["v6_cow_inflight", "v8_mor_inflight"])
def test_pending_write_is_refused_as_range_bound(name: str, golden: GoldenTables) -> None:
    """Its rows would be passed over once it is complete."""
    table = pyhudi.open_table(golden.unpack(name))
    pending = table.state.timeline.pending("commit", "deltacommit")[0]
    for bounds in ((pending.requested, None), (None, pending.requested)):
        with pytest.raises(HistoryUnavailable, match=f"the write {pending.requested}.*, so no"):
            table.incremental(*bounds)


def test_plain_time_is_a_point_in_time(tmp_path: Path) -> None:
    """So Hudi takes bounds: 1.2.0 gives the rows of the commit that was requested then."""
    table = ROWS.make(tmp_path / "t")
    result = table.upsert(ROWS.rows("a"))
    assert table.incremental(result.instant).count() == 0
    assert table.incremental(PlainTime(result.instant)).count() == 1
    assert table.incremental(PlainTime(result.completion)).count() == 0
    assert table.scan(as_of=PlainTime(result.completion)).count() == 1


@pytest.mark.parametrize("version", [6, 9])
def test_other_moments_take_either_time(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another commit is requested between the two times."""
    table = ROWS.make(tmp_path / "t", version=version)
    table.upsert(ROWS.rows("a"))
    commit = Transaction.commit

    def committed(self: Transaction, *given: Any) -> str:
        monkeypatch.setattr(Transaction, "commit", commit)
        pyhudi.open_table(table.uri, options=table.options).insert(ROWS.rows("c"))
        return commit(self, *given)

    monkeypatch.setattr(Transaction, "commit", committed)
    result = table.insert(ROWS.rows("b"))
    assert sorted(table.to_arrow()["id"].to_pylist()) == ["a", "b", "c"]
    for time in (result.instant, result.completion):
        assert sorted(table.scan(as_of=time).to_arrow()["id"].to_pylist()) == ["a", "b"]
        found = pyhudi.open_table(table.uri, as_of=time)
        assert found.count() == 2
        diff = table.diff(time, "2099-01-01").to_arrow().to_pylist()
        assert [row["after"]["id"] for row in diff] == ["c"]
        assert table.history(since=time).num_rows == 1
        assert table.restore(to=time, dry_run=True).restored_to == result.instant


@pytest.mark.parametrize("version", [6, 8, 9])
def test_position_of_ranges(version: int, tmp_path: Path) -> None:
    table = ROWS.make(tmp_path / "t", version=version)
    assert table.incremental().position is None
    results = [table.upsert(ROWS.rows([key])) for key in "abc"]
    times = [result.completion if version >= 8 else result.instant for result in results]
    assert table.incremental().position == times[-1]
    assert table.incremental(end=results[1].instant).position == times[1]
    assert table.incremental(end="2099-01-01").position == times[-1]
    assert table.incremental(start=results[0].completion, limit=0).position == times[-1]
    # Where the newest commits were rolled back, what comes later is new all the same.
    last = results[-1].instant
    start = table.incremental().position
    table.rollback(last)
    assert table.incremental(start=start).position == start


def test_position_of_a_scan_of_an_earlier_time_is_an_error(tmp_path: Path) -> None:
    table = ROWS.make(tmp_path / "t")
    result = table.upsert(ROWS.rows("a"))
    with pytest.raises(ConfigError, match="as of"):
        _ = pyhudi.open_table(table.uri, as_of=result.instant).incremental().position


@pytest.mark.parametrize("version", [6, 8, 9])
def test_position_of_every_result_is_a_bound(version: int, tmp_path: Path) -> None:
    table = ROWS.make(tmp_path / "t", version=version)
    first = table.upsert(ROWS.rows("a"))
    scan = table.scan().position
    assert scan is not None
    second = table.upsert(ROWS.rows("b"))
    for start in (first.position, scan):
        assert table.incremental(start=start).to_arrow()["id"].to_pylist() == ["b"]
        assert table.incremental(end=start).to_arrow()["id"].to_pylist() == ["a"]
        assert table.scan(as_of=start).to_arrow()["id"].to_pylist() == ["a"]
        assert table.diff(start, second.position).to_arrow()["op"].to_pylist() == ["i"]
        batches = [
            batch.rows.to_arrow()["id"].to_pylist() for batch in table.stream(start, wait=False)
        ]
        assert batches == [["b"]]
    assert table.scan().position == table.incremental(start=scan).position
    with pytest.raises(ConfigError, match="no position"):
        _ = table.delete("id = 'missing'").position


def test_completion_of_a_result_is_that_of_the_timeline(tmp_path: Path) -> None:
    """Up to version 6 that is a modification time, which is read from storage."""
    table: HudiTable = ROWS.make(tmp_path / "t", version=6)
    result = table.upsert(ROWS.rows("a"), commit_id="once")
    assert table.inspect.commits()["completed"].to_pylist() == [result.completion]
    again = table.upsert(ROWS.rows("a"), commit_id="once")
    assert replace(again, was_written_before=False, **same(result)) == result


def same(result: Any) -> dict[str, Any]:
    """What a result that is read from the timeline does not have."""
    names = ("duration_ms", "rows_in", "duplicates_dropped", "rows_ignored", "bytes_read")
    return {name: getattr(result, name) for name in names}


def test_copied_table_of_version_6_uses_requested_times(tmp_path: Path) -> None:
    """A copy changes modification times."""
    table = ROWS.make(tmp_path / "t", version=6)
    first = table.upsert(ROWS.rows("a"))
    table.upsert(ROWS.rows("b"))
    for number, path in enumerate(sorted((tmp_path / "t/.hoodie").glob("*.commit"), reverse=True)):
        os.utime(path, (1e9 + number, 1e9 + number))
    table.refresh()
    assert table.incremental(first.instant).to_arrow()["id"].to_pylist() == ["b"]
    shown = table.inspect.commits().to_pylist()[0]["completed"]
    assert shown != first.completion
    assert table.incremental(shown).to_arrow()["id"].to_pylist() == ["b"]
