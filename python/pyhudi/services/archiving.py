"""Archiving: which completed instants leave the active timeline.

The same for a data table and a metadata table. Readers take what is older than the active timeline
for committed, so nothing may leave that a reader, a writer or a service has to know more of; what
keeps it is told. How instants get into the archive is `timeline/archiving.py`'s part. Sources:
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
from pyhudi.config.archive_file_options import HistoryOptions
from pyhudi.config.archive_options import ArchiveOptions
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
from pyhudi.txn import conflicts
from pyhudi.txn.recovery import files_after_rollback
from pyhudi.txn.savepoint import find_saved_instants

_PART = 200
"""Instants that go in one section, which writers wait for."""
_PARTS, _PARTS_REMOTE = 16, 100
"""Sections that all that is due takes at most: each lists the timeline, so that of a very long one
more goes at a time. In a bucket a section of many instants keeps writers waiting for longer."""


@dataclass(frozen=True)
class ArchivingPolicy:
    """What stays in the active timeline."""

    least: int
    """Commits that stay."""
    most: int
    """Commits beyond which instants go until the least are left."""
    retained: CleanOptions
    """Commits whose file slices cleaning retains; they stay too."""
    compact_after: int | None
    """Delta commits from which the next compaction counts, None where it counts none."""
    bounds: Callable[[TableSnapshot], Iterable[ArchiveBound]] = lambda _: ()
    """Gives what else keeps instants; asked only where something may go."""
    history: HistoryOptions = field(default_factory=HistoryOptions)
    """How the archive's files are written."""


@dataclass(frozen=True)
class _Choice:
    instants: tuple[Instant, ...] = ()
    """Oldest first."""
    held: ArchiveBound | None = None
    """What keeps more than the least number of commits."""


# --- a data table's -------------------------------------------------------------------------------


def archive_table(table: TableSnapshot, options: ArchiveOptions) -> ServiceResult:
    """Archives what is due. Raises `CommitConflict` where a restore has begun, `LockTimeout`."""
    started = table.clock.now_ms()
    return _result(table, *archive(table, _policy(table, options)), started)


def preview_archive(table: TableSnapshot, options: ArchiveOptions) -> ServiceResult:
    """What `archive_table` would do now."""
    chosen = _choice(table, _policy(table, options))
    found = _result(table, chosen.instants, chosen.held, table.clock.now_ms())
    return replace(found, dry_run=True)


def is_due(table: TableSnapshot, options: ArchiveOptions) -> bool:
    """Whether something is to be archived after a commit."""
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
    for companion in table.companions:
        bound = companion.archive_bound(table)
        if bound is not None:
            yield bound


def _result(
    table: TableSnapshot, gone: Sequence[Instant], held: ArchiveBound | None, started: int
) -> ServiceResult:
    return ServiceResult(
        "archive",
        instants=tuple(instant.requested for instant in gone),
        left=() if held is None else (held.reason,),
        duration_ms=table.clock.now_ms() - started,
    )


# --- any table's ----------------------------------------------------------------------------------


def archive(
    table: TableSnapshot, policy: ArchivingPolicy
) -> tuple[list[Instant], ArchiveBound | None]:
    """Archives what is due, in parts between which writers can go on.

    table: as it was lately. Gives what has gone, and what keeps more.
    """
    gone: list[Instant] = []
    choice = _choice(table, policy)
    parts = _PARTS_REMOTE if is_remote(table.storage.uri) else _PARTS
    most = max(_PART, -(-len(choice.instants) // parts))
    while choice.instants:
        with table.guard.critical_section():
            now = table.with_timeline(conflicts.reload_timeline(table))
            # Once it has begun, it goes on to the least.
            choice = _choice(now, replace(policy, most=policy.least) if gone else policy)
            part = choice.instants[:most]
            if part:
                table.guard.check_held()
                held = _remove_missed(now, part)
                if held is not None:
                    return gone, held
                archive_instants(
                    now.storage,
                    now.config,
                    now.timeline,
                    part,
                    policy.history,
                    table.guard.check_held,
                )
                _remove_markers(now, part)
        gone += part
        if len(part) == len(choice.instants):
            break
    return gone, choice.held


def _remove_missed(table: TableSnapshot, going: Sequence[Instant]) -> ArchiveBound | None:
    """Removes files that came after their rollback: once the timeline is past them, they count.

    Gives what keeps all that would go, where a plan names such a file.
    """
    timeline = table.timeline
    start = timeline.without(going).start or ""
    passing: set[str] = set()
    records: dict[str, list[dict[str, Any]]] = {}
    for undone in timeline.filter_completed(ROLLBACK):
        record = timeline.read(undone) or {}
        for target in record.get("commitsRollback") or ():
            records.setdefault(target, []).append(record)
            if undone in going or target < start:
                passing.add(target)
    # Of a plan others may be making files again.
    passing -= {one.requested for one in timeline.pending()}
    for target in passing:
        if not timeline.is_before_start(target):
            found = files_after_rollback(table, timeline, target, records[target])
            if found and found & files_of_plans(timeline):
                return ArchiveBound(
                    target, f"a planned service names files of {target}, rolled back"
                )
            table.storage.delete_all(found)
    return None


def _remove_markers(table: TableSnapshot, instants: Iterable[Instant]) -> None:
    left = set(markers.instants_with_markers(table.storage))
    for instant in instants:
        if instant.requested in left:
            markers.delete_all(table.storage, instant.requested)


def since_compaction(timeline: Timeline) -> list[Instant]:
    """Delta commits completed since the last compaction, all where there was none."""
    last = next((commit.requested for commit in reversed(timeline.filter_completed(COMMIT))), "")
    named = timeline.completes_in_names
    deltas = timeline.filter_completed(DELTA_COMMIT)
    return [
        delta for delta in deltas if ((delta.completed if named else delta.requested) or "") > last
    ]


# --- which instants -------------------------------------------------------------------------------


def _choice(table: TableSnapshot, policy: ArchivingPolicy) -> _Choice:
    timeline = table.timeline
    least, most = _least_and_most(timeline, policy)
    services = _services(timeline, least, most)
    commits = _Choice()
    if len(timeline.commits) > most:
        commits = _commits(table, policy, least)
    found = [*services, *commits.instants]
    if not found:
        return commits
    bound = _first(policy.bounds(table))
    chosen = [instant for instant in found if bound is None or instant.requested < bound.time]
    held = commits.held if len(chosen) == len(found) else bound
    if timeline.completes_in_names:
        last = max((instant.requested for instant in chosen), default="")
        others = timeline.filter_completed(CLEAN, ROLLBACK)
        chosen += [instant for instant in others if instant.requested < last]
    chosen.sort(key=lambda instant: (instant.requested, instant.action))
    return _Choice(tuple(chosen), held)


def _least_and_most(timeline: Timeline, policy: ArchivingPolicy) -> tuple[int, int]:
    """Commits that stay, and how many are too many. All that cleaning retains stay."""
    least, most = policy.least, policy.most
    horizon = _horizon(timeline, policy.retained)
    if horizon is None:
        return least, most
    retained = sum(commit.requested > horizon.requested for commit in timeline.commits) + 2
    return (least, most) if least >= retained else (retained, retained + most - least)


def _horizon(timeline: Timeline, retained: CleanOptions) -> Instant | None:
    """What cleaning would retain now; hours are counted back from the last commit."""
    if timeline.last_commit is None:
        return None
    last = timeline.last_commit.requested
    try:
        # The clock of the wall, whatever its zone.
        since = hours_before(parse_instant(last, "UTC"), retained.hours, "UTC")
    except ConfigError:
        return None
    if is_bootstrap(last):
        # Its instant is no time: nothing has come after it.
        return None
    stays = retention(timeline, retained, since[:SECOND_INSTANT_DIGITS])
    return None if stays is None else stays.horizon


def _services(timeline: Timeline, least: int, most: int) -> list[Instant]:
    """Cleans and rollbacks, which up to table version 6 are counted apart."""
    if timeline.completes_in_names:
        return []
    found: list[Instant] = []
    for action in (CLEAN, ROLLBACK):
        instants = timeline.filter_completed(action)
        found += instants[: len(instants) - least] if len(instants) > most else ()
    return found


def _commits(table: TableSnapshot, policy: ArchivingPolicy, least: int) -> _Choice:
    """The oldest commits, up to the first that somebody needs."""
    timeline = table.timeline
    bounds = [
        *_before_pending(timeline),
        *_for_compaction(timeline, policy.compact_after),
        *_savepoint_bounds(timeline),
    ]
    held = _first(bounds)
    free = [commit for commit in timeline.commits if held is None or commit.requested < held.time]
    wanted = len(timeline.commits) - least
    gone = free[:wanted]
    for at, commit in enumerate(gone):
        reason = _why_replaced_counts(table, commit)
        if reason is not None:
            return _Choice(tuple(gone[:at]), ArchiveBound(commit.requested, reason))
    return _Choice(tuple(gone), held if len(gone) < wanted else None)


def _first(bounds: Iterable[ArchiveBound]) -> ArchiveBound | None:
    """The one that keeps the most."""
    return min(bounds, key=lambda bound: bound.time, default=None)


def _before_pending(timeline: Timeline) -> Iterator[ArchiveBound]:
    """The commit before the oldest pending write, and what that write has to be checked against.

    Hudi keeps the first alone, and misses a commit that was requested earlier still and completed
    while the write was at work.
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
    """What the next compaction counts from (`getEarliestInstantToRetainForCompaction`)."""
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
    """Why a replace commit must stay: without it, file groups that it took away would count again.

    Files that a pending clean removes may be gone while the metadata table still names them.
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
    """What was replaced before this instant was seen by the last clean."""
    cleans = timeline.filter_completed(CLEAN)
    if not cleans:
        return ""
    horizon = (last_clean(timeline) or {}).get("earliestCommitToRetain") or ""
    return horizon.strip() or cleans[-1].requested
