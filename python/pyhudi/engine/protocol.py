"""What an engine is: three verbs that run pyhudi's work in parallel. No pyspark here.

Everything Hudi does in parallel is one of the three. Planning is pure and work functions are
module-level and picklable, so each engine runs the same pairs. Guarantees, which the contract suite
(`tests/engine`) checks on every engine:

- A task may run twice, or die after it wrote files. Whoever writes files therefore puts a write
  token of the attempt (`Attempt`) into each name and makes a marker first; the caller commits only
  what was returned.
- Results come back in task order, whatever order they ran in. A result that is missing or there
  twice is an error, never a shorter list.
- The first failure ends the call with that task's exception: its type, message and attributes, if
  it can be pickled. Tasks not begun do not begin. An engine that tries failed tasks again counts
  only the last try as the failure.
- An engine is asked by one thread at a time and holds nothing between calls.
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
    """Who runs a task: the three numbers of Hudi's write token."""

    task: int
    """Index of the task in its call, from 0.

    In `exchange`, where one task may serve several route values, of the task that serves this one.
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
    """How far one call of an engine is."""

    label: str
    """What the call does."""
    finished: int
    """Tasks that are finished."""
    total: int


class Engine(Protocol):
    """Runs tasks. See the module text for what every verb guarantees."""

    @property
    def tasks_per_process(self) -> int:
        """How many tasks share the memory of one process."""
        ...

    def run(
        self,
        work: Callable[[Task, Attempt], Result],
        tasks: Sequence[Task],
        *,
        stage: int = 0,
        label: str = "",
    ) -> list[Result]:
        """Runs `work(task, attempt)` for each task; results are small and picklable."""
        ...

    def scan(
        self,
        work: Callable[[Task], Iterator[pa.RecordBatch]],
        tasks: Sequence[Task],
        schema: pa.Schema,
        *,
        label: str = "",
    ) -> Any:
        """Rows of all tasks: a `pyarrow.RecordBatchReader` here, a DataFrame on Spark.

        Rows come in task order, those of one task in the order of its batches. Every batch must
        have exactly `schema` (metadata aside); another one raises `SchemaMismatch`. Work is done
        when the rows are asked for: a failure comes out there, once the rows before it were given
        (Spark wraps it in an exception of its own, whose text has the original type and message).
        A reader that is dropped, or is not read to its end, stops its tasks.
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
        """Brings all rows with one value of the string column `route` to one `work` call.

        `work(route value, rows, attempt)` gets the rows with all their columns, in no promised
        order, writes them and returns small results; the results of all calls come back in one
        list, ordered by route value. `rows` are Arrow data locally, a DataFrame on Spark; they are
        evaluated once. A null in `route` is an error. What one value routes must fit in memory.
        """
        ...
