"""Whether a write may be complete: still its writer's own, and nothing it went by has changed.

All of it is asked in the section in which the write is completed, on a timeline that was loaded
there. Two writes conflict if they changed the same file group, and also where rows, a schema or
properties that one went by were changed by the other: those that were complete first are as if all
had come one after the other. The candidates are those of every Hudi release together (0.15.0,
1.0.2, 1.2.0 differ, `ConcurrentOperation` and the conflict resolution strategies), since to give
way once too often does no harm.
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
    COMMIT_ID,
    STREAM_BATCHES,
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
"""Operations that leave every row as it was."""

FileGroups = frozenset[tuple[str, str]]
"""Partition paths with file ids."""


@dataclass(frozen=True)
class ConcurrentCommits:
    """What was completed since a write was planned."""

    table: TableSnapshot
    """As it is now."""
    commits: tuple[tuple[Instant, CommitMetadata], ...]
    """In the order of their requested times."""

    @cached_property
    def changes(self) -> tuple[tuple[Instant, FileGroups], ...]:
        """The commits that changed rows, each with its file groups.

        A clustering that has since moved such rows is one of them: its file groups hold them now.
        """
        found: dict[Instant, FileGroups] = {}
        for instant, metadata in self.commits:
            groups = collect_written_file_groups(metadata)
            if groups and metadata.operation_type not in ROW_PRESERVING_OPERATIONS:
                found[instant] = groups
        for instant, metadata in self.commits:
            moved = metadata.replaced if metadata.operation_type == "CLUSTER" else frozenset()
            if any(moved & groups for groups in found.values()):
                found[instant] = collect_written_file_groups(metadata)
        return tuple((instant, found[instant]) for instant, _ in self.commits if instant in found)


CommitCheck: TypeAlias = Callable[[ConcurrentCommits], None]
"""Looks again at what a write went by; raises `CommitConflict` where that has changed."""


def reload_timeline(table: TableSnapshot) -> Timeline:
    """Within a section. Raises `CommitConflict` while the table is being restored."""
    timeline = zombie_commits.load_timeline(table)
    check_may_begin(timeline)
    table.generator.observe(timeline)
    return timeline


def check_planned_commits_exist(seen: Timeline, now: Timeline) -> None:
    """Raises `CommitConflict` where a commit that a write was planned on was taken back.

    Also before it was pending for others to see. Or a compaction that was planned: up to table
    version 6 log files that were written beside it would count nowhere.
    """
    gone = [known for known in seen.commits if not now.is_committed(known.requested)]
    gone += [
        known
        for known in seen.pending(COMPACTION)
        if now.find(known.requested, COMPACTION) is None
        and not now.is_before_start(known.requested)
    ]
    for known in gone:
        raise retryable_conflict(
            f"{known}, which the write was planned on, was taken back concurrently"
        )


def check_may_begin(timeline: Timeline) -> None:
    """Raises `CommitConflict` while the table is being restored. timeline: of now."""
    for restore in timeline.pending(RESTORE):
        raise CommitConflict(f"{restore} has begun", hint="Write again when it is complete.")


def check_still_inflight(timeline: Timeline, instant: str, action: str) -> None:
    """Raises `CommitConflict` unless a write is inflight still and nobody is taking it back.

    Also where another action has its time. timeline: of now.
    """
    own = timeline.find(instant, action)
    states = {file.state for file in timeline.files(own)} if own is not None else set()
    if states != {State.REQUESTED, State.INFLIGHT}:
        what = "is complete already" if State.COMPLETED in states else "was taken back"
        raise retryable_conflict(f"the {action} {instant} {what} by another writer")
    for rollback in timeline.pending(ROLLBACK):
        target = target_of(timeline, rollback)
        if target is not None and target[0] == instant:
            msg = f"another writer takes the {action} {instant} back as {rollback}"
            raise retryable_conflict(msg)
    for other in timeline.of_same_time(instant, action):
        raise retryable_conflict(f"{other} has the time of the {action} {instant}")
    check_may_begin(timeline)


def check_markers(table: TableSnapshot, instant: str, mine: FileGroups) -> None:
    """Raises `CommitConflict` where an older living write has begun files of file groups of mine.

    Hudi looks before each marker (`SimpleDirectMarkerBasedDetectionStrategy`, 1.2.0); here it is
    done once, when the file groups are known.
    """
    storage = table.storage
    older = {found for found in markers.instants_with_markers(storage) if found < instant}
    for other in heartbeat.live_instants(storage, older, table.clock) if mine else ():
        for marker in markers.read_all(storage, other) or ():
            base, log = parse_base_name(marker.name), parse_log_name(marker.name)
            file_id = base.file_id if base else log.file_id if log else ""
            if (marker.partition, file_id) in mine:
                msg = f"the write {other} is changing file group {file_id} of {marker.partition!r}"
                raise retryable_conflict(msg)


def commits_since_plan(table: TableSnapshot, now: Timeline, instant: str) -> ConcurrentCommits:
    """What was completed since a write was planned.

    table: as the write was planned on it. instant: the write's own. Raises `CommitConflict` where
    that is not known, and where a commit that it was planned on was taken back.
    """
    seen = table.timeline
    check_planned_commits_exist(seen, now)
    before = {known.requested for known in seen.commits}
    _check_reaches(seen, now, instant)
    commits = (known for known in now.commits if known.requested not in before)
    found = tuple((known, now.commit_metadata(known)) for known in commits)
    return ConcurrentCommits(table.with_timeline(now), found)


def _check_reaches(seen: Timeline, now: Timeline, instant: str) -> None:
    """Raises `CommitConflict` where an instant may have been completed and archived meanwhile."""
    start = now.first_active
    if start is None or not seen.instants:
        return
    newest = seen.latest_time() or ""
    gone = {
        known.requested
        for known in seen.pending()
        if known.requested != instant and now.find(known.requested, known.action) is None
    }
    behind = now.archived_behind_saved if gone or not _last_stays(seen, now) else ()
    if (
        start > newest
        or any(time < start or time in behind for time in gone)
        or any(time > newest for time in behind)
    ):
        msg = "the timeline was archived beyond what the write was planned on"
        raise retryable_conflict(msg)


def _last_stays(seen: Timeline, now: Timeline) -> bool:
    """Whether the newest commit that was seen keeps all after it from being archived.

    One with a savepoint does not (`hoodie.archive.beyond.savepoint`, `TimelineArchiverV2`, 1.2.0).
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
    """Raises `CommitConflict` naming what was begun or completed in file groups of a write.

    seen: what the write was planned on. metadata: what it did. appends: where it has added log
    files others may have, too. beats_clustering: clusterings that are planned give way to it.
    """
    mine, appended = (
        collect_written_file_groups(metadata),
        _groups_appended_to(since.table.config, metadata),
    )
    if appends:
        gone = (theirs.replaced for _, theirs in since.commits)
        mine -= appended - frozenset().union(*gone)
    planned = {known.requested for known in seen.pending(COMPACTION)}
    for other, theirs in since.commits:
        common = mine & collect_written_file_groups(theirs)
        if theirs.operation_type == "COMPACT":
            # What was planned before is known to the plan; below what is appended all is well.
            common -= mine if other.requested in planned else appended
        elif theirs.operation_type == "LOG_COMPACT":
            common -= appended
        _refuse(other, common, "has changed")
    _check_plans(since.table.timeline, seen, mine, appended, beats_clustering=beats_clustering)


def _check_plans(
    now: Timeline, seen: Timeline, mine: FileGroups, appended: FileGroups, *, beats_clustering: bool
) -> None:
    """Table services that were planned meanwhile, and are to come."""
    known = {(i.requested, i.completed_action) for i in seen.instants}
    services = (
        COMPACTION,
        LOG_COMPACTION,
        *(() if beats_clustering else (CLUSTERING, REPLACE_COMMIT)),
    )
    for other in now.pending(*services):
        if (other.requested, other.completed_action) in known:
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
    """File groups to which a write adds log files that count above every base file made meanwhile.

    Up to table version 6 a log file belongs to the base file that it was planned on.
    """
    if config.version.logs_named_by_base_instant:
        return frozenset()
    logs: set[tuple[str, str]] = set()
    others: set[tuple[str, str]] = set()
    for partition, stats in metadata.partition_to_write_stats.items():
        for stat in stats:
            is_log = parse_log_name((stat.path or "").rsplit("/", 1)[-1]) is not None
            (logs if is_log else others).add((partition, stat.file_id))
    return frozenset(logs - others) - metadata.replaced


def check_writers(now: TableSnapshot, groups: Collection[GroupKey]) -> None:
    """Raises `CommitConflict` where a living writer is at file groups of a service that gives way.

    Inflight files say what writers are about to change (`PreferWriterConflictResolutionStrategy`,
    1.2.0); a bulk insert's is empty, and makes new file groups only.
    """
    timeline = now.timeline
    for other in timeline.pending(COMMIT, DELTA_COMMIT, REPLACE_COMMIT):
        if other.state is not State.INFLIGHT or timeline.is_clustering(other):
            continue
        common = collect_written_file_groups(timeline.workload(other)).intersection(groups)
        if common and heartbeat.live_instants(now.storage, {other.requested}, now.clock):
            _refuse(other, common, "is changing")


def check_idempotency(now: Timeline, metadata: CommitMetadata) -> None:
    """Raises `CommitConflict` where another write has brought what this one is to bring once.

    Whoever looked before the write may have done so before it was planned.
    """
    mine = metadata.extra_metadata.get(COMMIT_ID)
    said = metadata.extra_metadata
    streams = stream_batches_by_id(said, STREAM_BATCHES, "the write")
    batches = {stream: stream_batch(said, stream, "the write") for stream in streams}
    for other in reversed(now.commits):
        if mine is None and not batches:
            return
        theirs = now.commit_metadata(other).extra_metadata
        if mine is not None and theirs.get(COMMIT_ID) == mine:
            raise retryable_conflict(f"{other} is the same write {mine!r}")
        for stream in tuple(batches):
            last = stream_batch(theirs, stream, other)
            if last is not None and (batches.pop(stream) or 0) <= last:
                raise CommitConflict(
                    f"{other} already committed batch {last} of the stream {stream!r}"
                )


def check_schema(
    since: ConcurrentCommits, seen: TableSnapshot, instant: str, avro: str | None
) -> None:
    """Raises `CommitConflict` where the table got other columns since a write was planned.

    avro: the columns as the write's commit has them, None for one that leaves them as they are.
    Where it changes them, what was requested after it and completed before it would take that back:
    the newest requested commit says what they are.
    """
    if not since.commits:
        return
    now = since.table
    before = table_schema(seen.storage, seen.config, seen.timeline)
    after = table_schema(now.storage, now.config, now.timeline)
    same = (before.avro, _ids(before)) == (after.avro, _ids(after))
    # The first commit may spell what the table was created with in its own way.
    if not same and (seen.timeline.commits or before.arrow != after.arrow):
        raise retryable_conflict(f"{since.commits[-1][0]} has changed the table's columns")
    for other, _ in since.commits if avro not in (None, before.avro) else ():
        if other.requested > instant:
            msg = f"{other} was completed while the table's columns were to change"
            raise retryable_conflict(msg)


def _ids(schema: TableSchema) -> str:
    """Of the columns of now: every commit adds itself to the versions before."""
    return "" if schema.history is None else schema.history.current


def check_config(table: TableSnapshot) -> None:
    """Raises `CommitConflict` where the table's properties have changed since it was opened."""
    now = TableConfig.load(table.storage, table.clock)
    if now.properties != table.config.properties:
        msg = "the table's properties have changed while it was written to"
        raise retryable_conflict(msg)


def collect_written_file_groups(metadata: CommitMetadata) -> FileGroups:
    """The file groups that a commit writes to or takes away."""
    written = {
        (partition, stat.file_id)
        for partition, stats in metadata.partition_to_write_stats.items()
        for stat in stats
    }
    return frozenset(written) | metadata.replaced
