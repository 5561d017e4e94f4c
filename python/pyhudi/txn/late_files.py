"""Late files: files that a task writes after the end of its write.

On Spark a task can go on after its driver has given it up: on a machine that is not reachable, or
as the slower copy of a task. The write has then deleted the files and markers of other attempts, so
no writer would find the new file. The task removes it itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyhudi.config.table_config import TableConfig
from pyhudi.errors import HudiError
from pyhudi.slices import markers
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline
from pyhudi.txn import heartbeat


@contextmanager
def removing_late_files() -> Iterator[None]:
    """Remove the files that the block started, if their write has ended. Raises `HudiError`.

    A write ends with the removal of its heartbeat and of its markers. A file whose marker exists
    then belongs to a task that began to write it even later.
    """
    with markers.recording_started() as started:
        try:
            yield
        finally:
            late_paths = _remove_late(started)
    if late_paths:
        msg = f"a task wrote {', '.join(late_paths)} after the end of its write"
        raise HudiError(f"{msg}; the task removed what it wrote")


def _remove_late(started: list[markers.StartedFile]) -> list[str]:
    ended = {file.write: _has_ended(*file.write) for file in started}
    late_paths = []
    for file in started:
        storage = file.storage
        if ended[file.write] or not storage.exists(file.marker_path):
            storage.delete(file.path)
            storage.delete(file.marker_path)
            late_paths.append(file.path)
    return late_paths


def _has_ended(storage: Storage, instant: str) -> bool:
    if storage.exists(heartbeat.path_of(instant)):
        return False
    # The compaction of an upgrade has no heartbeat.
    timeline = Timeline.load(storage, TableConfig.load(storage))
    return all(pending.requested != instant for pending in timeline.pending())
