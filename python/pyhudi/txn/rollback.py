"""Rollback of a write: the plan, its execution, and the record of it.

A rollback is an instant: requested (with the plan), inflight, completed (with the record). Then the
write's timeline files are removed, except the plan of a service, and finally its markers, unless
they name files that are not in the plan. After a failure the rollback stays pending and is executed
again by its plan. `rollback_plan.py` determines the files to delete.

A completed commit is rolled back only on a user's request (`roll_back_completed`). It becomes
inflight again after the rollback is requested and before the rollback is inflight. This
distinguishes it from a commit whose writer completed it concurrently. Sources: `RollbackHelper`,
`BaseRollbackActionExecutor` (1.2.0).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from pyhudi import _native
from pyhudi.config.actions import (
    CLUSTERING,
    COMPACTION,
    LOG_COMPACTION,
    ROLLBACK,
    Instant,
    State,
)
from pyhudi.config.file_names import (
    file_name_of,
    is_partition_metadata,
    log_file_name,
    parse_base_name,
    parse_log_name,
)
from pyhudi.errors import CommitConflict, retryable_conflict
from pyhudi.storage.storage import Storage
from pyhudi.table.participants import Rollback
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline, serde
from pyhudi.txn import heartbeat
from pyhudi.txn.orphan_files import remove_staged_of
from pyhudi.txn.pending_instant import PendingInstant
from pyhudi.txn.rollback_plan import RollbackRequest, plan_rollback

Record: TypeAlias = dict[str, Any]
"""A `HoodieRollbackMetadata`."""

COMMAND_LOG_TOKEN = "1-0-1"  # noqa: S105 - Hudi's write token of a log that no task wrote


# --- execution ------------------------------------------------------------------------------------


def roll_back(
    table: TableSnapshot, timeline: Timeline, target: Instant, *, time: str | None = None
) -> str:
    """Roll back a pending write and return the rollback's instant.

    time: the rollback's instant, None for a new one. Raises `CommitConflict`, with the write
    unchanged, if its writer has completed it concurrently.
    """
    rollback, requests = _request_rollback(table, timeline, target, time)
    current = Timeline.load(table.storage, table.config).find(target.requested, target.action)
    if current is not None and current.is_completed:
        rollback.withdraw_request()
        msg = f"{current} was completed by its writer before it could be rolled back"
        raise retryable_conflict(msg)
    rollback.begin()
    _execute(rollback, _open_instant(table, timeline, target), requests, publish=True)
    return rollback.time


def roll_back_completed(
    table: TableSnapshot,
    timeline: Timeline,
    target: Instant,
    *,
    reverted_together: Collection[str] = (),
    publish: bool = True,
) -> tuple[str, Record]:
    """Roll back a completed commit, or a planned service without an active writer.

    Returns the rollback's instant and record. reverted_together: all instants that a restore
    reverts. publish: complete the rollback; as a part of a restore it stays inflight.
    """
    rollback, requests = _request_rollback(table, timeline, target, None, reverted_together)
    reopen_instant(table, timeline, target)
    rollback.begin()
    opened = _open_instant(table, timeline, target)
    return rollback.time, _execute(rollback, opened, requests, publish=publish)


def reopen_instant(table: TableSnapshot, timeline: Timeline, target: Instant) -> None:
    """Make a completed instant inflight again, so readers no longer see it.

    Raises `CommitConflict` if this writer has lost its lock: another one may have committed since.
    """
    if target.is_completed:
        table.lock_manager.check_held()
        _open_instant(table, timeline, target).unpublish()


def resume(
    table: TableSnapshot,
    timeline: Timeline,
    pending: Instant,
    *,
    publish: bool = True,
    for_restore: bool = False,
) -> Record | None:
    """Execute a pending rollback by its plan and return the record.

    A rollback without a plan is removed, and so is a requested one whose write is complete, since
    it has changed nothing. The plan of a service is kept, as in Hudi
    (`HoodieTable.rollbackInflightInstant`, 1.2.0), unless `for_restore`. Raises `CommitConflict`
    for an inflight rollback of a completed commit.
    """
    target = target_of(timeline, pending)
    rollback = PendingInstant(table.with_timeline(timeline), pending.requested, ROLLBACK)
    if target is None:
        rollback.remove()
        return None
    write = timeline.find(*target)
    if write is not None and write.is_completed:
        if pending.state is State.REQUESTED:
            rollback.withdraw_request()
            return None
        msg = f"{pending} would roll back {write}, which pyhudi does not support"
        raise CommitConflict(msg, hint="Complete the rollback with Apache Hudi first.")
    if pending.state is State.REQUESTED:
        rollback.begin()
    requests = read_plan(timeline, pending)
    if write is None:
        return _execute(rollback, PendingInstant(table, *target), requests, publish=publish)
    # Writers may depend on a service's plan: up to table version 6, log files bear its instant.
    is_service = write.action in (COMPACTION, LOG_COMPACTION, CLUSTERING)
    keeps_plan = not for_restore and (is_service or timeline.is_clustering(write))
    failed = _open_instant(table, timeline, write)
    return _execute(rollback, failed, requests, publish=publish, keeps_plan=keeps_plan)


def target_of(timeline: Timeline, pending: Instant) -> tuple[str, str] | None:
    """Return time and action of the instant that a pending rollback undoes; None without a plan."""
    target = (timeline.plan(pending) or {}).get("instantToRollback")
    return None if target is None else (target["commitTime"], target["action"])


def read_plan(timeline: Timeline, pending: Instant) -> list[RollbackRequest]:
    """Return the requests of a pending rollback."""
    plan = timeline.plan(pending) or {}
    return [_request(record) for record in plan.get("RollbackRequests") or ()]


def _request_rollback(
    table: TableSnapshot,
    timeline: Timeline,
    target: Instant,
    time: str | None,
    reverted_together: Collection[str] = (),
) -> tuple[PendingInstant, list[RollbackRequest]]:
    version = table.config.version
    requests = plan_rollback(table.storage, version, timeline, target, reverted_together)
    rollback = PendingInstant(
        table.with_timeline(timeline), time or table.generator.next(), ROLLBACK
    )
    record = _plan_record(table.storage.native.uri, target, requests)
    rollback.request(serde.encode_container("HoodieRollbackPlan", record, table.clock))
    return rollback, requests


def _open_instant(table: TableSnapshot, timeline: Timeline, target: Instant) -> PendingInstant:
    """Return the instant with the action of its pending files."""
    return PendingInstant(table, target.requested, timeline.files(target)[0].action)


def _execute(
    rollback: PendingInstant,
    target: PendingInstant,
    requests: Sequence[RollbackRequest],
    *,
    publish: bool,
    keeps_plan: bool = False,
) -> Record:
    table, time = rollback.table, rollback.time
    storage = table.storage
    started = table.clock.ticks_ms()
    undone_parts = []
    for request in requests:
        # If this writer stalled, another writer may have executed it.
        table.lock_manager.check_held()
        undone_parts.append(_execute_request(table, request, time, target.time))
    partitions = {request.partition for request in requests}
    # Files with the instant of a kept plan may belong to active writers.
    failed = "" if keeps_plan else target.time
    remove_staged_of(storage, partitions, failed, table.clock)
    if "" in partitions and table.config.partition_fields:
        _remove_root_metadata(storage)
    took_ms = table.clock.ticks_ms() - started
    record = _metadata_record(time, target.time, target.action, took_ms, undone_parts)
    for participant in table.participants:
        participant.on_rollback(table, Rollback(time, target.time, record))
    if publish:
        rollback.complete(serde.encode_container("HoodieRollbackMetadata", record, table.clock))
    if keeps_plan:
        target.withdraw_attempt()
    else:
        target.remove([request.path(name) for request in requests for name in request.names])
    storage.delete(heartbeat.path_of(target.time))
    return record


def _remove_root_metadata(storage: Storage) -> None:
    """Remove the partition metadata of the table's base directory, which would hide all partitions.

    Hudi's procedure `run_clustering` writes it if keys are virtual and it does not get the writers'
    options (1.2.0).
    """
    files = storage.list_dir()[1]
    if not any(parse_base_name(file.name) or parse_log_name(file.name) for file in files):
        storage.delete_all(file.path for file in files if is_partition_metadata(file.name))


def _execute_request(
    table: TableSnapshot, request: RollbackRequest, time: str, target: str
) -> dict[str, Any]:
    """Execute one request; return its part of a `HoodieRollbackPartitionMetadata`."""
    storage = table.storage
    storage.delete_all(request.path(name) for name in request.files)
    root = storage.native.uri
    commands: dict[str, int] = {}
    if request.log_blocks:
        block = _native.rollback_block(time, target)
        path = _append_command(table, request, block)
        commands[_absolute(root, path)] = len(block)
    return {
        "partitionPath": request.partition,
        "successDeleteFiles": [_absolute(root, request.path(name)) for name in request.files],
        "failedDeleteFiles": [],
        "rollbackLogFiles": commands,
        "logFilesFromFailedCommit": dict(request.log_blocks),
    }


def _append_command(table: TableSnapshot, request: RollbackRequest, block: bytes) -> str:
    """Write the command block as the next log version of the request's slice; return its path.

    Returns an existing block of a failed or stalled writer. Raises `CommitConflict` if this writer
    lost the lock, and removes its block if another writer wrote one.
    """
    storage = table.storage
    existing, version = _commands(storage, request, block)
    if existing:
        return existing[0]
    while True:
        name = log_file_name(request.file_id, request.base_instant, version, COMMAND_LOG_TOKEN)
        path = request.path(name)
        if storage.put_if_absent(path, block):
            break
        if storage.read_or_none(path) == block:
            return path
        version += 1
    try:
        table.lock_manager.check_held()
    except CommitConflict:
        if _commands(storage, request, block)[0] != [path]:
            storage.delete(path)
        raise
    return path


def _commands(storage: Storage, request: RollbackRequest, block: bytes) -> tuple[list[str], int]:
    """Return the log files of the request's slice that contain the block, and the next version."""
    paths, version = [], 1
    for file in storage.list_dir(request.partition)[1]:
        log = parse_log_name(file.name)
        if not log or (log.file_id, log.instant) != (request.file_id, request.base_instant):
            continue
        is_command = log.write_token == COMMAND_LOG_TOKEN and file.size == len(block)
        if is_command and storage.read(file.path) == block:
            paths.append(file.path)
        version = max(version, log.version + 1)
    return paths, version


# --- records --------------------------------------------------------------------------------------


def _plan_record(uri: str, target: Instant, requests: Iterable[RollbackRequest]) -> dict[str, Any]:
    return {
        "instantToRollback": {"commitTime": target.requested, "action": target.action},
        "RollbackRequests": [
            {
                "partitionPath": request.partition,
                "fileId": request.file_id,
                "latestBaseInstant": request.base_instant,
                "filesToBeDeleted": [_absolute(uri, request.path(name)) for name in request.files],
                "logBlocksToBeDeleted": dict(request.log_blocks),
            }
            for request in requests
        ],
        "version": 1,
    }


def _request(record: Mapping[str, Any]) -> RollbackRequest:
    """Parse a request of any Hudi release. Paths are relative, since the table may have moved."""
    files = record.get("filesToBeDeleted") or ()
    return RollbackRequest(
        partition=record["partitionPath"],
        file_id=record.get("fileId") or "",
        base_instant=record.get("latestBaseInstant") or "",
        files=tuple(file_name_of(path) for path in files),
        log_blocks=dict(record.get("logBlocksToBeDeleted") or {}),
    )


def _metadata_record(
    time: str, target: str, action: str, took_ms: int, parts: Iterable[dict[str, Any]]
) -> dict[str, Any]:
    partitions: dict[str, dict[str, Any]] = {}
    for part in parts:
        merged = partitions.setdefault(part["partitionPath"], part)
        if merged is not part:
            merged["successDeleteFiles"] += part["successDeleteFiles"]
            merged["rollbackLogFiles"].update(part["rollbackLogFiles"])
            merged["logFilesFromFailedCommit"].update(part["logFilesFromFailedCommit"])
    return {
        "startRollbackTime": time,
        "timeTakenInMillis": took_ms,
        "totalFilesDeleted": sum(len(p["successDeleteFiles"]) for p in partitions.values()),
        "commitsRollback": [target],
        "partitionMetadata": partitions,
        "version": 1,
        "instantsRollback": [{"commitTime": target, "action": action}],
    }


def _absolute(uri: str, path: str) -> str:
    return f"{uri.rstrip('/')}/{path}"
