"""A task or a driver that pauses until a test lets it go on."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pyhudi.engine.protocol import Attempt
from pyhudi.slices import markers
from pyhudi.spark import SparkEngine
from pyhudi.storage.storage import Storage

Point = Literal["started", "marked", "written"]
"""When a task pauses: before its work; after a marker, before its file; after its files."""
WRITE = "write files"
"""The beginning of the label of tasks that write rows to files."""


@dataclass(frozen=True)
class Pause:
    """The files by which processes tell of a pause, in an existing folder of each pause."""

    folder: Path

    @property
    def pid(self) -> int:
        """The number of the paused Python process, 0 if none has paused."""
        file = self.folder / "paused"
        return int(file.read_text()) if file.exists() else 0

    @property
    def has_worked(self) -> bool:
        """Whether the paused task went on and did its work."""
        return (self.folder / "worked").exists()

    def end(self) -> None:
        """Let the process go on."""
        (self.folder / "go").touch()

    def here(self) -> bool:
        """Pause the first process that comes here, and return whether it was this one."""
        try:
            (self.folder / "claimed").touch(exist_ok=False)
        except FileExistsError:
            return False
        temporary = self.folder / "pid"
        temporary.write_text(str(os.getpid()))
        temporary.rename(self.folder / "paused")
        while not (self.folder / "go").exists():
            time.sleep(0.05)
        return True


@dataclass(frozen=True)
class PausedWork:
    """The work of file tasks, with a pause."""

    work: Callable[..., Any]
    pause: Pause
    point: Point

    def __call__(self, *arguments: Any) -> Any:
        has_paused = self.point == "started" and self.pause.here()
        create = markers.create

        def create_and_pause(storage: Storage, instant: str, marker: markers.Marker) -> None:
            nonlocal has_paused
            create(storage, instant, marker)
            has_paused = (self.point == "marked" and self.pause.here()) or has_paused

        markers.create = create_and_pause
        try:
            result = self.work(*arguments)
        finally:
            markers.create = create
        has_paused = (self.point == "written" and self.pause.here()) or has_paused
        if has_paused:
            (self.pause.folder / "worked").touch()
        return result


class PausingEngine(SparkEngine):
    """Pauses one of the tasks whose label begins with a text."""

    def __init__(self, spark: SparkSession, pause: Pause, point: Point, label: str = WRITE) -> None:
        super().__init__(spark)
        self._pause = pause
        self._point = point
        self._label = label

    def run(
        self,
        work: Callable[[Any, Attempt], Any],
        tasks: Sequence[Any],
        *,
        stage: int = 0,
        label: str = "",
    ) -> list[Any]:
        return super().run(self._pausing(work, label), tasks, stage=stage, label=label)

    def exchange(
        self,
        rows: DataFrame,
        route: str,
        work: Callable[[str, pa.Table, Attempt], Sequence[Any]],
        *,
        stage: int = 0,
        label: str = "",
    ) -> list[Any]:
        return super().exchange(rows, route, self._pausing(work, label), stage=stage, label=label)

    def _pausing(self, work: Callable[..., Any], label: str) -> Callable[..., Any]:
        return PausedWork(work, self._pause, self._point) if label.startswith(self._label) else work


def pause_before_file(pause: Pause, pattern: str) -> None:
    """Let this process pause before it creates the first file whose path matches the pattern."""
    create: Any = Storage.put_if_absent

    def pause_and_create(storage: Storage, path: str, data: bytes) -> bool:
        if re.search(pattern, f"{storage.uri}/{path}"):
            pause.here()
        return bool(create(storage, path, data))

    storage_class: Any = Storage
    storage_class.put_if_absent = pause_and_create
