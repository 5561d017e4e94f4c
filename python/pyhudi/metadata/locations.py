"""Which keys came to a file group and which left it, found by the tasks of the record index.

Rows that were only updated stay where they are. Which files and slices are looked at is the part of
`kinds/record_index.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi import _native
from pyhudi.config.file_names import parse_base_name
from pyhudi.metadata.partitioned import GroupRange
from pyhudi.metadata.records import RecordTask
from pyhudi.slices.read import read_task
from pyhudi.slices.read_tasks import ReadTask

if TYPE_CHECKING:
    import pyarrow.compute as pc
else:
    from pyhudi.schema import lazy_compute as pc  # Reading imports this module.

_BATCH_KEYS = 16 * 1024
"""Record rows are several times as large as keys, so they are made of so many at once."""

Ranges = Mapping[str, GroupRange]
"""The file groups of each data partition, in a record index by data partition."""


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
    ranges: Ranges | None = None

    def rows(self) -> Iterator[pa.RecordBatch]:
        """A record for each key that came or went."""
        yield from _located(self, *_changed_keys(self))


@dataclass(frozen=True)
class SliceTask(RecordTask):
    """All keys of a file slice: they are new, or a replace commit takes them away."""

    read: ReadTask
    """Of the record key alone."""
    instant_ms: int
    gone: bool = False
    ranges: Ranges | None = None

    def rows(self) -> Iterator[pa.RecordBatch]:
        """A record for each key."""
        for batch in read_task(self.read):
            keys = batch.column(0)
            none = keys.slice(0, 0)
            yield from _located(self, *((none, keys) if self.gone else (keys, none)))


def _located(
    task: KeysTask | SliceTask, added: pa.Array[Any], removed: pa.Array[Any]
) -> Iterator[pa.RecordBatch]:
    """Records of keys that came to a file group, and of keys that left it.

    A data partition of which the index has nothing has nothing to lose.
    """
    place = task.read.slice if isinstance(task, SliceTask) else task
    ranges = task.ranges
    if ranges is not None and place.partition not in ranges and not len(added):
        return
    for start in range(0, max(len(added), len(removed)), _BATCH_KEYS):
        yield task.recording.recorder().locations(
            place.partition,
            place.file_id,
            task.instant_ms,
            added=added.slice(start, _BATCH_KEYS),
            removed=removed.slice(start, _BATCH_KEYS),
            groups=None if ranges is None else ranges[place.partition],
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
