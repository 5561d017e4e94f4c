"""An engine whose first task of a stage pauses until a test lets it go on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import DataFrame

from pyhudi.engine.protocol import Attempt
from pyhudi.slices import markers
from pyhudi.spark import SparkEngine
from pyhudi.storage.storage import Storage

Point = Literal["started", "marked", "written"]
"""When a task pauses: before its work; after a marker, before its file; after its files."""


@dataclass(frozen=True)
class Pause:
    """A point at which one task pauses, and the files by which processes tell of it."""

    folder: Path
    point: Point

    @property
    def pid(self) -> int:
        """The number of the paused Python worker, 0 if none has paused."""
        file = self.folder / "paused"
        return int(file.read_text() or 0) if file.exists() else 0

    def end(self) -> None:
        """Let the task go on."""
        (self.folder / "go").touch()

    def here(self, point: Point) -> None:
        """Pause the first task that comes to the point."""
        if point != self.point:
            return
        try:
            (self.folder / "claimed").touch(exist_ok=False)
        except FileExistsError:
            return
        temporary = self.folder / "pid"
        temporary.write_text(str(os.getpid()))
        temporary.rename(self.folder / "paused")
        while not (self.folder / "go").exists():
            time.sleep(0.05)


@dataclass(frozen=True)
class PausedWork:
    """The work of file tasks, with a pause."""

    work: Callable[..., Any]
    pause: Pause

    def __call__(self, *arguments: Any) -> Any:
        self.pause.here("started")
        create = markers.create

        def create_and_pause(storage: Storage, instant: str, marker: markers.Marker) -> None:
            create(storage, instant, marker)
            self.pause.here("marked")

        markers.create = create_and_pause
        try:
            result = self.work(*arguments)
        finally:
            markers.create = create
        self.pause.here("written")
        return result


class PausingEngine(SparkEngine):
    """Pauses one of the tasks that write the rows of a DataFrame to files."""

    def __init__(self, spark: Any, pause: Pause) -> None:
        super().__init__(spark)
        self._pause = pause

    def exchange(
        self,
        rows: DataFrame,
        route: str,
        work: Callable[[str, pa.Table, Attempt], Sequence[Any]],
        *,
        stage: int = 0,
        label: str = "",
    ) -> list[Any]:
        paused = PausedWork(work, self._pause)
        return super().exchange(rows, route, paused, stage=stage, label=label)
