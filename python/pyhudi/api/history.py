"""Instants and savepoints of a table as Arrow tables.

These tables are for users and their queries, as in `inspect.py`. Sizes are in bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.config.actions import COMMIT_ACTIONS, RESTORE, ROLLBACK, SAVEPOINT, Instant
from pyhudi.schema.internal_schema import LATEST_SCHEMA
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline
from pyhudi.timeline.commit_metadata import SCHEMA_KEY, CommitMetadata, commit_metadata_of
from pyhudi.timeline.instant_range import InstantRange

if TYPE_CHECKING:
    from pyhudi.txn.savepoint import Savepoint

_HISTORY = pa.schema(
    [
        ("instant", pa.string()),
        ("completed", pa.string()),
        ("action", pa.string()),
        ("operation", pa.string()),
        ("state", pa.string()),
        ("rows_inserted", pa.int64()),
        ("rows_updated", pa.int64()),
        ("rows_deleted", pa.int64()),
        ("files", pa.int64()),
        ("bytes", pa.int64()),
        ("rolled_back", pa.list_(pa.string())),
        ("metadata", pa.map_(pa.string(), pa.string())),
    ]
)
_SAVEPOINTS = pa.schema(
    [
        ("instant", pa.string()),
        ("comment", pa.string()),
        ("saved_by", pa.string()),
        ("saved_at", pa.timestamp("ms", "UTC")),
        ("partitions", pa.int64()),
        ("files", pa.int64()),
    ]
)
_SCHEMAS = frozenset({SCHEMA_KEY, LATEST_SCHEMA})
"""Entries that the extra metadata of every commit has, and that a history omits."""


def history(
    table: TableSnapshot, limit: int | None, since: str | None, *, archived: bool
) -> pa.Table:
    """Return one row for each instant, the newest first; see `HudiTable.history`."""
    timeline = table.timeline
    newest_first = reversed(list_instants(timeline, since, archived=archived))
    selected = [each for each in newest_first if since is None or each.requested > since]
    active = frozenset(timeline.instants)
    rows = [_row(table, instant, active=instant in active) for instant in selected[:limit]]
    return pa.Table.from_pylist(rows, _HISTORY)


def list_instants(timeline: Timeline, since: str | None, *, archived: bool) -> list[Instant]:
    """Return the active instants, with the archived ones after a time, oldest first.

    An interrupted archiver leaves some instants on both timelines: the active one counts.
    """
    past = timeline.archive.instants(InstantRange(since, timeline.bound)) if archived else ()
    instants = {(instant.requested, instant.action): instant for instant in past} | {
        (instant.requested, instant.completed_action): instant for instant in timeline.instants
    }
    return [instant for _, instant in sorted(instants.items())]


def savepoint_table(savepoints: Iterable[Savepoint]) -> pa.Table:
    """Return one row for each savepoint; see `HudiTable.savepoints`."""
    rows = [
        {
            "instant": saved.instant,
            "comment": saved.comment,
            "saved_by": saved.saved_by,
            "saved_at": saved.saved_at_ms,
            "partitions": len(saved.files),
            "files": saved.file_count,
        }
        for saved in savepoints
    ]
    return pa.Table.from_pylist(rows, _SAVEPOINTS)


def _row(table: TableSnapshot, instant: Instant, *, active: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "instant": instant.requested,
        "completed": instant.completed,
        "action": instant.action,
        "state": instant.state.value,
    }
    if not instant.is_completed:
        return row
    timeline = table.timeline
    record = (timeline.read(instant) if active else timeline.archive.read(instant)) or {}
    if instant.action in COMMIT_ACTIONS:
        return row | _row_counts(commit_metadata_of(record, instant.file_name))
    if instant.action == SAVEPOINT:
        entries = {"comment": record.get("comments"), "saved_by": record.get("savepointedBy")}
        return row | {"metadata": _metadata_entries(entries)}
    targets = {ROLLBACK: "commitsRollback", RESTORE: "instantsToRollback"}.get(instant.action)
    return row if targets is None else row | {"rolled_back": record.get(targets)}


def _row_counts(metadata: CommitMetadata) -> dict[str, Any]:
    stats = metadata.write_stats
    return {
        "operation": metadata.operation_type,
        **row_counts(metadata),
        "files": len(stats),
        "bytes": sum(stat.total_write_bytes for stat in stats),
        "metadata": _metadata_entries(metadata.extra_metadata),
    }


def row_counts(metadata: CommitMetadata) -> dict[str, int | None]:
    """Count rows by what happened to them; null for services, whose stats count unchanged rows."""
    if metadata.is_service:
        return dict.fromkeys(("rows_inserted", "rows_updated", "rows_deleted"))
    stats = metadata.write_stats
    return {
        "rows_inserted": sum(stat.num_inserts for stat in stats),
        "rows_updated": sum(stat.num_update_writes for stat in stats),
        "rows_deleted": sum(stat.num_deletes for stat in stats),
    }


def _metadata_entries(entries: Mapping[str, str | None]) -> list[tuple[str, str]]:
    return [
        (name, value) for name, value in sorted(entries.items()) if value and name not in _SCHEMAS
    ]
