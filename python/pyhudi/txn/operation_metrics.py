"""The work of one operation by stage: what its engine calls wrote and how long they took."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyhudi.clock import Clock, SystemClock
from pyhudi.engine.protocol import Step
from pyhudi.timeline.commit_metadata import WriteStat


@dataclass(frozen=True)
class StageMetrics:
    """The work of one stage of an operation, such as looking up keys or writing files."""

    stage: str
    """The description that progress shows, too: "write files". Services that ran after the commit
    have stages like "table services: write files"."""
    tasks: int
    """Number of pyhudi's tasks; 0 if Spark divides the work into tasks, such as counting rows."""
    seconds: float
    """Elapsed time from the beginning of the stage to its last result."""
    files_written: int = 0
    bytes_written: int = 0
    rows_written: int = 0
    """Rows in new base files, which include unchanged rows that were copied, and in log files. In
    the stages of the metadata table, its records."""


class OperationWatcher:
    """Adds up the metrics of an operation's engine calls, and passes on their progress.

    Args:
        title: the operation and its table: "pyhudi upsert of trips".
        report: called with each step; None if nothing is shown.
        clock: measures the calls.
    """

    def __init__(
        self, title: str, report: Callable[[Step], None] | None = None, clock: Clock | None = None
    ) -> None:
        self.title = title
        self._report = report
        self._clock = clock or SystemClock()
        self._began_ms = 0
        self._stages: dict[str, StageMetrics] = {}

    @property
    def needs_steps(self) -> bool:
        """See `Watcher.needs_steps`."""
        return self._report is not None

    @property
    def metrics(self) -> tuple[StageMetrics, ...]:
        """The metrics of all calls so far, one entry for each label."""
        return tuple(self._stages.values())

    def metrics_of_services(self) -> tuple[StageMetrics, ...]:
        """Return the metrics of table services after a commit, as those of a write show them."""
        return tuple(
            replace(metrics, stage=f"table services: {metrics.stage}") for metrics in self.metrics
        )

    def begin(self, label: str, total: int) -> None:
        """See `Watcher.begin`."""
        self._began_ms = self._clock.ticks_ms()
        self.step(Step(label, 0, total))

    def step(self, step: Step) -> None:
        """See `Watcher.step`."""
        if self._report is not None:
            self._report(step)

    def end(self, label: str, tasks: int, results: Sequence[Any]) -> None:
        """See `Watcher.end`."""
        before = self._stages.get(label, StageMetrics(label, 0, 0.0))
        stats = list(_stats_of(results))
        self._stages[label] = replace(
            before,
            tasks=before.tasks + tasks,
            seconds=before.seconds + (self._clock.ticks_ms() - self._began_ms) / 1000,
            files_written=before.files_written + len(stats),
            bytes_written=before.bytes_written + sum(stat.total_write_bytes for stat in stats),
            rows_written=before.rows_written + sum(stat.num_writes for stat in stats),
        )


def _stats_of(result: Any) -> Iterator[WriteStat]:
    """Yield the statistics of files in the results of tasks."""
    if isinstance(result, WriteStat):
        yield result
    elif isinstance(result, Sequence) and not isinstance(result, str | bytes):
        for part in result:
            yield from _stats_of(part)
    elif hasattr(result, "stats"):
        yield from _stats_of(result.stats)
