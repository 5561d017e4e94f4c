"""What a commit changes in the metadata table, as tasks: each looks at files and gives record rows.

Nothing here holds keys or rows on the driver: record rows stream from the tasks to the writers of
the file groups that they hash to. Which files and slices a commit touched is `upkeep.py`'s part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.view.names import parse_base_name

if TYPE_CHECKING:
    from pyhudi.storage import Storage

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

    def recorder(self) -> _native.MetadataRecorder:
        """What makes the records."""
        return _native.MetadataRecorder(self.avro_schema, self.groups)


@dataclass(frozen=True)
class FileTask:
    """Records of `files`."""

    recording: Recording
    entries: tuple[tuple[str, str, int, bool], ...]
    """Key, name, size, and whether it is gone."""


@dataclass(frozen=True)
class FactsTask:
    """Statistics and bloom filters of the files that came to one partition."""

    recording: Recording
    partition: str
    files: tuple[tuple[str, bool], ...]
    """Paths, and whether each is a log file."""
    columns: pa.Schema
    """Columns with statistics."""
    value_types: bool
    partition_stats: bool
    bloom_filters: bool
    instant: str


@dataclass(frozen=True)
class KeysTask:
    """Record locations that one written file changes."""

    recording: Recording
    schema: pa.Schema
    """The table's, with meta fields."""
    partition: str
    file_id: str
    instant_ms: int
    base: str | None = None
    """Path of the new base file."""
    log: str | None = None
    """Path of the new log file, when there is no base file."""
    previous_instant: str | None = None
    """Commit time of the base file that was rewritten, when it was the whole slice."""


Task = FileTask | FactsTask | KeysTask


def derive(task: Task) -> Iterator[pa.RecordBatch]:
    """The record rows of a task."""
    if isinstance(task, FileTask):
        yield task.recording.recorder().files(task.entries)
    elif isinstance(task, FactsTask):
        yield task.recording.recorder().file_facts(
            task.recording.storage.native,
            task.partition,
            task.files,
            columns=task.columns,
            value_types=task.value_types,
            partition_stats=task.partition_stats,
            bloom_filters=task.bloom_filters,
            instant=task.instant,
        )
    else:
        added, removed = _changed_keys(task)
        yield task.recording.recorder().locations(
            task.partition, task.file_id, task.instant_ms, added=added, removed=removed
        )


def _changed_keys(task: KeysTask) -> tuple[pa.Array[Any], pa.Array[Any]]:
    """Keys that came to the file group, and keys that left it.

    Where the previous slice was more than a base file all keys count as having come, since a key
    that its log files deleted may be elsewhere by now. A deleted key that the index keeps costs
    a look into a file; one that it lacks would be written twice.
    """
    if task.base is None:
        rows = _keys(task, None, [task.log] if task.log else [])
        reader = _native.read_log_keys(
            task.recording.storage.native, [task.log] if task.log else []
        )
        return rows, _without(_column(reader), rows)
    new = _keys(task, task.base, [])
    previous = _previous_base(task)
    if previous is None:
        return new, new.slice(0, 0)
    old = _keys(task, previous, [])
    return _without(new, old), _without(old, new)


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


def _column(reader: _native.BatchReader) -> pa.Array[Any]:
    parts = [batch.column(0) for batch in reader]
    return pa.concat_arrays(parts) if parts else pa.array([], pa.string())


def _without(keys: pa.Array[Any], others: pa.Array[Any]) -> pa.Array[Any]:
    return keys.filter(pc.invert(pc.is_in(keys, value_set=others)))
