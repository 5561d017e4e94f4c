"""Moving completed instants from the active timeline to the archive of its layout.

Which ones may go is the caller's to know; it holds the table's lock. Order of the steps:
`TimelineArchiverV1`, `TimelineArchiverV2` (Hudi 1.2.0). A writer that dies between them leaves
instants in both places, which readers take for one, and the next archiving takes them off.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyhudi.config.actions import CLEAN, COMPACTION, LOG_COMPACTION, Instant, State
from pyhudi.config.table_config import TableConfig
from pyhudi.storage.storage import Storage
from pyhudi.timeline.active import Timeline
from pyhudi.timeline.archive_log_write import write_archive_log
from pyhudi.timeline.archive_lsm_write import ArchivedInstant, add_to_history, merge_and_clean

_PLANNED = frozenset({CLEAN, COMPACTION, LOG_COMPACTION})
"""Actions of a metadata table whose plan the LSM history keeps."""


def archive(
    storage: Storage, config: TableConfig, timeline: Timeline, instants: Sequence[Instant]
) -> None:
    """Archives completed instants, oldest first."""
    if config.layout.completion_in_name:
        rows = [_row(storage, config, timeline, instant) for instant in instants]
        add_to_history(storage, config.history_folder, rows)
    else:
        write_archive_log(storage, config, timeline, instants)
    _remove(storage, config, timeline, instants)
    if config.layout.completion_in_name:
        merge_and_clean(storage, config.history_folder)


def _row(
    storage: Storage, config: TableConfig, timeline: Timeline, instant: Instant
) -> ArchivedInstant:
    first = timeline.files(instant)[0]
    planned = first.state is State.REQUESTED and first.action in _PLANNED
    return ArchivedInstant(
        instant.requested,
        instant.completed or instant.requested,
        instant.action,
        storage.read(config.layout.path(instant.file_name)) or None,
        (storage.read(config.layout.path(first.file_name)) or None) if planned else None,
    )


def _remove(
    storage: Storage, config: TableConfig, timeline: Timeline, instants: Sequence[Instant]
) -> None:
    """Completed files go last, so that nobody takes the instant for a pending one."""
    files = [file for instant in instants for file in timeline.files(instant)]
    for file in sorted(files, key=lambda file: file.is_completed):
        storage.delete(config.layout.path(file.file_name))
