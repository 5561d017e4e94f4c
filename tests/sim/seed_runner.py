"""Runs one seed after another and checks the result of each."""

from __future__ import annotations

import os
import shutil
import warnings
from functools import partial
from pathlib import Path

import pytest

import pyhudi
from pyhudi.admin import run_service
from pyhudi.config.clustering_options import ClusteringOptions
from pyhudi.config.table_config import TableConfig
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import CommitConflict
from pyhudi.services.clustering import ClusteringRequest
from pyhudi.slices.service_plans import files_of_plans
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline
from pyhudi.timeline.archive import Archive
from pyhudi.txn import attempt_files
from pyhudi.txn.heartbeat import UNSEEN_MS
from pyhudi.txn.transaction import Transaction
from pyhudi.write import upsert
from pyhudi.write.conflict_retries import retry_on_conflict
from pyhudi.write.table_opening import Handle
from tests.sim.counts import note_run
from tests.sim.crash import leftovers
from tests.sim.followers import Deliveries, follows, judge_deliveries
from tests.sim.history import Attempt, History, HistoryWorld, rows_in
from tests.sim.table_kinds import CITIES, Kind, Rows, to_arrow
from tests.sim.tasks import SERVICES, reads, serves, writes
from tests.sim.world import Odds, Task, World, WorldClock, WorldStorage, use_world_time

SEEDS = int(os.environ.get("PYHUDI_SEEDS", "75"))
"""Of each kind of table."""
FIRST = int(os.environ.get("PYHUDI_FIRST_SEED", "0"))
ONE = os.environ.get("PYHUDI_SEED")
HARD = "PYHUDI_HARD" in os.environ


def play_all(
    count: int,
    kind: Kind,
    start: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    first: int = FIRST,
    *,
    jump: float = 0.0,
) -> list[History]:
    """Plays many seeds from one on, or that which the environment names.

    jump: how likely a clock is set at one call to storage.
    """
    histories = []
    for seed in [int(ONE)] if ONE else range(first, first + count):
        base = folder / str(seed)
        with monkeypatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                histories.append(play(seed, kind, start, base, patch, jump=jump))
            except Exception as error:
                hashes = os.environ.get("PYTHONHASHSEED", "")
                msg = f"PYTHONHASHSEED={hashes} PYHUDI_SEED={seed} of {kind}: {error}"
                raise AssertionError(msg) from error
        shutil.rmtree(base)
    return histories


def play(
    seed: int,
    kind: Kind,
    start: Path,
    base: Path,
    patch: pytest.MonkeyPatch,
    *,
    jump: float = 0.0,
) -> History:
    """Plays one seed on a copy of a table, and judges it."""
    shutil.copytree(start, base)
    odds = [
        Odds(),
        Odds(switch=0.6),
        Odds(crash=0.01),
        Odds(stall=0.01, max_skew_ms=100),
        Odds(lost_response=0.01),
        Odds(crash=0.005, stall=0.005, lost_response=0.005, max_skew_ms=100),
    ][seed % 6]
    odds = Odds.hard(seed) if HARD else odds
    odds.clock_jump = jump
    world = HistoryWorld(seed, odds)
    use_world_time(world, patch, same_machine=seed % 4 < 2)
    storage = Storage(str(base))
    config = TableConfig.load(storage)
    history = world.history = History(config, non_blocking=kind.non_blocking)
    noting_what_stays(history, patch)
    if kind.is_cleaned:
        history.archive = lambda: Archive(storage, config)
    for number in range(world.random.choice([2, 2, 3, 4])):
        count = world.random.choice([1, 1, 2])
        world.add(f"w{number}", writes(history, str(base), kind, count))
    world.add("reader", reads(history, str(base), kind))
    followed = Deliveries(kind, None if seed % 3 == 0 and not kind.cdc else "earliest")
    for number in range(2 if kind.has_stream else 0):
        world.add(f"stream{number}", follows(followed, str(base)))
    if kind.background_services:
        world.add("services", serves(history, str(base), kind))
    world.run()
    assert not history.unexplained(), history.unexplained()
    for attempt in history.attempts:
        failed = attempt.said == "failed" and attempt.most == 1
        assert 0 <= attempt.published <= (0 if failed else attempt.most)
        assert history.is_as_said(attempt), attempt
    note_run("seeds", kind, world.counts)
    world.odds = Odds(switch=0)
    # By then whatever died counts as dead, also what shows no heartbeat.
    newest = max(world.modified.values(), default=0) - world.clock_shift_ms
    world.now_ms = max(world.now_ms, newest) + 900_000 + UNSEEN_MS
    last = {"k0": (CITIES[0], 9999)}
    finish(world, history, str(base), kind, last)
    judge(history, base, kind, stood_still=any(task.has_stalled for task in world.tasks))
    if kind.has_stream:
        judge_deliveries(followed, base, history.ends())
        history.deliveries = followed
    return history


def noting_what_stays(history: History, patch: pytest.MonkeyPatch) -> None:
    settled = Transaction._finish

    def noted(txn: Transaction) -> bool:
        try:
            return settled(txn)
        except Exception:
            history.not_taken.add(txn.instant)
            raise

    patch.setattr(Transaction, "_finish", noted)
    patch.setattr(attempt_files, "files_of_plans", partial(noting_what_is_planned, history))


def noting_what_is_planned(history: History, timeline: Timeline) -> set[str]:
    found = files_of_plans(timeline)
    history.planned |= found
    return found


def finish(world: World, history: History, uri: str, kind: Kind, rows: Rows) -> None:
    """A last writer, alone."""

    def work(task: Task) -> None:
        handle = Handle(WorldStorage(uri, world), LocalEngine(1), kind.options)
        if "cluster" in kind.services or kind.consistent_hashing:
            # It gives way to a plan that a killed one has left.
            history.doing[task.name] = Attempt(dict)
            left, clock = ClusteringRequest(schedule=False), WorldClock(world, task)
            opened = Handle.of(handle, clock)
            # Within a section: one that came late is a plan again.
            with opened.lock_manager.critical_section():
                run_service.cluster(opened, left, ClusteringOptions(), clock=clock)
        history.doing[task.name] = Attempt(lambda state: {**state, **rows})
        clock = WorldClock(world, task)
        # What came late, and whose writer was killed then, it takes back itself.
        retry_on_conflict(
            handle, None, lambda one, _: upsert.upsert(one, to_arrow(rows), clock=clock), clock
        )
        for name in kind.services:
            history.doing[task.name] = Attempt(dict)
            try:
                SERVICES[name](handle, clock)
            except CommitConflict:
                # A plan that another one withdrew as it was begun is taken off the timeline.
                SERVICES[name](handle, clock)

    world.add("last", work)
    world.run()


def judge(history: History, base: Path, kind: Kind, *, stood_still: bool) -> None:
    """stood_still: somebody did, who may have made an index and lost the lock meanwhile."""
    for metadata in {"false", str(kind.metadata).lower()}:
        opened = pyhudi.open_table(
            str(base), options={**kind.options, "hoodie.metadata.enable": metadata}
        )
        rows = rows_in(opened.scan().to_arrow())
        assert rows in history.ends(), f"{rows} is none of {history.ends()}"
    left = {item.removeprefix("orphan ") for item in leftovers(base)}
    assert all(map(history.may_be_left, left)), left
    found = pyhudi.open_table(str(base)).check(deep=True).findings
    paths = {one: f"{one.partition}/{one.item}" for one in found}
    left |= {path for one, path in paths.items() if one.kind == "unnamed_file"}
    assert all(map(history.may_be_left, left)), found
    of_nobody = {"metadata_partition_unlisted"} if stood_still else set()
    findings = [one for one in found if paths[one] not in left and one.kind not in of_nobody]
    # Up to version 6 log files that are there when statistics are made have none, and are read.
    logs = {one for one in findings if kind.version == 6 and one.kind == "statistics_missing"}
    assert not [one for one in findings if one not in logs or ".log." not in one.item], findings
