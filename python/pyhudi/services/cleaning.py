"""Cleaning: file slices that newer ones have replaced for long enough go.

The policy is KEEP_LATEST_COMMITS. What is planned and carried out is the same for a data table and
for a metadata table; so far pyhudi cleans metadata tables alone. Sources: `CleanPlanner`,
`CleanActionExecutor` (Hudi 0.15.0, 1.2.0).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pyhudi.config.actions import CLEAN, Instant, State
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.table import Table
from pyhudi.timeline import Timeline, content
from pyhudi.txn.open_instant import OpenInstant

_POLICY = "KEEP_LATEST_COMMITS"
_FORM = 2
"""Version of plan and record: paths as `HoodieCleanFileInfo`."""


def clean(
    table: Table, horizon: Instant, instant: str, partitions: Collection[str] | None = None
) -> str | None:
    """Removes what no query as of a commit or later reads; None where there is nothing.

    horizon: that commit, as `oldest_retained` gives it. instant: of the clean. partitions: in
    these alone, None for all.
    """
    files = _outdated(table, horizon, partitions)
    if not files:
        return None
    plan = _plan(table, horizon, files)
    action = OpenInstant(table, instant, CLEAN)
    action.request(content.encode_container("HoodieCleanerPlan", plan, table.clock))
    _carry_out(action, plan, begun=False)
    return instant


def complete_pending(table: Table) -> list[str]:
    """Carries out the cleans that are pending, by their plans; their instants."""
    completed = []
    for pending in table.timeline.pending(CLEAN):
        plan = table.timeline.plan(pending)
        if plan is None:
            continue
        action = OpenInstant(table, pending.requested, CLEAN)
        _carry_out(action, plan, begun=pending.state is State.INFLIGHT)
        completed.append(pending.requested)
    return completed


# --- planning -------------------------------------------------------------------------------------


def oldest_retained(timeline: Timeline, retained: int) -> Instant | None:
    """The oldest commit whose slices stay, whenever they are cleaned; None with few commits.

    retained: so many commits stay, and those that pending instants may need.
    """
    commits = timeline.commits
    if len(commits) <= retained:
        return None
    horizon = commits[-retained]
    pending = [instant.requested for instant in timeline.pending() if instant.action != CLEAN]
    if not pending:
        return horizon
    before = [commit for commit in commits if commit.requested < min(pending)]
    return min((horizon, before[-1]), key=lambda commit: commit.requested) if before else None


def _outdated(
    table: Table, horizon: Instant, partitions: Collection[str] | None
) -> dict[str, list[str]]:
    """Names of files to remove, by partition."""
    view = FileSystemView(table.storage, table.config, table.timeline, partitions)
    groups: dict[tuple[str, str], list[FileSlice]] = {}
    for file_slice in view.all_slices():
        groups.setdefault((file_slice.partition, file_slice.file_id), []).append(file_slice)
    found: dict[str, list[str]] = {}
    for (partition, _), slices in groups.items():
        gone = slices_before(slices, horizon.requested)
        names = [name for file_slice in gone for name in _names(file_slice)]
        if names:
            found.setdefault(partition, []).extend(names)
    return found


def slices_before(slices: Iterable[FileSlice], horizon: str) -> list[FileSlice]:
    """Slices of one file group, newest first, that no query as of the horizon or later reads."""
    newest, *others = slices
    older = [other for other in others if other.base_instant < horizon]
    # The first of them is what a query as of the horizon reads, unless the newest one is.
    return older if newest.base_instant < horizon else older[1:]


def _names(file_slice: FileSlice) -> list[str]:
    base = [file_slice.base.name] if file_slice.base else []
    return [*base, *(log.name for log in file_slice.logs)]


def _plan(table: Table, horizon: Instant, files: Mapping[str, list[str]]) -> dict[str, Any]:
    root = table.storage.native.uri.rstrip("/")
    return {
        "earliestInstantToRetain": {
            "timestamp": horizon.requested,
            "action": horizon.action,
            "state": State.COMPLETED.value,
        },
        "lastCompletedCommitTimestamp": table.timeline.commits[-1].requested,
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


def _carry_out(action: OpenInstant, plan: Mapping[str, Any], *, begun: bool) -> None:
    table = action.table
    started = table.clock.now_ms()
    if not begun:
        repeats = table.config.version.clean_inflight_has_plan
        data = content.encode_container("HoodieCleanerPlan", plan, table.clock)
        action.begin(data if repeats else b"")
    done = {
        partition: [_name(file) for file in files]
        for partition, files in (plan.get("filePathsToBeDeletedPerPartition") or {}).items()
    }
    for partition, names in done.items():
        for name in names:
            table.storage.delete(f"{partition}/{name}")
    record = _record(action.time, plan, done, table.clock.now_ms() - started)
    action.complete(content.encode_container("HoodieCleanMetadata", record, table.clock))


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
