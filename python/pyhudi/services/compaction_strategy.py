"""Compaction triggers and strategies: when a compaction is due and which slices it takes.

No storage, no plan. Sources: `ScheduleCompactionActionExecutor`, `CompactionUtils`, the classes in
`org.apache.hudi.table.action.compact.strategy` (Hudi 0.15.0, 1.0.2, 1.2.0). If releases differ, it
follows 1.2.0. Partitions are chosen from the whole table, as there without
`hoodie.table.services.incremental.enabled`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta

from pyhudi.clock import parse_instant
from pyhudi.config import compaction_options as names
from pyhudi.config.actions import COMMIT, DELTA_COMMIT
from pyhudi.config.compaction_options import CompactionOptions
from pyhudi.errors import ConfigError
from pyhudi.services.archiving import since_compaction
from pyhudi.slices.compaction_plan import io_mib
from pyhudi.slices.file_slice import FileSlice
from pyhudi.timeline import Timeline

_DAY_FORMAT = "%Y/%m/%d"
_DAY = re.compile(r"\d{4}/\d{1,2}/\d{1,2}(?!\d)", re.ASCII)


# --- triggers -------------------------------------------------------------------------------------


def is_due(timeline: Timeline, options: CompactionOptions, now: str) -> bool:
    """Return whether the trigger fires at an instant `now`."""
    deltas = timeline.filter_completed(DELTA_COMMIT)
    if not deltas:
        return False
    if options.trigger == names.AFTER_LAST_REQUEST:
        return len(_since_last_request(timeline)) >= options.max_delta_commits
    has_enough_commits = len(since_compaction(timeline)) >= options.max_delta_commits
    if options.trigger == names.NUM_COMMITS:
        return has_enough_commits
    last = next(reversed(timeline.filter_completed(COMMIT)), deltas[0])
    has_enough_time = _seconds(last.requested, now) >= options.max_delta_seconds
    if options.trigger == names.TIME_ELAPSED:
        return has_enough_time
    return (
        (has_enough_commits and has_enough_time)
        if options.trigger == names.NUM_AND_TIME
        else (has_enough_commits or has_enough_time)
    )


def _since_last_request(timeline: Timeline) -> list[str]:
    """Return delta commits, pending ones too, requested since the last compaction was planned."""
    planned = [*timeline.pending_compactions] or [*timeline.filter_completed(COMMIT)]
    last = planned[-1].requested if planned else ""
    deltas = (*timeline.filter_completed(DELTA_COMMIT), *timeline.pending(DELTA_COMMIT))
    return [delta.requested for delta in deltas if delta.requested > last]


def _seconds(earlier: str, later: str) -> int:
    """Return the difference in whole seconds, since older instants have no milliseconds."""
    return parse_instant(later, "UTC") // 1000 - parse_instant(earlier, "UTC") // 1000


# --- strategies -----------------------------------------------------------------------------------


def choose(
    slices: Sequence[FileSlice],
    options: CompactionOptions,
    today: date,
    partitions: Iterable[str],
) -> list[FileSlice]:
    """Choose slices with log files by the strategies, one after the other.

    partitions: candidates, whatever their content. Raises `ConfigError` if a strategy uses days and
    a partition's path does not begin with one.
    """
    selected = set(partitions)
    for strategy in options.strategies:
        selected = _partitions(strategy, selected, options, today)
    chosen = [slice_ for slice_ in slices if slice_.partition in selected]
    for strategy in options.strategies:
        chosen = _sort_slices(strategy, chosen, options)
    return chosen


def _partitions(
    strategy: str, partitions: set[str], options: CompactionOptions, today: date
) -> set[str]:
    if strategy == names.BY_PATTERN:
        return {path for path in partitions if re.search(options.partition_pattern, path)}
    if strategy == names.DAY_BASED:
        newest = sorted(partitions, key=lambda path: (day_of(path), path), reverse=True)
        return set(newest[: options.target_days])
    if strategy in (names.RECENT_DAYS, names.OLDER_DAYS):
        first = today - timedelta(days=min(options.target_days, (today - date.min).days))
        recent = strategy == names.RECENT_DAYS
        return {path for path in partitions if (day_of(path) >= first) is recent}
    return partitions


def day_of(partition: str) -> date:
    """Return the day at the start of a partition path: `yyyy/MM/dd`.

    Raises `ConfigError` for other paths.
    """
    values = "/".join(level.rsplit("=", 1)[-1] for level in partition.split("/"))
    match = _DAY.match(values)
    try:
        return datetime.strptime(match[0] if match else values, _DAY_FORMAT).date()  # noqa: DTZ007 - a day has no zone
    except ValueError as error:
        msg = f"{names.STRATEGY}: the partition {partition!r} does not begin with a date"
        hint = "Use partition paths such as 2026/11/23 or 2026/11/23/05."
        raise ConfigError(msg, hint=hint) from error


def _sort_slices(
    strategy: str, slices: list[FileSlice], options: CompactionOptions
) -> list[FileSlice]:
    if strategy == names.LOG_FILE_SIZE:
        large = [slice_ for slice_ in slices if slice_.log_size >= options.log_size]
        return _limit_io(sorted(large, key=lambda slice_: slice_.log_size, reverse=True), options)
    if strategy == names.LOG_FILE_NUMBER:
        max_slices = [slice_ for slice_ in slices if len(slice_.logs) >= options.log_number]
        return _limit_io(sorted(max_slices, key=lambda slice_: -len(slice_.logs)), options)
    if strategy == names.RECENT_DAYS:
        return sorted(slices, key=lambda slice_: day_of(slice_.partition), reverse=True)
    if strategy == names.DAY_BASED:
        newest_first = sorted(slices, key=lambda slice_: day_of(slice_.partition), reverse=True)
        return _limit_io(newest_first, options)
    return _limit_io(slices, options) if strategy == names.BOUNDED_IO else slices


def _limit_io(slices: Iterable[FileSlice], options: CompactionOptions) -> list[FileSlice]:
    """Return slices up to the I/O limit, including the one that crosses it."""
    remaining_mib, selected = options.target_io_mib, []
    for slice_ in slices:
        if remaining_mib <= 0:
            break
        remaining_mib -= io_mib(slice_)
        selected.append(slice_)
    return selected
