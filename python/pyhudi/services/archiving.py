"""Archiving: selection of completed instants that leave the active timeline.

The rules are the same for a data table and a metadata table. Readers regard all instants before the
active timeline as committed. So an instant stays while a reader, a writer or a service needs it;
results name the reason. `timeline/archiving.py` moves instants into the archive. Sources:
`TimelineArchiverV1`, `TimelineArchiverV2`, `ArchivalUtils`, `ClusteringUtils` (Hudi 0.15.0, 1.2.0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyhudi.clock import SECOND_INSTANT_DIGITS, is_bootstrap, parse_instant
from pyhudi.config import compaction_options
from pyhudi.config.actions import (
    CLEAN,
    COMMIT,
    DELTA_COMMIT,
    REPLACE_COMMIT,
    ROLLBACK,
    Instant,
)
from pyhudi.config.compaction_options import CompactionOptions
from pyhudi.config.retention_options import ArchiveOptions, CleanOptions, HistoryOptions
from pyhudi.errors import ConfigError
from pyhudi.services.clean_plan import last_clean
from pyhudi.services.clean_policy import hours_before, pending_readers_of_past, retention
from pyhudi.services.result import ServiceResult
from pyhudi.slices import markers
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.service_plans import files_of_plans
from pyhudi.storage.options import is_remote
from pyhudi.table.participants import ArchiveBound
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline
from pyhudi.timeline.archiving import archive as archive_instants
from pyhudi.txn import attempt_files, conflicts
from pyhudi.txn.savepoint import find_saved_instants

_MAX_PER_SECTION = 200
"""Instants per critical section, since writers wait for its end."""
_MAX_SECTIONS, _MAX_REMOTE_SECTIONS = 16, 100
"""Maximum number of critical sections. Each lists the timeline, so those of a very long timeline
are larger. There are more on object stores, where each instant takes longer."""


@dataclass(frozen=True)
class ArchivingPolicy:
    """The instants that stay in the active timeline."""

    min_commits: int
    """Minimum number of commits that stay."""
    max_commits: int
    """Number of commits above which archiving starts."""
    retained: CleanOptions
    """Options of cleaning; commits whose file slices it retains stay, too."""
    compact_after: int | None
    """Delta commits after which a compaction is due, None if it does not count them."""
    bounds: Callable[[TableSnapshot], Iterable[ArchiveBound]] = lambda _: ()
    """Returns further bounds of archiving; called only if instants may be archived."""
    history: HistoryOptions = field(default_factory=HistoryOptions)
    """Options of the archive's files."""


@dataclass(frozen=True)
class _InstantChoice:
    instants: tuple[Instant, ...] = ()
    """Oldest first."""
    bound: ArchiveBound | None = None
    """The bound because of which more than the minimum number of commits stay."""


# --- data tables ----------------------------------------------------------------------------------


def archive_table(table: TableSnapshot, options: ArchiveOptions) -> ServiceResult:
    """Archive due instants. Raises `CommitConflict` during a restore, and `LockTimeout`."""
    started = table.clock.ticks_ms()
    return _result(table, *archive(table, _policy(table, options)), started)


def preview_archive(table: TableSnapshot, options: ArchiveOptions) -> ServiceResult:
    """Return what `archive_table` would do now."""
    choice = _choose_instants(table, _policy(table, options))
    result = _result(table, choice.instants, choice.bound, table.clock.ticks_ms())
    return replace(result, dry_run=True)


def is_due(table: TableSnapshot, options: ArchiveOptions) -> bool:
    """Return whether archiving is due after a commit."""
    if len(table.timeline.commits) <= options.max_commits:
        return False
    return has_due_instants(table, _policy(table, options))


def has_due_instants(table: TableSnapshot, policy: ArchivingPolicy) -> bool:
    """Return whether `archive` would archive any instants."""
    return bool(_choose_instants(table, policy).instants)


def _policy(table: TableSnapshot, options: ArchiveOptions) -> ArchivingPolicy:
    compaction = CompactionOptions.of(table.options)
    counts = table.config.is_merge_on_read and compaction.trigger in (
        compaction_options.NUM_COMMITS,
        compaction_options.NUM_AND_TIME,
    )
    return ArchivingPolicy(
        options.min_commits,
        options.max_commits,
        CleanOptions.of(table.options),
        compaction.max_delta_commits if counts else None,
        _participant_bounds,
        options.history,
    )


def _participant_bounds(table: TableSnapshot) -> Iterator[ArchiveBound]:
    for participant in table.participants:
        bound = participant.archive_bound(table)
        if bound is not None:
            yield bound


def _result(
    table: TableSnapshot, archived: Sequence[Instant], bound: ArchiveBound | None, started: int
) -> ServiceResult:
    return ServiceResult(
        "archive",
        instants=tuple(instant.requested for instant in archived),
        left=() if bound is None else (bound.reason,),
        duration_ms=table.clock.ticks_ms() - started,
    )


# --- all tables -----------------------------------------------------------------------------------


def archive(
    table: TableSnapshot, policy: ArchivingPolicy
) -> tuple[list[Instant], ArchiveBound | None]:
    """Archive due instants in several critical sections, so writers can go on in between.

    table: a recent snapshot. Returns the archived instants, and the bound because of which more
    commits than the minimum stay.
    """
    archived: list[Instant] = []
    choice = _choose_instants(table, policy)
    parts = _MAX_REMOTE_SECTIONS if is_remote(table.storage.uri) else _MAX_SECTIONS
    max_part = max(_MAX_PER_SECTION, -(-len(choice.instants) // parts))
    while choice.instants:
        with table.lock_manager.critical_section():
            current = table.with_timeline(conflicts.reload_timeline(table))
            # Once started, archiving continues down to the minimum.
            choice = _choose_instants(
                current, replace(policy, max_commits=policy.min_commits) if archived else policy
            )
            part = choice.instants[:max_part]
            if part:
                table.lock_manager.check_held()
                bound = _remove_files_after_rollback(current, part)
                if bound is not None:
                    return archived, bound
                archive_instants(
                    current.storage,
                    current.config,
                    current.timeline,
                    part,
                    policy.history,
                    table.lock_manager.check_held,
                )
                marked = set(markers.instants_with_markers(table.storage))
                for time in sorted(marked.intersection(commit.requested for commit in part)):
                    markers.delete_all(table.storage, time)
        archived += part
        if len(part) == len(choice.instants):
            break
    return archived, choice.bound


def _remove_files_after_rollback(
    table: TableSnapshot, archived: Sequence[Instant]
) -> ArchiveBound | None:
    """Remove files written after their rollback, which become visible once it is archived.

    If a plan names one of these files, returns a bound for which the instants stay. archived: the
    instants that are about to be archived.
    """
    timeline = table.timeline
    start = timeline.without(archived).start or ""
    targets: set[str] = set()
    records: dict[str, list[dict[str, Any]]] = {}
    for rollback in timeline.filter_completed(ROLLBACK):
        record = timeline.read(rollback) or {}
        for target in record.get("commitsRollback") or ():
            records.setdefault(target, []).append(record)
            if rollback in archived or target < start:
                targets.add(target)
    # Other writers may be executing a pending plan again.
    targets -= {pending.requested for pending in timeline.pending()}
    for target in targets:
        if not timeline.is_before_start(target):
            later_files = attempt_files.files_after_rollback(
                table, timeline, target, records[target]
            )
            if later_files and later_files & files_of_plans(timeline):
                return ArchiveBound(
                    target, f"a planned service names files of {target}, rolled back"
                )
            table.storage.delete_all(later_files)
    return None


def since_compaction(timeline: Timeline) -> list[Instant]:
    """Return the delta commits completed since the last compaction, or all."""
    last = next((commit.requested for commit in reversed(timeline.filter_completed(COMMIT))), "")
    named = timeline.completes_in_names
    deltas = timeline.filter_completed(DELTA_COMMIT)
    return [
        delta for delta in deltas if ((delta.completed if named else delta.requested) or "") > last
    ]


# --- selection of instants ------------------------------------------------------------------------


def _choose_instants(table: TableSnapshot, policy: ArchivingPolicy) -> _InstantChoice:
    timeline = table.timeline
    min_commits, max_commits = _commit_limits(timeline, policy)
    services = _choose_services(timeline, min_commits, max_commits)
    commits = _InstantChoice()
    if len(timeline.commits) > max_commits:
        commits = _choose_commits(table, policy, min_commits)
    candidates = [*services, *commits.instants]
    if not candidates:
        return commits
    bound = _strictest(policy.bounds(table))
    chosen = [instant for instant in candidates if bound is None or instant.requested < bound.time]
    strictest = commits.bound if len(chosen) == len(candidates) else bound
    if timeline.completes_in_names:
        last = max((instant.requested for instant in chosen), default="")
        services_before = timeline.filter_completed(CLEAN, ROLLBACK)
        chosen += [instant for instant in services_before if instant.requested < last]
    chosen.sort(key=lambda instant: (instant.requested, instant.action))
    return _InstantChoice(tuple(chosen), strictest)


def _commit_limits(timeline: Timeline, policy: ArchivingPolicy) -> tuple[int, int]:
    """Return minimum and maximum number of commits, increased for those that cleaning retains."""
    min_commits, max_commits = policy.min_commits, policy.max_commits
    earliest_retained = _earliest_retained(timeline, policy.retained)
    if earliest_retained is None:
        return min_commits, max_commits
    retained = (
        sum(commit.requested > earliest_retained.requested for commit in timeline.commits) + 2
    )
    increase = max(retained - min_commits, 0)
    return min_commits + increase, max_commits + increase


def _earliest_retained(timeline: Timeline, retained: CleanOptions) -> Instant | None:
    """Return the earliest commit that cleaning would retain, with hours before the last commit."""
    if timeline.last_commit is None:
        return None
    last = timeline.last_commit.requested
    try:
        # Wall-clock time, in any zone.
        since = hours_before(parse_instant(last, "UTC"), retained.hours, "UTC")
    except ConfigError:
        return None
    if is_bootstrap(last):
        # The instant of a bootstrap is not a time.
        return None
    retained_slices = retention(timeline, retained, since[:SECOND_INSTANT_DIGITS])
    return None if retained_slices is None else retained_slices.earliest_retained


def _choose_services(timeline: Timeline, min_commits: int, max_commits: int) -> list[Instant]:
    """Return cleans and rollbacks to archive, which are counted separately up to version 6."""
    if timeline.completes_in_names:
        return []
    selected: list[Instant] = []
    for action in (CLEAN, ROLLBACK):
        instants = timeline.filter_completed(action)
        selected += instants[: len(instants) - min_commits] if len(instants) > max_commits else ()
    return selected


def _choose_commits(
    table: TableSnapshot, policy: ArchivingPolicy, min_commits: int
) -> _InstantChoice:
    """Return the oldest commits, up to the first one that is still needed."""
    timeline = table.timeline
    bounds = [
        *_pending_bounds(timeline),
        *_compaction_bounds(timeline, policy.compact_after),
        *(
            ArchiveBound(saved, f"the commit {saved} has a savepoint")
            for saved in find_saved_instants(timeline)
        ),
    ]
    bound = _strictest(bounds)
    free = [commit for commit in timeline.commits if bound is None or commit.requested < bound.time]
    count = len(timeline.commits) - min_commits
    selected = free[:count]
    for number, commit in enumerate(selected):
        reason = _why_replaced_counts(table, commit)
        if reason is not None:
            return _InstantChoice(tuple(selected[:number]), ArchiveBound(commit.requested, reason))
    return _InstantChoice(tuple(selected), bound if len(selected) < count else None)


def _strictest(bounds: Iterable[ArchiveBound]) -> ArchiveBound | None:
    """Return the bound for which the most instants stay."""
    return min(bounds, key=lambda bound: bound.time, default=None)


def _pending_bounds(timeline: Timeline) -> Iterator[ArchiveBound]:
    """Yield the commit before the oldest pending write, and commits for its conflict checks.

    Hudi retains only the first, and misses a commit that was requested even earlier and completed
    during the write.
    """
    pending = pending_readers_of_past(timeline)
    if not pending:
        return
    first = pending[0]
    reason = f"{first} is pending"
    before = [commit.requested for commit in timeline.commits if commit.requested < first.requested]
    yield ArchiveBound(max(before, default=first.requested), reason)
    if timeline.completes_in_names:
        concurrent = (c for c in timeline.commits if (c.completed or "") > first.requested)
        yield from (ArchiveBound(commit.requested, reason) for commit in concurrent)


def _compaction_bounds(timeline: Timeline, compact_after: int | None) -> Iterator[ArchiveBound]:
    """Yield where the count of the next compaction starts.

    As in `getEarliestInstantToRetainForCompaction`.
    """
    if compact_after is None:
        return
    reason = "the next compaction counts delta commits from there on"
    since = [instant.requested for instant in since_compaction(timeline)]
    compactions = [instant.requested for instant in timeline.filter_completed(COMMIT)]
    if len(since) >= compact_after:
        yield ArchiveBound(since[-compact_after], reason)
    elif compactions or since:
        yield ArchiveBound((compactions[-1:] or since)[0], reason)


def _why_replaced_counts(table: TableSnapshot, commit: Instant) -> str | None:
    """Return why a replace commit must stay: without it, readers would see replaced file groups.

    Files of a pending clean may be deleted while the metadata table still names them.
    """
    timeline = table.timeline
    is_replace_commit = commit.action == REPLACE_COMMIT
    replaced = timeline.commit_metadata(commit).replaced if is_replace_commit else frozenset()
    if not replaced:
        return None
    for clean in timeline.pending(CLEAN):
        return f"{clean} is pending"
    view = FileSystemView(table.storage, table.config, timeline, {path for path, _ in replaced})
    if commit.requested >= _last_clean_bound(timeline) or not replaced.isdisjoint(view.groups):
        return f"no clean has deleted the files that {commit} replaced"
    return None


def _last_clean_bound(timeline: Timeline) -> str:
    """Return the instant before which the last clean covered replaced file groups."""
    cleans = timeline.filter_completed(CLEAN)
    if not cleans:
        return ""
    earliest_retained = (last_clean(timeline) or {}).get("earliestCommitToRetain") or ""
    return earliest_retained.strip() or cleans[-1].requested
