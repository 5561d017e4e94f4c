"""Small worlds: two tasks of one row each, in each order of their storage calls up to a bound.

A schedule has at most PYHUDI_DEVIATIONS deviations (1; `make small-worlds` sets 2), and at most one
of them is a fault. A failing schedule is shrunk and written to `histories/`, where it stays as a
regression. To trace it:

    PYHUDI_TRACE=1 pytest tests/sim/test_stored_histories.py -k NAME
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.sim import explorer
from tests.sim.explorer import Bound, explore, shrink
from tests.sim.small_kinds import SMALL_KINDS
from tests.sim.small_runs import Outcome, SmallKind, play_schedule
from tests.sim.small_world import Deviation, Schedule
from tests.sim.stored_histories import FOLDER, StoredHistory
from tests.sim.table_kinds import Kind
from tests.sim.test_mutations import MUTATIONS

DEVIATIONS = int(os.environ.get("PYHUDI_DEVIATIONS", "1"))
STORE = "PYHUDI_STORE_HISTORIES" in os.environ
STORED = {file: StoredHistory.load(file) for file in sorted(FOLDER.glob("*.json"))}
FILES = [
    file for file, stored in STORED.items() if stored.removed_rule and len(stored.schedule) == 1
]
RULES = {mutation.__name__: mutation for mutation, _ in MUTATIONS}


def player(
    kind: SmallKind, tables: Callable[[Kind], Path], folder: Path
) -> Callable[[Schedule], Outcome]:
    start = tables(kind.table)
    return lambda schedule: play_schedule(kind, schedule, start, folder / "table")


def find_failure(
    kind: SmallKind, play: Callable[[Schedule], Outcome], deviations: int
) -> StoredHistory | None:
    """Return the first schedule that fails, shrunk."""
    for outcome in explore(play, Bound(deviations), is_symmetric=kind.is_symmetric):
        if outcome.error:
            failing = shrink(play, outcome.schedule)
            failure = play(failing).error.strip().splitlines()[-1]
            return StoredHistory(kind, failing, failure=failure)
    return None


@pytest.mark.parametrize("kind", SMALL_KINDS, ids=str)
def test_small_world_is_serializable(
    kind: SmallKind, tables: Callable[[Kind], Path], tmp_path: Path
) -> None:
    failure = find_failure(kind, player(kind, tables, tmp_path), DEVIATIONS)
    assert failure is None, f"{failure.store()}: {failure.failure}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_explorer_finds_removed_rule(
    file: Path, tables: Callable[[Kind], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its rule, the world of a stored history fails. `STORE` writes the history again."""
    stored = STORED[file]
    play = player(stored.kind, tables, tmp_path)
    RULES[stored.removed_rule](monkeypatch)
    failure = find_failure(stored.kind, play, 1)
    assert failure is not None
    if STORE:
        replace(failure, removed_rule=stored.removed_rule).store()


def test_independent_calls_are_explored_in_one_order(
    tables: Callable[[Kind], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With each switch run, no result appears that the reduced exploration does not have."""
    monkeypatch.setattr(explorer, "FAULTS", ())
    play = player(SMALL_KINDS[0], tables, tmp_path)
    reduced = [*explore(play, Bound(1), is_symmetric=False)]
    monkeypatch.setattr(explorer, "count_redundant_calls", lambda *_: 1)
    complete = [*explore(play, Bound(1), is_symmetric=False)]
    assert len(reduced) < len(complete)
    assert {outcome.result for outcome in reduced} == {outcome.result for outcome in complete}


def test_shrink_keeps_the_deviations_that_fail(
    tables: Callable[[Kind], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [stored] = [StoredHistory.load(path) for path in FOLDER.glob("without_a_second_look-*.json")]
    play = player(stored.kind, tables, tmp_path)
    RULES[stored.removed_rule](monkeypatch)
    more = Deviation("w1", "list_dir .hoodie/.heartbeat", 1, "outlast", 70)
    longer = (*stored.schedule, more)
    assert play(longer).error
    assert shrink(play, longer) == stored.schedule
