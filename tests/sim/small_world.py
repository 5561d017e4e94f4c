"""A world of two tasks whose order a schedule decides, call by call, instead of a seed.

A task runs until it ends or waits, unless a deviation of the schedule stops it before a call: the
other task goes on, the task crashes, or it stalls. A schedule names a call by what it does and by
its number among equal calls of the task, so a schedule survives changes of the code elsewhere.
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
"""What happens before a call.

switch: the other task goes on.
crash: the task ends.
stall: the task stalls, and the other task goes on after that time.
outlast: the other task, which a switch has stopped, stalls, and this task goes on after that time.
lose: the call changes the storage, and raises an error.
"""
ORDINAL = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27,}|\d{3,}")
"""The parts of a path that differ between runs: instants and random numbers."""


@dataclass(frozen=True, order=True)
class Deviation:
    """Something that happens before one call of a task."""

    task: str
    call: str
    """Method and path; a `#` stands for each instant and each random number."""
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
    """A call that a task has made, in the order of the calls."""

    task: str
    name: str
    number: int
    path: str
    changes: bool
    is_tree: bool = False
    """It concerns all that is below the path."""
    in_timer: bool = False
    """It belongs to the renewal of a lock or a heartbeat: nothing happens before it."""
    can_switch: bool = False
    """The other task could go on instead."""
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
class _Seen:
    """What a task has done so far."""

    calls: Counter[str] = field(default_factory=Counter)
    is_stopped: bool = False
    """A switch has stopped it."""


class SmallWorld(HistoryWorld):
    """A world that a schedule decides."""

    def __init__(self, schedule: Schedule, *, is_strict: bool = True) -> None:
        """The tasks take turns as the schedule says.

        is_strict: a switch to a task that cannot go on is an error, instead of no switch.
        """
        self._randoms: dict[str, random.Random] = {}
        super().__init__(0, Odds(switch=0))
        self.leaves_late = False
        self.calls: list[Call] = []
        self.starts: dict[Deviation, int] = {}
        """For each deviation that happened, the number of calls before it."""
        self._schedule = {(one.task, one.call, one.number): one for one in schedule}
        self._seen: dict[str, _Seen] = {}
        self._is_strict = is_strict
        self._loses = False

    @property
    def random(self) -> random.Random:
        """Each task has its own random numbers, so the order of the tasks does not change them."""
        running: Task | None = getattr(self, "running", None)
        name = "" if running is None else running.name
        return self._randoms.setdefault(name, random.Random(name))

    @random.setter
    def random(self, _: random.Random) -> None:
        pass

    def choose(self, ready: list[Task]) -> Task:
        """The next task in their order, the running task last."""
        first = -1 if self.running is None else self.tasks.index(self.running)
        return min(ready, key=lambda task: (self.tasks.index(task) - first - 1) % len(self.tasks))

    def step(self, *, changes: bool) -> None:  # noqa: ARG002 - a point of the random world
        """Nothing happens but before a call."""
        assert self.running is not None
        if self.running.is_dead:
            raise Killed

    def call(self, method: str, path: str, *, changes: bool) -> None:
        """Let happen what the schedule says; see `Action`."""
        task = self.running
        assert task is not None
        if task.is_dead:
            raise Killed
        self.counts["calls"] += 1
        if not self._in_timer:
            self._pass_to(self.now_ms + 1)
        self._at(task, method, path, changes=changes)

    def _at(self, task: Task, method: str, path: str, *, changes: bool) -> None:
        name = f"{method} {ORDINAL.sub('#', path)}"
        seen = self._seen.setdefault(task.name, _Seen())
        if self._in_timer:
            self.calls.append(Call(task.name, name, 0, path, changes, in_timer=True))
            return
        seen.calls[name] += 1
        number = seen.calls[name]
        others = [one for one in self.tasks if one is not task and not one.is_over]
        call = Call(
            task.name,
            name,
            number,
            path,
            changes,
            is_tree=method in ("list", "list_dir", "delete_dir"),
            can_switch=any(self._ready_ms(one) <= self.now_ms for one in others),
            other_waits=any(
                one.name in self._seen and self._seen[one.name].is_stopped for one in others
            ),
        )
        deviation = self._schedule.pop((task.name, name, number), None)
        if deviation is not None:
            self._deviate(task, call, deviation)
        self.calls.append(call)

    def read_clock(self) -> None:
        """A task reads the time."""
        if self.running is not None and not self._in_timer:
            self.calls.append(Call(self.running.name, "clock", 0, "", changes=False, in_timer=True))

    def _deviate(self, task: Task, call: Call, deviation: Deviation) -> None:
        self.starts[deviation] = len(self.calls)
        self.tell(str(deviation))
        seen = self._seen[task.name]
        if deviation.action == "crash":
            task.is_dead = True
            self.counts["crashes"] += 1
            self.active_owners.forget(task)
            raise Killed
        if deviation.action == "lose":
            self._loses = True
            self.counts["lost responses"] += 1
            return
        if deviation.action == "switch":
            if not call.can_switch and self._is_strict:
                raise HistoryDoesNotApply(f"no other task can go on: {deviation}")
        else:
            stalled = task
            if deviation.action == "outlast":
                if not call.other_waits:
                    raise HistoryDoesNotApply(f"no other task waits: {deviation}")
                [stalled] = [one for one in self.tasks if one is not task]
            stalled.stood_still = True
            self.counts["stalls"] += 1
            stalled.stands_until_ms = self.now_ms + 1000 * deviation.seconds
            self.calls.append(Call(task.name, "time", 0, "", changes=True, in_timer=True))
            self._pass_to(stalled.stands_until_ms)
        if deviation.action != "outlast":
            seen.is_stopped = True
            self._switch(task)
            seen.is_stopped = False

    def loses(self) -> bool:
        """Whether the response to the running call is lost."""
        loses, self._loses = self._loses and not self._in_timer, False
        return loses

    def settle(self) -> None:
        """Check that the whole schedule happened."""
        if self._schedule:
            left = ", ".join(map(str, self._schedule.values()))
            raise HistoryDoesNotApply(f"the calls do not exist: {left}")


class SmallWorldClock(WorldClock):
    """A clock that tells its world when it is read."""

    def now_ms(self) -> int:
        """The world's time."""
        self._small().read_clock()
        return super().now_ms()

    def ticks_ms(self) -> int:
        """The world's time."""
        self._small().read_clock()
        return super().ticks_ms()

    def _small(self) -> SmallWorld:
        assert isinstance(self._world, SmallWorld)
        return self._world


class SmallWorldStorage(WorldStorage):
    """A storage whose every call is known to the world, also those of the Rust core."""

    def list(self, prefix: str = "") -> list[Entry]:
        """As the world's files are dated."""
        self._calls("list", prefix)
        return [self._dated(file) for file in super().list(prefix)]

    def set_modified(self, path: str, modified_ms: int) -> bool:
        """The world dates files itself."""
        self._changes("set_modified", path)
        return super().set_modified(path, modified_ms)

    def delete_dir(self, path: str) -> None:
        """One call, as on a local disk."""
        self._changes("delete_dir", path)
        super().delete_dir(path)

    def native_write(self, path: str, write: Callable[[], Any]) -> Any:
        """Write a file by the Rust core."""
        self._changes("write", path)
        written = write()
        self._world.modified[self._prefix + path] = self._world.now_ms
        if self._world.loses():
            raise StorageError("the response is lost")
        return written
