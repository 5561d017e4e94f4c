"""Long random histories that pyhudi and Apache Hudi write in turn on one table, beside a model.

After each step both readers give the model's rows, with the metadata table and data skipping and
without. `make test-differential-long` takes PYHUDI_DIFFERENTIAL_STEPS steps; the histories are the
same each time, unless PYHUDI_DIFFERENTIAL_SEED says otherwise.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.helpers.differential import Setting, Writer
from tests.helpers.history import RELEASES, History
from tests.helpers.oracle.client import HudiOracle

STEPS = int(os.environ.get("PYHUDI_DIFFERENTIAL_STEPS", "3"))
SEED = os.environ.get("PYHUDI_DIFFERENTIAL_SEED", "")
INDEXES = ("SIMPLE", "GLOBAL_SIMPLE", "BLOOM", "GLOBAL_BLOOM", "BUCKET")

SETTINGS = [
    Setting(version, kind, index, metadata)
    for version in RELEASES
    for kind in ("cow", "mor")
    for index, metadata in [
        *((index, metadata) for index in INDEXES for metadata in (False, True)),
        ("RECORD_INDEX", True),
    ]
]


@pytest.mark.parametrize(
    ("setting", "hudi"),
    [pytest.param(one, RELEASES[one.version], id=str(one)) for one in SETTINGS],
    indirect=["hudi"],
)
@pytest.mark.timeout(0 if STEPS > 20 else 600)
def test_history_in_turn(tmp_path: Path, hudi: HudiOracle, setting: Setting) -> None:
    history = History(tmp_path / "t", hudi, setting, seed=SEED)
    history.begin()
    history.check("first rows")
    writers: tuple[Writer, Writer] = ("pyhudi", "hudi")
    for number in range(STEPS):
        step = history.take(writers[number % 2])
        history.check(f"step {number}: {step}")
    history.validate()
