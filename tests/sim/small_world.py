"""A world of two tasks in which a schedule decides, call by call, which task runs.

A task runs until it ends or waits, unless a deviation of the schedule stops it before a call: the
other task continues, the task crashes, or it stalls. A schedule names a call by its method, its
path and its number among equal calls of the task, so it survives changes of the code elsewhere.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pyhudi.errors import StorageError
from pyhudi.storage.storage import Entry
from tests.sim.crash import Killed
from tests.sim.history import HistoryWorld
from tests.sim.world import Odds, Task, WorldClock, WorldStorage

Action: TypeAlias = Literal["switch", "crash", "stall", "outlast", "lose"]
"""The event before a call.

switch: the other task continues.
crash: the task ends.
stall: the task stalls, and the other task continues after that time.
outlast: the other task, which a switch has stopped, stalls; this task continues after that time.
lose: the call changes the storage, and raises an error.
"""
ORDINAL = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27,}|\d{3,}")
"""The parts of a path that differ between runs: instants and random numbers."""


@dataclass(frozen=True, order=True)
class Deviation:
    """An event before a call of a task."""

    task: str
    call: str
    """Method and path; a `#` replaces each instant and each random number."""
    number: int
    """Number of the call among the equal calls of the task, from 1."""
    action: Action
    seconds: int = 0
    """Duration of a stall."""

    def __str__(self) -> str:
        """The deviation in one line."""
        length = f" {self.seconds} s" * bool(self.seconds)
        return f"{self.task} {self.action}{length} before {self.call} ({self.number})"


Schedule: TypeAlias = tuple[Deviation, ...]


@dataclass(frozen=True)
class Call:
    """A storage call of a task."""

    task: str
    name: str
    number: int
    path: str
    changes: bool
    is_tree: bool = False
    """It concerns all files below the path."""
    in_timer: bool = False
    """It belongs to the renewal of a lock or a heartbeat: nothing happens before it."""
    can_switch: bool = False
    """The other task is ready to run instead."""
    other_waits: bool = False
    """A switch has stopped the other task."""

    @property
    def is_clock(self) -> bool:
        """Whether it reads the time."""
        return self.name == "clock"

    @property
    def changes_time(self) -> bool:
        """Whether it lets time pass."""
        return self.name == "time"

    def conflicts_with(self, other: Call) -> bool:
        """Whether the order of two calls of different tasks makes a difference."""
        if not (self.changes or other.changes):
            return False
        if self.is_clock or other.is_clock:
            return self.changes_time or other.changes_time
        ours, theirs = f"{self.path}/", f"{other.path}/"
        return not (self.changes_time or other.changes_time) and (
            ours == theirs
            or (self.is_tree and theirs.startswith(ours))
            or (other.is_tree and ours.startswith(theirs))
        )


class HistoryDoesNotApply(AssertionError):
    """A schedule names a call that its task does not make, or at which nothing can happen."""


@dataclass
class _Progress:
    """The calls that a task has made."""

    calls: Counter[str] = field(default_factory=Counter)
    is_stopped: bool = False
    """A switch has stopped it."""


class SmallWorld(HistoryWorld):
    """A world that runs a schedule."""

    def __init__(self, schedule: Schedule, *, is_strict: bool = True) -> None:
        """The tasks take turns as the schedule says.

        is_strict: raise an error for a switch if the other task cannot run; otherwise ignore it.
        """
        self._randoms: dict[str, random.Random] = {}
        super().__init__(0, Odds(switch=0))
        self.has_deferred_release = False
        self.calls: list[Call] = []
        self.starts: dict[Deviation, int] = {}
        """For each deviation that happened, the number of calls before it."""
        self._schedule = {
            (deviation.task, deviation.call, deviation.number): deviation for deviation in schedule
        }
        self._progress: dict[str, _Progress] = {}
        self._is_strict = is_strict
        self._loses_response = False

    @property
    def random(self) -> random.Random:
        """Each task has its own random numbers, so the order of the tasks does not change them."""
        running: Task | None = getattr(self, "running", None)
        name = "" if running is None else running.name
        return self._randoms.setdefault(name, random.Random(name))

    @random.setter
    def random(self, _: random.Random) -> None:
        pass

    def choose_task(self, ready: list[Task]) -> Task:
        """The next task in their order, the running task last."""
        first = -1 if self.running is None else self.tasks.index(self.running)
        return min(ready, key=lambda task: (self.tasks.index(task) - first - 1) % len(self.tasks))

    def step(self, *, changes: bool) -> None:  # noqa: ARG002 - events come from the schedule
        """Raise `Killed` if the task has crashed; the schedule has all other events."""
        assert self.running is not None
        if self.running.has_crashed:
            raise Killed

    def before_call(self, method: str, path: str, *, changes: bool) -> None:
        """Let the deviation of the schedule happen, if it has one for this call."""
        task = self.running
        assert task is not None
        if task.has_crashed:
            raise Killed
        self.counts["calls"] += 1
        if not self._in_timer:
            self._advance_time(self.now_ms + 1)
        self._record_call(task, method, path, changes=changes)

    def _record_call(self, task: Task, method: str, path: str, *, changes: bool) -> None:
        name = f"{method} {ORDINAL.sub('#', path)}"
        progress = self._progress.setdefault(task.name, _Progress())
        if self._in_timer:
            self.calls.append(Call(task.name, name, 0, path, changes, in_timer=True))
            return
        progress.calls[name] += 1
        number = progress.calls[name]
        others = [other for other in self.tasks if other is not task and not other.has_ended]
        call = Call(
            task.name,
            name,
            number,
            path,
            changes,
            is_tree=method in ("list", "list_dir", "delete_dir"),
            can_switch=any(self._ready_ms(other) <= self.now_ms for other in others),
            other_waits=any(
                other.name in self._progress and self._progress[other.name].is_stopped
                for other in others
            ),
        )
        deviation = self._schedule.pop((task.name, name, number), None)
        if deviation is not None:
            self._deviate(task, call, deviation)
        self.calls.append(call)

    def record_clock_read(self) -> None:
        """Record that the running task reads the time."""
        if self.running is not None and not self._in_timer:
            self.calls.append(Call(self.running.name, "clock", 0, "", changes=False, in_timer=True))

    def _deviate(self, task: Task, call: Call, deviation: Deviation) -> None:
        self.starts[deviation] = len(self.calls)
        self.log(str(deviation))
        progress = self._progress[task.name]
        if deviation.action == "crash":
            task.has_crashed = True
            self.counts["crashes"] += 1
            self.active_owners.discard_owners_of(task)
            raise Killed
        if deviation.action == "lose":
            self._loses_response = True
            self.counts["lost responses"] += 1
            return
        if deviation.action == "switch":
            if not call.can_switch and self._is_strict:
                raise HistoryDoesNotApply(f"no other task can run: {deviation}")
        else:
            stalled = task
            if deviation.action == "outlast":
                if not call.other_waits:
                    raise HistoryDoesNotApply(f"no other task waits: {deviation}")
                [stalled] = [other for other in self.tasks if other is not task]
            stalled.has_stalled = True
            self.counts["stalls"] += 1
            stalled.stalled_until_ms = self.now_ms + 1000 * deviation.seconds
            self.calls.append(Call(task.name, "time", 0, "", changes=True, in_timer=True))
            self._advance_time(stalled.stalled_until_ms)
        if deviation.action != "outlast":
            progress.is_stopped = True
            self._switch(task)
            progress.is_stopped = False

    def is_response_lost(self) -> bool:
        """Return whether the schedule loses the response of the running call."""
        is_lost, self._loses_response = self._loses_response and not self._in_timer, False
        return is_lost

    def check_schedule_happened(self) -> None:
        """Check that the whole schedule happened."""
        if self._schedule:
            missing = ", ".join(map(str, self._schedule.values()))
            raise HistoryDoesNotApply(f"the calls do not exist: {missing}")


class SmallWorldClock(WorldClock):
    """A clock whose reads the world records."""

    def now_ms(self) -> int:
        """The world's time."""
        self._small().record_clock_read()
        return super().now_ms()

    def ticks_ms(self) -> int:
        """The world's time."""
        self._small().record_clock_read()
        return super().ticks_ms()

    def _small(self) -> SmallWorld:
        assert isinstance(self._world, SmallWorld)
        return self._world


class SmallWorldStorage(WorldStorage):
    """A storage that reports each call to the world, also calls of the Rust core."""

    def list(self, prefix: str = "") -> list[Entry]:
        """List all files, with modification times of the world."""
        self._before_read("list", prefix)
        return [self._with_world_date(file) for file in super().list(prefix)]

    def set_modified(self, path: str, modified_ms: int) -> bool:
        """Set the time of a file, which readers do not see: they get the world's time."""
        self._before_change("set_modified", path)
        return super().set_modified(path, modified_ms)

    def delete_dir(self, path: str) -> None:
        """Delete a directory with one call, as on a local disk."""
        self._before_change("delete_dir", path)
        super().delete_dir(path)

    def native_write(self, path: str, write: Callable[[], Any]) -> Any:
        """Write a file by the Rust core."""
        self._before_change("write", path)
        written = write()
        self._world.modified[self._prefix + path] = self._world.now_ms
        if self._world.is_response_lost():
            raise StorageError("the response is lost")
        return written
