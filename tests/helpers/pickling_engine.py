"""An engine that pickles everything, like an engine of several processes."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from pyhudi.engine.local import LocalEngine
from pyhudi.engine.protocol import Attempt


class Travelling(LocalEngine):
    """Runs in this thread; `labels` are those of its calls."""

    def __init__(self) -> None:
        super().__init__(1)
        self.labels: set[str] = set()

    def run(
        self,
        work: Callable[[Any, Attempt], Any],
        tasks: Sequence[Any],
        *,
        stage: int = 0,
        label: str = "",
    ) -> list[Any]:
        self.labels.add(label)
        sent = [_sent((work, task)) for task in tasks]
        return [_sent(there(task, Attempt(n, stage, n))) for n, (there, task) in enumerate(sent)]

    def scan(self, work: Any, tasks: Any, schema: pa.Schema, *, label: str = "") -> Any:
        work, tasks = _sent((work, list(tasks)))
        return super().scan(work, tasks, schema, label=label)

    def exchange(
        self, rows: Any, route: str, work: Any, *, stage: int = 0, label: str = ""
    ) -> list[Any]:
        self.labels.add(label)
        work = _sent(work)
        results: list[Any] = _sent(
            LocalEngine(1).exchange(rows, route, work, stage=stage, label=label)
        )
        return results


def _sent(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))
