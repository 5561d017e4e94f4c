"""Histories of random interleavings have no anomaly: three writers, a reader and a follower."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest

from tests.anomalies.checker import find_anomalies
from tests.anomalies.modes import DEFAULT, NON_BLOCKING, Mode
from tests.anomalies.random_histories import play
from tests.anomalies.scripted_run import Place

SEEDS = int(os.environ.get("PYHUDI_ANOMALY_SEEDS", "10"))
"""Of each mode."""


@pytest.mark.slow
@pytest.mark.parametrize("mode", [*DEFAULT, *NON_BLOCKING], ids=str)
def test_random_interleavings_have_no_anomaly(mode: Mode, tmp_path: Path) -> None:
    place = Place(tmp_path)
    commits = 0
    for seed in range(SEEDS):
        uri = place.create(mode)
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            history = play(uri, mode, seed, patch)
        assert find_anomalies(history) == [], f"seed {seed}"
        commits += len(history.commits)
        place.remove(uri)
    assert commits > 3 * SEEDS
