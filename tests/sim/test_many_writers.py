"""Concurrent writers and a reader, one seed after another; see `world.py`.

Each run is checked: the table equals the published writes in their order, neither more nor fewer
than the writers reported; readers saw intermediate states of that order; the next writer can clean
up everything. To replay one seed:

    PYTHONHASHSEED=0 PYHUDI_SEED=1234 pytest tests/sim/test_many_writers.py -k v9-mor-bucket

With PYHUDI_TRACE it prints each change with its writer. With PYHUDI_HARD tasks stall more often at
critical steps, as for the seeds from 28000000 on that tests name "under odds".

`table_kinds.py` defines the tables, `tasks.py` what tasks do, and `history.py` what they observed.
`seed_runner.py` runs one seed after another and checks each result.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sim.seed_runner import ONE, SEEDS, play_all
from tests.sim.table_kinds import KINDS, METADATA_KINDS, Kind


@pytest.mark.each_time
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_concurrent_writers_are_serializable(
    kind: Kind,
    tables: Callable[[Kind], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    histories = play_all(SEEDS, kind, tables(kind), tmp_path, monkeypatch)
    said = [attempt.said for history in histories for attempt in history.attempts]
    assert ONE or said.count("done") > len(said) // 2


@pytest.mark.each_time
@pytest.mark.parametrize("kind", METADATA_KINDS, ids=str)
def test_concurrent_writers_with_metadata_table_are_serializable(
    kind: Kind,
    tables: Callable[[Kind], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    play_all(SEEDS // 3, kind, tables(kind), tmp_path, monkeypatch)
