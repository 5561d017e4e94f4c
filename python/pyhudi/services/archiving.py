"""Archiving: which completed instants leave the active timeline.

The rules are the same for a data table and a metadata table. Readers regard everything older than
the active timeline as committed, so no instant may leave that a reader, a writer or a service still
needs; results name the reason for instants that stay. `timeline/archiving.py` moves instants into
the archive. Sources: `TimelineArchiverV1`, `TimelineArchiverV2`, `ArchivalUtils`, `ClusteringUtils`
(Hudi 0.15.0, 1.2.0).
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
from pyhudi.config.archive_options import ArchiveOptions, HistoryOptions
from pyhudi.config.clean_options import CleanOptions
from pyhudi.config.compaction_options import CompactionOptions
from pyhudi.errors import ConfigError
from pyhudi.services.clean_plan import last_clean
from pyhudi.services.clean_policy import hours_before, needing_the_past, retention
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

_PART = 200
"""Instants per critical section, for which writers wait."""
_PARTS, _PARTS_REMOTE = 16, 100
"""Maximum number of critical sections: each lists the timeline, so sections of a very long one are
larger. On object stores a section of many instants keeps writers waiting for longer."""


@dataclass(frozen=True)
class ArchivingPolicy:
    """The instants that stay in the active timeline."""

    least: int
    """Minimum number of commits that stay."""
    most: int
    """Number of commits above which archiving starts."""
    retained: CleanOptions
    """Commits whose file slices cleaning retains; they stay too."""
    compact_after: int | None
    """Delta commits after which a compaction is due, None if it does not count them."""
    bounds: Callable[[TableSnapshot], Iterable[ArchiveBound]] = lambda _: ()
    """Returns other bounds of archiving; called only if instants may leave."""
    history: HistoryOptions = field(default_factory=HistoryOptions)
    """Options of the archive's files."""


@dataclass(frozen=True)
class _Choice:
    instants: tuple[Instant, ...] = ()
    """Oldest first."""
    held: ArchiveBound | None = None
    """The bound that keeps more than the minimum number of commits."""


# --- data tables ----------------------------------------------------------------------------------


def archive_table(table: TableSnapshot, options: ArchiveOptions) -> ServiceResult:
    """Archive due instants. Raises `CommitConflict` during a restore, and `LockTimeout`."""
    started = table.clock.now_ms()
    return _result(table, *archive(table, _policy(table, options)), started)


def preview_archive(table: TableSnapshot, options: ArchiveOptions) -> ServiceResult:
    """Return what `archive_table` would do now."""
    choice = _choice(table, _policy(table, options))
    result = _result(table, choice.instants, choice.held, table.clock.now_ms())
    return replace(result, dry_run=True)


def is_due(table: TableSnapshot, options: ArchiveOptions) -> bool:
    """Return whether archiving is due after a commit."""
    if len(table.timeline.commits) <= options.most:
        return False
    return bool(_choice(table, _policy(table, options)).instants)


def _policy(table: TableSnapshot, options: ArchiveOptions) -> ArchivingPolicy:
    compaction = CompactionOptions.of(table.options)
    counts = table.config.is_merge_on_read and compaction.trigger in (
        compaction_options.NUM_COMMITS,
        compaction_options.NUM_AND_TIME,
    )
    return ArchivingPolicy(
        options.least,
        options.most,
        CleanOptions.of(table.options),
        compaction.max_delta_commits if counts else None,
        _of_companions,
        options.history,
    )


def _of_companions(table: TableSnapshot) -> Iterator[ArchiveBound]:
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
        duration_ms=table.clock.now_ms() - started,
    )


# --- all tables -----------------------------------------------------------------------------------


def archive(
    table: TableSnapshot, policy: ArchivingPolicy
) -> tuple[list[Instant], ArchiveBound | None]:
    """Archive due instants in several critical sections, between which writers can go on.

    table: a recent snapshot. Returns the archived instants, and the bound that keeps more.
    """
    archived: list[Instant] = []
    choice = _choice(table, policy)
    parts = _PARTS_REMOTE if is_remote(table.storage.uri) else _PARTS
    max_part = max(_PART, -(-len(choice.instants) // parts))
    while choice.instants:
        with table.lock_manager.critical_section():
            now = table.with_timeline(conflicts.reload_timeline(table))
            # Once archiving has started, it continues to the minimum.
            choice = _choice(now, replace(policy, most=policy.least) if archived else policy)
            part = choice.instants[:max_part]
            if part:
                table.lock_manager.check_held()
                bound = _remove_missed(now, part)
                if bound is not None:
                    return archived, bound
                archive_instants(
                    now.storage,
                    now.config,
                    now.timeline,
                    part,
                    policy.history,
                    table.lock_manager.check_held,
                )
                _remove_markers(now, part)
        archived += part
        if len(part) == len(choice.instants):
            break
    return archived, choice.held


def _remove_missed(table: TableSnapshot, going: Sequence[Instant]) -> ArchiveBound | None:
    """Remove files written after their rollback: past the start of the timeline they are visible.

    Returns a bound that keeps the instants if a plan names such a file.
    """
    timeline = table.timeline
    start = timeline.without(going).start or ""
    passing: set[str] = set()
    records: dict[str, list[dict[str, Any]]] = {}
    for rollback in timeline.filter_completed(ROLLBACK):
        record = timeline.read(rollback) or {}
        for target in record.get("commitsRollback") or ():
            records.setdefault(target, []).append(record)
            if rollback in going or target < start:
                passing.add(target)
    # Other writers may be writing files of a plan again.
    passing -= {pending.requested for pending in timeline.pending()}
    for target in passing:
        if not timeline.is_before_start(target):
            late_files = attempt_files.files_after_rollback(
                table, timeline, target, records[target]
            )
            if late_files and late_files & files_of_plans(timeline):
                return ArchiveBound(
                    target, f"a planned service names files of {target}, rolled back"
                )
            table.storage.delete_all(late_files)
    return None


def _remove_markers(table: TableSnapshot, instants: Iterable[Instant]) -> None:
    marked = set(markers.instants_with_markers(table.storage))
    for instant in instants:
        if instant.requested in marked:
            markers.delete_all(table.storage, instant.requested)


def since_compaction(timeline: Timeline) -> list[Instant]:
    """Return the delta commits completed since the last compaction, or all."""
    last = next((commit.requested for commit in reversed(timeline.filter_completed(COMMIT))), "")
    named = timeline.completes_in_names
    deltas = timeline.filter_completed(DELTA_COMMIT)
    return [
        delta for delta in deltas if ((delta.completed if named else delta.requested) or "") > last
    ]


# --- selection of instants ------------------------------------------------------------------------


def _choice(table: TableSnapshot, policy: ArchivingPolicy) -> _Choice:
    timeline = table.timeline
    min_commits, max_commits = _least_and_most(timeline, policy)
    services = _services(timeline, min_commits, max_commits)
    commits = _Choice()
    if len(timeline.commits) > max_commits:
        commits = _commits(table, policy, min_commits)
    candidates = [*services, *commits.instants]
    if not candidates:
        return commits
    bound = _first(policy.bounds(table))
    chosen = [instant for instant in candidates if bound is None or instant.requested < bound.time]
    kept_by = commits.held if len(chosen) == len(candidates) else bound
    if timeline.completes_in_names:
        last = max((instant.requested for instant in chosen), default="")
        services_before = timeline.filter_completed(CLEAN, ROLLBACK)
        chosen += [instant for instant in services_before if instant.requested < last]
    chosen.sort(key=lambda instant: (instant.requested, instant.action))
    return _Choice(tuple(chosen), kept_by)


def _least_and_most(timeline: Timeline, policy: ArchivingPolicy) -> tuple[int, int]:
    """Return minimum and maximum number of commits. All commits that cleaning retains stay."""
    min_commits, max_commits = policy.least, policy.most
    horizon = _horizon(timeline, policy.retained)
    if horizon is None:
        return min_commits, max_commits
    retained = sum(commit.requested > horizon.requested for commit in timeline.commits) + 2
    return (
        (min_commits, max_commits)
        if min_commits >= retained
        else (retained, retained + max_commits - min_commits)
    )


def _horizon(timeline: Timeline, retained: CleanOptions) -> Instant | None:
    """Return the commit that cleaning would retain from; hours count back from the last commit."""
    if timeline.last_commit is None:
        return None
    last = timeline.last_commit.requested
    try:
        # Wall-clock time, in any zone.
        since = hours_before(parse_instant(last, "UTC"), retained.hours, "UTC")
    except ConfigError:
        return None
    if is_bootstrap(last):
        # The instant of a bootstrap is not a time: no commit has followed it.
        return None
    stays = retention(timeline, retained, since[:SECOND_INSTANT_DIGITS])
    return None if stays is None else stays.horizon


def _services(timeline: Timeline, min_commits: int, max_commits: int) -> list[Instant]:
    """Cleans and rollbacks, which up to table version 6 are counted separately."""
    if timeline.completes_in_names:
        return []
    selected: list[Instant] = []
    for action in (CLEAN, ROLLBACK):
        instants = timeline.filter_completed(action)
        selected += instants[: len(instants) - min_commits] if len(instants) > max_commits else ()
    return selected


def _commits(table: TableSnapshot, policy: ArchivingPolicy, min_commits: int) -> _Choice:
    """The oldest commits, up to the first that is still needed."""
    timeline = table.timeline
    bounds = [
        *_before_pending(timeline),
        *_for_compaction(timeline, policy.compact_after),
        *_savepoint_bounds(timeline),
    ]
    bound = _first(bounds)
    free = [commit for commit in timeline.commits if bound is None or commit.requested < bound.time]
    count = len(timeline.commits) - min_commits
    selected = free[:count]
    for at, commit in enumerate(selected):
        reason = _why_replaced_counts(table, commit)
        if reason is not None:
            return _Choice(tuple(selected[:at]), ArchiveBound(commit.requested, reason))
    return _Choice(tuple(selected), bound if len(selected) < count else None)


def _first(bounds: Iterable[ArchiveBound]) -> ArchiveBound | None:
    """Return the bound that keeps the most instants."""
    return min(bounds, key=lambda bound: bound.time, default=None)


def _before_pending(timeline: Timeline) -> Iterator[ArchiveBound]:
    """The commit before the oldest pending write, and commits that the write is checked against.

    Hudi keeps only the first, and misses a commit that was requested even earlier and completed
    while the write was active.
    """
    pending = needing_the_past(timeline)
    if not pending:
        return
    first = pending[0]
    reason = f"{first} is pending"
    before = [commit.requested for commit in timeline.commits if commit.requested < first.requested]
    yield ArchiveBound(max(before, default=first.requested), reason)
    if timeline.completes_in_names:
        beside = (c for c in timeline.commits if (c.completed or "") > first.requested)
        yield from (ArchiveBound(commit.requested, reason) for commit in beside)


def _for_compaction(timeline: Timeline, compact_after: int | None) -> Iterator[ArchiveBound]:
    """The start of the next compaction's count (`getEarliestInstantToRetainForCompaction`)."""
    if compact_after is None:
        return
    reason = "the next compaction counts delta commits from there on"
    since = [instant.requested for instant in since_compaction(timeline)]
    compactions = [instant.requested for instant in timeline.filter_completed(COMMIT)]
    if len(since) >= compact_after:
        yield ArchiveBound(since[-compact_after], reason)
    elif compactions or since:
        yield ArchiveBound((compactions[-1:] or since)[0], reason)


def _savepoint_bounds(timeline: Timeline) -> Iterator[ArchiveBound]:
    for saved in find_saved_instants(timeline):
        yield ArchiveBound(saved, f"the commit {saved} has a savepoint")


def _why_replaced_counts(table: TableSnapshot, commit: Instant) -> str | None:
    """Return why a replace commit must stay: without it, readers would see replaced file groups.

    Files of a pending clean may be deleted while the metadata table still names them.
    """
    timeline = table.timeline
    if commit.action != REPLACE_COMMIT:
        return None
    replaced = timeline.commit_metadata(commit).replaced
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
    horizon = (last_clean(timeline) or {}).get("earliestCommitToRetain") or ""
    return horizon.strip() or cleans[-1].requested
