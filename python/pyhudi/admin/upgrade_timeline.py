"""The timeline of a table in another layout: what each file becomes. Pure but for reading.

From layout 1 to 2 commits are turned from JSON to Avro and completed names get a completion time:
the file's modification time, as in Hudi, though never before the request nor twice the same. From 2
to 1 it is the other way round. Plans, cleans, rollbacks and the like keep their bytes. Sources:
`SevenToEightUpgradeHandler`, `EightToSevenDowngradeHandler` (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterator
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
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline, content
from pyhudi.timeline.archive_lsm_write import ArchivedInstant
from pyhudi.timeline.commit_metadata import commit_metadata_of

_RECORD_OF = {
    CLEAN: "HoodieCleanMetadata",
    ROLLBACK: "HoodieRollbackMetadata",
    SAVEPOINT: "HoodieSavepointMetadata",
    RESTORE: "HoodieRestoreMetadata",
    INDEXING: "HoodieIndexCommitMetadata",
}


def moved_files(
    storage: Storage, timeline: Timeline, old: TableConfig, new: TableConfig, clock: Clock
) -> Iterator[tuple[str, bytes]]:
    """Path and bytes of every file of the active timeline in the new layout.

    All instants must be complete.
    """
    completions = _completions(timeline, old)
    for instant in timeline.instants:
        action = instant.action
        if timeline.is_clustering(instant):
            action = CLUSTERING
        for file in timeline.files(instant):
            data = storage.read(old.layout.path(file.file_name))
            path = f"{old.layout.path(file.file_name)}"
            if instant.action in COMMIT_ACTIONS and _has_commit_metadata(file, action):
                data = _converted(data, path, file, new, clock)
            pending = _pending_action(file, action, new)
            name = new.layout.file_name(
                file.requested,
                file.action if file.is_completed else pending,
                file.state,
                completions[instant],
            )
            yield new.layout.path(name), data


def _has_commit_metadata(file: Instant, action: str) -> bool:
    """Requested files hold plans; the inflight file of a table service is empty."""
    return file.state is not State.REQUESTED and (file.is_completed or action != CLUSTERING)


def _pending_action(file: Instant, action: str, new: TableConfig) -> str:
    if action == CLUSTERING:
        return CLUSTERING if new.layout.has_clustering_action else REPLACE_COMMIT
    return file.action


def _converted(data: bytes, path: str, file: Instant, new: TableConfig, clock: Clock) -> bytes:
    if not data:
        return data
    metadata = commit_metadata_of(content.decode(data, path), path)
    if file.is_completed:
        return metadata.encode(new.version, file.action, clock)
    return metadata.encode_inflight(new.version, clock)


def _completions(timeline: Timeline, config: TableConfig) -> dict[Instant, str]:
    """A completion time for each instant, different for all."""
    found: dict[Instant, str] = {}
    taken: set[str] = set()
    for instant in timeline.instants:
        time = instant.completed or instant.requested
        while not timeline.completes_in_names and (time <= instant.requested or time in taken):
            time = _next(max(time, instant.requested), config)
        taken.add(time)
        found[instant] = time
    return found


def _next(time: str, config: TableConfig) -> str:
    try:
        return format_instant(parse_instant(time, config.timezone) + 1, config.timezone)
    except ConfigError:
        return str(int(time) + 1).zfill(len(time))


def archived_instants(timeline: Timeline, clock: Clock) -> list[ArchivedInstant]:
    """What the log files of an archive hold, for the history of layout 2."""
    return [_archived(timeline, instant, clock) for instant in timeline.archive.instants()]


def _archived(timeline: Timeline, instant: Instant, clock: Clock) -> ArchivedInstant:
    record = timeline.archive.read(instant)
    return ArchivedInstant(
        instant.requested,
        instant.completed or instant.requested,
        instant.action,
        None if record is None else _container(instant, record, clock),
    )


def _container(instant: Instant, record: dict[str, Any], clock: Clock) -> bytes:
    name = _RECORD_OF.get(instant.action)
    if name is not None:
        return content.encode_container(name, record, clock)
    metadata = commit_metadata_of(record, instant.file_name)
    return metadata.to_avro(clock, replace=instant.action == REPLACE_COMMIT)
