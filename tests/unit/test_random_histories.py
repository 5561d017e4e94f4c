"""Random histories that pyhudi writes alone, beside a model: rows and invariants after each step.

`tests/compat` has those that Apache Hudi writes to in turn.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import pyhudi
from pyhudi.testing import check_invariants
from tests.helpers.changed_history import ChangedHistory
from tests.helpers.differential import Model, Setting, Step, in_order
from tests.helpers.history import History
from tests.helpers.oracle.client import HudiOracle

STEPS = 13
HISTORIES = [
    (Setting(6, "mor", "SIMPLE", metadata=False, wider=True), ""),
    (Setting(8, "mor", "BLOOM", metadata=True, wider=True, alters=True), ""),
    # Deletes, then updates of some columns; late rows after those.
    (Setting(9, "mor", "BLOOM", metadata=False, wider=True), "1"),
    (Setting(9, "mor", "BLOOM", metadata=False, wider=True), "2"),
    (Setting(9, "mor", "RECORD_INDEX", metadata=True, wider=True), "2"),
    (Setting(9, "mor", "BUCKET", metadata=False, wider=True, alters=True), ""),
    (Setting(9, "cow", "GLOBAL_SIMPLE", metadata=True, wider=True), ""),
]
CHANGED = [
    Setting(6, "mor", "BLOOM", metadata=True, served=True),
    Setting(8, "cow", "RECORD_INDEX", metadata=True, served=True),
    Setting(9, "mor", "SIMPLE", metadata=True, served=True),
]


class OwnHistory(History):
    """Of pyhudi's steps only."""

    def __init__(self, base: Path, setting: Setting, seed: str) -> None:
        super().__init__(base, HudiOracle(), setting)
        self.model = Model(setting, random.Random(f"{setting}{seed}"))
        self._table = base

    def run(self) -> None:
        first = self.model.first()
        self._create(first)
        self.model.apply(first)
        steps: list[Step] = []
        for _ in range(STEPS):
            steps.append(self.take("pyhudi"))
            table = pyhudi.open_table(self._table)
            assert in_order(table.scan().to_arrow().to_pylist()) == self.model.sorted(), steps
            check_invariants(table)


@pytest.mark.parametrize(("setting", "seed"), HISTORIES, ids=str)
@pytest.mark.slow
def test_rows_are_those_of_the_model(tmp_path: Path, setting: Setting, seed: str) -> None:
    OwnHistory(tmp_path / "t", setting, seed).run()


@pytest.mark.parametrize("setting", CHANGED, ids=str)
@pytest.mark.slow
def test_reads_are_those_of_the_model_while_the_table_changes(
    tmp_path: Path, setting: Setting
) -> None:
    """Services, indexes, columns, versions and writers that die, as steps of pyhudi alone."""
    ChangedHistory(tmp_path / "t", None, setting).run()
