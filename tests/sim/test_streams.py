"""Streams next to the writers and services of a table, one seed after another; see `followers.py`.

A seed is replayed as in `test_many_writers.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sim.seed_runner import ONE, SEEDS, play_all
from tests.sim.table_kinds import STREAM_KINDS, Kind


@pytest.mark.each_time
@pytest.mark.parametrize("kind", STREAM_KINDS, ids=str)
def test_streams_deliver_each_commit_and_commit_it_once(
    kind: Kind,
    tables: Callable[[Kind], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    histories = play_all(SEEDS // 3, kind, tables(kind), tmp_path, monkeypatch)
    followed = [history.deliveries for history in histories if history.deliveries]
    assert ONE or len(followed) == len(histories)
    assert ONE or sum(each.conflicts for each in followed) > 0
    batches = [batch for each in followed for batch in each.batches]
    assert ONE or sum(not batch.is_committed for batch in batches) > 0
