"""How far a stream of commits goes in a step."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.query.stream_progress import StepLimit, newest_time, next_time, order_of

SCHEMA = pa.schema([("id", pa.string())])


def table_of(base: Path, version: int, commits: int) -> HudiTable:
    table = pyhudi.create_table(base, SCHEMA, key="id", version=version)
    for number in range(commits):
        table.insert(pa.table({"id": [f"k{number}"]}))
    return table


@pytest.mark.parametrize("version", [6, 8, 9])
def test_steps_end_with_commits(tmp_path: Path, version: int) -> None:
    table = table_of(tmp_path / "t", version, 4)
    state = table.state
    by_completion = order_of(state) == "completion"
    assert by_completion == (version > 6)
    times = [
        str(one.completed if by_completion else one.requested) for one in state.timeline.commits
    ]
    assert newest_time(state) == times[-1]
    assert next_time(state, None, None, None) == times[-1]
    assert next_time(state, None, times[2], None) == times[2]
    assert next_time(state, times[-1], None, None) == times[-1]
    assert next_time(state, None, None, StepLimit(instants=1)) == times[0]
    assert next_time(state, times[0], None, StepLimit(instants=2)) == times[2]
    assert next_time(state, times[0], times[1], StepLimit(instants=2)) == times[1]
    # A step has one commit, however large.
    assert next_time(state, times[1], None, StepLimit(size=1)) == times[2]
    assert next_time(state, None, None, StepLimit(size=1 << 40)) == times[-1]


@pytest.mark.parametrize("version", [6, 8, 9])
def test_stream_offset_does_not_pass_rolled_back_commit(tmp_path: Path, version: int) -> None:
    table = table_of(tmp_path / "t", version, 3)
    read = newest_time(table.state)
    assert read is not None
    table.rollback(table.state.timeline.commits[-1].requested)
    newest = newest_time(table.state)
    assert newest is not None
    assert newest < read
    for limit in (None, StepLimit(instants=1)):
        assert next_time(table.state, read, None, limit) == read


@pytest.mark.parametrize("limit", [None, StepLimit(instants=1)])
def test_stream_of_empty_table_has_no_rows(tmp_path: Path, limit: StepLimit | None) -> None:
    state = table_of(tmp_path / "t", 9, 0).state
    assert next_time(state, None, None, limit) is None
    assert next_time(state, None, "", limit) is None


def test_below_version_8_a_pending_write_is_waited_for(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", 6, 3)
    commits = table.state.timeline.commits
    folder = tmp_path / "t" / ".hoodie"
    second = next(folder.glob(f"{commits[1].requested}.commit"))
    second.unlink()
    assert newest_time(table.refresh().state) == commits[0].requested
