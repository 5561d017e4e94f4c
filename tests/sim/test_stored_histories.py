"""Each stored history passes; without the rule that it needs, it fails.

A history whose call no longer exists fails: find a new one with `make small-worlds`, or with

    PYHUDI_STORE_HISTORIES=1 pytest tests/sim/test_small_worlds.py -k removed_rule
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sim.small_runs import play_schedule
from tests.sim.stored_histories import FOLDER, StoredHistory
from tests.sim.table_kinds import Kind
from tests.sim.test_mutations import MUTATIONS

RULES = {mutation.__name__: mutation for mutation, _ in MUTATIONS}
FILES = sorted(FOLDER.glob("*.json"))
assert FILES


@pytest.mark.each_time
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_stored_history_passes_with_all_rules(
    file: Path, tables: Callable[[Kind], Path], tmp_path: Path
) -> None:
    stored = StoredHistory.load(file)
    start = tables(stored.kind.table)
    # The rule may keep the other task from going on just then.
    outcome = play_schedule(
        stored.kind, stored.schedule, start, tmp_path / "table", is_strict=not stored.removed_rule
    )
    assert not outcome.error, outcome.error


@pytest.mark.each_time
@pytest.mark.parametrize(
    "file",
    [file for file in FILES if StoredHistory.load(file).removed_rule],
    ids=lambda file: file.stem,
)
def test_stored_history_fails_without_its_rule(
    file: Path, tables: Callable[[Kind], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = StoredHistory.load(file)
    start = tables(stored.kind.table)
    RULES[stored.removed_rule](monkeypatch)
    outcome = play_schedule(stored.kind, stored.schedule, start, tmp_path / "table")
    assert outcome.error
    # A mutation that no longer fits the code would fail by itself.
    for mistake in ("TypeError", "AttributeError"):
        assert f"{mistake}: " not in outcome.error
