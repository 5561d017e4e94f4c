"""The embedded engine: threads of this process, parallel because the Rust core releases the GIL.

Failed tasks are not retried: there is no other machine.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Generic

import pyarrow as pa

from pyhudi.config import argument_checks as arg
from pyhudi.engine.memory_pool import release_free_memory
from pyhudi.engine.protocol import Attempt, Engine, Result, Step, Task, Watcher
from pyhudi.engine.read_ahead import LookAhead
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.storage.options import is_remote
from pyhudi.storage.prefetch import MAX_CONCURRENT
from pyhudi.storage.storage import Storage
from pyhudi.storage.threads import ThreadPool

_LOOK_AHEAD_BYTES = 16 * 1024 * 1024
_MAX_LOCAL_FILES = 200
"""Number of files that one machine opens or deletes before a cluster has started."""
SMALL_CALL_BYTES = 64 * 1024 * 1024
"""Default of `Engine.small_call_bytes`."""
_EXCHANGE_BYTES = 8 * 1024 * 1024
"""Bytes of an exchange's rows that are grouped in memory; more rows spill to local files."""


class LocalEngine:
    """Runs tasks on threads. Configuration only: it can be pickled and shared.

    Args:
        threads: how many tasks run concurrently; the number of processors by default. With 1,
            everything happens in the calling thread, in task order.
        look_ahead_bytes: how many bytes of rows a scan may read ahead; 16 MiB by default.

    Raises:
        ConfigError: one of them is less than 1.
    """

    @arg.check_arguments()
    def __init__(
        self, threads: int | None = None, *, look_ahead_bytes: int = _LOOK_AHEAD_BYTES
    ) -> None:
        self.threads = (os.cpu_count() or 1) if threads is None else threads
        self._is_chosen = threads is not None
        self.look_ahead_bytes = look_ahead_bytes
        self.watcher: Watcher | None = None
        if self.threads < 1 or look_ahead_bytes < 1:
            raise ConfigError("threads and look_ahead_bytes of LocalEngine must be at least 1")

    def with_progress(self, report: Callable[[Step], None]) -> LocalEngine:
        """Return a copy of this engine that reports progress to `report`.

        Args:
            report: called for every call of `run` and every finished task, from any thread, never
                concurrently.

        Returns:
            The engine. It cannot be pickled if `report` cannot.
        """
        return self.with_watcher(_StepWatcher(report))

    def with_watcher(self, watcher: Watcher) -> LocalEngine:
        """Return a copy of this engine whose calls the watcher observes.

        Args:
            watcher: the observer.

        Returns:
            The engine. It cannot be pickled if the watcher cannot.
        """
        engine = copy(self)
        engine.watcher = watcher
        return engine

    def for_small_io(self) -> LocalEngine:
        """Return a copy of this engine for tasks that wait for storage: many run concurrently.

        Returns:
            The engine; this one if the user chose the number of tasks.
        """
        if self._is_chosen:
            return self
        many = LocalEngine(
            max(self.threads, MAX_CONCURRENT), look_ahead_bytes=self.look_ahead_bytes
        )
        many.watcher = self.watcher
        return many

    @property
    def tasks_per_process(self) -> int:
        """See `Engine.tasks_per_process`."""
        return self.threads

    @property
    def small_call_bytes(self) -> int:
        """See `Engine.small_call_bytes`."""
        return SMALL_CALL_BYTES

    @property
    def has_late_tasks(self) -> bool:
        """No: a call waits for its threads. See `Engine.has_late_tasks`."""
        return False

    def run(
        self,
        work: Callable[[Task, Attempt], Result],
        tasks: Sequence[Task],
        *,
        stage: int = 0,
        label: str = "",
    ) -> list[Result]:
        """See `Engine.run`. When it ends, also by a failure, none of its tasks is running any more.

        Args:
            work: returns the result of a task; called from several threads.
            tasks: the tasks.
            stage: number of this call within the transaction, for write tokens.
            label: the description of the call, for progress.

        Returns:
            The results in task order.
        """
        watcher, total = self.watcher, len(tasks)
        if watcher is None:
            return self._run(work, tasks, stage)
        watcher.begin(label, total)
        results = self._run(_WatchedWork(work, watcher, Step(label, 0, total)), tasks, stage)
        watcher.end(label, total, results)
        return results

    def _run(
        self, work: Callable[[Task, Attempt], Result], tasks: Sequence[Task], stage: int
    ) -> list[Result]:
        attempts = [Attempt(index, stage, index) for index in range(len(tasks))]
        threads = min(self.threads, len(tasks))
        if threads <= 1:
            return [work(task, attempt) for task, attempt in zip(tasks, attempts, strict=True)]
        call = _Call(work)
        with ThreadPool(threads, thread_name_prefix="pyhudi-run") as pool:
            try:
                results = list(pool.map(call, tasks, attempts))
            except BaseException as error:  # such as Ctrl-C, while the calling thread waits
                call.failure = call.failure or error
                raise
        if call.failure is not None:
            raise call.failure
        return list(chain.from_iterable(results))

    def scan(
        self,
        work: Callable[[Task], Iterator[pa.RecordBatch]],
        tasks: Sequence[Task],
        schema: pa.Schema,
        *,
        label: str = "",  # noqa: ARG002
    ) -> pa.RecordBatchReader:
        """See `Engine.scan`. Returns a reader that reads ahead while its batches are used.

        Args:
            work: returns the batches of a task; called from several threads.
            tasks: the tasks.
            schema: of every batch.
            label: the description of the call; not displayed, since a scan has no end to report.

        Returns:
            The rows in task order. `SchemaMismatch` is raised while they are read.
        """
        checked = _CheckedWork(work, schema)
        if self.threads == 1:
            return pa.RecordBatchReader.from_batches(
                schema, chain.from_iterable(map(checked, tasks))
            )
        ahead = LookAhead(checked, tasks, threads=self.threads, budget=self.look_ahead_bytes)
        return pa.RecordBatchReader.from_batches(schema, iter(ahead))

    def exchange(
        self,
        rows: Any,
        route: str,
        work: Callable[[str, pa.Table, Attempt], Sequence[Result]],
        *,
        stage: int = 0,
        label: str = "",
    ) -> list[Result]:
        """See `Engine.exchange`. Rows beyond 8 MiB spill to local files.

        Args:
            rows: any object with the Arrow PyCapsule interface.
            route: the name of the string column whose values group the rows.
            work: writes all rows of one value; called from several threads.
            stage: number of this call within the transaction, for write tokens.
            label: the description of the call, for progress.

        Returns:
            The results of all calls, ordered by route value.
        """
        from pyhudi.engine import route_groups  # noqa: PLC0415 - scans need none of it

        def write(group: tuple[str, route_groups.GroupRows], attempt: Attempt) -> Sequence[Result]:
            value, group_rows = group
            return work(value, group_rows(), attempt)

        with ExitStack() as stack:
            groups = route_groups.group_by_route(stack, rows, route, _EXCHANGE_BYTES)
            results = self.run(write, groups, stage=stage, label=label)
        return list(chain.from_iterable(results))


_running = threading.local()


def check_running() -> None:
    """Raise in a thread whose call has failed; the core calls this during a long search."""
    call: _Call[Any, Any] | None = getattr(_running, "call", None)
    if call is not None and call.failure is not None:
        raise RuntimeError("another task failed, or the call was interrupted")


class _Call(Generic[Task, Result]):
    """The work of one `run`, which stops once a task has failed."""

    def __init__(self, work: Callable[[Task, Attempt], Result]) -> None:
        self._work = work
        self._lock = threading.Lock()
        self.failure: BaseException | None = None

    def __call__(self, task: Task, attempt: Attempt) -> tuple[Result, ...]:
        """Return the result in a tuple, an empty one if the call has failed."""
        if self.failure is not None:
            return ()
        _running.call = self
        try:
            return (self._work(task, attempt),)
        except BaseException as error:  # noqa: BLE001  the calling thread raises it
            with self._lock:
                if self.failure is None:
                    self.failure = error
            return ()
        finally:
            release_free_memory()


class _WatchedWork(Generic[Task, Result]):
    """Work that reports how many of its tasks are finished."""

    def __init__(
        self, work: Callable[[Task, Attempt], Result], watcher: Watcher, step: Step
    ) -> None:
        self._work, self._watcher, self._step = work, watcher, step
        self._lock = threading.Lock()

    def __call__(self, task: Task, attempt: Attempt) -> Result:
        result = self._work(task, attempt)
        with self._lock:
            self._step = replace(self._step, finished=self._step.finished + 1)
            self._watcher.step(self._step)
        return result


@dataclass(frozen=True)
class _StepWatcher:
    """A watcher that passes on the steps."""

    step: Callable[[Step], None]
    title: str = ""
    needs_steps: bool = True

    def begin(self, label: str, total: int) -> None:
        """Pass on the first step."""
        self.step(Step(label, 0, total))

    def end(self, label: str, tasks: int, results: Sequence[Any]) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class _CheckedWork(Generic[Task]):
    """Work of a scan whose batches are validated before they are used."""

    work: Callable[[Task], Iterator[pa.RecordBatch]]
    schema: pa.Schema

    def __call__(self, task: Task) -> Iterator[pa.RecordBatch]:
        for batch in self.work(task):
            if not batch.schema.equals(self.schema):
                raise SchemaMismatch(
                    f"a scan returned the schema\n{batch.schema}\ninstead of\n{self.schema}"
                )
            if batch.num_rows:
                yield batch


def choose_engine(engine: Engine, storage: Storage, *, files: int = 0, size: int = 0) -> Engine:
    """Return the engine for a call that opens this many files, or reads and writes `size` bytes.

    A cluster gets calls that are worth a job. Small calls run on threads of this process, many of
    them if storage is remote, where each request is a round trip.
    """
    local = engine if isinstance(engine, LocalEngine) else _on_driver(engine)
    if size > engine.small_call_bytes or (files > _MAX_LOCAL_FILES and local is not engine):
        return engine
    return local.for_small_io() if is_remote(storage.uri) else local


def _on_driver(engine: Engine) -> LocalEngine:
    """Return threads of this process for small calls of a cluster, with its watcher."""
    local = LocalEngine()
    local.watcher = engine.watcher
    return local
