"""A threaded engine that records which reads were requested."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from pyhudi import LocalEngine
from pyhudi.slices.read import open_slice
from pyhudi.slices.read_tasks import ReadTask


class RecordingEngine(LocalEngine):
    """Runs every call as its base does."""

    def __init__(self) -> None:
        super().__init__(threads=1)
        self.tasks: list[ReadTask] = []
        """Of scans, since the last `forget`."""

    def forget(self) -> None:
        self.tasks.clear()

    def scan(
        self,
        work: Callable[[Any], Iterator[pa.RecordBatch]],
        tasks: Sequence[Any],
        schema: pa.Schema,
        *,
        label: str = "",
    ) -> pa.RecordBatchReader:
        self.tasks.extend(tasks)
        return super().scan(work, tasks, schema, label=label)

    @property
    def columns(self) -> set[str]:
        """Columns that tasks needed."""
        return {name for task in self.tasks for name in task.columns}

    @property
    def partitions(self) -> list[str]:
        """Of each task."""
        return sorted(task.slice.partition for task in self.tasks)

    def rows_of_core(self) -> int:
        """How many rows the core gives for the tasks, before filters are applied in Python."""
        return sum(batch.num_rows for task in self.tasks for batch in open_slice(task))
