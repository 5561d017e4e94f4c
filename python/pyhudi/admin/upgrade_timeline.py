"""Converts the timeline of a table to another layout. The only I/O is reading.

From layout 1 to 2, commits are converted from JSON to Avro, and completed names get a completion
time. It is the file's modification time, as in Hudi, but never before the request, never the same
twice, and not one that contradicts log files (`completions`). From 2 to 1 the conversion is
reversed. Plans, cleans, rollbacks and other files keep their bytes. Sources:
`SevenToEightUpgradeHandler`, `EightToSevenDowngradeHandler` (Hudi 1.2.0).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any

from pyhudi.clock import Clock, format_instant, parse_instant
from pyhudi.config.actions import (
    CLEAN,
    CLUSTERING,
    COMMIT_ACTIONS,
    INDEXING,
    REPLACE_COMMIT,
    RESTORE,
    ROLLBACK,
    SAVEPOINT,
    Instant,
    State,
)
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import ConfigError
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline, serde
from pyhudi.timeline.archive_lsm_write import ArchivedInstant
from pyhudi.timeline.commit_metadata import commit_metadata_of

_RECORD_OF = {
    CLEAN: "HoodieCleanMetadata",
    ROLLBACK: "HoodieRollbackMetadata",
    SAVEPOINT: "HoodieSavepointMetadata",
    RESTORE: "HoodieRestoreMetadata",
    INDEXING: "HoodieIndexCommitMetadata",
}


def convert_active_timeline(
    storage: Storage,
    timeline: Timeline,
    completions: Mapping[Instant, str],
    old: TableConfig,
    new: TableConfig,
    clock: Clock,
) -> Iterator[tuple[str, bytes, int | None]]:
    """Yield path and bytes of every file of the active timeline in the new layout.

    The third value is the modification time in epoch ms that the file must get, if it represents
    the completion time.

    completions: completion times by instant.
    """
    for instant in timeline.instants:
        action = instant.action
        if timeline.is_clustering(instant):
            action = CLUSTERING
        for file in timeline.files(instant):
            data = storage.read(old.layout.path(file.file_name))
            path = old.layout.path(file.file_name)
            # Requested files have plans; the inflight file of a clustering is empty.
            has_metadata = file.state is not State.REQUESTED and (
                file.is_completed or action != CLUSTERING
            )
            if instant.action in COMMIT_ACTIONS and has_metadata:
                data = _convert(data, path, file, new, clock)
            new_action = file.action
            if action == CLUSTERING and not file.is_completed:
                new_action = CLUSTERING if new.layout.has_clustering_action else REPLACE_COMMIT
            name = new.layout.file_name(
                file.requested, new_action, file.state, completions[instant]
            )
            completed = file.is_completed and not new.layout.completion_in_name
            modified = parse_instant(completions[instant], new.timezone) if completed else None
            yield new.layout.path(name), data, modified


def _convert(data: bytes, path: str, file: Instant, new: TableConfig, clock: Clock) -> bytes:
    if not data:
        return data
    metadata = commit_metadata_of(serde.decode(data, path), path)
    if file.is_completed:
        return metadata.encode(new.version, file.action, clock)
    return metadata.encode_inflight(new.version, clock)


def completions(storage: Storage, timeline: Timeline, config: TableConfig) -> dict[Instant, str]:
    """Return a completion time for each instant, archived ones too; unique among active ones.

    From version 8 on, a log file belongs to the newest slice that was opened before its completion.
    If a modification time would move a log file to a later slice than its name says, the times are
    those of a copy or of another zone. Then only times before the next request are used.
    """
    if timeline.completes_in_names:
        return {instant: instant.completed or instant.requested for instant in timeline.instants}
    archived = timeline.archive.instants()
    times = {
        instant: instant.completed or instant.requested
        for instant in (*archived, *timeline.instants)
    }
    if config.is_merge_on_read and _contradict_log_files(
        FileSystemView(storage, config, timeline), times
    ):
        times = _before_next_requests(times, config)
    else:
        used: set[str] = set()
        for instant in timeline.instants:
            time = times[instant]
            while time <= instant.requested or time in used:
                time = _shift(max(time, instant.requested), config, by=1)
            used.add(time)
            times[instant] = time
    return times


def _contradict_log_files(view: FileSystemView, completed: Mapping[Instant, str]) -> bool:
    """Return whether a log file would be in a later slice than the one in its name."""
    times: dict[str, str] = {}
    for instant, time in completed.items():
        times[instant.requested] = max(time, times.get(instant.requested, ""))
    return any(
        log.instant < base.instant <= times.get(log.instant, "")
        for group in view.groups.values()
        for log in group.logs
        for base in group.bases
    )


def _before_next_requests(
    completed: Mapping[Instant, str], config: TableConfig
) -> dict[Instant, str]:
    requests = sorted({instant.requested for instant in completed})
    result = {}
    for instant, time in completed.items():
        later = requests[bisect_right(requests, instant.requested) :][:1]
        times = (time, *(_shift(each, config, by=-1) for each in later))
        result[instant] = max(min(times), instant.requested)
    return result


def _shift(time: str, config: TableConfig, *, by: int) -> str:
    """Return the time `by` milliseconds later."""
    try:
        return format_instant(parse_instant(time, config.timezone) + by, config.timezone)
    except ConfigError:
        return str(int(time) + by).zfill(len(time))


def read_log_archive(
    timeline: Timeline, completions: Mapping[Instant, str], clock: Clock
) -> list[ArchivedInstant]:
    """Return the archived instants of log files, for the history of layout 2."""
    archived = []
    for instant in timeline.archive.instants():
        record = timeline.archive.read(instant)
        data = None if record is None else _container(instant, record, clock)
        archived.append(
            ArchivedInstant(instant.requested, completions[instant], instant.action, data)
        )
    return archived


def _container(instant: Instant, record: dict[str, Any], clock: Clock) -> bytes:
    name = _RECORD_OF.get(instant.action)
    if name is not None:
        return serde.encode_container(name, record, clock)
    metadata = commit_metadata_of(record, instant.file_name)
    return metadata.to_avro(clock, replace=instant.action == REPLACE_COMMIT)
