"""Writer of the archive of layout 1: a new log file with a record for each file of an instant.

The records are those of `MetadataConversionUtils.createMetaWrapper`, the file that of
`HoodieTimelineArchiver` (Hudi 0.15.0), which also creates a new one each time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyhudi.clock import format_instant
from pyhudi.config.actions import (
    CLEAN,
    COMMIT,
    COMMIT_ACTIONS,
    COMPACTION,
    DELTA_COMMIT,
    LOG_COMPACTION,
    REPLACE_COMMIT,
    ROLLBACK,
    Instant,
    State,
)
from pyhudi.config.retention_options import HistoryOptions
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import UnsupportedTableFeature, retryable_conflict
from pyhudi.storage.storage import Storage
from pyhudi.timeline import serde
from pyhudi.timeline.active import Timeline
from pyhudi.timeline.archive_log import METADATA_FIELD, PREFIX, log_number
from pyhudi.timeline.commit_metadata import CommitMetadata, commit_metadata_of

_PLAN_FIELD = {
    CLEAN: "hoodieCleanerPlan",
    COMPACTION: "hoodieCompactionPlan",
    LOG_COMPACTION: "hoodieCompactionPlan",
}
_ACTIONS = frozenset(
    {COMMIT, DELTA_COMMIT, REPLACE_COMMIT, COMPACTION, LOG_COMPACTION, CLEAN, ROLLBACK}
)
_WRITE_TOKEN = "1-0-1"  # noqa: S105 - no password


def write_archive_log(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    instants: Sequence[Instant],
    options: HistoryOptions,
) -> None:
    """Write the next log file of the archive with all files of the instants.

    Raises `UnsupportedTableFeature` for actions that are never archived, `CommitConflict` if
    another writer took the lock and created that file first, or is removing the files of the
    instants.
    """
    records = _records(storage, config, timeline, instants)
    batch = options.block_records
    blocks = [
        serde.encode_archive_block("HoodieArchivedMetaEntry", records[at : at + batch])
        for at in range(0, len(records), batch)
    ]
    folder = config.history_folder
    names = [entry.name for entry in storage.list_dir(folder)[1]]
    number = max((log_number(name) for name in names if name.startswith(PREFIX)), default=0) + 1
    path = f"{folder}/{PREFIX}{number}_{_WRITE_TOKEN}"
    if not storage.put_if_absent(path, b"".join(blocks)):
        raise retryable_conflict(f"another writer has archived concurrently: {path} exists")


def _records(
    storage: Storage, config: TableConfig, timeline: Timeline, instants: Sequence[Instant]
) -> list[dict[str, Any]]:
    listed = storage.list_dir(config.layout.folder)[1]
    changed = {entry.name: entry.modified_ms for entry in listed}
    files = [file for instant in instants for file in timeline.files(instant)]
    missing = next((file for file in files if file.file_name not in changed), None)
    if missing is not None:
        # A writer that stalled while it archived continues to remove the archived files.
        raise retryable_conflict(
            f"another writer has archived concurrently: {missing.file_name} is missing"
        )
    return [
        {
            **_content(timeline, file),
            "commitTime": file.requested,
            "actionType": file.action,
            "actionState": file.state.value,
            "stateTransitionTime": format_instant(changed[file.file_name], config.timezone),
        }
        for file in files
    ]


def _content(timeline: Timeline, file: Instant) -> Mapping[str, Any]:
    """Return the content of a file's record, in addition to its name."""
    if file.action not in _ACTIONS:
        raise UnsupportedTableFeature(f"archiving the action {file.action} ({file.file_name})")
    if file.action == REPLACE_COMMIT and not file.is_completed:
        return _pending_replacement(timeline, file)
    if file.action in COMMIT_ACTIONS:
        return {METADATA_FIELD[file.action]: _commit_record(timeline.commit_metadata(file))}
    if file.is_completed:
        return {METADATA_FIELD[file.action]: timeline.read(file)}
    if file.action in _PLAN_FIELD and (file.state is State.REQUESTED or file.action == CLEAN):
        return {_PLAN_FIELD[file.action]: timeline.read(file)}
    return {}


def _pending_replacement(timeline: Timeline, file: Instant) -> Mapping[str, Any]:
    """Content of the pending file of a clustering or an overwrite, either of which may be empty."""
    if file.state is State.REQUESTED:
        return {"hoodieRequestedReplaceMetadata": timeline.plan(file)}
    workload = timeline.inflight(file)
    if workload is None:
        return {}
    metadata = commit_metadata_of(workload, f"{timeline.folder}/{file.file_name}")
    return {"HoodieInflightReplaceMetadata": _commit_record(metadata)}


def _commit_record(metadata: CommitMetadata) -> dict[str, Any]:
    record = metadata.avro_record()
    extra = {**metadata.extra_metadata, "ROLLING_STAT": ""}
    operation = "COMPACT" if metadata.compacted else metadata.operation_type or "UNKNOWN"
    return record | {"extraMetadata": extra, "operationType": operation}
