"""The initial records of a metadata partition: the table, and tasks over its files or rows.

Keys and rows stay with the tasks. The partition types define the tasks (`partition_types/`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.cached_property import cached_property
from pyhudi.config.actions import INDEXING
from pyhudi.config.file_names import parse_base_name, parse_log_name
from pyhudi.config.metadata_names import FOLDER
from pyhudi.config.metadata_options import MetadataOptions
from pyhudi.engine.protocol import Attempt
from pyhudi.metadata.index_definitions import IndexDefinition
from pyhudi.metadata.new_file_groups import group_id
from pyhudi.metadata.reader import open_config
from pyhudi.metadata.record_tasks import RecordTask, RecordTaskContext, record_schema
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.listing import GivenFiles, list_files
from pyhudi.slices.missing_files import check_complete
from pyhudi.slices.read import open_slice
from pyhudi.slices.read_tasks import ReadTask, ScanRequest, merge_rule, slice_tasks
from pyhudi.storage.storage import Entry
from pyhudi.table.table_snapshot import TableSnapshot

if TYPE_CHECKING:
    import pyarrow.compute as pc
else:
    from pyhudi.schema import lazy_compute as pc  # Reading imports this module.

NO_INSTANT = "00000000000000"
"""The last instant of a table without instants (`SOLO_COMMIT_TIMESTAMP`)."""
RECORD_BYTES = 512
"""Bytes of a key with its value in an exchange, which holds some copies."""


@dataclass(frozen=True)
class Source:
    """The table from which partitions are built. Each property is read once."""

    table: TableSnapshot
    options: MetadataOptions
    definitions: Mapping[str, IndexDefinition]
    """The index definitions that the table is about to have."""
    memory: int
    """Maximum bytes of records in memory on their way to files."""
    concurrent: bool = False
    """Other writers are active, some of them since the timeline was loaded."""

    @cached_property
    def files(self) -> dict[str, list[Entry]]:
        """The files of every partition, without those of pending instants.

        Raises `MissingFile` if storage has lost some: nothing would name them any more.
        """
        table, timeline = self.table, self.table.timeline
        listed = dict(list_files(table.storage))
        if not self.concurrent:
            source_files = GivenFiles(listed)
            view = FileSystemView(table.storage, table.config, timeline, files=source_files)
            check_complete(table, view)
        pending = {i.requested for i in timeline.pending() if i.action != INDEXING}

        def counts(name: str) -> bool:
            instant = _instant_of_file(name)
            if instant is None or instant in pending:
                return False
            return timeline.is_committed(instant) if self.concurrent else True

        return {
            partition: [file for file in entries if counts(file.name)]
            for partition, entries in listed.items()
        }

    @cached_property
    def slices(self) -> list[FileSlice]:
        """The slices of a snapshot. Raises as `files` does."""
        view = FileSystemView(self.table.storage, self.table.config, self.table.timeline)
        if not self.concurrent:
            check_complete(self.table, view)
        return list(view.slices())

    @property
    def last_instant(self) -> str:
        """The newest completed instant, `NO_INSTANT` in a new table."""
        completed = self.table.timeline.filter_completed()
        return max((instant.requested for instant in completed), default=NO_INSTANT)

    def task_context(self, groups: Mapping[str, int]) -> RecordTaskContext:
        """Return what tasks share. groups: numbers of file groups by metadata partition."""
        return RecordTaskContext(self.table.storage, self._record_schema, groups)

    @cached_property
    def _record_schema(self) -> str:
        """The schema of the metadata table's records; that table exists once records are built."""
        metadata = open_config(self.table.storage.below(FOLDER))
        return record_schema(metadata.version.metadata_schema)

    def reads(self, *columns: str) -> list[ReadTask]:
        """Return the tasks that read some columns of each slice."""
        request = ScanRequest(output=columns)
        return list(slice_tasks(self.table, request, self.slices, merge_rule(self.table)))

    def counts(self) -> list[int]:
        """Return numbers of records, in the order of the slices."""
        return self.table.engine.run(count_rows, self.reads(), label="count records")

    def rounds(self, records: int, groups: int, record_bytes: int = RECORD_BYTES) -> int:
        """Return in how many rounds the records of keys or values are written."""
        rounds = -(-records * record_bytes // self.memory)
        return min(max(rounds, 1), max(groups, 1))


def count_rows(task: ReadTask, _attempt: Attempt) -> int:
    """Return how many records a slice has."""
    reader = open_slice(task)
    try:
        return sum(batch.num_rows for batch in reader)
    finally:
        reader.close()


@dataclass(frozen=True)
class InitialPartition:
    """A partition to build."""

    name: str
    groups: int
    """The number of its file groups, which never changes."""
    tasks: Sequence[RecordTask]
    rounds: int = 1
    """The number of rounds in which its file groups are written, so that each fits in memory."""
    records: int | None = None
    """Rows of which it has a record each, if their keys are unique; None if that is unknown."""
    ids: tuple[str, ...] | None = None
    """File ids of its groups in order; None if they are plain numbers."""

    @cached_property
    def file_ids(self) -> tuple[str, ...]:
        """File ids of its groups, in the order in which keys are hashed to them."""
        if self.ids is not None:
            return self.ids
        return tuple(group_id(self.name, number) for number in range(self.groups))

    def task_rounds(self) -> Iterator[list[RoundTask]]:
        """Yield the tasks of each round: all, each with the records of that round's groups."""
        for round_number in range(self.rounds):
            groups = range(round_number, self.groups, self.rounds)
            routes = tuple(f"{self.name}/{number}" for number in groups)
            yield [RoundTask(task, routes) for task in self.tasks]


@dataclass(frozen=True)
class RoundTask:
    """Return those records of a task that go to some file groups; others may be among them."""

    task: RecordTask
    routes: tuple[str, ...]


def initial_record_rows(task: RoundTask) -> Iterator[pa.RecordBatch]:
    """Return the record rows of a task."""
    routes = pa.array(task.routes, pa.string())
    for batch in task.task.rows():
        yield batch.filter(pc.is_in(batch.column("route"), value_set=routes))


def _instant_of_file(name: str) -> str | None:
    """Return the instant in a data file's name; None for any other file."""
    parsed = parse_base_name(name) or parse_log_name(name)
    return None if parsed is None else parsed.instant
