"""Finds the keys that were added to or left a file group, in the tasks of the record index.

Rows that were only updated stay. `partition_types/record_index.py` selects the files and slices to
read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi import _native
from pyhudi.config.meta_columns import COMMIT_TIME, RECORD_KEY
from pyhudi.metadata.partitioned_record_index import GroupRange
from pyhudi.metadata.record_tasks import RecordTask
from pyhudi.slices.read import read_task
from pyhudi.slices.read_tasks import ReadTask

if TYPE_CHECKING:
    import pyarrow.compute as pc
else:
    from pyhudi.schema import lazy_compute as pc  # Reading imports this module.

_BATCH_KEYS = 128 * 1024
"""Keys are grouped by file group of the index for this many at a time, which copies them."""

Ranges = Mapping[str, GroupRange]
"""The file groups of each data partition, in a partitioned record index."""


@dataclass(frozen=True)
class KeysTask(RecordTask):
    """Record locations that the write to one file group changes."""

    schema: pa.Schema
    """The table's schema, with meta fields."""
    partition: str
    file_id: str
    instant_ms: int
    base: str | None = None
    """Path of the new base file."""
    logs: tuple[str, ...] = ()
    """Paths of the new log files, if there is no base file."""
    previous: str | None = None
    """Path of the base file that was rewritten, in a table without log files."""
    before: ReadTask | None = None
    """The slice that was rewritten, in a table with log files."""
    after: ReadTask | None = None
    """The slice with the new log files, if those may delete; else all of their keys were added."""
    gained_at: str | None = None
    """If no key left a base file that was rewritten: the instant of its new rows."""
    gains: bool = True
    """Whether keys may have been added to a base file that was rewritten."""
    ranges: Ranges | None = None

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield a record for each key that was added or left."""
        yield from _location_records(self, *_find_changed_keys(self))


@dataclass(frozen=True)
class SliceTask(RecordTask):
    """All keys of a file slice: they are new, or a replace commit removes them."""

    read: ReadTask
    """The read of the record key only."""
    instant_ms: int
    removed: bool = False
    ranges: Ranges | None = None

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield a record for each key."""
        for batch in read_task(self.read):
            keys = batch.column(0)
            none = keys.slice(0, 0)
            yield from _location_records(self, *((none, keys) if self.removed else (keys, none)))


def _location_records(
    task: KeysTask | SliceTask, added: pa.Array[Any], removed: pa.Array[Any]
) -> Iterator[pa.RecordBatch]:
    """Yield records of keys that were added to a file group, and of keys that left it.

    A data partition that is not in the index has nothing to lose.
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


def _find_changed_keys(task: KeysTask) -> tuple[pa.Array[Any], pa.Array[Any]]:
    """Return keys whose records were added to the file group, and keys whose records left it."""
    if task.base is None:
        logs = list(task.logs)
        if task.after is None:
            keys = _keys(task, None, logs)
            return keys, keys.slice(0, 0)
        touched = _column(_native.read_log_keys(task.recording.storage.native, logs)).unique()
        live = _standing(task.after, touched)
        return live, _without(touched, live)
    if task.previous is not None and task.gained_at is None and not task.gains:
        before, after = (_read_keys(task, base, []) for base in (task.previous, task.base))
        lost = _native.lost_keys(before, after)
        return lost.slice(0, 0), lost
    old = _read_keys_before(task)
    if old is None:
        new = _keys(task, task.base, [])
        return new, new.slice(0, 0)
    if task.gained_at is not None:
        written = _read_written_keys(task, task.base, task.gained_at)
        return written.filter(pc.invert(_is_member(written, old))), written.slice(0, 0)
    before, new = _concat(old), _keys(task, task.base, [])
    removed = _without(before, new)
    return (_without(new, before) if task.gains else removed.slice(0, 0)), removed


def _read_keys_before(task: KeysTask) -> Iterator[pa.Array[Any]] | None:
    """Return the keys of a file group before its base file was rewritten; None for a new one."""
    if task.before is not None:
        return (batch.column(0) for batch in read_task(task.before))
    return None if task.previous is None else _key_batches(task, task.previous, [])


def _read_written_keys(task: KeysTask, base: str, instant: str) -> pa.Array[Any]:
    """Return keys of the rows with the write's own time: usually few of a large file."""
    times = pa.array([instant], pa.string())
    rows, _ = _native.read_slice(
        task.recording.storage.native,
        base=base,
        logs=[],
        schema=task.schema,
        columns=[RECORD_KEY, COMMIT_TIME],
        merge_mode="COMMIT_TIME_ORDERING",
        filters=[(COMMIT_TIME, "=", times)],
    )
    own = (batch.filter(pc.equal(batch.column(1), instant)).column(0) for batch in rows)
    return _concat(own)


def _standing(slice_: ReadTask, keys: pa.Array[Any]) -> pa.Array[Any]:
    """Return those of the keys that have a record in a slice."""
    return keys.filter(_is_member(keys, (batch.column(0) for batch in read_task(slice_))))


def _keys(task: KeysTask, base: str | None, logs: list[str]) -> pa.Array[Any]:
    return _concat(_key_batches(task, base, logs))


def _key_batches(task: KeysTask, base: str | None, logs: list[str]) -> Iterator[pa.Array[Any]]:
    return (batch.column(0) for batch in _read_keys(task, base, logs))


def _read_keys(task: KeysTask, base: str | None, logs: list[str]) -> _native.BatchReader:
    return _native.read_keys(
        task.recording.storage.native, base=base, logs=logs, schema=task.schema
    )


def _column(reader: Iterable[pa.RecordBatch]) -> pa.Array[Any]:
    return _concat(batch.column(0) for batch in reader)


def _concat(parts: Iterable[pa.Array[Any]]) -> pa.Array[Any]:
    held = list(parts)
    return pa.concat_arrays(held) if held else pa.array([], pa.string())


def _without(keys: pa.Array[Any], parts: pa.Array[Any]) -> pa.Array[Any]:
    return keys.filter(pc.invert(_is_member(keys, [parts])))


def _is_member(keys: pa.Array[Any], parts: Iterable[pa.Array[Any]]) -> pa.Array[Any]:
    """Return for each key whether it is among others, with far less memory than `is_in` takes."""
    tagger = _native.KeyTagger(keys)
    schema = pa.schema([pa.field("key", pa.string())])
    for part in parts:
        tagger.probe(pa.RecordBatch.from_arrays([part], schema=schema), 0)
    return pc.is_valid(tagger.locations())
