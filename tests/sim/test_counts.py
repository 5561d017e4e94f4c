"""Tests of the counts of simulations."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sim import counts
from tests.sim.counts import replace_run
from tests.sim.seed_runner import play_all
from tests.sim.table_kinds import KINDS, Kind


def test_counts_add_up_by_kind_of_table(
    tables: Callable[[Kind], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted, sums = tmp_path / "noted", tmp_path / "counts.json"
    sums.write_text(json.dumps({"simulate": {"kinds": {}}, "small-worlds": {"kinds": {}}}))
    monkeypatch.setattr(counts, "FOLDER", str(noted))
    # The sixth seed has crashes, stalls and lost responses.
    histories = play_all(3, KINDS[0], tables(KINDS[0]), tmp_path / "runs", monkeypatch, first=3)
    counts.note_run("seeds", "other", Counter(calls=1))
    replace_run("simulate", "make simulate SEEDS=3 FIRST_SEED=3", noted, sums)
    runs = json.loads(sums.read_text())
    assert set(runs) == {"simulate", "small-worlds"}
    kinds = runs["simulate"]["kinds"]
    assert kinds["other"] == {"calls": 1, "seeds": 1}
    assert kinds[str(KINDS[0])]["seeds"] == len(histories) == 3
    assert kinds[str(KINDS[0])]["calls"] > 300
