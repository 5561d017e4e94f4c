"""One read of a file for file statistics, partition statistics and its bloom filter.

The partition types of this package decide which of them a table has, and for which files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from pyhudi import _native
from pyhudi.config.file_names import parse_log_name
from pyhudi.config.metadata_names import BLOOM_FILTERS, COLUMN_STATS, PARTITION_STATS
from pyhudi.errors import MissingFile
from pyhudi.metadata.changed_slices import is_log_path
from pyhudi.metadata.file_group_handle import FileGroupHandle, open_groups
from pyhudi.metadata.index_definitions import IndexDefinition
from pyhudi.metadata.initial_records import Source
from pyhudi.metadata.partition_types.base import Change
from pyhudi.metadata.record_tasks import RecordTask
from pyhudi.metadata.statistics_columns import statistics_columns
from pyhudi.slices.bootstrap import WrittenFile, files_with_sources, sources_of
from pyhudi.slices.file_slice import BootstrapFile
from pyhudi.storage.storage import Entry, Storage
from pyhudi.table.participants import Clean

_FILES_OF_A_TASK = 64
MAX_LOOK_UP_TASKS = 64
"""Maximum number of tasks that look up other files: each reads the index, which grows."""
_MIN_LOOK_UPS = 256
"""Minimum number of other files that a task of a small commit looks up, if there are as many."""
_SMALL = 8 * 1024 * 1024
"""Bytes of a small commit: reading its files takes less time than reading the index twice."""
_NO_COLUMNS = pa.schema([])


@dataclass(frozen=True)
class FileStatsTask(RecordTask):
    """Statistics and bloom filters of the files that were added to one partition."""

    partition: str
    files: tuple[tuple[str, bool], ...]
    """Paths, and whether each is a log file."""
    instant: str
    columns: pa.Schema = _NO_COLUMNS
    """Columns with statistics."""
    value_types: bool = False
    partition_stats: bool = False
    bloom_filters: bool = False
    other_files: tuple[tuple[str, bool], ...] | None = None
    """The other files of the partition, if its bounds must be tight."""
    existing_stats: _native.KnownStats | None = None
    """The records of those files in `column_stats`; without them the files are read."""
    may_be_deleted: bool = False
    """The cleaner may delete files while they are read; those are skipped."""
    sources: Mapping[str, BootstrapFile] = field(default_factory=dict)
    """The location of the source rows of each skeleton file, by path."""

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield a record for each file and column, and for each partition and column."""
        yield self._statistics(self.files)

    def _statistics(self, files: tuple[tuple[str, bool], ...]) -> pa.RecordBatch:
        try:
            return self._statistics_of(files)
        except MissingFile:
            remaining = tuple(file for file in files if self.task_context.storage.exists(file[0]))
            if not self.may_be_deleted or remaining == files:
                raise
            return self._statistics(remaining)

    def _statistics_of(self, files: tuple[tuple[str, bool], ...]) -> pa.RecordBatch:
        return self.task_context.record_builder().file_facts(
            self.task_context.storage.native,
            self.partition,
            self._with_sources(files),
            columns=self.columns,
            value_types=self.value_types,
            partition_stats=self.partition_stats,
            bloom_filters=self.bloom_filters,
            instant=self.instant,
            rest=None
            if self.other_files is None
            else (self._with_sources(self.other_files), self._read_existing()),
        )

    def _read_existing(self) -> _native.KnownStats:
        if self.existing_stats is not None:
            return self.existing_stats
        nothing = _native.MetadataPartition(self.task_context.storage.native, [])
        return nothing.known_stats([], self.columns)

    def _with_sources(self, files: Iterable[tuple[str, bool]]) -> list[WrittenFile]:
        storage = self.task_context.storage
        return files_with_sources(storage, self.columns, files, self.sources)


@dataclass(frozen=True)
class TightTask(RecordTask):
    """Statistics of the same columns in some partitions, with tight bounds."""

    parts: tuple[FileStatsTask, ...]
    """One for each partition, with its other files."""
    index: tuple[FileGroupHandle, ...]
    """The file groups of `column_stats`."""

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the records of each part; one call looks up those of all other files."""
        other_files = [
            (part.partition, path) for part in self.parts for path, _ in part.other_files or ()
        ]
        existing_stats = None
        if other_files and self.index:
            columns = self.parts[0].columns
            cache = statistics_cache(self.task_context.storage, columns)
            existing_stats = open_groups(self.index).known_stats(other_files, columns, cache)
        for part in self.parts:
            yield from replace(part, existing_stats=existing_stats).rows()


def statistics_cache(storage: Storage, columns: pa.Schema) -> _native.KeptStats:
    """Return the cache of the statistics of a table's files, for a set of columns."""
    key = storage.uri, f"statistics of {columns.to_string(show_field_metadata=False)}"
    cache: _native.KeptStats | None = storage.cache.get(key)
    if cache is None:
        storage.cache.put(key, _native.KeptStats(), weight=1)
        cache = storage.cache.get(key) or _native.KeptStats()
    return cache


def tight_tasks(
    parts: Iterable[FileStatsTask], index: tuple[FileGroupHandle, ...], written_bytes: int
) -> Iterator[TightTask]:
    """Return at most `MAX_LOOK_UP_TASKS` tasks for the parts of each set of columns.

    written_bytes: of the commit's files, which the tasks read; a small commit has fewer tasks.
    """
    min_look_ups = _MIN_LOOK_UPS if written_bytes <= _SMALL else 0
    by_columns: dict[pa.Schema, list[FileStatsTask]] = {}
    for part in parts:
        by_columns.setdefault(part.columns, []).append(part)
    for same in by_columns.values():
        min_parts = -(-len(same) // MAX_LOOK_UP_TASKS)
        chunk: list[FileStatsTask] = []
        look_ups = 0
        for part in same:
            chunk.append(part)
            look_ups += len(part.other_files or ())
            if len(chunk) >= min_parts and look_ups >= min_look_ups:
                yield TightTask(part.task_context, tuple(chunk), index)
                chunk, look_ups = [], 0
        if chunk:
            yield TightTask(chunk[0].task_context, tuple(chunk), index)


@dataclass(frozen=True)
class DeletedFilesTask(RecordTask):
    """Removes the records of deleted files from one partition of the metadata table."""

    name: str
    """The partition's name."""
    clean: Clean
    columns: tuple[str, ...] = ()
    """Columns with statistics."""
    filters: bool = False
    """Whether it has bloom filters."""

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield a deletion for each file and column, or for each file."""
        record_builder = self.task_context.record_builder()
        for path, files in self.clean.files.items():
            yield record_builder.forget_files(
                self.name, path, list(files), columns=list(self.columns), filters=self.filters
            )


def columns_of(change: Change) -> pa.Schema:
    """Return columns whose statistics a commit changes; none without statistics."""
    if COLUMN_STATS not in change.groups:
        return _NO_COLUMNS
    return statistics_columns(change.definitions, change.schema)


def tasks_for_commit(change: Change, columns: pa.Schema) -> Iterator[FileStatsTask]:
    """Return all records of a commit's files, one task for each partition."""
    for partition, stats in change.metadata.partition_to_write_stats.items():
        yield FileStatsTask(
            change.task_context,
            partition,
            tuple((stat.path, is_log_path(stat.path)) for stat in stats if stat.path),
            columns=columns,
            value_types=_has_types(change.definitions),
            partition_stats=bool(columns.names) and PARTITION_STATS in change.groups,
            bloom_filters=BLOOM_FILTERS in change.groups,
            instant=change.instant,
        )


def new_task(source: Source, groups: Mapping[str, int]) -> FileStatsTask:
    """Return a task for new partitions, without files. groups: numbers of their file groups."""
    return FileStatsTask(source.task_context(groups), "", (), source.last_instant)


def statistics_task(source: Source, groups: Mapping[str, int]) -> FileStatsTask:
    """Return the same with all statistics of files."""
    columns = statistics_columns(source.definitions, source.table.columns)
    return replace(
        new_task(source, groups), columns=columns, value_types=_has_types(source.definitions)
    )


def _has_types(definitions: Mapping[str, IndexDefinition]) -> bool:
    """Return whether statistics have the types of values (index version 2)."""
    definition = definitions.get(COLUMN_STATS)
    return definition is not None and definition.version > 1


def tasks_for_all_files(source: Source, task: FileStatsTask, *, logs: bool) -> list[FileStatsTask]:
    """Return tasks of some files each. logs: with log files."""
    return _of_files(
        source, source.files, replace(task, may_be_deleted=source.concurrent), logs=logs
    )


def tasks_for_new_files(
    before: Source, now: Source, task: FileStatsTask, *, logs: bool
) -> list[FileStatsTask]:
    """Return the same for files that were added since an earlier snapshot."""
    earlier = {entry.path for entries in before.files.values() for entry in entries}
    new_files = {
        partition: [entry for entry in entries if entry.path not in earlier]
        for partition, entries in now.files.items()
    }
    return _of_files(now, new_files, task, logs=logs)


def find_removed_files(before: Source, now: Source) -> Clean | None:
    """Return the files deleted since an earlier snapshot, as if by one clean."""
    remaining = {entry.path for entries in now.files.values() for entry in entries}
    removed = {
        partition: [entry.name for entry in entries if entry.path not in remaining]
        for partition, entries in before.files.items()
    }
    removed = {partition: names for partition, names in removed.items() if names}
    return Clean(now.last_instant, removed) if removed else None


def _of_files(
    source: Source, files: Mapping[str, Iterable[Entry]], task: FileStatsTask, *, logs: bool
) -> list[FileStatsTask]:
    paths_by_partition = {
        partition: _data_files(entries, logs=logs) for partition, entries in files.items()
    }
    paths = (path for partition_files in paths_by_partition.values() for path, _ in partition_files)
    sources = sources_of(source.table.storage, source.table.config, paths)
    tasks = []
    for partition, partition_files in paths_by_partition.items():
        for start in range(0, len(partition_files), _FILES_OF_A_TASK):
            chunk = tuple(partition_files[start : start + _FILES_OF_A_TASK])
            portion_sources = {path: sources[path] for path, _ in chunk if path in sources}
            tasks.append(replace(task, partition=partition, files=chunk, sources=portion_sources))
    return tasks


def _data_files(entries: Iterable[Entry], *, logs: bool) -> list[tuple[str, bool]]:
    """Return paths of base files and log files (no change logs), and whether it is a log file."""
    paths = []
    for entry in entries:
        log = parse_log_name(entry.name)
        if log is None or (logs and not log.suffix):
            paths.append((entry.path, log is not None))
    return paths
