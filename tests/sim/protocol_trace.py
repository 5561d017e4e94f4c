"""Records what tasks of a world change in storage, as a trace that the model replays (`models/`).

A trace has the changes of the lock, of heartbeats, of the timeline and of delta commits, in their
order, with stalls and crashes. For each write it has the commits that it was planned on and the
file groups that it changes, which the model cannot find itself.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pyhudi.config.actions import COMMIT_ACTIONS, ROLLBACK, Instant, State
from pyhudi.config.table_config import TableConfig
from pyhudi.config.timeline_layout import HEARTBEAT_FOLDER, LAYOUT_2
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline
from pyhudi.txn import process_liveness
from pyhudi.txn.conflicts import FileGroups, collect_written_file_groups
from pyhudi.txn.locks import storage_lock
from pyhudi.txn.transaction import Transaction
from tests.sim.crash import Killed
from tests.sim.history import HistoryWorld
from tests.sim.world import Task

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


@dataclass
class Trace:
    """The changes of one world, and what the model must know of each write."""

    storage: Storage
    parties: int = 0
    events: list[dict[str, Any]] = field(default_factory=list)
    history: list[str] = field(default_factory=list)
    """The commits that were there at first."""
    times: dict[str, int] = field(default_factory=dict)
    """The number of each instant, in the order in which they appear."""
    groups: dict[str, FileGroups] = field(default_factory=dict)
    """The file groups that a write changes."""
    planned_on: dict[str, list[str]] = field(default_factory=dict)
    """The commits that a task planned its write on, by its name."""
    holder: str = ""
    """The owner in the lock's file, "" while the lock is free."""
    holding_party: int = 0
    dead: set[int] = field(default_factory=set)
    beating: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.config = TableConfig.load(self.storage)
        for commit in self.timeline.commits:
            self.history.append(commit.requested)
            self.times[commit.requested] = len(self.times)
            self.groups[commit.requested] = self._groups_of(commit)

    @property
    def timeline(self) -> Timeline:
        return Timeline.load(self.storage, self.config)

    def _groups_of(self, instant: Instant) -> FileGroups:
        timeline = self.timeline
        is_pending = instant.state is State.INFLIGHT
        metadata = timeline.workload(instant) if is_pending else timeline.commit_metadata(instant)
        return collect_written_file_groups(metadata)

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
            elif instant is not None and instant.action in (*COMMIT_ACTIONS, ROLLBACK):
                self._record_instant(party, instant, is_new=data is not None)

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
            self.add(party, "marks", time)
        elif time not in self.beating:
            self.beating.add(time)
            planned = [self.times[commit] for commit in self.planned_on.get(name, [])]
            self.add(party, "beats", time, planned_on=planned)

    def _record_instant(self, party: int, instant: Instant, *, is_new: bool) -> None:
        time = instant.requested
        if is_new and instant.state is not State.REQUESTED and instant.action != ROLLBACK:
            self.groups[time] = self._groups_of(instant)
        self.add(party, (_CREATED if is_new else _REMOVED)[instant.state], time)

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
        for groups in self.groups.values():
            for group in sorted(groups):
                numbers.setdefault(group, len(numbers))

        def numbered(time: str) -> list[int]:
            return sorted(numbers[group] for group in self.groups.get(time, ()))

        for event in self.events:
            if event["change"] == "begins":
                event["groups"] = numbered(event["time"])
        trace = {
            "parties": self.parties,
            "has_metadata": bool(self.config.metadata_partitions),
            "history": [numbered(time) for time in self.history],
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
    """Record on which commits each write was planned, when it takes its instant."""
    begin = Transaction._begin

    def recorded(txn: Transaction) -> None:
        assert world.running is not None
        commits = [commit.requested for commit in txn._table.timeline.commits]
        world.trace.planned_on[world.running.name] = commits
        begin(txn)

    patch.setattr(Transaction, "_begin", recorded)


def build_model() -> Path:
    """Build the model's program and return its path."""
    manifest = str(MODEL / "Cargo.toml")
    command = ["cargo", "build", "--quiet", "--locked", "--manifest-path", manifest]
    subprocess.run(command, check=True)  # noqa: S603
    return MODEL / "target" / "debug" / "pyhudi-commit-model"


def replay(model: Path, traces: Collection[Path]) -> list[str]:
    """Return what the model says of each trace that it does not allow."""
    command = [str(model), "replay", *map(str, traces)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    lines = result.stdout.splitlines()
    assert len(lines) == len(traces), result.stderr
    return [line for line in lines if ": allowed" not in line]
