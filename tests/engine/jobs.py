"""Work for engines to run: module-level and picklable, as pyhudi's own is.

The jobs that write keep to the protocol: a marker first, then a file, both named by the attempt.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from pyhudi.engine.protocol import Attempt

ROWS = pa.schema([("task", pa.int64()), ("text", pa.string())])


class FewAttributesError(Exception):
    """An exception that pickles but cannot be made anew from its arguments."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} and {second}")


@dataclass(frozen=True)
class Job:
    """One task that leaves traces in a folder that all workers share."""

    folder: str
    name: str
    seconds: float = 0.0
    crash: str = ""
    """After writing: "" goes on, "once" raises in the first run, "exit" ends that run's process."""
    error: Exception | None = None


def double(task: int, _attempt: Attempt) -> int:
    return 2 * task


def early_tasks_last(task: int, _attempt: Attempt) -> int:
    time.sleep(max(0, 6 - task) * 0.03)
    return task


def who(_task: Any, attempt: Attempt) -> Attempt:
    return attempt


def wait_for_own_file(job: Job, attempt: Attempt) -> int:
    """Go on once the folder has a file with the name of the task's number."""
    while not Path(job.folder, str(attempt.task)).exists():
        time.sleep(0.01)
    return attempt.task


def fail(error: Exception, _attempt: Attempt) -> None:
    raise error


def fail_oddly(words: tuple[str, str], _attempt: Attempt) -> None:
    raise FewAttributesError(*words)


def lose_the_process(_task: object, _attempt: Attempt) -> None:
    os._exit(3)


def write(job: Job, attempt: Attempt) -> str:
    """Writes a file under a marker; returns the file's name."""
    name = f"{job.name}_{attempt.write_token}"
    leave(job.folder, f"{name}.marker")
    time.sleep(job.seconds)
    leave(job.folder, f"{name}.data")
    _crash(job)
    return f"{name}.data"


def write_group(value: str, rows: pa.Table, attempt: Attempt) -> list[tuple[str, Any, Any]]:
    """What one route value's call saw; the last result of several a call."""
    return [
        (value, "first", attempt.write_token),
        (value, sorted(rows.column("n").to_pylist()), rows.schema.names),
    ]


@dataclass(frozen=True)
class WriteGroup:
    """An exchange's work that writes one file a route value."""

    job: Job

    def __call__(self, value: str, rows: pa.Table, attempt: Attempt) -> list[str]:
        job = self.job
        one = Job(job.folder, f"{value}-{rows.num_rows}", job.seconds, job.crash, job.error)
        return [write(one, attempt)]


def schema_of(_value: str, rows: pa.Table, _attempt: Attempt) -> list[pa.Schema]:
    return [rows.schema]


def some_rows(task: int) -> Iterator[pa.RecordBatch]:
    """Three batches of two rows; the second one is empty."""
    for part in range(3):
        texts = [] if part == 1 else [f"{task}/{part}/0", f"{task}/{part}/1"]
        tasks = pa.array([task] * len(texts), pa.int64())
        yield pa.RecordBatch.from_arrays([tasks, pa.array(texts, pa.string())], schema=ROWS)


def slow_early_rows(task: int) -> Iterator[pa.RecordBatch]:
    time.sleep(max(0, 4 - task) * 0.05)
    yield from some_rows(task)


def rows_then_failure(task: int) -> Iterator[pa.RecordBatch]:
    yield from some_rows(task)
    if task == 2:
        raise LookupError("no more rows of task 2")


def other_columns(task: int) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch({"task": [task]})


def endless(folder: str) -> Iterator[pa.RecordBatch]:
    """Rows without end; leaves a file when it is stopped."""
    try:
        while True:
            yield from some_rows(0)
    finally:
        leave(folder, "stopped")


def given(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    yield batch


def leave(folder: str, name: str) -> bool:
    """Makes an empty file; False when it was there."""
    try:
        os.close(os.open(Path(folder, name), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def traces(folder: Path, suffix: str) -> set[str]:
    return {path.name for path in folder.iterdir() if path.name.endswith(suffix)}


def _crash(job: Job) -> None:
    if job.error is not None:
        raise job.error
    if job.crash and leave(job.folder, f"{job.name}.crashed"):
        if job.crash == "exit":
            os._exit(3)
        raise OSError("died once after writing")
