"""Moves completed instants from the active timeline to the archive of its layout.

The caller selects the instants and holds the table's lock. Order of the steps:
`TimelineArchiverV1`, `TimelineArchiverV2` (Hudi 1.2.0). A failure between them leaves instants in
both places. Readers count them once, and the next archiving removes them from the active timeline.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from pyhudi.config.actions import (
    CLEAN,
    CLUSTERING,
    COMPACTION,
    LOG_COMPACTION,
    REPLACE_COMMIT,
    Instant,
    State,
)
from pyhudi.config.retention_options import HistoryOptions
from pyhudi.config.table_config import TableConfig
from pyhudi.storage.storage import Storage
from pyhudi.timeline.active import Timeline
from pyhudi.timeline.archive_log_write import write_archive_log
from pyhudi.timeline.archive_lsm import LsmHistory
from pyhudi.timeline.archive_lsm_write import ArchivedInstant, add_to_history, merge_and_clean
from pyhudi.timeline.instant_range import InstantRange
from pyhudi.timeline.lsm_manifest import Check, no_check

_PLANNED = frozenset({CLEAN, COMPACTION, LOG_COMPACTION, CLUSTERING, REPLACE_COMMIT})
"""Pending actions whose plan the LSM history stores."""


def archive(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    instants: Sequence[Instant],
    options: HistoryOptions,
    check: Check = no_check,
) -> None:
    """Archive completed instants, oldest first.

    check: raises `CommitConflict` if another writer may hold the table's lock.
    """
    if config.layout.completion_in_name:
        unknown = _not_in_history(storage, config, instants)
        rows = _rows(storage, timeline, unknown)
        add_to_history(storage, config.history_folder, rows, check)
    else:
        write_archive_log(storage, config, timeline, instants, options)
    check()
    _remove(storage, config, timeline, instants)
    if config.layout.completion_in_name:
        merge_and_clean(storage, config.history_folder, options, check)


def _not_in_history(
    storage: Storage, config: TableConfig, instants: Sequence[Instant]
) -> list[Instant]:
    """Return the instants that a failed writer has not archived already."""
    history = LsmHistory(storage, config.history_folder)
    instant_range = InstantRange.between(instants[0].requested, instants[-1].requested)
    archived = {(instant.requested, instant.action) for instant in history.instants(instant_range)}
    return [instant for instant in instants if (instant.requested, instant.action) not in archived]


def _rows(
    storage: Storage, timeline: Timeline, instants: Sequence[Instant]
) -> list[ArchivedInstant]:
    done = {instant: timeline.path(instant) for instant in instants}
    plans = {instant: _plan_files(timeline, instant) for instant in instants}
    with storage.prefetch(files=[*done.values(), *chain.from_iterable(plans.values())]):
        return [
            ArchivedInstant(
                instant.requested,
                instant.completed or instant.requested,
                instant.action,
                storage.read(done[instant]) or None,
                next(filter(None, map(storage.read, plans[instant])), None),
            )
            for instant in instants
        ]


def _plan_files(timeline: Timeline, instant: Instant) -> list[str]:
    """Return files of which one has the plan: the requested one, or an overwrite's inflight one.

    Source: `createLSMTimelineInstant` (1.2.0).
    """
    pending = [file for file in timeline.files(instant) if not file.is_completed]
    if not pending or pending[0].action not in _PLANNED:
        return []
    overwrites = pending[0].action in (CLUSTERING, REPLACE_COMMIT)
    requested = [file for file in pending if file.state is State.REQUESTED]
    with_plan = reversed(pending) if overwrites else requested
    return [timeline.path(file) for file in with_plan]


def _remove(
    storage: Storage, config: TableConfig, timeline: Timeline, instants: Sequence[Instant]
) -> None:
    """Remove completed files last, so that no writer takes an instant for a pending one.

    They are removed in order, the oldest first: active instants must be later than archived ones,
    since only an instant before the timeline's start counts as committed.
    """
    files = [file for instant in instants for file in timeline.files(instant)]
    pending = [config.layout.path(file.file_name) for file in files if not file.is_completed]
    storage.delete_all(pending)
    for file in files:
        if file.is_completed:
            storage.delete_all([config.layout.path(file.file_name)])
