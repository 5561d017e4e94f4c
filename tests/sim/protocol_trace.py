"""Records what tasks of a world change in storage, as a trace that the model replays (`models/`).

A trace has the changes of the lock, of heartbeats, of the timeline and of delta commits, in their
order, with stalls and crashes. For each write and each plan of a service it has the timeline that
it was planned on and the file groups that it changes, which the model cannot find itself.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pyhudi.config.actions import (
    CLEAN,
    CLUSTERING,
    COMMIT_ACTIONS,
    COMPACTION,
    ROLLBACK,
    Instant,
    State,
)
from pyhudi.config.table_config import TableConfig
from pyhudi.config.timeline_layout import HEARTBEAT_FOLDER, LAYOUT_2
from pyhudi.services import cleaning
from pyhudi.services.clean_plan import CleanPlan
from pyhudi.slices.slice_builder import groups_of_plan
from pyhudi.storage.storage import Storage
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline, archiving
from pyhudi.txn import process_liveness
from pyhudi.txn.conflicts import (
    FileGroups,
    _groups_appended_to,
    collect_written_file_groups,
)
from pyhudi.txn.locks import storage_lock
from pyhudi.txn.transaction import Transaction
from pyhudi.write.table_opening import Handle
from tests.sim import tasks
from tests.sim.crash import Killed
from tests.sim.history import HistoryWorld
from tests.sim.world import Task, WorldClock

MODEL = Path(__file__).parents[2] / "models"

_DELTA_FOLDER = f".hoodie/metadata/{LAYOUT_2.folder}"
_CREATED = {
    State.REQUESTED: "requests",
    State.INFLIGHT: "begins",
    State.COMPLETED: "completes",
}
_REMOVED = {
    State.REQUESTED: "withdraws its request",
    State.INFLIGHT: "withdraws",
    State.COMPLETED: "revokes",
}
_PLANNED = (COMPACTION, CLUSTERING)
_ACTIONS = {CLEAN: "clean", ROLLBACK: "rollback", **{action: action for action in _PLANNED}}
"""The model's names of actions; all others are writes."""


@dataclass(frozen=True)
class Plan:
    """The timeline that a write or a service was planned on."""

    completed: tuple[str, ...]
    pending: tuple[str, ...]
    retains: str = ""
    """The earliest commit that a clean retains."""

    @classmethod
    def of(cls, timeline: Timeline, retains: str = "") -> Plan:
        completed = (i.requested for i in timeline.instants if i.is_completed)
        pending = (i.requested for i in timeline.pending())
        return cls((*completed,), (*pending,), retains)


@dataclass
class Trace:
    """The changes of one world, and what the model must know of each write."""

    storage: Storage
    appends: bool = False
    """Whether writers are non-blocking."""
    parties: int = 0
    events: list[dict[str, Any]] = field(default_factory=list)
    history: list[str] = field(default_factory=list)
    """The commits that were there at first."""
    times: dict[str, int] = field(default_factory=dict)
    """The number of each instant, in the order in which they appear."""
    groups: dict[str, FileGroups] = field(default_factory=dict)
    """The file groups that a write changes."""
    appended: dict[str, FileGroups] = field(default_factory=dict)
    """The file groups to which a write only adds log files."""
    planned: dict[str, FileGroups] = field(default_factory=dict)
    """The file groups of a compaction or clustering."""
    plans: dict[str, Plan] = field(default_factory=dict)
    """The last plan of a task, by its name."""
    holder: str = ""
    """The owner in the lock's file, "" while the lock is free."""
    holding_party: int = 0
    dead: set[int] = field(default_factory=set)
    completed: dict[str, set[str]] = field(default_factory=dict)
    """The completion times of the completed files of each instant."""
    archiving: set[str] = field(default_factory=set)
    """The tasks that remove instants that they have archived."""
    beating: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.config = TableConfig.load(self.storage)
        for commit in self.timeline.commits:
            self.history.append(commit.requested)
            self.times[commit.requested] = len(self.times)
            self.completed[commit.requested] = {commit.completed or ""}
            self._keep_groups(commit)

    @property
    def timeline(self) -> Timeline:
        return Timeline.load(self.storage, self.config)

    def _keep_groups(self, instant: Instant) -> None:
        timeline, time = self.timeline, instant.requested
        is_pending = instant.state is State.INFLIGHT
        metadata = timeline.workload(instant) if is_pending else timeline.commit_metadata(instant)
        self.groups[time] = collect_written_file_groups(metadata)
        if not is_pending:
            self.appended[time] = _groups_appended_to(self.config, metadata)

    def add(self, party: int, change: str, time: str = "", **more: Any) -> None:
        event: dict[str, Any] = {"party": party, "change": change, **more}
        if time:
            event["instant"] = self.times.setdefault(time, len(self.times))
            event["time"] = time
        self.events.append(event)

    def record(self, party: int, name: str, path: str, data: bytes | None) -> None:
        """Record a change by the task `name`."""
        folder, _, file = path.rpartition("/")
        if path == storage_lock.PATH and data is not None:
            content = json.loads(data)
            owner = "" if content["expired"] else content["owner"]
            if owner != self.holder:
                self._record_owner(party, owner)
        elif folder == HEARTBEAT_FOLDER and file.isdigit():
            self._record_beat(party, name, file, data)
        elif folder in (LAYOUT_2.folder, _DELTA_FOLDER):
            instant = LAYOUT_2.parse(file)
            if instant is not None and folder == _DELTA_FOLDER:
                self._record_delta(party, instant, is_new=data is not None)
            elif instant is not None and instant.action in (*COMMIT_ACTIONS, *_ACTIONS):
                self._record_instant(party, name, instant, is_new=data is not None)

    def _record_owner(self, party: int, owner: str) -> None:
        # On one machine, a lock is free as soon as its holder begins to release it.
        is_free = self.holder not in process_liveness.active_owners
        if owner and self.holder and is_free and self.holding_party not in self.dead:
            self.add(self.holding_party, "releases")
        self.holder, self.holding_party = owner, party
        self.add(party, "acquires" if owner else "releases")

    def _record_beat(self, party: int, name: str, time: str, data: bytes | None) -> None:
        if data is None:
            self.beating.discard(time)
            self.add(party, "stops beating", time)
        elif json.loads(data).get("late_ms", 0) < 0:
            self.beating.discard(time)
            self.add(party, "marks", time)
        elif time not in self.beating:
            self.beating.add(time)
            self.add(party, "beats", time, plan=self._plan_of(name))

    def _plan_of(self, name: str) -> dict[str, Any]:
        plan = self.plans[name]
        return {
            "completed": self._numbers(plan.completed),
            "pending": self._numbers(plan.pending),
            "retains": self.times.get(plan.retains),
        }

    def _numbers(self, times: Collection[str]) -> list[int]:
        return [self.times[time] for time in times if time in self.times]

    def _record_instant(self, party: int, name: str, instant: Instant, *, is_new: bool) -> None:
        time, action = instant.requested, _ACTIONS.get(instant.action, "write")
        if instant.is_completed:
            files = self.completed.setdefault(time, set())
            had_file = bool(files)
            (files.add if is_new else files.discard)(instant.completed or "")
            if had_file == bool(files):
                # Two executors have completed one plan, and the later one removes its file.
                return
        if not is_new and name in self.archiving:
            if instant.is_completed:
                self.add(party, "archives", time)
            return
        if is_new and instant.state is not State.REQUESTED and action == "write":
            self._keep_groups(instant)
        more: dict[str, Any] = {"action": action}
        if is_new and instant.state is State.REQUESTED:
            if action == "clean":
                more["plan"] = self._plan_of(name)
            elif action in _PLANNED:
                self.planned[time] = frozenset(groups_of_plan(self.timeline.plan(instant)))
        self.add(party, (_CREATED if is_new else _REMOVED)[instant.state], time, **more)

    def _record_delta(self, party: int, instant: Instant, *, is_new: bool) -> None:
        """Record a change of a delta commit: it begins and ends with its requested file."""
        if instant.action != "deltacommit" or instant.requested not in self.times:
            return
        if instant.state is State.REQUESTED:
            change = "begins its delta" if is_new else "withdraws its delta"
        elif instant.is_completed and is_new:
            change = "completes its delta"
        else:
            return
        self.add(party, change, instant.requested)

    def encode(self) -> str:
        """The trace as JSON. Each write has the file groups of its last state."""
        numbers: dict[tuple[str, str], int] = {}
        for groups in (*self.groups.values(), *self.planned.values()):
            for group in sorted(groups):
                numbers.setdefault(group, len(numbers))

        def numbered(groups: dict[str, FileGroups], time: str) -> list[int]:
            return sorted(numbers[group] for group in groups.get(time, ()))

        for event in self.events:
            if event["change"] == "begins":
                event["groups"] = numbered(self.groups, event["time"])
                event["appended"] = numbered(self.appended, event["time"])
            elif event["change"] == "requests":
                event["groups"] = numbered(self.planned, event["time"])
        trace = {
            "parties": self.parties,
            "has_metadata": bool(self.config.metadata_partitions),
            "history": [numbered(self.groups, time) for time in self.history],
            "appends": self.appends,
            "retained": tasks.RETAINED,
            "events": self.events,
        }
        return json.dumps(trace, indent=1)


class TraceWorld(HistoryWorld):
    """A world that records a trace."""

    trace: Trace

    def _party(self, task: Task | None) -> int:
        assert task is not None
        self.trace.parties = len(self.tasks)
        return self.tasks.index(task)

    def on_change(self, path: str, data: bytes | None) -> None:
        assert self.running is not None
        self.trace.record(self._party(self.running), self.running.name, path, data)

    def step(self, *, changes: bool) -> None:
        task = self.running
        was_dead = task is None or task.has_crashed
        try:
            super().step(changes=changes)
        except Killed:
            if not was_dead:
                self.trace.add(self._party(task), "crash")
                self.trace.dead.add(self._party(task))
            raise

    def _stall(self, task: Task, durations_ms: list[int]) -> None:
        self.trace.add(self._party(task), "stall")
        super()._stall(task, durations_ms)


def record_plans(world: TraceWorld, patch: pytest.MonkeyPatch) -> None:
    """Record which services run, and on which timeline each write and each service was planned."""

    def record_plan(timeline: Timeline, retains: str = "") -> None:
        assert world.running is not None
        world.trace.plans[world.running.name] = Plan.of(timeline, retains)

    enter, plan_clean = Transaction.__enter__, cleaning._plan

    def enter_and_record(txn: Transaction) -> Transaction:
        record_plan(txn._table.timeline)
        return enter(txn)

    def plan_clean_and_record(table: TableSnapshot, *args: Any) -> CleanPlan | None:
        plan = plan_clean(table, *args)
        earliest = plan and plan.retention.earliest_retained
        record_plan(table.timeline, earliest.requested if earliest else "")
        return plan

    remove = archiving._remove

    def remove_and_record(*args: Any) -> None:
        assert world.running is not None
        name, tasks_archiving = world.running.name, world.trace.archiving
        tasks_archiving.add(name)
        try:
            remove(*args)
        finally:
            tasks_archiving.discard(name)

    patch.setattr(archiving, "_remove", remove_and_record)
    patch.setattr(Transaction, "__enter__", enter_and_record)
    patch.setattr(cleaning, "_plan", plan_clean_and_record)
    for name, service in tasks.SERVICES.items():
        patch.setitem(tasks.SERVICES, name, _recorded(world, name, service))


def _recorded(
    world: TraceWorld, name: str, service: Callable[[Handle, WorldClock], object]
) -> Callable[[Handle, WorldClock], object]:
    def run(handle: Handle, clock: WorldClock) -> object:
        world.trace.add(world._party(world.running), "runs", service=name)
        return service(handle, clock)

    return run


def build_model() -> Path:
    """Build the model's program and return its path."""
    manifest = str(MODEL / "Cargo.toml")
    target = MODEL / "target"
    command = ["cargo", "build", "--quiet", "--locked", "--manifest-path", manifest]
    subprocess.run([*command, "--target-dir", str(target)], check=True)  # noqa: S603
    return target / "debug" / "pyhudi-commit-model"


def replay(model: Path, traces: Collection[Path]) -> list[str]:
    """Return what the model says of each trace that it does not allow."""
    command = [str(model), "replay", *map(str, traces)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    lines = result.stdout.splitlines()
    assert len(lines) == len(traces), result.stderr
    return [line for line in lines if ": allowed" not in line]
