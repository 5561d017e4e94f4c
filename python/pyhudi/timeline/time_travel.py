"""A timeline as it was at an earlier time, and the checks that its snapshot is complete.

Time travel uses requested times in every table version. Source: `TimelineUtils` and
`TableSchemaResolver` (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyhudi.config.actions import CLEAN, COMMIT_ACTIONS, SAVEPOINT, Instant
from pyhudi.errors import ConfigError, HistoryUnavailable
from pyhudi.timeline.active import Timeline
from pyhudi.timeline.instant_range import InstantRange


def timeline_as_of(timeline: Timeline, instant: str) -> Timeline:
    """Return the timeline without instants requested after an instant.

    Raises:
        HistoryUnavailable: an earlier write is not complete; the cleaner has removed files of that
            snapshot, unless a savepoint has its time; or the time is before the first commit.
        ConfigError: the timeline was cut at an earlier time.
    """
    if timeline.bound is not None and instant > timeline.bound:
        raise ConfigError(
            f"as_of {instant} is after {timeline.bound}, the time that the table was opened as of",
            hint="Open the table without as_of.",
        )
    _check_complete(timeline, instant)
    _check_not_cleaned(timeline, instant)
    check_after_first_commit(timeline, InstantRange(until=instant), f"as_of {instant}")
    return timeline.until(instant)


def check_after_first_commit(
    timeline: Timeline, instant_range: InstantRange, requested: str
) -> None:
    """Raise `HistoryUnavailable` if all commits of a table are after the end of a range.

    A table without commits is empty at any time. requested: the range's end for the message.
    """
    if not timeline.commits or any(map(instant_range.contains, timeline.commits)):
        return
    undated = instant_range.by_completion and not timeline.completes_in_names
    archived = timeline.archive.commits(
        InstantRange(until=instant_range.until) if undated else instant_range
    )
    if not archived:
        all_commits = (*timeline.commits, *timeline.archive.commits())
        first = min(filter(None, map(instant_range.time_of, all_commits)), default="")
        raise HistoryUnavailable(
            f"{requested} is before the first commit, {first}",
            hint="Use a later time; inspect.commits() lists the commits. Times without an offset "
            f"are in the zone {timeline.archive.zone}.",
        )


def first_incomplete_commit(timeline: Timeline) -> Instant | None:
    """Return the oldest pending write, without planned compactions and clusterings.

    It may still add rows to earlier snapshots.
    """
    return next(incomplete_writes(timeline), None)


def incomplete_writes(timeline: Timeline) -> Iterator[Instant]:
    """Return the pending writes, oldest first, without planned compactions and clusterings."""
    pending = timeline.pending(*COMMIT_ACTIONS)
    return (write for write in pending if not timeline.is_clustering(write))


def schema_before_start(timeline: Timeline) -> str | None:
    """Return the schema at the time at which a timeline was cut, if no active commit has it.

    It is that of the newest archived commit with one, else that of the newest commit.
    """
    if timeline.bound is None:
        return None
    archive, uncut = timeline.archive, timeline.uncut
    for instant in reversed(archive.commits(InstantRange(until=timeline.bound))):
        schema = archive.commit_metadata(instant).table_schema
        if schema:
            return schema
    schemas = (uncut.commit_metadata(instant).table_schema for instant in reversed(uncut.commits))
    return next((schema for schema in schemas if schema), None)


def _check_complete(timeline: Timeline, instant: str) -> None:
    pending = first_incomplete_commit(timeline)
    if pending is not None and instant >= pending.requested:
        raise HistoryUnavailable(
            f"as_of {instant} is not before the incomplete write {pending}",
            hint="Read the table without as_of, or wait until that write is done or rolled back.",
        )


def _check_not_cleaned(timeline: Timeline, instant: str) -> None:
    """Check that the cleaner has not removed files of the snapshot.

    A cleaner that keeps file versions records no earliest commit to retain; then Hudi uses the
    first active commit, and so does pyhudi. If the newest clean was archived, it is read there. A
    savepoint retains the files of its commit, but Hudi refuses to read at its time all the same.
    `slices/cleaned_files.py` finds the files that the savepoint does not retain.
    """
    if any(saved.requested == instant for saved in timeline.uncut.filter_completed(SAVEPOINT)):
        return
    clean = _last_clean(timeline, instant)
    if clean is None:
        return
    earliest = clean.get("earliestCommitToRetain") or None
    if earliest is None:
        commits = timeline.uncut.commits
        earliest = commits[0].requested if commits else None
    if earliest is not None and instant < earliest:
        raise HistoryUnavailable(
            f"as_of {instant} is before {earliest}: files of that snapshot have been cleaned",
            hint="Increase the cleaner's retention to read older snapshots.",
        )


def _last_clean(timeline: Timeline, instant: str) -> dict[str, Any] | None:
    uncut_timeline = timeline.uncut
    active = uncut_timeline.filter_completed(CLEAN)
    if active:
        return uncut_timeline.read(active[-1]) or {}
    if not uncut_timeline.is_before_start(instant):
        return None
    archived = uncut_timeline.archive.last_clean()
    return None if archived is None else uncut_timeline.archive.read(archived) or {}
