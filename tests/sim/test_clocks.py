"""Machines whose clocks are set back by an hour or forward by a day, between any two steps.

Every second seed has all writers and the storage on one machine, whose clock jumps for all of them.
Otherwise each has a clock of its own. To replay one seed:

    PYTHONHASHSEED=0 PYHUDI_SEED=17 pytest tests/sim/test_clocks.py -k v9-mor-bucket
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sim.seed_runner import ONE, SEEDS, play_all
from tests.sim.table_kinds import KINDS, METADATA_KINDS, Kind


@pytest.mark.parametrize("kind", [*KINDS[:6], KINDS[7], *METADATA_KINDS[:2]], ids=str)
def test_writers_whose_clocks_jump_are_serializable(
    kind: Kind,
    tables: Callable[[Kind], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    histories = play_all(SEEDS // 3, kind, tables(kind), tmp_path, monkeypatch, jump=0.004)
    said = [attempt.said for history in histories for attempt in history.attempts]
    assert ONE or said.count("done") > len(said) // 2
