"""What a new partition of the metadata table holds at its start, as tasks over the table's files.

All files that completed commits left count for `files`, statistics and bloom filters, replaced
ones too; for statistics of partitions the newest slices do (`HoodieBackedTableMetadataWriter`,
0.15.0, 1.0.2 and 1.2.0). Keys and rows stay with the tasks. Indexes over keys and rows are made in
`initial_rows.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.actions import INDEXING
from pyhudi.config.file_names import parse_base_name, parse_log_name
from pyhudi.config.metadata_names import (
    ALL_PARTITIONS,
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    NO_PATH,
    PARTITION_STATS,
)
from pyhudi.config.metadata_options import MetadataOptions
from pyhudi.engine.protocol import Engine
from pyhudi.metadata.checks_before_write import record_schema, statistics_columns
from pyhudi.metadata.definitions import IndexDefinition
from pyhudi.metadata.partitioned import GroupRange
from pyhudi.metadata.records import FactsTask, FileTask, Recording, RecordTask
from pyhudi.metadata.start_group import group_id
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.listing import list_files
from pyhudi.slices.read import read_task
from pyhudi.slices.read_tasks import ReadTask, TableState
from pyhudi.storage.storage import Entry

NO_INSTANT = "00000000000000"
"""In place of a table's newest instant while it has none (`SOLO_COMMIT_TIMESTAMP`)."""
_FILES_OF_A_TASK = 64


@dataclass(frozen=True)
class Source:
    """The table that the partitions are made of, and what it tells of itself, looked up once."""

    state: TableState
    engine: Engine
    options: MetadataOptions
    definitions: Mapping[str, IndexDefinition]
    """Those that the table is about to have."""
    memory: int
    """Bytes that records on their way to files may take at once."""

    @cached_property
    def files(self) -> dict[str, list[Entry]]:
        """Files of every partition, those of pending instants left out."""
        state = self.state
        pending = {i.requested for i in state.timeline.pending() if i.action != INDEXING}
        return {
            partition: [one for one in entries if _written_by(one.name) not in {None, *pending}]
            for partition, entries in list_files(state.storage)
        }

    @cached_property
    def slices(self) -> list[FileSlice]:
        """What a snapshot reads."""
        return FileSystemView(self.state.storage, self.state.config, self.state.timeline).slices()

    @property
    def last_instant(self) -> str | None:
        """The newest completed instant, None in a new table."""
        return max((one.requested for one in self.state.timeline.completed()), default=None)

    @property
    def columns(self) -> pa.Schema:
        """Columns with statistics."""
        return statistics_columns(self.definitions, self.state.schema)

    def recording(
        self, groups: Mapping[str, int], ranges: Mapping[str, GroupRange] | None = None
    ) -> Recording:
        """What tasks share. groups: numbers of file groups by partition of the metadata table.

        ranges: those of each data partition in a record index by data partition.
        """
        schema = record_schema(self.state.config.version.metadata_schema)
        return Recording(self.state.storage, schema, groups, ranges)


@dataclass(frozen=True)
class InitialPartition:
    """A partition that is about to be made."""

    name: str
    groups: int
    """Number of its file groups, for good."""
    tasks: Sequence[RecordTask]
    portions: int = 1
    """In how many turns its file groups are written, so that each turn's records fit in memory."""
    records: int | None = None
    """Rows that it has a record of each, if each has another key; None where that says nothing."""
    ids: tuple[str, ...] | None = None
    """File ids of its groups in order, None for those that are plain numbers."""

    @cached_property
    def file_ids(self) -> tuple[str, ...]:
        """File ids of its groups, in the order in which keys are hashed over them."""
        if self.ids is not None:
            return self.ids
        return tuple(group_id(self.name, number) for number in range(self.groups))

    def turns(self) -> Iterator[list[PortionTask]]:
        """The tasks of each turn: all of them, each giving the records of that turn's groups."""
        for turn in range(self.portions):
            groups = range(turn, self.groups, self.portions)
            routes = tuple(f"{self.name}/{number}" for number in groups)
            yield [PortionTask(task, routes) for task in self.tasks]


@dataclass(frozen=True)
class LocationsTask(RecordTask):
    """Where the records of one file slice are."""

    read: ReadTask
    """Of the record key alone."""
    instant_ms: int

    def rows(self) -> Iterator[pa.RecordBatch]:
        """A record for each key."""
        recorder, ranges = self.recording.recorder(), self.recording.index_ranges
        place = self.read.slice
        for batch in read_task(self.read):
            keys = batch.column(0)
            yield recorder.locations(
                place.partition,
                place.file_id,
                self.instant_ms,
                added=keys,
                removed=keys.slice(0, 0),
                groups=None if ranges is None else ranges[place.partition],
            )


@dataclass(frozen=True)
class PortionTask:
    """Those records of a task that go to some file groups; it may give others too."""

    task: RecordTask
    routes: tuple[str, ...]


def derive_initial(task: PortionTask) -> Iterator[pa.RecordBatch]:
    """The record rows of a task."""
    wanted = pa.array(task.routes, pa.string())
    for batch in task.task.rows():
        yield batch.filter(pc.is_in(batch.column("route"), value_set=wanted))


def _files(source: Source) -> InitialPartition:
    recording = source.recording({FILES: 1})
    found = source.files
    names = tuple((ALL_PARTITIONS, path or NO_PATH, 0, False) for path in found)
    tasks: list[RecordTask] = [FileTask(recording, names, keys=(ALL_PARTITIONS,))]
    for path, entries in found.items():
        key = path or NO_PATH
        listed = tuple((key, one.name, one.size, False) for one in entries)
        tasks.append(FileTask(recording, listed, keys=(key,)))
    return InitialPartition(FILES, 1, tasks)


def _column_stats(source: Source) -> InitialPartition:
    groups = source.options.column_stats_groups
    recording = source.recording({COLUMN_STATS: groups})
    # Where a log file can hold blocks of failed commits, its rows tell nothing for certain.
    logs = not source.state.config.version.blocks_need_commit_check
    tasks = [
        _facts(source, recording, partition, files)
        for partition, entries in source.files.items()
        for files in _portions(_paths(entries, logs=logs))
    ]
    return InitialPartition(COLUMN_STATS, groups, tasks)


def _partition_stats(source: Source) -> InitialPartition:
    groups = source.options.partition_stats_groups
    recording = source.recording({COLUMN_STATS: 1, PARTITION_STATS: groups})
    of_partition: dict[str, list[tuple[str, bool]]] = {}
    for one in source.slices:
        files = of_partition.setdefault(one.partition, [])
        files += [(one.base.path, False)] if one.base else []
        files += [(log.path, True) for log in one.logs]
    tasks = [
        _facts(source, recording, partition, files, partition_stats=True)
        for partition, files in of_partition.items()
    ]
    return InitialPartition(PARTITION_STATS, groups, tasks)


def _bloom_filters(source: Source) -> InitialPartition:
    groups = source.options.bloom_groups
    recording = source.recording({BLOOM_FILTERS: groups})
    tasks = [
        _facts(source, recording, partition, files, bloom_filters=True)
        for partition, entries in source.files.items()
        for files in _portions(_paths(entries, logs=False))
    ]
    return InitialPartition(BLOOM_FILTERS, groups, tasks)


FILE_MAKERS: Mapping[str, Callable[[Source], InitialPartition]] = {
    FILES: _files,
    COLUMN_STATS: _column_stats,
    PARTITION_STATS: _partition_stats,
    BLOOM_FILTERS: _bloom_filters,
}
"""What makes the partitions that tell about files."""


def _facts(
    source: Source,
    recording: Recording,
    partition: str,
    files: Sequence[tuple[str, bool]],
    *,
    partition_stats: bool = False,
    bloom_filters: bool = False,
) -> FactsTask:
    known = source.definitions.get(COLUMN_STATS)
    second = known is not None and known.version > 1
    return FactsTask(
        recording,
        partition,
        tuple(files),
        columns=pa.schema([]) if bloom_filters else source.columns,
        value_types=second,
        partition_stats=partition_stats,
        bloom_filters=bloom_filters,
        instant=source.last_instant or NO_INSTANT,
        rest=() if second and partition_stats else None,
    )


def _paths(entries: Sequence[Entry], *, logs: bool) -> list[tuple[str, bool]]:
    """Paths of base files and, if wanted, log files but change logs, and whether it is a log."""
    found = []
    for entry in entries:
        log = parse_log_name(entry.name)
        if log is None or (logs and not log.suffix):
            found.append((entry.path, log is not None))
    return found


def _portions(files: list[tuple[str, bool]]) -> Iterator[list[tuple[str, bool]]]:
    for start in range(0, len(files), _FILES_OF_A_TASK):
        yield files[start : start + _FILES_OF_A_TASK]


def _written_by(name: str) -> str | None:
    """The instant in a data file's name, None for any other file."""
    parsed = parse_base_name(name) or parse_log_name(name)
    return None if parsed is None else parsed.instant
