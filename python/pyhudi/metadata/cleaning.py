"""Cleaning the metadata table: slices that newer ones have replaced for long enough go.

The policy is KEEP_LATEST_COMMITS, as for every metadata table whose data table does not choose
another. Sources: `CleanPlanner`, `CleanActionExecutor`, `HoodieMetadataWriteUtils` (Hudi 0.15.0,
1.2.0). The data table's own cleaning is not done here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pyhudi.config.actions import CLEAN, COMMIT, Instant, State
from pyhudi.metadata.compaction import service_instant
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.timeline import Timeline, content
from pyhudi.txn.table import Table

SUFFIX = "002"
"""What a clean's instant adds to that of the last delta commit, up to table version 6."""
RETAINED = 20
"""Commits whose slices stay (`DEFAULT_METADATA_CLEANER_COMMITS_RETAINED`)."""
_POLICY = "KEEP_LATEST_COMMITS"
_SINCE_COMPACTION = 3
"""Instants after a compaction before anything is cleaned: readers may still read what it read."""
_FORM = 2
"""Version of plan and record: paths as `HoodieCleanFileInfo`."""


def clean(own: Table, partitions: Collection[str]) -> str | None:
    """Removes what is outdated; the clean's instant, None where nothing is."""
    horizon = _horizon(own)
    if horizon is None:
        return None
    files = _outdated(own, horizon, partitions)
    instant = service_instant(own, SUFFIX)
    known = {one.requested for one in own.timeline.instants}
    if not files or instant is None or instant in known:
        return None
    plan = _plan(own, horizon, files)
    data = content.encode_container("HoodieCleanerPlan", plan, own.clock)
    own.config.layout.request(own.storage, instant, CLEAN, data)
    _carry_out(own, instant, plan, begun=False)
    return instant


def complete_pending(own: Table) -> bool:
    """Carries out the cleans that are pending, by their plans. Whether there were any."""
    pending = own.timeline.pending(CLEAN)
    for instant in pending:
        plan = own.timeline.plan(instant)
        if plan is not None:
            begun = instant.state is State.INFLIGHT
            _carry_out(own, instant.requested, plan, begun=begun)
    return bool(pending)


# --- planning -------------------------------------------------------------------------------------


def _horizon(own: Table) -> Instant | None:
    """The oldest commit whose slices must stay; None where it is too early to clean."""
    timeline = own.timeline
    compaction = next(reversed(timeline.completed(COMMIT)), None)
    if compaction is not None:
        after = [one for one in timeline.completed() if one.requested > compaction.requested]
        if len(after) < _SINCE_COMPACTION:
            return None
    return oldest_retained(timeline)


def oldest_retained(timeline: Timeline) -> Instant | None:
    """The oldest commit whose slices stay, whenever they are cleaned; None with few commits."""
    commits = timeline.commits
    if len(commits) <= RETAINED:
        return None
    horizon = commits[-RETAINED]
    pending = [one.requested for one in timeline.pending() if one.action != CLEAN]
    before = [one for one in commits if one.requested < min(pending)] if pending else [horizon]
    return min((horizon, before[-1]), key=lambda one: one.requested) if before else None


def _outdated(own: Table, horizon: Instant, partitions: Collection[str]) -> dict[str, list[str]]:
    """Names of files to remove, by partition."""
    view = FileSystemView(own.storage, own.config, own.timeline, set(partitions))
    groups: dict[tuple[str, str], list[FileSlice]] = {}
    for one in view.all_slices():
        groups.setdefault((one.partition, one.file_id), []).append(one)
    found: dict[str, list[str]] = {}
    for (partition, _), slices in groups.items():
        names = [name for one in _before(slices, horizon.requested) for name in _names(one)]
        if names:
            found.setdefault(partition, []).extend(names)
    return found


def _before(slices: Iterable[FileSlice], horizon: str) -> list[FileSlice]:
    """Slices, newest first, that no query as of the horizon or later reads."""
    newest, *others = slices
    older = [one for one in others if one.base_instant < horizon]
    # The first of them is what a query as of the horizon reads, unless the newest one is.
    return older if newest.base_instant < horizon else older[1:]


def _names(one: FileSlice) -> list[str]:
    return [*([one.base.name] if one.base else []), *(log.name for log in one.logs)]


def _plan(own: Table, horizon: Instant, files: Mapping[str, list[str]]) -> dict[str, Any]:
    root = own.storage.native.uri.rstrip("/")
    return {
        "earliestInstantToRetain": {
            "timestamp": horizon.requested,
            "action": horizon.action,
            "state": State.COMPLETED.value,
        },
        "lastCompletedCommitTimestamp": own.timeline.commits[-1].requested,
        "policy": _POLICY,
        "filesToBeDeletedPerPartition": {},
        "version": _FORM,
        "filePathsToBeDeletedPerPartition": {
            partition: [
                {"filePath": f"{root}/{partition}/{name}", "isBootstrapBaseFile": False}
                for name in names
            ]
            for partition, names in files.items()
        },
        "partitionsToBeDeleted": [],
        "extraMetadata": {},
    }


# --- carrying out ---------------------------------------------------------------------------------


def _carry_out(own: Table, instant: str, plan: Mapping[str, Any], *, begun: bool) -> None:
    layout = own.config.layout
    started = own.clock.now_ms()
    if not begun:
        repeats = own.config.version.clean_inflight_has_plan
        data = content.encode_container("HoodieCleanerPlan", plan, own.clock)
        layout.inflight(own.storage, instant, CLEAN, data if repeats else b"")
    done = {
        partition: [_name(file) for file in files]
        for partition, files in (plan.get("filePathsToBeDeletedPerPartition") or {}).items()
    }
    for partition, names in done.items():
        for name in names:
            own.storage.delete(f"{partition}/{name}")
    record = _record(instant, plan, done, own.clock.now_ms() - started)
    data = content.encode_container("HoodieCleanMetadata", record, own.clock)
    layout.complete(own.storage, instant, CLEAN, own.generator.next(), data)


def _name(file: Mapping[str, Any]) -> str:
    return str(file["filePath"]).rsplit("/", 1)[-1]


def _record(
    instant: str, plan: Mapping[str, Any], done: Mapping[str, list[str]], took_ms: int
) -> dict[str, Any]:
    retained = plan.get("earliestInstantToRetain") or {}
    return {
        "startCleanTime": instant,
        "timeTakenInMillis": took_ms,
        "totalFilesDeleted": sum(map(len, done.values())),
        "earliestCommitToRetain": retained.get("timestamp") or "",
        "lastCompletedCommitTimestamp": plan.get("lastCompletedCommitTimestamp") or "",
        "partitionMetadata": {
            partition: {
                "partitionPath": partition,
                "policy": plan.get("policy") or _POLICY,
                "deletePathPatterns": names,
                "successDeleteFiles": names,
                "failedDeleteFiles": [],
                "isPartitionDeleted": False,
            }
            for partition, names in done.items()
        },
        "version": _FORM,
        "bootstrapPartitionMetadata": {},
        "extraMetadata": {},
    }
