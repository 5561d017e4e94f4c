"""What a commit changes in the metadata table, as tasks: each looks at files and gives record rows.

Nothing here holds keys or rows on the driver: record rows stream from the tasks to the writers of
the file groups that they hash to. Which files and slices a commit touched is `companion.py`'s part.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.config.file_names import parse_base_name
from pyhudi.metadata.group import MetadataGroup, open_together
from pyhudi.metadata.partitioned import GroupRange
from pyhudi.slices.read import read_task
from pyhudi.slices.read_tasks import ReadTask
from pyhudi.storage.storage import Storage

RECORD_ROWS = pa.schema(
    [
        pa.field("route", pa.string(), nullable=False),
        pa.field("key", pa.string(), nullable=False),
        pa.field("value", pa.binary()),
    ]
)
"""Partition and number of the file group (`files/0`), key of the record, and the record in Avro;
a null takes the record away."""


@dataclass(frozen=True)
class Recording:
    """What all tasks of one commit share."""

    storage: Storage
    """The data table's."""
    avro_schema: str
    """Of the records, with meta fields."""
    groups: Mapping[str, int]
    """Number of file groups of each partition of the metadata table."""
    index_ranges: Mapping[str, GroupRange] | None = None
    """Those of each data partition, where the record index is one by data partition."""

    def recorder(self) -> _native.MetadataRecorder:
        """What makes the records."""
        return _native.MetadataRecorder(self.avro_schema, self.groups)


@dataclass(frozen=True)
class RecordTask(ABC):
    """A part of what changes in the metadata table. Picklable."""

    recording: Recording

    @abstractmethod
    def rows(self) -> Iterator[pa.RecordBatch]:
        """Its record rows."""


@dataclass(frozen=True)
class FileTask(RecordTask):
    """Records of `files`."""

    entries: tuple[tuple[str, str, int, bool], ...]
    """Key, name, size, and whether it is gone."""
    keys: tuple[str, ...] = ()
    """Those that have a record also without entries."""

    def rows(self) -> Iterator[pa.RecordBatch]:
        """A record for each key."""
        yield self.recording.recorder().files(self.entries, keys=self.keys)


@dataclass(frozen=True)
class FactsTask(RecordTask):
    """Statistics and bloom filters of the files that came to one partition."""

    partition: str
    files: tuple[tuple[str, bool], ...]
    """Paths, and whether each is a log file."""
    columns: pa.Schema
    """Columns with statistics."""
    value_types: bool
    partition_stats: bool
    bloom_filters: bool
    instant: str
    rest: tuple[tuple[str, bool], ...] | None = None
    """The files of the partition that the commit leaves, where bounds of it shall be tight."""
    known: tuple[MetadataGroup, ...] = ()
    """The file groups of `column_stats`, which knows those files; without it they are looked at."""

    def rows(self) -> Iterator[pa.RecordBatch]:
        """A record for each file and column, and for each partition and column."""
        yield self.recording.recorder().file_facts(
            self.recording.storage.native,
            self.partition,
            self.files,
            columns=self.columns,
            value_types=self.value_types,
            partition_stats=self.partition_stats,
            bloom_filters=self.bloom_filters,
            instant=self.instant,
            rest=None if self.rest is None else (self.rest, _known(self)),
        )


@dataclass(frozen=True)
class KeysTask(RecordTask):
    """Record locations that what was written to one file group changes."""

    schema: pa.Schema
    """The table's, with meta fields."""
    partition: str
    file_id: str
    instant_ms: int
    base: str | None = None
    """Path of the new base file."""
    logs: tuple[str, ...] = ()
    """Paths of the new log files, when there is no base file."""
    previous_instant: str | None = None
    """Commit time of the base file that was rewritten, in a table without log files."""
    before: ReadTask | None = None
    """The slice that was rewritten, in a table with log files."""
    after: ReadTask | None = None
    """The slice with the new log files, where those may delete; else all of their keys came."""

    def rows(self) -> Iterator[pa.RecordBatch]:
        """A record for each key that came or went."""
        yield from _located(self, *_changed_keys(self))


@dataclass(frozen=True)
class ReplacedTask(RecordTask):
    """The keys of a file group that a replace commit takes away."""

    partition: str
    file_id: str
    instant_ms: int
    slice: ReadTask

    def rows(self) -> Iterator[pa.RecordBatch]:
        """A record for each key."""
        for batch in read_task(self.slice):
            keys = batch.column(0)
            yield from _located(self, keys.slice(0, 0), keys)


_BATCH_KEYS = 16 * 1024
"""Record rows are several times as large as keys, so they are made of so many at once."""


def derive(task: RecordTask) -> Iterator[pa.RecordBatch]:
    """The record rows of a task, on whatever runs it."""
    return task.rows()


def _known(task: FactsTask) -> _native.MetadataPartition:
    if task.known:
        return open_together(task.known)
    return _native.MetadataPartition(task.recording.storage.native, [])


def _located(
    task: KeysTask | ReplacedTask, added: pa.Array[Any], removed: pa.Array[Any]
) -> Iterator[pa.RecordBatch]:
    """Records of keys that came to a file group, and of keys that left it.

    A data partition of which the index has nothing has nothing to lose.
    """
    ranges = task.recording.index_ranges
    if ranges is not None and task.partition not in ranges and not len(added):
        return
    for start in range(0, max(len(added), len(removed)), _BATCH_KEYS):
        yield task.recording.recorder().locations(
            task.partition,
            task.file_id,
            task.instant_ms,
            added=added.slice(start, _BATCH_KEYS),
            removed=removed.slice(start, _BATCH_KEYS),
            groups=None if ranges is None else ranges[task.partition],
        )


def _changed_keys(task: KeysTask) -> tuple[pa.Array[Any], pa.Array[Any]]:
    """Keys whose records came to the file group, and keys whose records left it."""
    if task.base is None:
        logs = list(task.logs)
        if task.after is None:
            keys = _keys(task, None, logs)
            return keys, keys.slice(0, 0)
        touched = _column(_native.read_log_keys(task.recording.storage.native, logs)).unique()
        live = _standing(task.after, touched)
        return live, _without(touched, live)
    new = _keys(task, task.base, [])
    if task.before is not None:
        old = _column(read_task(task.before))
        return _without(new, old), _without(old, new)
    previous = _previous_base(task)
    if previous is None:
        return new, new.slice(0, 0)
    old = _keys(task, previous, [])
    return _without(new, old), _without(old, new)


def _standing(slice_: ReadTask, keys: pa.Array[Any]) -> pa.Array[Any]:
    """Those of the keys that have a record in a slice."""
    return keys.filter(_held(keys, (batch.column(0) for batch in read_task(slice_))))


def _previous_base(task: KeysTask) -> str | None:
    if task.previous_instant is None:
        return None
    for file in task.recording.storage.list_dir(task.partition)[1]:
        base = parse_base_name(file.name)
        if base and (base.file_id, base.instant) == (task.file_id, task.previous_instant):
            return file.path
    return None


def _keys(task: KeysTask, base: str | None, logs: list[str]) -> pa.Array[Any]:
    reader = _native.read_keys(
        task.recording.storage.native, base=base, logs=logs, schema=task.schema
    )
    return _column(reader)


def _column(reader: Iterable[pa.RecordBatch]) -> pa.Array[Any]:
    parts = [batch.column(0) for batch in reader]
    return pa.concat_arrays(parts) if parts else pa.array([], pa.string())


def _without(keys: pa.Array[Any], others: pa.Array[Any]) -> pa.Array[Any]:
    return keys.filter(pc.invert(_held(keys, [others])))


def _held(keys: pa.Array[Any], others: Iterable[pa.Array[Any]]) -> pa.Array[Any]:
    """For each key whether it is among others, with far less memory than `is_in` takes."""
    tagger = _native.KeyTagger(keys)
    schema = pa.schema([pa.field("key", pa.string())])
    batches = (pa.RecordBatch.from_arrays([part], schema=schema) for part in others)
    tagger.probe(pa.RecordBatchReader.from_batches(schema, batches), 0)
    return pc.is_valid(tagger.locations())
