"""Rolling back a failed write: what has to go, the plan, the deed, and the record of it.

A rollback is an instant of its own: requested (with the plan), inflight, completed (with what was
done); then the failed instant's timeline files go, and last its markers. A writer that dies
anywhere in between leaves a pending rollback, which is carried out again by the same plan. Up to
table version 6 the blocks that a failed delta commit appended are called off by a command block in
a new log file, from 8 on its log files are deleted like its base files. Completed instants are not
rolled back here. Sources: `MarkerBasedRollbackStrategy`, `ListingBasedRollbackStrategy`,
`RollbackHelper` (1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyhudi import _native
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.metadata import upkeep
from pyhudi.timeline import content
from pyhudi.timeline.instants import ROLLBACK, Instant, State
from pyhudi.timeline.metadata import NO_PREVIOUS_COMMIT, CommitMetadata
from pyhudi.txn import markers
from pyhudi.view.listing import walk_partitions
from pyhudi.view.names import BASE_EXTENSION, log_file_name, parse_base_name, parse_log_name

if TYPE_CHECKING:
    from pyhudi.clock import Clock
    from pyhudi.config import TableConfig
    from pyhudi.storage import Storage
    from pyhudi.timeline import InstantGenerator, Timeline
    from pyhudi.version import TableVersion

COMMAND_LOG_TOKEN = "1-0-1"  # noqa: S105 - Hudi's write token of a log that no task wrote
HEARTBEAT_FOLDER = ".hoodie/.heartbeat"


@dataclass(frozen=True)
class RollbackRequest:
    """One thing a rollback does: delete files, or call off what was appended to a slice's logs."""

    partition: str
    file_id: str = ""
    base_instant: str = ""
    """Base instant of the slice whose log blocks are called off; else the failed instant."""
    files: tuple[str, ...] = ()
    """Names of the files to delete."""
    log_blocks: Mapping[str, int] = field(default_factory=dict)
    """Log file names with blocks to call off, and their sizes."""

    def path(self, name: str) -> str:
        """A file of the request's partition, relative to the table."""
        return f"{self.partition}/{name}" if self.partition else name


@dataclass(frozen=True)
class RollbackContext:
    """What a rollback works with."""

    storage: Storage
    config: TableConfig
    generator: InstantGenerator
    clock: Clock


# --- planning -------------------------------------------------------------------------------------


def plan_rollback(
    storage: Storage, version: TableVersion, timeline: Timeline, target: Instant
) -> list[RollbackRequest]:
    """What has to be undone of a pending write: by its markers, or by listing where it has none.

    An instant that never got beyond requested wrote nothing.
    """
    marked = markers.read_all(storage, target.requested)
    if marked is not None:
        return requests_by_markers(storage, version, target.requested, marked)
    if target.state is State.REQUESTED:
        return []
    profile = CommitMetadata.from_record(timeline.inflight(target) or {})
    return requests_by_listing(storage, version, target.requested, profile)


def requests_by_markers(
    storage: Storage, version: TableVersion, target: str, marked: Iterable[markers.Marker]
) -> list[RollbackRequest]:
    """One request a marked file; none for blocks of a log file that was never made."""
    requests: list[RollbackRequest] = []
    for marker in marked:
        if marker.kind == "APPEND":
            _check_appends(version, marker, target)
            log = parse_log_name(marker.name)
            if log is None:
                requests += _of_slice(storage, marker, target)
                continue
            if log.instant != target:
                requests += _call_off(
                    storage, marker.partition, log.file_id, log.instant, marker.name
                )
                continue
        requests.append(
            RollbackRequest(marker.partition, _file_id(marker.name), target, files=(marker.name,))
        )
    return requests


def _check_appends(version: TableVersion, marker: markers.Marker, target: str) -> None:
    """From version 8 on nothing is appended; what such a marker would mean there is not known."""
    if not version.rollback_appends_command:
        msg = f"in version {version.code} there is no APPEND marker as {target} has: {marker.path}"
        raise UnsupportedTableFeature(msg, hint="Let Apache Hudi roll this write back.")


def _of_slice(storage: Storage, marker: markers.Marker, target: str) -> list[RollbackRequest]:
    """What undoes an append whose marker names the slice's base file, not the log file.

    Releases before 0.15 mark so. The base file belongs to a commit, and must stay.
    """
    base = parse_base_name(marker.name)
    if base is None:
        msg = f"a marker of instant {target} names {marker.path}, which is no data file"
        raise UnsupportedTableFeature(msg, hint="Let Apache Hudi roll this write back.")
    logs = [
        file.name
        for file in storage.list_dir(marker.partition)[1]
        if (log := parse_log_name(file.name)) is not None
        and (log.file_id, log.instant) == (base.file_id, base.instant)
    ]
    if not logs:
        return []
    if base.instant == target:
        return [RollbackRequest(marker.partition, base.file_id, target, files=tuple(logs))]
    blocks = dict.fromkeys(logs, 1)
    return [RollbackRequest(marker.partition, base.file_id, base.instant, log_blocks=blocks)]


def _call_off(
    storage: Storage, partition: str, file_id: str, base_instant: str, name: str
) -> list[RollbackRequest]:
    request = RollbackRequest(partition, file_id, base_instant, log_blocks={name: 1})
    return [request] if storage.exists(request.path(name)) else []


def requests_by_listing(
    storage: Storage, version: TableVersion, target: str, profile: CommitMetadata
) -> list[RollbackRequest]:
    """One request a file that bears the failed instant, and one a slice it may have appended to.

    profile: what the failed write said it would do, from its inflight file.
    """
    appended = {
        (partition, stat.file_id): stat.prev_commit
        for partition, stats in profile.partition_to_write_stats.items()
        for stat in stats
        if stat.file_id and stat.prev_commit != NO_PREVIOUS_COMMIT
    }
    requests = []
    for partition, files in walk_partitions(storage):
        names = [file.name for file in files]
        requests += [
            RollbackRequest(partition, files=(name,)) for name in names if _instant(name) == target
        ]
        if version.rollback_appends_command:
            requests += _call_off_listed(partition, names, target, appended)
    return requests


def _call_off_listed(
    partition: str, names: list[str], target: str, appended: Mapping[tuple[str, str], str]
) -> list[RollbackRequest]:
    """A request for each slice with logs that the failed write meant to append to."""
    logs: dict[tuple[str, str], dict[str, int]] = {}
    for name in names:
        log = parse_log_name(name)
        if log is None or log.instant == target:
            continue
        if appended.get((partition, log.file_id)) == log.instant:
            logs.setdefault((log.file_id, log.instant), {})[name] = 1
    return [
        RollbackRequest(partition, file_id, base_instant, log_blocks=found)
        for (file_id, base_instant), found in logs.items()
    ]


def _file_id(name: str) -> str:
    return name.removeprefix(".").split("_", 1)[0]


def _instant(name: str) -> str | None:
    # The metadata table's base files are HFiles.
    extension = "hfile" if name.endswith(".hfile") else BASE_EXTENSION
    parsed = parse_log_name(name) or parse_base_name(name, extension)
    return None if parsed is None else parsed.instant


# --- carrying out ---------------------------------------------------------------------------------


def roll_back(
    context: RollbackContext, timeline: Timeline, target: Instant, *, time: str | None = None
) -> str:
    """Rolls back a pending write. Returns the rollback's own instant.

    time: that instant; None takes a new one.
    """
    config = context.config
    requests = plan_rollback(context.storage, config.version, timeline, target)
    time = time or context.generator.next()
    record = _plan_record(context.storage.native.uri, target, requests)
    plan = content.encode_container("HoodieRollbackPlan", record, context.clock)
    config.layout.request(context.storage, time, ROLLBACK, plan)
    config.layout.inflight(context.storage, time, ROLLBACK)
    _carry_out(context, time, target.requested, target.action, requests)
    return time


def resume(context: RollbackContext, timeline: Timeline, pending: Instant) -> None:
    """Carries out a pending rollback by the plan it has; one that has none is taken away."""
    plan = timeline.plan(pending)
    layout = context.config.layout
    if plan is None or plan.get("instantToRollback") is None:
        layout.remove(context.storage, pending.requested, ROLLBACK, State.INFLIGHT)
        layout.remove(context.storage, pending.requested, ROLLBACK, State.REQUESTED)
        return
    if pending.state is State.REQUESTED:
        layout.inflight(context.storage, pending.requested, ROLLBACK)
    target = plan["instantToRollback"]
    requests = [_request(record) for record in plan.get("RollbackRequests") or ()]
    _carry_out(context, pending.requested, target["commitTime"], target["action"], requests)


def _carry_out(
    context: RollbackContext,
    time: str,
    target: str,
    action: str,
    requests: Iterable[RollbackRequest],
) -> None:
    storage, layout = context.storage, context.config.layout
    started = context.clock.now_ms()
    done = [_undo(storage, request, time, target) for request in requests]
    record = _metadata_record(time, target, action, context.clock.now_ms() - started, done)
    metadata = content.encode_container("HoodieRollbackMetadata", record, context.clock)
    upkeep.record_rollback(context, time, target, record)
    layout.complete(storage, time, ROLLBACK, context.generator.next(), metadata)
    layout.remove(storage, target, action, State.INFLIGHT)
    layout.remove(storage, target, action, State.REQUESTED)
    markers.delete_all(storage, target)
    storage.delete(f"{HEARTBEAT_FOLDER}/{target}")


def _undo(storage: Storage, request: RollbackRequest, time: str, target: str) -> dict[str, Any]:
    """Does one request; returns its part of a `HoodieRollbackPartitionMetadata`."""
    for name in request.files:
        storage.delete(request.path(name))
    root = storage.native.uri
    commands: dict[str, int] = {}
    if request.log_blocks:
        block = _native.rollback_block(time, target)
        path = _append_command(storage, request, block)
        commands[_absolute(root, path)] = len(block)
    return {
        "partitionPath": request.partition,
        "successDeleteFiles": [_absolute(root, request.path(name)) for name in request.files],
        "failedDeleteFiles": [],
        "rollbackLogFiles": commands,
        "logFilesFromFailedCommit": dict(request.log_blocks),
    }


def _append_command(storage: Storage, request: RollbackRequest, block: bytes) -> str:
    """Writes the command block as the next log version of the request's slice; returns its path."""
    logs = (parse_log_name(file.name) for file in storage.list_dir(request.partition)[1])
    versions = [
        log.version
        for log in logs
        if log and (log.file_id, log.instant) == (request.file_id, request.base_instant)
    ]
    version = max(versions, default=0) + 1
    while True:
        name = log_file_name(request.file_id, request.base_instant, version, COMMAND_LOG_TOKEN)
        if storage.put_if_absent(request.path(name), block):
            return request.path(name)
        version += 1


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
    """A request as any Hudi release planned it; the table may have been moved since."""
    files = record.get("filesToBeDeleted") or ()
    return RollbackRequest(
        partition=record["partitionPath"],
        file_id=record.get("fileId") or "",
        base_instant=record.get("latestBaseInstant") or "",
        files=tuple(path.rsplit("/", 1)[-1] for path in files),
        log_blocks=dict(record.get("logBlocksToBeDeleted") or {}),
    )


def _metadata_record(
    time: str, target: str, action: str, took_ms: int, done: Iterable[dict[str, Any]]
) -> dict[str, Any]:
    partitions: dict[str, dict[str, Any]] = {}
    for part in done:
        known = partitions.setdefault(part["partitionPath"], part)
        if known is not part:
            known["successDeleteFiles"] += part["successDeleteFiles"]
            known["rollbackLogFiles"].update(part["rollbackLogFiles"])
            known["logFilesFromFailedCommit"].update(part["logFilesFromFailedCommit"])
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
