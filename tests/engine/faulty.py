"""An engine whose tasks run twice or die after they wrote, on purpose.

Wraps any engine. What is done to the tasks is a picklable wrapper of the work, so it happens where
the work runs: on a thread, or on a Spark executor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from pyhudi.engine.protocol import Attempt, Engine, Result, Task, Watcher

Work = Callable[..., Any]


class DiedError(Exception):
    """What a task raises that dies on purpose."""


@dataclass(frozen=True)
class Twice:
    """Every task runs twice; the first run's result is lost, as with speculation."""

    work: Work

    def __call__(self, *given: Any) -> Any:
        *arguments, attempt = given
        self.work(*arguments, attempt)
        return self.work(*arguments, another(attempt))


@dataclass(frozen=True)
class DiesAfterWriting:
    """Every task does all its work and dies before its result is known."""

    work: Work

    def __call__(self, *given: Any) -> Any:
        self.work(*given)
        raise DiedError("after writing")


@dataclass(frozen=True)
class TriedAgain:
    """A task that failed runs once more, as on a cluster."""

    work: Work

    def __call__(self, *given: Any) -> Any:
        *arguments, attempt = given
        try:
            return self.work(*given)
        except Exception:  # noqa: BLE001  clusters try again whatever it was
            return self.work(*arguments, another(attempt))


def another(attempt: Attempt) -> Attempt:
    """A later run of the same task."""
    return replace(attempt, attempt=attempt.attempt + 1_000_000)


class FaultyEngine:
    """An engine that runs `fault(work)` in place of `work`, whenever work can write."""

    def __init__(self, inner: Engine, fault: Callable[[Work], Work]) -> None:
        self.inner = inner
        self.fault = fault

    @property
    def watcher(self) -> Watcher | None:
        """Whatever the engine below says."""
        return self.inner.watcher

    def with_watcher(self, watcher: Watcher) -> FaultyEngine:
        return FaultyEngine(self.inner.with_watcher(watcher), self.fault)

    def run(
        self,
        work: Callable[[Task, Attempt], Result],
        tasks: Sequence[Task],
        *,
        stage: int = 0,
        label: str = "",
    ) -> list[Result]:
        return self.inner.run(self.fault(work), tasks, stage=stage, label=label)

    @property
    def tasks_per_process(self) -> int:
        """Whatever the engine below says."""
        return self.inner.tasks_per_process

    @property
    def small_call_bytes(self) -> int:
        """None: each call is to have its faults."""
        return 0

    @property
    def has_late_tasks(self) -> bool:
        """Whatever the engine below says."""
        return self.inner.has_late_tasks

    def scan(
        self,
        work: Callable[[Task], Iterator[pa.RecordBatch]],
        tasks: Sequence[Task],
        schema: pa.Schema,
        *,
        label: str = "",
    ) -> Any:
        return self.inner.scan(work, tasks, schema, label=label)

    def exchange(
        self,
        rows: Any,
        route: str,
        work: Callable[[str, pa.Table, Attempt], Sequence[Result]],
        *,
        stage: int = 0,
        label: str = "",
    ) -> list[Result]:
        return self.inner.exchange(rows, route, self.fault(work), stage=stage, label=label)
