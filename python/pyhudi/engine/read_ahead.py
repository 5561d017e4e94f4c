"""Read-ahead: batches of many tasks in task order, computed by threads within a byte budget.

No thread ever waits for the consumer: a task without room releases its thread, and taking a batch
starts it again. So an unclosed reader blocks nothing, not even the end of the interpreter; a
consumer that takes batches then, such as Arrow's read-ahead threads, gets an error. The content of
the batches, and their schema, is not known here.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic
from weakref import WeakSet

import pyarrow as pa

from pyhudi.clock import SystemClock
from pyhudi.engine.protocol import Task
from pyhudi.storage.threads import ThreadPool


@dataclass(eq=False)
class _Source:
    """One started task: the source of its batches, and the batches that were not taken yet."""

    index: int
    open: Callable[[], Iterator[pa.RecordBatch]]
    iterator: Iterator[pa.RecordBatch] | None = None
    ready: deque[tuple[pa.RecordBatch, int]] = field(default_factory=deque)
    busy: bool = False
    """A thread works on it."""
    finished: bool = False
    error: BaseException | None = None

    def next_batch(self) -> pa.RecordBatch | None:
        if self.iterator is None:
            self.iterator = iter(self.open())
        return next(self.iterator, None)

    def discard(self) -> None:
        """End the task early. Errors while it closes are ignored."""
        self.finished = True
        close: Any = getattr(self.iterator, "close", None)
        self.iterator = None
        if close is not None:
            with contextlib.suppress(Exception):
                close()


class LookAhead(Generic[Task]):
    """Runs at most `threads` tasks concurrently and buffers about `budget` bytes of batches.

    Iterate it once. The task whose turn it is may always compute one batch, whatever the budget, so
    a batch larger than the budget passes too. A failed task raises when its turn comes; no task
    starts after a failure was seen.
    """

    def __init__(
        self,
        work: Callable[[Task], Iterator[pa.RecordBatch]],
        tasks: Sequence[Task],
        *,
        threads: int,
        budget: int,
    ) -> None:
        self._work = work
        self._tasks = tasks
        self._threads = threads
        self._budget = budget
        self._pool = ThreadPool(threads, thread_name_prefix="pyhudi-scan")
        # Reentrant: the garbage collector may drop the iterator, and so call `close`, on a thread
        # that holds the lock.
        self._changed = threading.Condition(threading.RLock())
        self._turn = 0
        self._started: dict[int, _Source] = {}
        """By index: started tasks whose last batch was not taken yet."""
        self._open: list[_Source] = []
        """Started tasks that have more batches."""
        self._next = 0
        self._failed = False
        self._buffered = 0
        self._stopping = False
        _unfinished.add(self)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            for index in range(len(self._tasks)):
                while (batch := self._take(index)) is not None:
                    yield batch
        finally:
            self.close()
            _unfinished.discard(self)
            _foreign_threads.record()

    def close(self) -> None:
        """Stop all tasks; those computing a batch stop after it. Does not wait."""
        with self._changed:
            self._stopping = True
            idle = [source for source in self._open if not source.busy]
            self._started, self._open = {}, []
            self._changed.notify_all()
        self._pool.shutdown(wait=False, cancel_futures=True)
        for source in idle:
            source.discard()

    def _take(self, index: int) -> pa.RecordBatch | None:
        """Return the next batch of the task whose turn it is, None after its last."""
        _foreign_threads.record()
        with self._changed:
            self._turn = index
            self._schedule()
            source = self._started.get(index)
            while source is None or not source.ready:
                if source is None or self._stopping:
                    raise RuntimeError("no more batches are read: the interpreter ends")
                if source.error is not None:
                    raise source.error
                if source.finished:
                    del self._started[index]
                    return None
                self._changed.wait()
            batch, size = source.ready.popleft()
            self._buffered -= size
            self._schedule()
            return batch

    def _schedule(self) -> None:
        """Start tasks, and resume those that have room again. Called under the lock."""
        if self._stopping:
            return
        while self._may_begin():
            self._begin()
        for source in list(self._open):
            if not source.busy and self._has_room(source):
                source.busy = True
                try:
                    self._pool.submit(self._fill, source)
                except RuntimeError as error:  # The interpreter ends.
                    self._end(source, error)

    def _may_begin(self) -> bool:
        return (
            len(self._open) < self._threads
            and self._next < len(self._tasks)
            and self._buffered < self._budget
            and not self._failed
        )

    def _begin(self) -> None:
        source = _Source(self._next, partial(self._work, self._tasks[self._next]))
        self._started[source.index] = source
        self._open.append(source)
        self._next += 1

    def _has_room(self, source: _Source) -> bool:
        urgent = source.index == self._turn and not source.ready
        return self._buffered < self._budget or urgent

    def _fill(self, source: _Source) -> None:
        """Compute batches of one task, on a thread, until there is no room or no more."""
        more = True
        while more:
            batch, error = None, None
            try:
                batch = source.next_batch()
            except BaseException as caught:  # noqa: BLE001  raised again by the consumer
                error = caught
            more = self._put(source, batch, error)
        if self._stopping:
            source.discard()

    def _put(
        self, source: _Source, batch: pa.RecordBatch | None, error: BaseException | None
    ) -> bool:
        """Pass a batch, the end or a failure to the consumer; return whether to go on."""
        with self._changed:
            if batch is not None:
                size = batch.nbytes
                source.ready.append((batch, size))
                self._buffered += size
            else:
                self._end(source, error)
            more = not (source.finished or self._stopping) and self._has_room(source)
            if not more:
                source.busy = False
                self._schedule()
            self._changed.notify()
            return more

    def _end(self, source: _Source, error: BaseException | None) -> None:
        source.finished, source.error, source.iterator = True, error, None
        self._failed = self._failed or error is not None
        if source in self._open:
            self._open.remove(source)


_unfinished: WeakSet[LookAhead[Any]] = WeakSet()
_EXIT_MS = 200
"""Time in which a foreign thread leaves Python's code."""


class _ForeignThreads:
    """Threads that Python did not start, such as those with which Arrow's scanners read ahead."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._last_ms = -_EXIT_MS

    def record(self) -> None:
        """Record that the calling thread may be one."""
        if isinstance(threading.current_thread(), threading._DummyThread):  # noqa: SLF001 - no other sign
            self._last_ms = self._clock.ticks_ms()

    def wait(self) -> None:
        """Wait until they have left Python's code."""
        while self._clock.ticks_ms() < self._last_ms + _EXIT_MS:
            self._clock.sleep(_EXIT_MS / 10_000)


_foreign_threads = _ForeignThreads()


@atexit.register
def _stop_all() -> None:
    """Stop threads that take batches as the interpreter ends.

    Foreign threads would wait for a lock of the ended interpreter, and Arrow would wait for them
    for ever; or they would be inside Python's code when it ends, which ends the process with an
    error.
    """
    for look_ahead in list(_unfinished):
        look_ahead.close()
    _foreign_threads.wait()
