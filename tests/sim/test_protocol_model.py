"""Conformance: what the real code changes in storage is what the model of the protocol allows."""

from __future__ import annotations

import contextlib
import os
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pyhudi.config.lock_options import CONFLICT_RETRIES
from pyhudi.storage.storage import Storage
from pyhudi.txn import conflicts, heartbeat
from pyhudi.txn.lock_manager import TableLockManager
from pyhudi.txn.pending_instant import PendingInstant
from tests.sim.history import History
from tests.sim.protocol_trace import Trace, TraceWorld, build_model, record_plans, replay
from tests.sim.table_kinds import Kind
from tests.sim.tasks import reads, writes
from tests.sim.world import Odds, use_world_time

SEEDS = int(os.environ.get("PYHUDI_SEEDS", "4"))
FIRST = int(os.environ.get("PYHUDI_FIRST_SEED", "0"))


@dataclass(frozen=True)
class OnlyWrites(Kind):
    """A kind of table on which no service runs."""

    @property
    def services(self) -> tuple[str, ...]:
        return ()

    @property
    def options(self) -> dict[str, str]:
        # The last attempt of a write holds the lock from start to end.
        return {**super().options, CONFLICT_RETRIES: "50"}


TRACED = OnlyWrites(9, "cow", "SIMPLE")


@pytest.fixture(scope="module")
def model() -> Path:
    if shutil.which("cargo") is None:
        pytest.skip("the model is built with cargo")
    return build_model()


def odds_of(seed: int) -> Odds:
    return [
        Odds(switch=0.6),
        Odds(crash=0.01),
        Odds(critical_stall=0.06),
        Odds(crash=0.005, stall=0.005, critical_stall=0.03, max_skew_ms=100),
    ][seed % 4]


def record(
    seed: int, kind: Kind, start: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Run the writers of a seed, and return the file of their trace."""
    base, path = folder / str(seed), folder / f"{seed}.json"
    shutil.copytree(start, base)
    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        world = TraceWorld(seed, odds_of(seed))
        # The lock is released in the section that acquired it.
        world.has_deferred_release = False
        use_world_time(world, patch, same_machine=seed % 2 == 0)
        world.trace = Trace(Storage(str(base)))
        record_plans(world, patch)
        history = world.history = History(world.trace.config)
        for number in range(3):
            world.add(f"w{number}", writes(history, str(base), kind, 2))
        world.add("reader", reads(history, str(base), kind))
        with contextlib.suppress(AssertionError):
            # A mutation may end in an error; its trace is what counts.
            world.run()
    path.write_text(world.trace.encode())
    shutil.rmtree(base)
    return path


@pytest.mark.each_time
def test_writers_follow_the_model(
    model: Path,
    tables: Callable[[Kind], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seeds = range(FIRST, FIRST + SEEDS)
    traces = [record(seed, TRACED, tables(TRACED), tmp_path, monkeypatch) for seed in seeds]
    assert not replay(model, traces)


def without_lock(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TableLockManager, "critical_section", lambda *_, **__: contextlib.nullcontext())
    patch.setattr(TableLockManager, "check_held", lambda *_, **__: None)


def without_conflict_check(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(conflicts, "check_file_group_conflicts", lambda *_, **__: None)


def without_heartbeats(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(heartbeat, "live_instants", lambda *_, **__: [])


def without_inflight_file(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PendingInstant, "begin", lambda *_: None)


@pytest.mark.parametrize(
    "mutation", [without_lock, without_conflict_check, without_heartbeats, without_inflight_file]
)
def test_model_refuses_code_without_a_rule(
    mutation: Callable[[pytest.MonkeyPatch], None],
    model: Path,
    tables: Callable[[Kind], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = tables(TRACED)
    mutation(monkeypatch)
    traces = [record(seed, TRACED, start, tmp_path, monkeypatch) for seed in range(4)]
    assert replay(model, traces)
