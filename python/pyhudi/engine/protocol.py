"""The engine protocol: three methods that run pyhudi's work in parallel. No pyspark here.

All of pyhudi's parallel work is one of the three. Planning is pure and work functions are
module-level and picklable, so each engine runs the same pairs. The contract suite (`tests/engine`)
checks these guarantees on every engine:

- A task may run twice, or fail after it wrote files. Therefore a task puts a write token of the
  attempt (`Attempt`) into each file name and creates a marker first; the caller commits only
  returned results.
- Results are returned in task order, regardless of the order of execution. A missing or duplicate
  result is an error, never a shorter list.
- The first failure ends the call with that task's exception: its type, message and attributes, if
  it can be pickled. Pending tasks do not start. An engine that retries failed tasks counts only the
  last attempt as the failure.
- An engine is called by one thread at a time and keeps no state between calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import pyarrow as pa

Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Attempt:
    """One attempt at a task: the three numbers of Hudi's write token."""

    task: int
    """Index of the task in its call, from 0.

    In `exchange`, where one task may run several route values, of the task that runs this one.
    """
    stage: int
    """Number of the engine call within the transaction."""
    attempt: int
    """Unique among the runs of all tasks of the call."""

    @property
    def write_token(self) -> str:
        """`<task>-<stage>-<attempt>`, as in Hudi's file names."""
        return f"{self.task}-{self.stage}-{self.attempt}"


@dataclass(frozen=True)
class Step:
    """The progress of one call of an engine."""

    label: str
    """The description of the call."""
    finished: int
    """Finished tasks; on Spark, of all its stages that have started."""
    total: int
    """All tasks; 0 if Spark has not planned them yet."""


class Watcher(Protocol):
    """Observes the engine calls of one operation.

    An engine calls its methods from any thread, never concurrently. An exception of a method ends
    the call like the failure of a task.
    """

    @property
    def title(self) -> str:
        """The operation and its table, for descriptions: "pyhudi upsert of trips"."""
        ...

    @property
    def needs_steps(self) -> bool:
        """Whether an engine must call `step` while tasks run, even if that costs something."""
        ...

    def begin(self, label: str, total: int) -> None:
        """Handle that a call begins. total: number of its tasks; 0 if it is not known yet."""
        ...

    def step(self, step: Step) -> None:
        """Handle that more tasks of a call are finished."""
        ...

    def end(self, label: str, tasks: int, results: Sequence[Any]) -> None:
        """Handle that all tasks of a call are finished, with these results."""
        ...


class Engine(Protocol):
    """Runs tasks. See the module docstring for the guarantees of every method."""

    @property
    def watcher(self) -> Watcher | None:
        """The observer of this engine's calls."""
        ...

    def with_watcher(self, watcher: Watcher) -> Engine:
        """Return a copy of this engine whose calls the watcher observes.

        The copy serves one operation, since a scan's rows may be read after it: `scan` is not
        observed.
        """
        ...

    @property
    def tasks_per_process(self) -> int:
        """How many tasks share the memory of one process."""
        ...

    @property
    def small_call_bytes(self) -> int:
        """Bytes that a call may read and write to run on threads of the calling process."""
        ...

    @property
    def has_late_tasks(self) -> bool:
        """Whether a task may go on after its call: on a lost machine, or as a slower copy."""
        ...

    def run(
        self,
        work: Callable[[Task, Attempt], Result],
        tasks: Sequence[Task],
        *,
        stage: int = 0,
        label: str = "",
    ) -> list[Result]:
        """Run `work(task, attempt)` for each task; results are small and picklable."""
        ...

    def scan(
        self,
        work: Callable[[Task], Iterator[pa.RecordBatch]],
        tasks: Sequence[Task],
        schema: pa.Schema,
        *,
        label: str = "",
    ) -> Any:
        """Return the rows of all tasks: a `pyarrow.RecordBatchReader` here, a DataFrame on Spark.

        Rows come in task order, those of one task in the order of its batches. Every batch must
        have exactly `schema` (metadata aside); another one raises `SchemaMismatch`. Work runs when
        the rows are requested: a failure is raised there, after the rows before it (Spark wraps it
        in an exception of its own, whose text has the original type and message). A reader that is
        dropped, or is not read to its end, stops its tasks.
        """
        ...

    def exchange(
        self,
        rows: Any,
        route: str,
        work: Callable[[str, pa.Table, Attempt], Sequence[Result]],
        *,
        stage: int = 0,
        label: str = "",
    ) -> list[Result]:
        """Send all rows with one value of the string column `route` to one `work` call.

        `work(route value, rows, attempt)` gets the rows with all their columns, in no guaranteed
        order, writes them and returns small results; the results of all calls are returned in one
        list, ordered by route value. `rows` are Arrow data locally, a DataFrame on Spark; they are
        evaluated once. A null in `route` is an error. The rows of one value must fit in memory.
        """
        ...
