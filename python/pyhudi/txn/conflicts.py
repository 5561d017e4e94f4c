"""Conflict checks: whether a write still owns its instant, and nothing it relied on has changed.

All checks run in the critical section in which the write completes, on a timeline that was loaded
there. Two writes conflict if they change the same file group, or if one changes rows, a schema or
properties that the other relied on. The result is serializable in the order of completion. The
candidates are those of all Hudi releases together (0.15.0, 1.0.2, 1.2.0 differ,
`ConcurrentOperation` and the conflict resolution strategies), since an unnecessary retry is
harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TypeAlias

from pyhudi.cached_property import cached_property
from pyhudi.config.actions import (
    CLUSTERING,
    COMMIT,
    COMPACTION,
    DELTA_COMMIT,
    LOG_COMPACTION,
    REPLACE_COMMIT,
    RESTORE,
    ROLLBACK,
    SAVEPOINT,
    Instant,
    State,
)
from pyhudi.config.extra_metadata import (
    STREAM_BATCHES,
    commit_ids,
    stream_batch,
    stream_batches_by_id,
)
from pyhudi.config.file_names import parse_base_name, parse_log_name
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CommitConflict, retryable_conflict
from pyhudi.schema.table_schema import TableSchema, table_schema
from pyhudi.slices import markers
from pyhudi.slices.slice_builder import GroupKey, groups_of_plan
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.txn import heartbeat, zombie_commits
from pyhudi.txn.rollback import target_of

ROW_PRESERVING_OPERATIONS = frozenset({"COMPACT", "LOG_COMPACT", "CLUSTER", "ALTER_SCHEMA"})
"""Operations that leave every row as it is."""

FileGroups = frozenset[tuple[str, str]]
"""Partition paths with file ids."""


@dataclass(frozen=True)
class ConcurrentCommits:
    """The commits that completed since a write was planned."""

    table: TableSnapshot
    """The current snapshot."""
    commits: tuple[tuple[Instant, CommitMetadata], ...]
    """Sorted by requested time."""

    @cached_property
    def changes(self) -> tuple[tuple[Instant, FileGroups], ...]:
        """The commits that changed rows, each with its file groups.

        A clustering that has since moved such rows counts too: its file groups hold them now.
        """
        changes: dict[Instant, FileGroups] = {}
        for instant, metadata in self.commits:
            groups = collect_written_file_groups(metadata)
            if groups and metadata.operation_type not in ROW_PRESERVING_OPERATIONS:
                changes[instant] = groups
        for instant, metadata in self.commits:
            moved = metadata.replaced if metadata.operation_type == "CLUSTER" else frozenset()
            if any(moved & groups for groups in changes.values()):
                changes[instant] = collect_written_file_groups(metadata)
        return tuple(
            (instant, changes[instant]) for instant, _ in self.commits if instant in changes
        )


CommitCheck: TypeAlias = Callable[[ConcurrentCommits], None]
"""Checks again what a write relied on; raises `CommitConflict` if that has changed."""


def reload_timeline(table: TableSnapshot) -> Timeline:
    """Reload the timeline in a critical section. Raises `CommitConflict` during a restore."""
    timeline = zombie_commits.load_timeline(table)
    check_may_begin(timeline)
    return timeline


def check_planned_commits_exist(seen: Timeline, now: Timeline) -> None:
    """Raise `CommitConflict` if a commit that a write was planned on was rolled back.

    That holds for a commit that became visible as pending only afterwards, too. It also holds for a
    planned compaction: up to table version 6, log files written under its plan would be lost.
    """
    missing = [planned for planned in seen.commits if not now.is_committed(planned.requested)]
    missing += [
        planned
        for planned in seen.pending(COMPACTION)
        if now.find(planned.requested, COMPACTION) is None
        and not now.is_before_start(planned.requested)
    ]
    for planned in missing:
        raise retryable_conflict(
            f"{planned}, which the write was planned on, was rolled back concurrently"
        )


def check_may_begin(timeline: Timeline) -> None:
    """Raise `CommitConflict` while the table is being restored. timeline: the current one."""
    for restore in timeline.pending(RESTORE):
        raise CommitConflict(f"{restore} is pending", hint="Write again when it is complete.")


def check_still_inflight(timeline: Timeline, instant: str, action: str) -> None:
    """Raise `CommitConflict` unless a write is still inflight and no writer rolls it back.

    Also raise if another action has the same requested time. timeline: the current one.
    """
    own = timeline.find(instant, action)
    states = {file.state for file in timeline.files(own)} if own is not None else set()
    if states != {State.REQUESTED, State.INFLIGHT}:
        what = "is complete already" if State.COMPLETED in states else "was rolled back"
        raise retryable_conflict(f"the {action} {instant} {what} by another writer")
    for rollback in timeline.pending(ROLLBACK):
        target = target_of(timeline, rollback)
        if target is not None and target[0] == instant:
            msg = f"another writer is rolling back the {action} {instant} as {rollback}"
            raise retryable_conflict(msg)
    for other in timeline.of_same_time(instant, action):
        raise retryable_conflict(f"{other} has the same time as the {action} {instant}")
    check_may_begin(timeline)


def check_markers(table: TableSnapshot, instant: str, mine: FileGroups) -> None:
    """Raise `CommitConflict` if an older active write has started files in the same file groups.

    Hudi checks before each marker (`SimpleDirectMarkerBasedDetectionStrategy`, 1.2.0); pyhudi
    checks once, when the file groups are known. mine: the file groups of this write.
    """
    storage = table.storage
    older = {pending for pending in markers.instants_with_markers(storage) if pending < instant}
    for other in heartbeat.live_instants(storage, older, table.clock) if mine else ():
        for marker in markers.read_all(storage, other) or ():
            base, log = parse_base_name(marker.name), parse_log_name(marker.name)
            file_id = base.file_id if base else log.file_id if log else ""
            if (marker.partition, file_id) in mine:
                msg = f"the write {other} is changing file group {file_id} of {marker.partition!r}"
                raise retryable_conflict(msg)


def commits_since_plan(table: TableSnapshot, now: Timeline, instant: str) -> ConcurrentCommits:
    """Return the commits that completed since a write was planned.

    table: the snapshot that the write was planned on. instant: the write's own. Raises
    `CommitConflict` if they cannot be determined, or a commit of the snapshot was rolled back.
    """
    seen = table.timeline
    check_planned_commits_exist(seen, now)
    before = {commit.requested for commit in seen.commits}
    _check_reaches(seen, now, instant)
    commits = (commit for commit in now.commits if commit.requested not in before)
    concurrent = tuple((commit, now.commit_metadata(commit)) for commit in commits)
    return ConcurrentCommits(table.with_timeline(now), concurrent)


def _check_reaches(seen: Timeline, now: Timeline, instant: str) -> None:
    """Raise `CommitConflict` if a commit may have completed and been archived since the plan."""
    start = now.first_active
    if start is None or not seen.instants:
        return
    newest = seen.latest_time() or ""
    missing = {
        pending.requested
        for pending in seen.pending()
        if pending.requested != instant and now.find(pending.requested, pending.action) is None
    }
    archived = now.archived_behind_saved if missing or not _last_stays(seen, now) else ()
    if (
        start > newest
        or any(time < start or time in archived for time in missing)
        or any(time > newest for time in archived)
    ):
        msg = "the timeline was archived past the instants that the write was planned on"
        raise retryable_conflict(msg)


def _last_stays(seen: Timeline, now: Timeline) -> bool:
    """Return whether the newest commit of `seen` keeps all later instants out of the archive.

    A commit with a savepoint does not (`hoodie.archive.beyond.savepoint`, `TimelineArchiverV2`,
    1.2.0).
    """
    last = seen.commits[-1] if seen.commits else None
    if last is None or now.find(last.requested, last.action) is None:
        return False
    return all(saved.requested != last.requested for saved in now.filter_completed(SAVEPOINT))


def check_file_group_conflicts(
    since: ConcurrentCommits,
    seen: Timeline,
    metadata: CommitMetadata,
    *,
    appends: bool = False,
    beats_clustering: bool = False,
) -> None:
    """Raise `CommitConflict` for a service or commit in the same file groups as a write.

    seen: the timeline that the write was planned on. metadata: what the write did. appends: other
    writers may append to the same file groups. beats_clustering: pending clusterings yield.
    """
    mine, appended = (
        collect_written_file_groups(metadata),
        _groups_appended_to(since.table.config, metadata),
    )
    if appends:
        replaced = (theirs.replaced for _, theirs in since.commits)
        mine -= appended - frozenset().union(*replaced)
    planned = {pending.requested for pending in seen.pending(COMPACTION)}
    for other, theirs in since.commits:
        common = mine & collect_written_file_groups(theirs)
        if theirs.operation_type == "COMPACT":
            # The write knows plans that are older; appended log files stay valid above the new base
            # file.
            common -= mine if other.requested in planned else appended
        elif theirs.operation_type == "LOG_COMPACT":
            common -= appended
        _refuse(other, common, "has changed")
    _check_plans(since.table.timeline, seen, mine, appended, beats_clustering=beats_clustering)


def _check_plans(
    now: Timeline, seen: Timeline, mine: FileGroups, appended: FileGroups, *, beats_clustering: bool
) -> None:
    """Raise `CommitConflict` for a service that was planned since and is still pending."""
    planned_on = {(i.requested, i.completed_action) for i in seen.instants}
    services = (
        COMPACTION,
        LOG_COMPACTION,
        *(() if beats_clustering else (CLUSTERING, REPLACE_COMMIT)),
    )
    for other in now.pending(*services):
        if (other.requested, other.completed_action) in planned_on:
            continue
        # An overwrite has no plan.
        common = mine.intersection(groups_of_plan(now.plan(other)))
        if other.action in (COMPACTION, LOG_COMPACTION):
            common -= appended
        _refuse(other, common, "is going to change")


def _refuse(other: Instant, common: FileGroups, does: str) -> None:
    for partition, file_id in sorted(common)[:1]:
        msg = f"{other} {does} file group {file_id} of partition {partition!r} concurrently"
        raise retryable_conflict(msg)


def _groups_appended_to(config: TableConfig, metadata: CommitMetadata) -> FileGroups:
    """File groups whose added log files stay valid above any base file written concurrently.

    Up to table version 6 a log file belongs to the base file that it was planned on.
    """
    if config.version.logs_named_by_base_instant:
        return frozenset()
    logs: set[tuple[str, str]] = set()
    rewritten: set[tuple[str, str]] = set()
    for partition, stats in metadata.partition_to_write_stats.items():
        for stat in stats:
            is_log = parse_log_name((stat.path or "").rsplit("/", 1)[-1]) is not None
            (logs if is_log else rewritten).add((partition, stat.file_id))
    return frozenset(logs - rewritten) - metadata.replaced


def check_writers(now: TableSnapshot, groups: Collection[GroupKey]) -> None:
    """Raise `CommitConflict` if an active writer changes file groups of a service that yields.

    Inflight files name what writers will change (`PreferWriterConflictResolutionStrategy`, 1.2.0);
    that of a bulk insert is empty, because it creates only new file groups.
    """
    timeline = now.timeline
    for other in timeline.pending(COMMIT, DELTA_COMMIT, REPLACE_COMMIT):
        if other.state is not State.INFLIGHT or timeline.is_clustering(other):
            continue
        common = collect_written_file_groups(timeline.workload(other)).intersection(groups)
        if common and heartbeat.live_instants(now.storage, {other.requested}, now.clock):
            _refuse(other, common, "is changing")


def check_idempotency(now: Timeline, metadata: CommitMetadata) -> None:
    """Raise `CommitConflict` if another write has committed the same `commit_id` or stream batch.

    The check before the write may be older than its plan.
    """
    extra = metadata.extra_metadata
    ids = commit_ids(extra, "the write")
    streams = stream_batches_by_id(extra, STREAM_BATCHES, "the write")
    batches = {stream: stream_batch(extra, stream, "the write") for stream in streams}
    for other in reversed(now.commits):
        if not ids and not batches:
            return
        theirs = now.commit_metadata(other).extra_metadata
        for commit_id in ids and ids & commit_ids(theirs, other):
            raise retryable_conflict(f"{other} is the same write {commit_id!r}")
        for stream in tuple(batches):
            last = stream_batch(theirs, stream, other)
            if last is not None and (batches.pop(stream) or 0) <= last:
                raise CommitConflict(
                    f"{other} already committed batch {last} of the stream {stream!r}"
                )


def check_schema(
    since: ConcurrentCommits, seen: TableSnapshot, instant: str, avro: str | None
) -> None:
    """Raise `CommitConflict` if the table's columns have changed since a write was planned.

    avro: the schema in the write's commit, None if it leaves the columns as they are. A write that
    changes them also conflicts with a commit that was requested later and completed earlier: the
    newest requested commit defines the columns, and would revert the change.
    """
    if not since.commits:
        return
    now = since.table
    before = table_schema(seen.storage, seen.config, seen.timeline)
    after = table_schema(now.storage, now.config, now.timeline)
    same = (before.avro, _ids(before)) == (after.avro, _ids(after))
    # The first commit may write the schema of the table's creation in a different form.
    if not same and (seen.timeline.commits or before.arrow != after.arrow):
        raise retryable_conflict(f"{since.commits[-1][0]} has changed the table's columns")
    for other, _ in since.commits if avro not in (None, before.avro) else ():
        if other.requested > instant:
            msg = f"{other} completed while this write was changing the table's columns"
            raise retryable_conflict(msg)


def _ids(schema: TableSchema) -> str:
    """The ids of the current columns alone: every commit adds itself to the earlier versions."""
    return "" if schema.history is None else schema.history.current


def check_config(table: TableSnapshot) -> None:
    """Raise `CommitConflict` if the table's properties have changed since it was opened."""
    now = TableConfig.load(table.storage, table.clock)
    if now.properties != table.config.properties:
        msg = "the table's properties have changed while it was written to"
        raise retryable_conflict(msg)


def collect_written_file_groups(metadata: CommitMetadata) -> FileGroups:
    """Return the file groups that a commit writes to or replaces."""
    written = {
        (partition, stat.file_id)
        for partition, stats in metadata.partition_to_write_stats.items()
        for stat in stats
    }
    return frozenset(written) | metadata.replaced


def passes(check: Callable[[], None]) -> bool:
    """Return whether a check raises no `CommitConflict`."""
    try:
        check()
    except CommitConflict:
        return False
    return True
