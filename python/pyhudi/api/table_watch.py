"""Observes what happens to a table, for the command `top`. Only reads.

`TableWatch` observes a table repeatedly. Each time it lists the timeline once and reads files that
are new; heartbeats are listed while there is pending work. No data file is read or listed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from pyhudi.api.history import row_counts
from pyhudi.api.table_activity import (
    CommitSummary,
    ConsumerLag,
    FileHealth,
    LockStatus,
    PendingWork,
    Status,
    TableActivity,
)
from pyhudi.clock import Clock, parse_instant
from pyhudi.config import lock_options
from pyhudi.config.actions import (
    CLEAN,
    CLUSTERING,
    COMMIT_ACTIONS,
    COMPACTION,
    INDEXING,
    LOG_COMPACTION,
    REPLACE_COMMIT,
    ROLLBACK,
    Instant,
    State,
)
from pyhudi.config.lock_options import ConcurrencyMode, LockOptions
from pyhudi.config.table_config import TableConfig
from pyhudi.config.timeline_layout import HEARTBEAT_FOLDER
from pyhudi.errors import ConfigError, HudiError, TimelineMoved, without_hint
from pyhudi.query.consumers import FOLDER as CONSUMERS
from pyhudi.query.consumers import ShardPosition, parse_positions
from pyhudi.services.archiving import since_compaction
from pyhudi.services.cleaning import commits_since_clean
from pyhudi.slices.slice_builder import groups_of_plan
from pyhudi.storage.storage import Entry, Storage
from pyhudi.timeline import CommitMetadata, Timeline
from pyhudi.txn import process_liveness
from pyhudi.txn.heartbeat import EXPIRES_MS
from pyhudi.txn.locks.providers import table_lock

_PLANNED = (COMPACTION, LOG_COMPACTION, CLUSTERING, REPLACE_COMMIT, CLEAN, INDEXING, ROLLBACK)
"""Actions that are planned first, so a requested instant need not be active."""
_SERVICES = frozenset({COMPACTION, LOG_COMPACTION, CLUSTERING})
_SMALL = 32 * 1024 * 1024
_MAX_LOADS = 3
_SETTLED_MS = 2_000
"""Age at which a file with an equal listing is the one that was read: times may have seconds."""


class TableWatch:
    """Observes one table repeatedly, in one thread. Keeps what it read."""

    def __init__(
        self,
        label: str,
        open_storage: Callable[[], tuple[Storage, Mapping[str, str]]],
        clock: Clock,
        *,
        commits: int,
    ) -> None:
        """label: the table as the caller gave it.

        open_storage: opens it, and returns the options of the handle; called again after an error.
        commits: number of completed commits to describe.
        """
        self.label = label
        """The table as the caller gave it."""
        self._open_storage = open_storage
        self._clock = clock
        self._count = commits
        self._table: _OpenTable | None = None

    def observe(self) -> TableActivity:
        """Return the table's activity. An error is part of it."""
        now = self._clock.now_ms()
        try:
            if self._table is None:
                self._table = _OpenTable(*self._open_storage(), self._clock)
            activity = self._table.observe(self._count, now)
        except (HudiError, OSError) as error:
            self._table = None
            message = without_hint(error) if isinstance(error, HudiError) else str(error)
            return TableActivity(self.label, now, error=message or type(error).__name__)
        return replace(activity, table=self.label)


class _OpenTable:
    """A table that was opened, with what was read of it before."""

    def __init__(self, storage: Storage, options: Mapping[str, str], clock: Clock) -> None:
        self._storage = storage
        self._options = options
        self._clock = clock
        self._config: TableConfig | None = None
        self._instants: tuple[Instant, ...] | None = None
        self._files = _ReadFiles(storage)
        self._work: dict[Instant, _WorkContent] = {}
        self._summaries: dict[str, CommitSummary] = {}
        self._are_services: dict[str, bool] = {}
        self._without_archive: tuple[Instant, ...] | None = None
        """The instants of a timeline none of whose instants was archived."""

    def observe(self, count: int, now: int) -> TableActivity:
        config, timeline = self._load()
        commits = timeline.commits[::-1][:count]
        if timeline.instants is not self._instants:
            self._read_new(config, timeline, commits)
        heartbeats = self._heartbeats(timeline)
        ages = _Ages(config, now)
        summaries = tuple(
            replace(
                self._summaries[commit.file_name],
                age_ms=ages.of(commit.completed or commit.requested),
            )
            for commit in commits
        )
        activity = TableActivity(
            table=self._storage.uri,
            at_ms=now,
            name=config.name,
            type="mor" if config.is_merge_on_read else "cow",
            version=config.version.code,
            lock=self._lock(),
            pending=tuple(self._pending(timeline, heartbeats, ages)),
            consumers=tuple(self._consumers(config, timeline, ages)),
            commits=summaries,
            health=_health(config, timeline, summaries),
        )
        self._instants = timeline.instants
        return activity

    def _load(self, loads: int = _MAX_LOADS) -> tuple[TableConfig, Timeline]:
        """Return properties and timeline. The properties are read if the timeline has changed."""
        config = self._config or TableConfig.load(self._storage, self._clock)
        try:
            timeline = Timeline.load(self._storage, config)
        except TimelineMoved:
            self._config = None
            if loads == 1:
                raise
            return self._load(loads - 1)
        # An empty timeline may be that of a table that was dropped.
        is_same = bool(timeline.instants) and timeline.instants is self._instants
        if self._config is not None and not is_same:
            previous, config = config, TableConfig.load(self._storage, self._clock)
            if (config.layout, config.timezone) != (previous.layout, previous.timezone):
                timeline = Timeline.load(self._storage, config)
        self._config = config
        return config, timeline

    def _read_new(
        self, config: TableConfig, timeline: Timeline, commits: Iterable[Instant]
    ) -> None:
        """Read the files of commits and of pending instants that were not read before."""
        new_commits = [each for each in commits if each.file_name not in self._summaries]
        pending = timeline.pending()
        new_work = [each for each in pending if each not in self._work]
        files = [file for each in new_work for file in timeline.files(each)]
        paths = map(timeline.path, [*new_commits, *files])
        with self._storage.prefetch(files=paths):
            added = {
                each.file_name: _summarize(config, each, timeline.commit_metadata(each))
                for each in new_commits
            }
            read = {each: _content(timeline, each) for each in new_work}
        kept = {each.file_name for each in commits}
        self._summaries = {
            name: summary for name, summary in {**self._summaries, **added}.items() if name in kept
        }
        self._work = {each: self._work.get(each) or read[each] for each in pending}

    # --- pending work -----------------------------------------------------------------------------

    def _heartbeats(self, timeline: Timeline) -> dict[str, Entry]:
        times = {instant.requested for instant in timeline.pending()}
        files = self._storage.list_dir(HEARTBEAT_FOLDER)[1] if times else ()
        return {file.name: file for file in files if file.name in times}

    def _pending(
        self, timeline: Timeline, heartbeats: Mapping[str, Entry], ages: _Ages
    ) -> Iterable[PendingWork]:
        for instant in timeline.pending():
            beat, content = heartbeats.get(instant.requested), self._work[instant]
            data = None if beat is None else self._files.read(beat, ages.now)
            age = None if beat is None else ages.since(beat.modified_ms)
            yield PendingWork(
                instant.requested,
                instant.action,
                content.operation,
                instant.state.value,
                _status(instant, age, data),
                ages.of(instant.requested),
                age,
                process_liveness.local_process(data or b""),
                content.partitions,
                content.file_groups,
                content.rows,
            )

    # --- lock -------------------------------------------------------------------------------------

    def _lock(self) -> LockStatus:
        options = LockOptions.of(self._options)
        if options.mode is ConcurrencyMode.SINGLE_WRITER:
            return LockStatus("none", None, "there is one writer, which takes no lock")
        if options.provider == lock_options.IN_PROCESS:
            return LockStatus(options.provider, None, "only the writers' process knows the holder")
        try:
            holder = table_lock(self._storage, options, self._clock).read_holder()
        except ConfigError:
            raise
        except (HudiError, OSError) as error:
            message = without_hint(error) if isinstance(error, HudiError) else str(error)
            return LockStatus(options.provider, None, message)
        return LockStatus(options.provider, holder)

    # --- consumers --------------------------------------------------------------------------------

    def _consumers(
        self, config: TableConfig, timeline: Timeline, ages: _Ages
    ) -> Iterable[ConsumerLag]:
        files = self._storage.list(CONSUMERS)
        if not files:
            return
        by_completion = config.version.incremental_by_completion_time
        order = "completion" if by_completion else "requested"
        times = sorted(
            (commit.completed or "") if by_completion else commit.requested
            for commit in timeline.commits
            if not self._is_service(timeline, commit)
        )
        for file in files:
            data = self._files.read(file, ages.now)
            if data is None or file.name != "position.json":
                continue
            stored_order, shards = parse_positions(file.path, data)
            name = file.path.split("/")[-2]
            for number, shard in enumerate(shards):
                has_archived = self._has_archived(timeline, shard.position)
                lag = _lag(name, number, len(shards), shard, times, ages)
                if stored_order != order:
                    lag = replace(lag, commits_behind=None, lag_ms=None)
                yield replace(lag, has_archived=has_archived)

    def _has_archived(self, timeline: Timeline, position: str) -> bool:
        """Return whether archived commits may be later than a position."""
        if not timeline.is_before_start(position) or self._without_archive is timeline.instants:
            return False
        if timeline.may_have_archived:
            return True
        self._without_archive = timeline.instants
        return False

    def _is_service(self, timeline: Timeline, commit: Instant) -> bool:
        """Return whether a commit is that of a service, mostly by the names of its files."""
        if timeline.files(commit)[0].action in _SERVICES:
            return True
        if timeline.completes_in_names or commit.action != REPLACE_COMMIT:
            return False
        is_service = self._are_services.get(commit.requested)
        if is_service is None:
            is_service = timeline.commit_metadata(commit).is_service
            self._are_services[commit.requested] = is_service
        return is_service


class _Ages:
    """Ages at one time; none is negative, since clocks differ."""

    def __init__(self, config: TableConfig, now: int) -> None:
        self._config = config
        self.now = now

    def since(self, at_ms: int) -> int:
        return max(self.now - at_ms, 0)

    def of(self, instant: str) -> int | None:
        at_ms = _time_ms(self._config, instant)
        return None if at_ms is None else self.since(at_ms)


class _ReadFiles:
    """Small files that are listed again and again, and read when they have changed."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._contents: dict[str, tuple[Entry, bytes | None]] = {}

    def read(self, file: Entry, now: int) -> bytes | None:
        """Return the content of a listed file, None if it was just deleted."""
        if not file.size:
            return b""
        cached = self._contents.get(file.path)
        if cached is not None and cached[0] == file:
            return cached[1]
        content = self._storage.read_or_none(file.path)
        if now - file.modified_ms > _SETTLED_MS:
            self._contents[file.path] = file, content
        return content


@dataclass(frozen=True)
class _WorkContent:
    """Content of the files of a pending instant."""

    operation: str | None = None
    partitions: int | None = None
    file_groups: int | None = None
    rows: int | None = None


def _content(timeline: Timeline, instant: Instant) -> _WorkContent:
    try:
        groups = {*groups_of_plan(timeline.plan(instant))}
        if groups:
            return _WorkContent(None, len({partition for partition, _ in groups}), len(groups))
        if instant.action not in COMMIT_ACTIONS or instant.state is not State.INFLIGHT:
            return _WorkContent()
        profile = timeline.workload(instant)
    except (HudiError, OSError):
        # It has just ended, or is damaged: then the commands that execute it say so.
        return _WorkContent()
    stats = profile.write_stats
    if not stats:
        return _WorkContent(profile.operation_type)
    return _WorkContent(
        profile.operation_type,
        len(profile.partition_to_write_stats),
        len({stat.file_id for stat in stats} - {""}),
        sum(stat.num_inserts + stat.num_update_writes for stat in stats),
    )


def _status(instant: Instant, age: int | None, heartbeat: bytes | None) -> Status:
    if age is None:
        is_planned = instant.state is State.REQUESTED and instant.action in _PLANNED
        return "planned" if is_planned else "no heartbeat"
    is_failed = age >= EXPIRES_MS or (
        heartbeat is not None and process_liveness.is_from_dead_process(heartbeat)
    )
    if not is_failed:
        return "active"
    return (
        "planned" if instant.state is State.REQUESTED and instant.action in _PLANNED else "failed"
    )


def _lag(
    name: str, number: int, count: int, shard: ShardPosition, times: list[str], ages: _Ages
) -> ConsumerLag:
    first = bisect_right(times, shard.position)
    return ConsumerLag(
        name,
        number,
        count,
        shard.position or None,
        len(times) - first,
        has_archived=False,
        lag_ms=ages.of(times[first]) if first < len(times) else None,
        updated_age_ms=ages.since(shard.updated),
    )


def _summarize(config: TableConfig, commit: Instant, metadata: CommitMetadata) -> CommitSummary:
    stats = metadata.write_stats
    bases = [stat for stat in stats if stat.path and stat.log_files is None]
    requested, completed = (_time_ms(config, t) for t in (commit.requested, commit.completed or ""))
    duration = None if requested is None or completed is None else completed - requested
    return CommitSummary(
        commit.requested,
        commit.completed,
        commit.action,
        metadata.operation_type,
        **row_counts(metadata),
        files=len(stats),
        bytes=sum(stat.total_write_bytes for stat in stats),
        duration_ms=duration if duration is not None and duration >= 0 else None,
        age_ms=None,
        small_files=sum(stat.file_size_in_bytes < _SMALL for stat in bases),
        base_files=len(bases),
    )


def _health(
    config: TableConfig, timeline: Timeline, commits: tuple[CommitSummary, ...]
) -> FileHealth:
    deltas = since_compaction(timeline) if config.is_merge_on_read else []
    return FileHealth(
        active_instants=len(timeline.instants),
        commits_since_clean=commits_since_clean(timeline),
        delta_commits_since_compaction=len(deltas),
        small_files=sum(commit.small_files for commit in commits),
        base_files=sum(commit.base_files for commit in commits),
    )


def _time_ms(config: TableConfig, instant: str) -> int | None:
    """Return the time of an instant, None if it is not a time."""
    try:
        return parse_instant(instant, config.timezone)
    except ConfigError:
        return None
