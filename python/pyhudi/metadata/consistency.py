"""Checks that a metadata table can be trusted: it misses no commit and no file.

A reader of a metadata table with a gap would lose rows without an error, so this module compares
the timelines with storage. The Rust core checks contents when it reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pyhudi.config.actions import DELTA_COMMIT, LOG_COMPACTION
from pyhudi.config.file_names import file_name_of, parse_log_name
from pyhudi.config.metadata_names import FOLDER, REBUILD_HINT
from pyhudi.errors import CorruptTable, HistoryUnavailable
from pyhudi.metadata.new_file_groups import FIRST_LOG_TOKEN
from pyhudi.timeline import Instant, Timeline
from pyhudi.timeline.rollbacks import was_rolled_back

_ORIGIN = "00000000000000"
"""Prefix of the instants at which Hudi initializes a metadata table."""
_MILLISECOND_TIME = 17
"""Digits of an instant; up to table version 6 those of services and initialization have 3 more."""


class StaleMetadataTable(CorruptTable):
    """The metadata table misses commits of the data table."""


def check_not_stale(data: Timeline, metadata: Timeline) -> None:
    """Raise `StaleMetadataTable` if the metadata table misses a completed commit of the data table.

    A commit of the data table has a delta commit of the same time in the metadata table, completed
    before it (`HoodieBackedTableMetadataWriter`). Older ones may be archived, or covered by the
    initialization of the metadata table.
    """
    missing = missing_commits(data, metadata)
    if missing:
        msg = f"{FOLDER} is out of date: it does not have commit {missing[0]} of the table"
        raise StaleMetadataTable(msg, hint=REBUILD_HINT)


def missing_commits(data: Timeline, metadata: Timeline) -> list[str]:
    """Return completed commits of the data table that the metadata table misses, oldest first."""
    recorded = {instant.requested for instant in metadata.filter_completed()}
    return [time for time in _commits_to_expect(data, metadata) if time not in recorded]


def _commits_to_expect(data: Timeline, metadata: Timeline) -> Iterator[str]:
    """Return commits of the data table that the metadata table must have."""
    first = metadata.commits[0].requested if metadata.commits else ""
    # A service that was scheduled before the initialization is older than what it covers.
    begin = _start_time(metadata) if first and metadata.completes_in_names else ""
    since = _first_data_instant(metadata) or first[:_MILLISECOND_TIME]
    for commit in data.commits:
        if commit.requested > since and (commit.completed or commit.requested) > begin:
            yield commit.requested


def may_be_ahead(data: Timeline, metadata: Timeline) -> bool:
    """Return whether a metadata table may have commits that the loaded data timeline does not.

    The answer can be a false alarm: after the metadata table or a partition of it was built, or
    while a writer is between its two timelines. The current timeline of the data table decides.
    """
    completed = {instant.requested for instant in data.filter_completed()}
    pending = {instant.requested for instant in data.pending()}
    latest = data.latest_time() or ""
    for instant in metadata.filter_completed(DELTA_COMMIT):
        time = instant.requested
        is_later = time in pending or time[:_MILLISECOND_TIME] > latest
        if time not in completed and is_later and not _is_log_compaction(metadata, instant):
            return True
    if not metadata.commits or not (completed or pending):
        return False
    # It may also be that of a table that was recreated.
    return _start_time(metadata) > min([latest, *pending])


def find_writes_since(data: Timeline, metadata: Timeline) -> set[str]:
    """Return times of writes in a metadata table that started after the data timeline was loaded.

    They are later than every instant of that timeline. An earlier time that is not on it may be
    archived.
    """
    latest = data.latest_time() or ""
    return {
        instant.requested
        for instant in metadata.filter_completed(DELTA_COMMIT)
        if instant.requested > latest
        and has_data_instant(instant.requested)
        and not _is_log_compaction(metadata, instant)
    }


def _start_time(metadata: Timeline) -> str:
    """Return when the first commit of a metadata table was built: it may cover everything before.

    Once the initial commits are archived, it is only a time at which the table existed.
    """
    if metadata.completes_in_names:
        return min(commit.completed or commit.requested for commit in metadata.commits)
    return metadata.commits[0].requested[:_MILLISECOND_TIME]


def _is_log_compaction(metadata: Timeline, instant: Instant) -> bool:
    return any(file.action == LOG_COMPACTION for file in metadata.files(instant))


def has_data_instant(time: str) -> bool:
    """Return whether a delta commit of that time belongs to an instant of the data table."""
    return len(time) <= _MILLISECOND_TIME and not is_initial_time(time)


def is_initial_time(time: str) -> bool:
    """Return whether it is an initial time, which recurs when a metadata table is rebuilt."""
    return time.startswith(_ORIGIN)


def _first_data_instant(metadata: Timeline) -> str | None:
    """Return the first delta commit that is neither an initialization nor a service."""
    times = (
        instant.requested
        for instant in metadata.filter_completed(DELTA_COMMIT)
        if has_data_instant(instant.requested)
    )
    return next(times, None)


def check_files(metadata: Timeline, partition: str, present: Mapping[str, tuple[str, int]]) -> None:
    """Raise `CorruptTable` if a file of a partition of the metadata table is missing or truncated.

    present: file id and size of each file on storage, by name. Checks the newest base file of each
    file group and all later log files, as their commits name them. Commits from before the
    partition was built do not count: it may have been dropped in between.
    """
    created = _creation_order(metadata, present)
    groups = {file_id for file_id, _ in present.values()}
    base_times: dict[str, str] = {}
    for instant in reversed(metadata.commits):
        if _sort_key(metadata, instant) < created:
            continue
        if (
            groups
            and groups <= base_times.keys()
            and not _may_apply(metadata, instant, base_times.values())
        ):
            continue
        stats = metadata.commit_metadata(instant).partition_to_write_stats.get(partition, ())
        for stat in stats:
            group = stat.file_id
            if group in base_times and not _may_apply(metadata, instant, (base_times[group],)):
                continue
            name = file_name_of(stat.path)
            if name not in present and was_rolled_back(metadata, instant.requested):
                # Its writer stalled between its last check and its last file. It rolls that back,
                # unless it has failed since.
                break
            _check_file(f"{partition}/{name}", present.get(name), stat.file_size_in_bytes)
            if not name.startswith("."):
                base_times[group] = instant.requested


def _creation_order(metadata: Timeline, present: Mapping[str, tuple[str, int]]) -> str:
    """Return when a partition was built, as `_sort_key` returns it; "" if no file shows it.

    Its file groups begin with log files that no task wrote.
    """
    logs = (parse_log_name(name) for name in present)
    times = {log.instant for log in logs if log is not None and log.write_token == FIRST_LOG_TOKEN}
    if not metadata.completes_in_names:
        return max(times, default="")
    return max((_completion(metadata, time) for time in times), default="")


def _completion(metadata: Timeline, time: str) -> str:
    """Return when a commit completed; "" if no timeline has it."""
    try:
        return metadata.completion_time(time) or metadata.archive.completion_time(time)
    except HistoryUnavailable:
        return ""


def _sort_key(metadata: Timeline, instant: Instant) -> str:
    """Return the sort key that orders two commits."""
    return (instant.completed or "") if metadata.completes_in_names else instant.requested


def _may_apply(metadata: Timeline, instant: Instant, bases: Iterable[str]) -> bool:
    """Return whether log files of an older instant may apply to a base file: if completed later.

    Up to table version 6 they never do.
    """
    completed = instant.completed
    return metadata.completes_in_names and completed is not None and completed >= min(bases)


def _check_file(path: str, stored: tuple[str, int] | None, size: int) -> None:
    if stored is None:
        raise CorruptTable(f"{path} is missing", hint=REBUILD_HINT)
    if stored[1] < size:
        raise CorruptTable(f"{path} has {stored[1]} of its {size} bytes", hint=REBUILD_HINT)
