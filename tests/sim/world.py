"""A world runs several writers and readers of one table as tasks; a seed decides their schedule.

One task runs at a time. At each storage call of a task, the world can let another task run, stall
the task, crash it, or lose the response of the call. The world has its own time, which advances
when all tasks wait. A seed gives the same schedule in each run.
"""

from __future__ import annotations

import heapq
import os
import random
import sys
import threading
import traceback
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from pyhudi.errors import StorageError
from pyhudi.storage.prefetch import Request, prefetch_block
from pyhudi.storage.storage import Entry, Storage
from pyhudi.txn import heartbeat, lock_manager, process_liveness, renewal
from pyhudi.txn.locks.base import TableLock, release
from tests.sim.crash import Killed

START_MS = 2_000_000_000_000
TRACE = "PYHUDI_TRACE" in os.environ
_SKIPPED_PREFETCHES = 0.2
"""The part of the prefetched requests that the block has to send itself."""
_CLOCK_JUMPS_MS = (-3_600_000, 86_400_000)
_TIMEOUT_S = 60
"""After this real time a run counts as stuck."""


@dataclass
class Odds:
    """The probabilities of events at a storage call."""

    switch: float = 0.25
    """Another task runs next."""
    crash: float = 0.0
    """The task crashes before a change."""
    stall: float = 0.0
    """The task and its threads stall for up to 400 seconds, at any call."""
    lost_response: float = 0.0
    """The storage makes a change, and the task gets an error."""
    max_skew_ms: int = 0
    """The maximum difference between a task's clock and the world's, in either direction."""
    critical_stall: float = 0.0
    """The task stalls before or after a change of a file that other writers depend on."""
    clock_jump: float = 0.0
    """The clock of the task's machine is set back by an hour, or forward by a day."""

    @classmethod
    def hard(cls, seed: int) -> Odds:
        """Return the odds of a seed for long runs: more stalls, at critical calls too."""
        random_ = random.Random(seed * 11 + 5)
        return cls(
            switch=random_.choice([0.25, 0.25, 0.6]),
            crash=random_.choice([0, 0, 0.003, 0.01]),
            stall=random_.choice([0.002, 0.005, 0.01]),
            lost_response=random_.choice([0, 0, 0.003]),
            max_skew_ms=random_.choice([0, 100]),
            critical_stall=random_.choice([0.03, 0.06, 0.12]),
        )


def _closed_gate() -> threading.Lock:
    """Return a lock that is held, so that a task waits for it. A semaphore is slower."""
    gate = threading.Lock()
    gate.acquire()
    return gate


@dataclass
class Task:
    """A simulated process."""

    name: str
    work: Callable[[Task], None]
    world: World
    gate: threading.Lock = field(default_factory=_closed_gate)
    sleeps_until_ms: int = 0
    has_ended: bool = False
    has_crashed: bool = False
    has_stalled: bool = False
    stalled_until_ms: int = 0
    skew_ms: int = 0
    error: str = ""


class World:
    """The scheduler of the tasks. The running task calls its methods."""

    def __init__(self, seed: int, odds: Odds) -> None:
        self.random = random.Random(seed)
        self.odds = odds
        self.has_prefetch = seed % 2 == 1
        """Storage prefetches, as an object store does: responses can be as old as their block."""
        self.has_deferred_release = seed % 4 in (1, 2)
        """A writer continues while a background thread releases its lock."""
        self.now_ms = START_MS
        self.is_same_machine = False
        """Whether all tasks and the storage have one clock."""
        self.clock_shift_ms = 0
        """The sum of the jumps of that clock."""
        self.tasks: list[Task] = []
        self.running: Task | None = None
        self.counts = Counter[str]()
        """The number of storage calls, crashes, stalls and lost responses."""
        self.active_owners = _ActiveOwners(self)
        self.modified: dict[str, int] = {}
        """The modification time of each file that a task wrote, by path."""
        self._timers: list[tuple[int, int, int, Any, Task]] = []
        self._timer_count = 0
        self._in_timer = False
        self._over = threading.Event()

    def add(self, name: str, work: Callable[[Task], None]) -> Task:
        """Add a task. It starts when `run` is called."""
        skew = self.random.randint(-self.odds.max_skew_ms, self.odds.max_skew_ms)
        task = Task(name, work, self, skew_ms=skew)
        self.tasks.append(task)
        return task

    def run(self) -> None:
        """Run all tasks until they end."""
        self._over.clear()
        for task in self.tasks:
            if task.has_ended:
                continue
            thread = threading.Thread(
                target=self._run_task, args=(task,), name=task.name, daemon=True
            )
            thread.start()
        self._resume_next()
        if not self._over.wait(_TIMEOUT_S):
            raise AssertionError("the world is deadlocked")
        errors = [task.error for task in self.tasks if task.error]
        assert not errors, "\n".join(errors)

    def _run_task(self, task: Task) -> None:
        task.gate.acquire()
        try:
            task.work(task)
        except Killed:
            pass
        except BaseException:  # noqa: BLE001 - `run` reports it
            task.error = f"{task.name}: {traceback.format_exc()}"
        task.has_ended = True
        self._resume_next()

    def _resume_next(self) -> None:
        """Let a task run that is ready. Time advances until a task is ready."""
        active = [task for task in self.tasks if not task.has_ended]
        if not active:
            self._over.set()
            return
        ready = [task for task in active if self._ready_ms(task) <= self.now_ms]
        if not ready:
            self._advance_time(min(self._ready_ms(task) for task in active))
            ready = [task for task in active if self._ready_ms(task) <= self.now_ms]
        self.running = self.choose_task(ready)
        self.running.gate.release()

    def choose_task(self, ready: list[Task]) -> Task:
        """Choose the task that runs next."""
        return self.random.choice(ready)

    def before_call(self, method: str, path: str, *, changes: bool) -> None:  # noqa: ARG002 - for subclasses
        """Let events happen before a storage call.

        path: the path in the table.
        """
        self.counts["calls"] += 1
        self.step(changes=changes)

    def _ready_ms(self, task: Task) -> int:
        return max(task.sleeps_until_ms, task.stalled_until_ms)

    def _advance_time(self, until_ms: int) -> None:
        """Advance the time, and run the timers that are due."""
        while self._timers and self._timers[0][0] <= until_ms:
            due, number, interval, method, task = heapq.heappop(self._timers)
            call = method()
            if call is None or task.has_ended or task.has_crashed:
                continue
            self.now_ms = max(self.now_ms, due)
            next_due = max(due + interval, task.stalled_until_ms)
            heapq.heappush(self._timers, (next_due, number, interval, method, task))
            if task.stalled_until_ms <= due:
                self._run_timer(call, task)
        self.now_ms = max(self.now_ms, until_ms)

    def _run_timer(self, call: Callable[[], None], task: Task) -> None:
        before, self.running, self._in_timer = self.running, task, True
        try:
            call()
        except Exception:  # noqa: BLE001, S110 - the threads ignore it, too
            pass
        finally:
            self.running, self._in_timer = before, False

    def run_every(self, ms: int, method: Any) -> None:
        """Run a timer of the running task.

        method: returns the function to call each time, or None to end the timer.
        """
        assert self.running is not None
        self._timer_count += 1
        heapq.heappush(
            self._timers, (self.now_ms + ms, self._timer_count, ms, method, self.running)
        )

    def sleep(self, seconds: float) -> None:
        """Let the running task wait."""
        task = self.running
        assert task is not None
        if self._in_timer:
            return
        task.sleeps_until_ms = self.now_ms + max(round(seconds * 1000), 1)
        self._switch(task)

    def step(self, *, changes: bool) -> None:
        """Let the events of the seed happen. Raise `Killed` if the task has crashed.

        changes: the task is about to change the storage, so it can crash.
        """
        task = self.running
        assert task is not None
        if task.has_crashed:
            raise Killed
        if self._in_timer:
            return
        self._advance_time(self.now_ms + self.random.randint(0, 2))
        odds, chance = self.odds, self.random.random()
        if changes and chance < odds.crash:
            task.has_crashed = True
            self.counts["crashes"] += 1
            self.log("crashes")
            self.active_owners.discard_owners_of(task)
            raise Killed
        if chance > 1 - odds.stall:
            self._stall(task, [20_000, 100_000, 400_000])
        elif self.random.random() < odds.switch:
            self._switch(task)
        if odds.clock_jump and self.random.random() < odds.clock_jump:
            self._set_clock(task)
        if task.has_crashed:
            raise Killed

    def _set_clock(self, task: Task) -> None:
        by_ms = self.random.choice(_CLOCK_JUMPS_MS)
        self.log(f"clock jumps by {by_ms // 1000} s")
        if self.is_same_machine:
            self.clock_shift_ms += by_ms
        else:
            task.skew_ms += by_ms
        # Its heartbeat can look expired to other tasks, and theirs to it.
        for each in self.tasks:
            each.has_stalled = True

    @property
    def files_now_ms(self) -> int:
        """The time of the clock that the storage uses for modification times."""
        return self.now_ms + self.clock_shift_ms

    def maybe_stall_at(self, path: str) -> None:
        """Stall the running task with some probability if other writers depend on the file."""
        if _is_critical(path):
            self.maybe_stall()

    def maybe_stall(self) -> None:
        """Stall the running task with the probability of a critical stall."""
        task = self.running
        if not self.odds.critical_stall or self._in_timer or task is None or task.has_crashed:
            return
        if self.random.random() < self.odds.critical_stall:
            self._stall(task, [20_000, 70_000, 100_000, 400_000])

    def _stall(self, task: Task, durations_ms: list[int]) -> None:
        task.has_stalled = True
        self.counts["stalls"] += 1
        task.stalled_until_ms = self.now_ms + self.random.choice(durations_ms)
        self.log(f"stalls until {task.stalled_until_ms - START_MS}")
        self._switch(task)

    def log(self, event: str) -> None:
        """Print an event of the running task if PYHUDI_TRACE is set."""
        if TRACE and self.running is not None:
            at = self.now_ms - START_MS
            sys.stderr.write(f"{at:7} {self.running.name:7} {event}\n")

    def on_change(self, path: str, data: bytes | None) -> None:
        """Handle a change of a file.

        data: the new content, or None for a deleted file.
        """

    def on_create(self, path: str) -> None:
        """Handle a new file of the data table."""

    def on_delete(self, path: str) -> None:
        """Handle a deleted file of the data table."""

    def on_missing_delete(self, path: str) -> None:
        """Handle a deletion of a file of the data table that does not exist."""

    def is_response_lost(self) -> bool:
        """Decide whether the task gets an error for a change that was made."""
        is_lost = not self._in_timer and self.random.random() < self.odds.lost_response
        self.counts["lost responses"] += is_lost
        return is_lost

    def _switch(self, task: Task) -> None:
        self._resume_next()
        task.gate.acquire()


def _is_critical(path: str) -> bool:
    """Return whether a path belongs to a timeline, a heartbeat, a lock or properties."""
    if not path.startswith(".hoodie/"):
        return False
    in_folder = path.count("/") == 1 or path.startswith(".hoodie/metadata/.hoodie")
    return in_folder or any(
        part in path for part in ("timeline", "heartbeat", "properties", ".locks")
    )


class _ActiveOwners(set[str]):
    """`process_liveness.active_owners` of all tasks. A task that crashes loses its owners."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world
        self._task_by_owner: dict[str, Task] = {}

    def add(self, name: str) -> None:
        super().add(name)
        if self._world.running is not None:
            self._task_by_owner[name] = self._world.running

    def discard_owners_of(self, task: Task) -> None:
        owners = {name for name, owning in self._task_by_owner.items() if owning is task}
        self.difference_update(owners)


class WorldClock:
    """The clock of a task: the world's time and the skew of the task."""

    def __init__(self, world: World, task: Task) -> None:
        self._world = world
        self._task = task

    def now_ms(self) -> int:
        return self._world.files_now_ms + self._task.skew_ms

    def ticks_ms(self) -> int:
        return self._world.now_ms

    def uuid(self) -> str:
        bits = f"{self._world.random.getrandbits(128):032x}"
        return f"{bits[:8]}-{bits[8:12]}-4{bits[13:16]}-8{bits[17:20]}-{bits[20:]}"

    def sleep(self, seconds: float) -> None:
        self._world.sleep(seconds)


_TICK_MS = 5


class WorldDelayedRelease:
    """Release a lock in the world's time, as `lock_manager._DelayedRelease` does in a thread."""

    def __init__(self, world: World, after_s: float, linger_s: float, lock: TableLock) -> None:
        self._world = world
        self._lock = lock
        self._from_ms = world.now_ms + max(round(after_s * 1000), 0) + world.random.randint(0, 20)
        self._until_ms = self._from_ms + round(linger_s * 1000)
        self._is_awaited = False
        self._is_over = False
        assert world.running is not None
        self._task = world.running

    def start(self) -> None:
        self._world.run_every(_TICK_MS, self._due)

    def _due(self) -> Callable[[], None] | None:
        return None if self._is_over else self._release

    def _release(self) -> None:
        if self._world.now_ms >= (self._from_ms if self._is_awaited else self._until_ms):
            self._is_over = True
            release(self._lock)

    def cancel(self) -> bool:
        is_cancelled = not self._is_over
        self._is_over = True
        return is_cancelled

    def finish(self) -> None:
        self._is_awaited = True
        while not self._is_over and not self._task.has_crashed:
            self._world.sleep(0.001)


class WorldStorage(Storage):
    """A storage that calls the world before and after each storage call."""

    def __init__(self, uri: str, world: World, prefix: str = "") -> None:
        super().__init__(uri)
        self._world = world
        self._prefix = prefix

    def below(self, folder: str) -> Storage:
        part = type(self)(f"{self.uri}/{folder}", self._world, f"{self._prefix}{folder}/")
        part.cache, part.listings = self.cache, self.listings
        return part

    @contextmanager
    def prefetch(
        self,
        *,
        files: Iterable[str] = (),
        folders: Iterable[str] = (),
        trees: Iterable[str] = (),
        heads: Iterable[str] = (),
    ) -> Iterator[None]:
        """Send the requests as an object store does: before the block or in it, in any order."""
        pending: dict[Request, Future[Any]] = {}
        random = self._world.random
        methods: tuple[tuple[Callable[[str], Any], Iterable[str]], ...] = (
            (self.read, files),
            (self.list_dir, folders),
            (self.list, trees),
            (self.head, heads),
        )
        requests = [(method, path) for method, paths in methods for path in sorted(paths)]
        random.shuffle(requests)
        for method, path in requests if self._world.has_prefetch else ():
            if random.random() < _SKIPPED_PREFETCHES:
                continue
            response: Future[Any] = Future()
            pending[method.__name__, self.uri, path] = response
            try:
                response.set_result(method(path))
            except Exception as error:  # noqa: BLE001 - the block gets it with the response
                response.set_exception(error)
        with prefetch_block(pending):
            yield

    def run_concurrently(self, *steps: Callable[[], object]) -> None:
        """Run the steps in any order, as an object store does."""
        ordered = [*steps]
        if self._world.has_prefetch:
            self._world.random.shuffle(ordered)
        super().run_concurrently(*ordered)

    def _before_read(self, method: str, path: str) -> None:
        self._world.before_call(method, self._prefix + path, changes=False)

    def read(self, path: str) -> bytes:
        self._before_read("read", path)
        return super().read(path)

    def head(self, path: str) -> Entry | None:
        self._before_read("head", path)
        entry = super().head(path)
        return None if entry is None else self._with_world_date(entry)

    def list_dir(self, prefix: str = "") -> tuple[list[str], list[Entry]]:
        self._before_read("list_dir", prefix)
        if prefix and not (self._prefix + prefix).startswith(".hoodie"):
            self._world.maybe_stall()
        folders, files = super().list_dir(prefix)
        return folders, [self._with_world_date(file) for file in files]

    def _with_world_date(self, file: Entry) -> Entry:
        modified = self._world.modified.get(self._prefix + file.path, START_MS)
        return Entry(file.path, file.size, modified)

    def _before_change(self, method: str, path: str) -> None:
        self._world.maybe_stall_at(self._prefix + path)
        self._world.before_call(method, self._prefix + path, changes=True)

    def _after_write(self, path: str, data: bytes) -> None:
        self._world.log(f"wrote {self._prefix}{path}")
        self._world.on_change(self._prefix + path, data)
        self._world.modified[self._prefix + path] = self._world.files_now_ms
        if self._world.is_response_lost():
            raise StorageError("the response is lost")
        # The task can stall before its next call.
        self._world.step(changes=False)
        self._world.maybe_stall_at(self._prefix + path)

    def put(self, path: str, data: bytes) -> None:
        self._before_change("put", path)
        super().put(path, data)
        self._after_write(path, data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        self._before_change("put_if_absent", path)
        is_created = super().put_if_absent(path, data)
        if is_created:
            if not self._prefix:
                self._world.on_create(path)
            self._after_write(path, data)
        return is_created

    def read_version(self, path: str) -> tuple[bytes, str] | None:
        self._before_read("read_version", path)
        return super().read_version(path)

    def replace_version(
        self, path: str, data: bytes, expected: str | None, *, durable: bool = False
    ) -> str | None:
        self._before_change("replace_version", path)
        version = super().replace_version(path, data, expected, durable=durable)
        if version is not None:
            self._after_write(path, data)
        return version

    def delete(self, path: str) -> bool:
        self._before_change("delete", path)
        existed = super().delete(path)
        if existed:
            self._world.on_change(self._prefix + path, None)
        if not self._prefix:
            (self._world.on_delete if existed else self._world.on_missing_delete)(path)
        self._world.log(f"deleted {self._prefix}{path}" if existed else f"{path} does not exist")
        if self._world.is_response_lost():
            raise StorageError("the response is lost")
        return existed


def use_world_time(world: World, monkeypatch: pytest.MonkeyPatch, *, same_machine: bool) -> None:
    """Run the threads of heartbeats and locks in the world's time.

    same_machine: a task sees that another task has crashed; otherwise it waits for a timeout.
    """

    def renew_heartbeat(self: heartbeat.Heartbeat) -> None:
        reference = weakref.ref(self)

        def beat() -> Callable[[], None] | None:
            beating = reference()
            # A thread would wait while its task holds the lock; the timer skips this beat.
            if beating is None or not beating._lock.locked():
                return None if beating is None else beating.beat
            return lambda: None

        world.run_every(self.every_ms, beat)

    def start_renewal(self: renewal.Renewal) -> None:
        self._ended.clear()
        ended, method = self._ended, self._method

        class Renewal:
            def __call__(self) -> Any:
                return None if ended.is_set() else method()

        world.run_every(round(self._every_s * 1000), Renewal())

    world.is_same_machine = same_machine
    monkeypatch.setattr(process_liveness, "active_owners", world.active_owners)
    monkeypatch.setattr(lock_manager, "_DelayedRelease", partial(WorldDelayedRelease, world))
    monkeypatch.setattr(heartbeat.Heartbeat, "_renew", renew_heartbeat)
    monkeypatch.setattr(renewal.Renewal, "start", start_renewal)
    if not same_machine:
        monkeypatch.setattr(process_liveness, "owner", lambda _name: b"")
