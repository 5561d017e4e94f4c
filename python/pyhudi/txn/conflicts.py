"""Conflict checks of a write: its instant is still inflight, and what it depends on is unchanged.

All checks run in the critical section in which the write completes, on a timeline that was loaded
there. Two writes conflict if they change the same file group, or if one changes rows, a schema or
properties on which the other depends. So writes are serializable in the order of completion. The
candidates are those of Hudi 0.15.0, 1.0.2 and 1.2.0 together (`ConcurrentOperation` and the
conflict resolution strategies), since an unnecessary retry is harmless.
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
from pyhudi.config.file_names import file_name_of, parse_base_name, parse_log_name
from pyhudi.config.streamer_checkpoint import AFTER, checkpoint_of
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
"""Operations that change no row."""

FileGroups = frozenset[tuple[str, str]]
"""Partition paths with file ids."""


@dataclass(frozen=True)
class ConcurrentCommits:
    """The commits that completed since a write was planned."""

    table: TableSnapshot
    """The current snapshot."""
    commits: tuple[tuple[Instant, CommitMetadata], ...]
    """In the order of requested times."""

    @cached_property
    def changes(self) -> tuple[tuple[Instant, FileGroups], ...]:
        """The commits that changed rows, each with its file groups.

        A later clustering of such rows counts, too, since its file groups contain them now.
        """
        changes: dict[Instant, FileGroups] = {}
        for instant, metadata in self.commits:
            groups = collect_written_file_groups(metadata)
            if groups and metadata.operation_type not in ROW_PRESERVING_OPERATIONS:
                changes[instant] = groups
        for instant, metadata in self.commits:
            clustered = metadata.replaced if metadata.operation_type == "CLUSTER" else frozenset()
            if any(clustered & groups for groups in changes.values()):
                changes[instant] = collect_written_file_groups(metadata)
        return tuple(
            (instant, changes[instant]) for instant, _ in self.commits if instant in changes
        )


CommitCheck: TypeAlias = Callable[[ConcurrentCommits], None]
"""Repeats a read on which a write depends; raises `CommitConflict` if the result has changed."""


def reload_timeline(table: TableSnapshot) -> Timeline:
    """Reload the timeline in a critical section. Raises `CommitConflict` during a restore."""
    timeline = zombie_commits.load_timeline(table)
    check_may_begin(timeline)
    return timeline


def check_planned_commits_exist(planned_on: Timeline, current: Timeline) -> None:
    """Raise `CommitConflict` if a commit on which a write was planned was rolled back.

    Also raise for a cancelled compaction: up to table version 6, log files with its instant would
    be lost.
    """
    missing = [
        planned for planned in planned_on.commits if not current.is_committed(planned.requested)
    ]
    missing += [
        planned
        for planned in planned_on.pending(COMPACTION)
        if current.find(planned.requested, COMPACTION) is None
        and not current.is_before_start(planned.requested)
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
    """Raise `CommitConflict` unless a write is still inflight and is not being rolled back.

    Also raise if another action has the same requested time. timeline: the current one.
    """
    write = timeline.find(instant, action)
    states = {file.state for file in timeline.files(write)} if write is not None else set()
    if states != {State.REQUESTED, State.INFLIGHT}:
        state = "is complete already" if State.COMPLETED in states else "was rolled back"
        raise retryable_conflict(f"the {action} {instant} {state} by another writer")
    for rollback in timeline.pending(ROLLBACK):
        target = target_of(timeline, rollback)
        if target is not None and target[0] == instant:
            msg = f"another writer is rolling back the {action} {instant} as {rollback}"
            raise retryable_conflict(msg)
    for other in timeline.of_same_time(instant, action):
        raise retryable_conflict(f"{other} has the same time as the {action} {instant}")
    check_may_begin(timeline)


def check_markers(table: TableSnapshot, instant: str, own_groups: FileGroups) -> None:
    """Raise `CommitConflict` if an older active write has started files in the same file groups.

    Hudi checks before each marker (`SimpleDirectMarkerBasedDetectionStrategy`, 1.2.0); pyhudi
    checks once, when the file groups are planned. own_groups: the file groups of this write.
    """
    storage = table.storage
    older = {pending for pending in markers.instants_with_markers(storage) if pending < instant}
    for other in heartbeat.live_instants(storage, older, table.clock) if own_groups else ():
        for marker in markers.read_all(storage, other) or ():
            base, log = parse_base_name(marker.name), parse_log_name(marker.name)
            file_id = base.file_id if base else log.file_id if log else ""
            if (marker.partition, file_id) in own_groups:
                msg = f"the write {other} is changing file group {file_id} of {marker.partition!r}"
                raise retryable_conflict(msg)


def commits_since_plan(table: TableSnapshot, current: Timeline, instant: str) -> ConcurrentCommits:
    """Return the commits that completed since a write was planned.

    table: the snapshot on which the write was planned. instant: that of the write. Raises
    `CommitConflict` if they cannot be determined, or a commit of the snapshot was rolled back.
    """
    planned_on = table.timeline
    check_planned_commits_exist(planned_on, current)
    verified = {commit.requested for commit in planned_on.commits}
    _check_not_archived_past(planned_on, current, instant)
    commits = (commit for commit in current.commits if commit.requested not in verified)
    concurrent = tuple((commit, current.commit_metadata(commit)) for commit in commits)
    return ConcurrentCommits(table.with_timeline(current), concurrent)


def has_only_planned_files(planned_on: Timeline, current: Timeline, own: Instant | None) -> bool:
    """Return whether the files of all commits but the own are those on which it was planned.

    Up to table version 6 other writers may have appended to them.
    """
    others = tuple(instant for instant in current.instants if instant != own)
    return current.completes_in_names and others == planned_on.instants


def _check_not_archived_past(planned_on: Timeline, current: Timeline, instant: str) -> None:
    """Raise `CommitConflict` if a commit may have completed and been archived since the plan."""
    start = current.first_active
    if start is None or not planned_on.instants:
        return
    newest = planned_on.latest_time() or ""
    missing = {
        pending.requested
        for pending in planned_on.pending()
        if pending.requested != instant and current.find(pending.requested, pending.action) is None
    }
    archived = (
        current.archived_behind_saved
        if missing or not _keeps_later_instants(planned_on, current)
        else ()
    )
    if (
        start > newest
        or any(time < start or time in archived for time in missing)
        or any(time > newest for time in archived)
    ):
        msg = "the timeline was archived past the instants that the write was planned on"
        raise retryable_conflict(msg)


def _keeps_later_instants(planned_on: Timeline, current: Timeline) -> bool:
    """Return whether the newest commit of `planned_on` keeps all later instants out of the archive.

    A commit with a savepoint does not (`hoodie.archive.beyond.savepoint`, `TimelineArchiverV2`,
    1.2.0).
    """
    newest = planned_on.commits[-1] if planned_on.commits else None
    if newest is None or current.find(newest.requested, newest.action) is None:
        return False
    return all(saved.requested != newest.requested for saved in current.filter_completed(SAVEPOINT))


def check_file_group_conflicts(
    concurrent: ConcurrentCommits,
    planned_on: Timeline,
    metadata: CommitMetadata,
    *,
    appends: bool = False,
    beats_clustering: bool = False,
) -> None:
    """Raise `CommitConflict` for a concurrent service or commit in a write's file groups.

    planned_on: the timeline that the write was planned on. metadata: what the write did. appends:
    other writers may append to the same file groups. beats_clustering: pending clusterings yield.
    """
    own_groups = collect_written_file_groups(metadata)
    appended = _groups_appended_to(concurrent.table.config, metadata)
    if appends:
        replaced = (other_metadata.replaced for _, other_metadata in concurrent.commits)
        own_groups -= appended - frozenset().union(*replaced)
    planned = {pending.requested for pending in planned_on.pending(COMPACTION)}
    for other, other_metadata in concurrent.commits:
        common = own_groups & collect_written_file_groups(other_metadata)
        if other_metadata.operation_type == "COMPACT":
            # Log files stay valid on the new base file, also under a plan that the write has seen.
            common -= own_groups if other.requested in planned else appended
        elif other_metadata.operation_type == "LOG_COMPACT":
            common -= appended
        _raise_for_common_groups(other, common, "has changed")
    # Services that were planned since the write's plan.
    current = concurrent.table.timeline
    previous = {(i.requested, i.completed_action) for i in planned_on.instants}
    clusterings = () if beats_clustering else (CLUSTERING, REPLACE_COMMIT)
    for other in current.pending(COMPACTION, LOG_COMPACTION, *clusterings):
        if (other.requested, other.completed_action) in previous:
            continue
        # An overwrite has no plan.
        common = own_groups.intersection(groups_of_plan(current.plan(other)))
        if other.action in (COMPACTION, LOG_COMPACTION):
            common -= appended
        _raise_for_common_groups(other, common, "is going to change")


def _raise_for_common_groups(other: Instant, common: FileGroups, change: str) -> None:
    for partition, file_id in sorted(common)[:1]:
        msg = f"{other} {change} file group {file_id} of partition {partition!r} concurrently"
        raise retryable_conflict(msg)


def _groups_appended_to(config: TableConfig, metadata: CommitMetadata) -> FileGroups:
    """Return file groups whose new log files stay valid on a base file written concurrently.

    Up to table version 6 no log file stays valid: it belongs to one base file.
    """
    if config.version.logs_named_by_base_instant:
        return frozenset()
    logs: set[tuple[str, str]] = set()
    rewritten: set[tuple[str, str]] = set()
    for partition, stats in metadata.partition_to_write_stats.items():
        for stat in stats:
            is_log = parse_log_name(file_name_of(stat.path)) is not None
            (logs if is_log else rewritten).add((partition, stat.file_id))
    return frozenset(logs - rewritten) - metadata.replaced


def check_no_active_writer_in(current: TableSnapshot, groups: Collection[GroupKey]) -> None:
    """Raise `CommitConflict` if an active writer changes file groups of a service that yields.

    Inflight files name what writers will change (`PreferWriterConflictResolutionStrategy`, 1.2.0);
    that of a bulk insert is empty, because it creates only new file groups.
    """
    timeline = current.timeline
    for other in timeline.pending(COMMIT, DELTA_COMMIT, REPLACE_COMMIT):
        if other.state is not State.INFLIGHT or timeline.is_clustering(other):
            continue
        common = collect_written_file_groups(timeline.workload(other)).intersection(groups)
        if common and heartbeat.live_instants(current.storage, {other.requested}, current.clock):
            _raise_for_common_groups(other, common, "is changing")


def check_idempotency(current: Timeline, metadata: CommitMetadata) -> None:
    """Raise `CommitConflict` if another write has committed the same `commit_id` or stream batch.

    It may have done so after the check at the start of this write. Also raise if another commit has
    moved the checkpoint of the write's source.
    """
    extra = metadata.extra_metadata
    if AFTER in extra:
        _check_checkpoint(current, extra[AFTER])
    ids = commit_ids(extra, "the write")
    streams = stream_batches_by_id(extra, STREAM_BATCHES, "the write")
    batches = {stream: stream_batch(extra, stream, "the write") for stream in streams}
    for other in reversed(current.commits):
        if not ids and not batches:
            return
        other_metadata = current.commit_metadata(other).extra_metadata
        for commit_id in ids and ids & commit_ids(other_metadata, other):
            raise retryable_conflict(f"{other} is the same write {commit_id!r}")
        for stream in tuple(batches):
            last = stream_batch(other_metadata, stream, other)
            if last is not None and (batches.pop(stream) or 0) <= last:
                msg = f"{other} already committed batch {last} of the stream {stream!r}"
                raise CommitConflict(msg)


def _check_checkpoint(current: Timeline, after: str) -> None:
    """Raise `CommitConflict` unless the newest checkpoint is still the one that a write continues.

    after: the instant of that checkpoint's commit, "" if there was none.
    """
    for other in reversed(current.commits):
        if checkpoint_of(current.commit_metadata(other).extra_metadata) is None:
            continue
        if other.requested != after:
            raise CommitConflict(f"{other} has moved the checkpoint of the source")
        return
    if after and not current.is_before_start(after):
        raise CommitConflict(f"the commit {after} of the source's checkpoint was rolled back")


def check_schema(
    concurrent: ConcurrentCommits, planned_on: TableSnapshot, instant: str, avro: str | None
) -> None:
    """Raise `CommitConflict` if the table's columns have changed since a write was planned.

    avro: the schema in the write's commit, None if it does not change the columns. A write that
    changes them also conflicts with a commit that was requested later and completed earlier, since
    the commit with the latest request defines the columns and would revert the change.
    """
    if not concurrent.commits:
        return
    current = concurrent.table
    previous = table_schema(planned_on.storage, planned_on.config, planned_on.timeline)
    updated = table_schema(current.storage, current.config, current.timeline)
    is_unchanged = (previous.avro, _ids(previous)) == (updated.avro, _ids(updated))
    # The first commit may format the schema of the table's creation differently.
    if not is_unchanged and (planned_on.timeline.commits or previous.arrow != updated.arrow):
        raise retryable_conflict(f"{concurrent.commits[-1][0]} has changed the table's columns")
    for later, _ in concurrent.commits if avro not in (None, previous.avro) else ():
        if later.requested > instant:
            msg = f"{later} completed while this write was changing the table's columns"
            raise retryable_conflict(msg)


def _ids(schema: TableSchema) -> str:
    """Return the ids of the current columns, without the history, which each commit extends."""
    return "" if schema.history is None else schema.history.current


def check_config(table: TableSnapshot) -> None:
    """Raise `CommitConflict` if the table's properties have changed since it was opened."""
    current = TableConfig.load(table.storage, table.clock)
    if current.properties != table.config.properties:
        raise retryable_conflict("the table's properties have changed while it was written to")


def collect_written_file_groups(metadata: CommitMetadata) -> FileGroups:
    """Return the file groups that a commit writes to or replaces."""
    written = {
        (partition, stat.file_id)
        for partition, stats in metadata.partition_to_write_stats.items()
        for stat in stats
    }
    return frozenset(written) | metadata.replaced


def is_satisfied(check: Callable[[], None]) -> bool:
    """Return whether a check raises no `CommitConflict`."""
    try:
        check()
    except CommitConflict:
        return False
    return True
