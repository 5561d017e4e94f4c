"""Conformance: what the real code changes in storage is what the model of the protocol allows."""

from __future__ import annotations

import contextlib
import os
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pyhudi.config.lock_options import CONFLICT_RETRIES
from pyhudi.config.table_config import TableConfig
from pyhudi.services import archiving, cleaning
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline
from pyhudi.timeline import archiving as timeline_archiving
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
class TracedKind(Kind):
    """A kind of table on which some services run."""

    runs: tuple[str, ...] = ()

    @property
    def services(self) -> tuple[str, ...]:
        # Most operations of a service find nothing to do.
        return self.runs * 8

    @property
    def options(self) -> dict[str, str]:
        # The last attempt of a write holds the lock from start to end.
        return {**super().options, CONFLICT_RETRIES: "50"}


WRITES = TracedKind(9, "cow", "SIMPLE")
CLEANING = TracedKind(9, "cow", "SIMPLE", commits=3, runs=("clean",))
ARCHIVING = TracedKind(9, "cow", "SIMPLE", is_cleaned=True, commits=4, runs=("archive",))
COMPACTION = TracedKind(9, "mor", "BUCKET", commits=2, runs=("compact",))
APPENDS = TracedKind(9, "mor", "BUCKET", non_blocking=True, commits=2, runs=("compact",))
CLUSTERING = TracedKind(9, "cow", "SIMPLE", runs=("cluster",))
KINDS = {
    "writes": WRITES,
    "cleaning": CLEANING,
    "archiving": ARCHIVING,
    "compaction": COMPACTION,
    "appends": APPENDS,
    "clustering": CLUSTERING,
}


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
        world.trace = Trace(Storage(str(base)), appends=kind.non_blocking)
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
@pytest.mark.parametrize("name", KINDS)
def test_writers_follow_the_model(
    name: str,
    model: Path,
    tables: Callable[[Kind], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seeds, kind = range(FIRST, FIRST + SEEDS), KINDS[name]
    traces = [record(seed, kind, tables(kind), tmp_path, monkeypatch) for seed in seeds]
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


def without_current_clean_plans(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cleaning, "_is_outdated", lambda *_: False)


def without_withdrawal_of_late_plans(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PendingInstant, "request_planned", lambda self, plan, _: self.request(plan))


def without_last_commits_in_archiving(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(archiving, "_earliest_retained", lambda *_: None)


def without_order_of_archiving(patch: pytest.MonkeyPatch) -> None:
    archive = timeline_archiving.archive

    def archive_newest_first(
        storage: Storage, config: TableConfig, timeline: Timeline, part: Any, *more: Any
    ) -> None:
        archive(storage, config, timeline, part[::-1], *more)

    patch.setattr(archiving, "archive_instants", archive_newest_first)


Mutation = Callable[[pytest.MonkeyPatch], None]

MUTATIONS: list[tuple[str, Mutation, range]] = [
    ("writes", without_lock, range(4)),
    ("writes", without_conflict_check, range(4)),
    ("writes", without_heartbeats, range(4)),
    ("writes", without_inflight_file, range(4)),
    ("cleaning", without_current_clean_plans, range(4, 6)),
    ("cleaning", without_withdrawal_of_late_plans, range(26, 27)),
    ("archiving", without_last_commits_in_archiving, range(2)),
    ("archiving", without_order_of_archiving, range(2)),
    ("compaction", without_lock, range(2)),
    ("clustering", without_conflict_check, range(2)),
]
"""Each with the kind of table and seeds of which the model refuses some."""


@pytest.mark.parametrize(("name", "mutation", "seeds"), MUTATIONS)
def test_model_refuses_code_without_a_rule(
    name: str,
    mutation: Mutation,
    seeds: range,
    model: Path,
    tables: Callable[[Kind], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kind = KINDS[name]
    start = tables(kind)
    mutation(monkeypatch)
    traces = [record(seed, kind, start, tmp_path, monkeypatch) for seed in seeds]
    assert replay(model, traces)
