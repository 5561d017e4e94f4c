"""Several writers and readers of one table as tasks of a world that a seed rules.

One task runs at a time. At each of its calls to storage the world may let another one run, stop a
task for a long time, kill it, or lose the answer of a call; time is the world's own, and passes
when all tasks wait for it. So a seed is one interleaving, which comes again as it was.
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
_LATE = 0.2
"""Of what is asked ahead, the part that the block waits for."""
_JUMPS_MS = (-3_600_000, 86_400_000)
_PATIENCE_S = 60
"""After which a run counts as stuck, in real time."""


@dataclass
class Odds:
    """How likely things are at one call to storage."""

    switch: float = 0.25
    """Another task goes on."""
    kill: float = 0.0
    pause: float = 0.0
    """The task stands still for minutes, its threads too."""
    lose: float = 0.0
    """A change is made, and its answer lost."""
    skew_ms: int = 0
    """Clocks differ by so much at most."""
    stand: float = 0.0
    """The task stands still at a change that others go by, before or after it."""
    jump: float = 0.0
    """The clock of the task's machine is set back by an hour, or forward by a day."""

    @classmethod
    def hard(cls, seed: int) -> Odds:
        """Those of a seed that finds more faults than others, and more slowly."""
        random_ = random.Random(seed * 11 + 5)
        return cls(
            switch=random_.choice([0.25, 0.25, 0.6]),
            kill=random_.choice([0, 0, 0.003, 0.01]),
            pause=random_.choice([0.002, 0.005, 0.01]),
            lose=random_.choice([0, 0, 0.003]),
            skew_ms=random_.choice([0, 100]),
            stand=random_.choice([0.03, 0.06, 0.12]),
        )


def _shut() -> threading.Lock:
    """A lock that whoever takes it waits for; a semaphore is slower, and there are many turns."""
    gate = threading.Lock()
    gate.acquire()
    return gate


@dataclass
class Task:
    """One process: what it does, and whether it may go on."""

    name: str
    work: Callable[[Task], None]
    world: World
    gate: threading.Lock = field(default_factory=_shut)
    wakes_ms: int = 0
    is_over: bool = False
    is_dead: bool = False
    stood_still: bool = False
    stands_until_ms: int = 0
    skew_ms: int = 0
    error: str = ""


class World:
    """The scheduler; see the module's text. Its methods are called by the task that runs."""

    def __init__(self, seed: int, odds: Odds) -> None:
        self.random = random.Random(seed)
        self.odds = odds
        self.asks_ahead = seed % 2 == 1
        """As on storage that is far away: answers are as old as the block that they are for."""
        self.leaves_late = seed % 4 in (1, 2)
        """A writer goes on while its lock is given back."""
        self.now_ms = START_MS
        self.is_same_machine = False
        """Whether all tasks and the storage have one clock."""
        self.set_forward_ms = 0
        """By how much that clock was set, in all."""
        self.tasks: list[Task] = []
        self.running: Task | None = None
        self.counts = Counter[str]()
        """How often things happened: calls to storage, crashes, stalls, lost responses."""
        self.active_owners = _AtWork(self)
        self.modified: dict[str, int] = {}
        """Times of modification, by path, of what was written in this world."""
        self._timers: list[tuple[int, int, int, Any, Task]] = []
        self._timer_count = 0
        self._in_timer = False
        self._over = threading.Event()

    def add(self, name: str, work: Callable[[Task], None]) -> Task:
        """A task that begins when `run` is called."""
        skew = self.random.randint(-self.odds.skew_ms, self.odds.skew_ms)
        task = Task(name, work, self, skew_ms=skew)
        self.tasks.append(task)
        return task

    def run(self) -> None:
        """Runs all tasks to their ends."""
        self._over.clear()
        for task in self.tasks:
            if task.is_over:
                continue
            thread = threading.Thread(target=self._life, args=(task,), name=task.name, daemon=True)
            thread.start()
        self._go_on()
        if not self._over.wait(_PATIENCE_S):
            raise AssertionError("the world stands still")
        errors = [task.error for task in self.tasks if task.error]
        assert not errors, "\n".join(errors)

    def _life(self, task: Task) -> None:
        task.gate.acquire()
        try:
            task.work(task)
        except Killed:
            pass
        except BaseException:  # noqa: BLE001 - told by `run`
            task.error = f"{task.name}: {traceback.format_exc()}"
        task.is_over = True
        self._go_on()

    def _go_on(self) -> None:
        """Lets some task run that can; time passes until there is one."""
        left = [task for task in self.tasks if not task.is_over]
        if not left:
            self._over.set()
            return
        ready = [task for task in left if self._ready_ms(task) <= self.now_ms]
        if not ready:
            self._pass_to(min(self._ready_ms(task) for task in left))
            ready = [task for task in left if self._ready_ms(task) <= self.now_ms]
        self.running = self.choose(ready)
        self.running.gate.release()

    def choose(self, ready: list[Task]) -> Task:
        """The task that goes on."""
        return self.random.choice(ready)

    def call(self, method: str, path: str, *, changes: bool) -> None:  # noqa: ARG002 - for worlds that look at it
        """Before a call to storage, of a path in the table."""
        self.counts["calls"] += 1
        self.step(changes=changes)

    def _ready_ms(self, task: Task) -> int:
        return max(task.wakes_ms, task.stands_until_ms)

    def _pass_to(self, until_ms: int) -> None:
        """Time passes, and what threads do in it is done."""
        while self._timers and self._timers[0][0] <= until_ms:
            due, number, every, method, task = heapq.heappop(self._timers)
            call = method()
            if call is None or task.is_over or task.is_dead:
                continue
            self.now_ms = max(self.now_ms, due)
            later = max(due + every, task.stands_until_ms)
            heapq.heappush(self._timers, (later, number, every, method, task))
            if task.stands_until_ms <= due:
                self._timer_runs(call, task)
        self.now_ms = max(self.now_ms, until_ms)

    def _timer_runs(self, call: Callable[[], None], task: Task) -> None:
        before, self.running, self._in_timer = self.running, task, True
        try:
            call()
        except Exception:  # noqa: BLE001, S110 - as the threads do
            pass
        finally:
            self.running, self._in_timer = before, False

    def every(self, ms: int, method: Any) -> None:
        """Has something of the running task's done again and again.

        method: gives it, as a weak reference does, or None once it is over.
        """
        assert self.running is not None
        self._timer_count += 1
        heapq.heappush(
            self._timers, (self.now_ms + ms, self._timer_count, ms, method, self.running)
        )

    def sleep(self, seconds: float) -> None:
        """The running task waits."""
        task = self.running
        assert task is not None
        if self._in_timer:
            return
        task.wakes_ms = self.now_ms + max(round(seconds * 1000), 1)
        self._switch(task)

    def step(self, *, changes: bool) -> None:
        """At a call to storage: whatever the seed has happen. Raises `Killed` for the dead."""
        task = self.running
        assert task is not None
        if task.is_dead:
            raise Killed
        if self._in_timer:
            return
        self._pass_to(self.now_ms + self.random.randint(0, 2))
        odds, chance = self.odds, self.random.random()
        if changes and chance < odds.kill:
            task.is_dead = True
            self.counts["crashes"] += 1
            self.tell("dies")
            self.active_owners.forget(task)
            raise Killed
        if chance > 1 - odds.pause:
            self._stand(task, [20_000, 100_000, 400_000])
        elif self.random.random() < odds.switch:
            self._switch(task)
        if odds.jump and self.random.random() < odds.jump:
            self._set_clock(task)
        if task.is_dead:
            raise Killed

    def _set_clock(self, task: Task) -> None:
        by_ms = self.random.choice(_JUMPS_MS)
        self.tell(f"its clock is set by {by_ms // 1000} s")
        if self.is_same_machine:
            self.set_forward_ms += by_ms
        else:
            task.skew_ms += by_ms
        # Others regard its heartbeat as expired, or it theirs.
        for each in self.tasks:
            each.stood_still = True

    @property
    def files_now_ms(self) -> int:
        """The time by the clock that dates files."""
        return self.now_ms + self.set_forward_ms

    def stand_at(self, path: str) -> None:
        """At a change of a file by which others go, beside what `step` has happen."""
        if _is_gone_by(path):
            self.may_stand()

    def may_stand(self) -> None:
        """Also before data files are listed, which others may take away."""
        task = self.running
        if not self.odds.stand or self._in_timer or task is None or task.is_dead:
            return
        if self.random.random() < self.odds.stand:
            self._stand(task, [20_000, 70_000, 100_000, 400_000])

    def _stand(self, task: Task, for_ms: list[int]) -> None:
        task.stood_still = True
        self.counts["stalls"] += 1
        task.stands_until_ms = self.now_ms + self.random.choice(for_ms)
        self.tell(f"stands still until {task.stands_until_ms - START_MS}")
        self._switch(task)

    def tell(self, what: str) -> None:
        """Prints it, where somebody looks at one seed."""
        if TRACE and self.running is not None:
            at = self.now_ms - START_MS
            sys.stderr.write(f"{at:7} {self.running.name:7} {what}\n")

    def changed(self, path: str, data: bytes | None) -> None:
        """A file has this content now, None if it is gone."""

    def made(self, path: str) -> None:
        """A new file of the data table is there."""

    def removed(self, path: str) -> None:
        """A file of the data table is gone."""

    def missed(self, path: str) -> None:
        """A file of the data table was to go, and was not there."""

    def loses(self) -> bool:
        """Whether the answer to this change is lost."""
        is_lost = not self._in_timer and self.random.random() < self.odds.lose
        self.counts["lost responses"] += is_lost
        return is_lost

    def _switch(self, task: Task) -> None:
        self._go_on()
        task.gate.acquire()


def _is_gone_by(path: str) -> bool:
    """Timelines, heartbeats, locks and properties."""
    if not path.startswith(".hoodie/"):
        return False
    in_folder = path.count("/") == 1 or path.startswith(".hoodie/metadata/.hoodie")
    return in_folder or any(
        part in path for part in ("timeline", "heartbeat", "properties", ".locks")
    )


class _AtWork(set[str]):
    """`process_liveness.active_owners` of several processes; a process that dies loses its own."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world
        self._kept: dict[str, Task] = {}

    def add(self, name: str) -> None:
        super().add(name)
        if self._world.running is not None:
            self._kept[name] = self._world.running

    def forget(self, task: Task) -> None:
        self.difference_update({name for name, keeper in self._kept.items() if keeper is task})


class WorldClock:
    """A task's clock."""

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
    """Releases a lock in the world's time, as `lock_manager._DelayedRelease` does in a thread."""

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
        self._world.every(_TICK_MS, self._due)

    def _due(self) -> Callable[[], None] | None:
        return None if self._is_over else self._give

    def _give(self) -> None:
        if self._world.now_ms >= (self._from_ms if self._is_awaited else self._until_ms):
            self._is_over = True
            release(self._lock)

    def cancel(self) -> bool:
        is_cancelled = not self._is_over
        self._is_over = True
        return is_cancelled

    def finish(self) -> None:
        self._is_awaited = True
        while not self._is_over and not self._task.is_dead:
            self._world.sleep(0.001)


class WorldStorage(Storage):
    """A storage at whose calls the world may do something."""

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
        """As where each call is a round trip: asked before the block or in it, in any order."""
        pending: dict[Request, Future[Any]] = {}
        random = self._world.random
        verbs: tuple[tuple[Callable[[str], Any], Iterable[str]], ...] = (
            (self.read, files),
            (self.list_dir, folders),
            (self.list, trees),
            (self.head, heads),
        )
        asked = [(verb, path) for verb, paths in verbs for path in sorted(paths)]
        random.shuffle(asked)
        for verb, path in asked if self._world.asks_ahead else ():
            if random.random() < _LATE:
                continue
            found: Future[Any] = Future()
            pending[verb.__name__, self.uri, path] = found
            try:
                found.set_result(verb(path))
            except Exception as error:  # noqa: BLE001 - of whoever wants the answer
                found.set_exception(error)
        with prefetch_block(pending):
            yield

    def run_concurrently(self, *steps: Callable[[], object]) -> None:
        """As where each call is a round trip: in any order."""
        ordered = [*steps]
        if self._world.asks_ahead:
            self._world.random.shuffle(ordered)
        super().run_concurrently(*ordered)

    def _calls(self, method: str, path: str) -> None:
        self._world.call(method, self._prefix + path, changes=False)

    def read(self, path: str) -> bytes:
        self._calls("read", path)
        return super().read(path)

    def head(self, path: str) -> Entry | None:
        self._calls("head", path)
        found = super().head(path)
        return None if found is None else self._dated(found)

    def list_dir(self, prefix: str = "") -> tuple[list[str], list[Entry]]:
        self._calls("list_dir", prefix)
        if prefix and not (self._prefix + prefix).startswith(".hoodie"):
            self._world.may_stand()
        folders, files = super().list_dir(prefix)
        return folders, [self._dated(file) for file in files]

    def _dated(self, file: Entry) -> Entry:
        modified = self._world.modified.get(self._prefix + file.path, START_MS)
        return Entry(file.path, file.size, modified)

    def _changes(self, method: str, path: str) -> None:
        self._world.stand_at(self._prefix + path)
        self._world.call(method, self._prefix + path, changes=True)

    def _written(self, path: str, data: bytes) -> None:
        self._world.tell(f"made {self._prefix}{path}")
        self._world.changed(self._prefix + path, data)
        self._world.modified[self._prefix + path] = self._world.files_now_ms
        if self._world.loses():
            raise StorageError("the answer was lost")
        # Also before anything else is looked at.
        self._world.step(changes=False)
        self._world.stand_at(self._prefix + path)

    def put(self, path: str, data: bytes) -> None:
        self._changes("put", path)
        super().put(path, data)
        self._written(path, data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        self._changes("put_if_absent", path)
        made = super().put_if_absent(path, data)
        if made:
            if not self._prefix:
                self._world.made(path)
            self._written(path, data)
        return made

    def read_version(self, path: str) -> tuple[bytes, str] | None:
        self._calls("read_version", path)
        return super().read_version(path)

    def replace_version(
        self, path: str, data: bytes, expected: str | None, *, durable: bool = False
    ) -> str | None:
        self._changes("replace_version", path)
        made = super().replace_version(path, data, expected, durable=durable)
        if made is not None:
            self._written(path, data)
        return made

    def delete(self, path: str) -> bool:
        self._changes("delete", path)
        gone = super().delete(path)
        if gone:
            self._world.changed(self._prefix + path, None)
        if not self._prefix:
            (self._world.removed if gone else self._world.missed)(path)
        self._world.tell(f"deleted {self._prefix}{path}" if gone else f"{path} was not there")
        if self._world.loses():
            raise StorageError("the answer was lost")
        return gone


def ruled_by(world: World, monkeypatch: pytest.MonkeyPatch, *, same_machine: bool) -> None:
    """Has the threads of heartbeats and locks run in the world's time.

    same_machine: a task can tell that another one has died; else only time tells.
    """

    def renew_heartbeat(self: heartbeat.Heartbeat) -> None:
        found = weakref.ref(self)

        def beat() -> Callable[[], None] | None:
            alive = found()
            # Its task is at it; a thread would wait.
            if alive is None or not alive._lock.locked():
                return None if alive is None else alive.beat
            return lambda: None

        world.every(self.every_ms, beat)

    def start_renewal(self: renewal.Renewal) -> None:
        self._ended.clear()
        ended, method = self._ended, self._method

        class Once:
            def __call__(self) -> Any:
                return None if ended.is_set() else method()

        world.every(round(self._every_s * 1000), Once())

    world.is_same_machine = same_machine
    monkeypatch.setattr(process_liveness, "active_owners", world.active_owners)
    monkeypatch.setattr(lock_manager, "_DelayedRelease", partial(WorldDelayedRelease, world))
    monkeypatch.setattr(heartbeat.Heartbeat, "_renew", renew_heartbeat)
    monkeypatch.setattr(renewal.Renewal, "start", start_renewal)
    if not same_machine:
        monkeypatch.setattr(process_liveness, "owner", lambda _name: b"")
