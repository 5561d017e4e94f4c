"""Interleavings show an anomaly in pyhudi if the rule that prevents it is removed.

Two kinds have no such rule: instants that are later than all others prevent dirty writes, and a
transaction writes each row once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pyhudi.query import commit_range
from pyhudi.sql_statements.target_reads import TargetReads
from pyhudi.timeline import Timeline
from pyhudi.txn import conflicts
from tests.anomalies.modes import DEFAULT, Mode
from tests.anomalies.scenarios import SCENARIOS
from tests.anomalies.scripted_run import Place, measure
from tests.sim.test_mutations import without_a_second_look

pytestmark = pytest.mark.slow

WITHOUT_METADATA = replace(DEFAULT[0], has_metadata=False)
VERSION_6 = DEFAULT[-1]


def remove_commit_checks(patch: pytest.MonkeyPatch) -> None:
    """Accept a write whose lookups and filters would find other rows now."""
    without_a_second_look(patch)


def remove_all_checks(patch: pytest.MonkeyPatch) -> None:
    """Accept two writes of one file group, too: either check alone prevents lost updates."""
    remove_commit_checks(patch)
    patch.setattr(conflicts, "check_file_group_conflicts", lambda *_, **__: None)


def remove_read_check(patch: pytest.MonkeyPatch) -> None:
    """Accept a SQL statement whose subquery would return other rows now."""
    patch.setattr(TargetReads, "validate", lambda *_: None)


def read_all_files(patch: pytest.MonkeyPatch) -> None:
    """Let readers use files without a commit."""
    patch.setattr(Timeline, "is_committed", lambda *_: True)


def ignore_pending_writes(patch: pytest.MonkeyPatch) -> None:
    """Let ranges of requested times go beyond a pending write."""
    patch.setattr(commit_range, "without_hollow", lambda table, _: table.timeline.commits)


CASES: list[tuple[Callable[[pytest.MonkeyPatch], None], str, Mode]] = [
    (remove_all_checks, "lost update of one statement", DEFAULT[0]),
    (remove_commit_checks, "duplicate key of upserts", DEFAULT[0]),
    (remove_commit_checks, "phantom under update", DEFAULT[0]),
    (remove_commit_checks, "phantom under delete", DEFAULT[1]),
    (remove_read_check, "lost update of a subquery", DEFAULT[0]),
    (remove_read_check, "write skew of a subquery", DEFAULT[0]),
    (read_all_files, "read of a pending write", WITHOUT_METADATA),
    (read_all_files, "read of an aborted write", WITHOUT_METADATA),
    (read_all_files, "read skew", WITHOUT_METADATA),
    (ignore_pending_writes, "non-prefix incremental read that waits", VERSION_6),
]


@pytest.mark.parametrize(
    ("remove", "name", "mode"), CASES, ids=[f"{case[0].__name__}-{case[1]}" for case in CASES]
)
def test_interleavings_show_anomaly_without_rule(
    remove: Callable[[pytest.MonkeyPatch], None],
    name: str,
    mode: Mode,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario = next(scenario for scenario in SCENARIOS if scenario.name == name)
    with warnings.catch_warnings(), monkeypatch.context() as patch:
        warnings.simplefilter("ignore")
        remove(patch)
        outcome = measure(scenario, mode, Place(tmp_path))
    assert outcome.anomalies
