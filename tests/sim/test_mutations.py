"""Mutations: the simulation fails if one of these rules is removed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from pyhudi.config.timeline_layout import LAYOUT_2
from pyhudi.txn import conflicts, heartbeat, lock_manager, zombie_commits
from pyhudi.txn.heartbeat import Heartbeat
from pyhudi.txn.lock_manager import TableLockManager
from pyhudi.txn.pending_instant import PendingInstant
from pyhudi.txn.transaction import Transaction
from tests.sim.seed_runner import play_all
from tests.sim.table_kinds import KINDS, Kind
from tests.sim.world import World


def without_lock(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TableLockManager, "critical_section", lambda *_, **__: contextlib.nullcontext())
    patch.setattr(TableLockManager, "check_held", lambda *_, **__: None)


def without_a_look_at_its_own(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(conflicts, "check_still_inflight", lambda *_, **__: None)
    patch.setattr(PendingInstant, "check_inflight", lambda _: None)
    patch.setattr(PendingInstant, "has_newer_instants", lambda *_, **__: False)
    patch.setattr(Heartbeat, "is_late", False)
    patch.setattr(TableLockManager, "check_held", lambda *_, **__: None)


def without_a_look_at_others(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(conflicts, "check_file_group_conflicts", lambda *_, **__: None)


def without_a_second_look(patch: pytest.MonkeyPatch) -> None:
    begin = Transaction.__init__

    def without(self: Transaction, *given: Any, commit_checks: Any = (), **how: Any) -> None:  # noqa: ARG001
        begin(self, *given, **how)

    patch.setattr(Transaction, "__init__", without)


def without_heartbeats(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(heartbeat, "live_instants", lambda *_, **__: [])


def without_a_look_for_late_commits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(zombie_commits, "_is_late", lambda *_, **__: False)
    # Few stands are about a publication.
    init = World.__init__
    often = {"stall": 0.05}
    patch.setattr(World, "__init__", lambda w, seed, odds: init(w, seed, replace(odds, **often)))


def asked_before_the_lock(patch: pytest.MonkeyPatch) -> None:
    section = TableLockManager.critical_section

    @contextlib.contextmanager
    def early(self: TableLockManager) -> Iterator[None]:
        storage = cast("Any", self)._lock._storage
        with storage.prefetch(folders=[LAYOUT_2.folder]), section(self):
            yield

    patch.setattr(lock_manager, "forget", lambda: None)
    patch.setattr(TableLockManager, "critical_section", early)


MUTATIONS = [
    (without_lock, 0),
    (without_a_look_at_its_own, 400),
    (without_a_look_at_others, 0),
    (without_a_second_look, 0),
    (without_heartbeats, 0),
    (without_a_look_for_late_commits, 0),
    (asked_before_the_lock, 0),
]
"""What is missing, and the seed from which on it is looked for: few of them meet the second."""


@pytest.mark.parametrize(
    ("mutation", "first"), MUTATIONS, ids=[mutation.__name__ for mutation, _ in MUTATIONS]
)
def test_simulation_finds_removed_rule(
    mutation: Callable[[pytest.MonkeyPatch], None],
    first: int,
    tables: Callable[[Kind], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kind = KINDS[0]
    start = tables(kind)
    mutation(monkeypatch)
    with pytest.raises(AssertionError, match="PYHUDI_SEED") as raised:
        play_all(3000, kind, start, tmp_path, monkeypatch, first)
    # A mutation that no longer fits the code would fail by itself.
    for mistake in ("TypeError", "AttributeError"):
        assert f"{mistake}: " not in str(raised.value)
