"""Finds the keys that a commit adds to a file group or removes from it, for the record index.

Rows that were only updated keep their location. `partition_types/record_index.py` selects the files
and slices to read.
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
"""Number of keys that are grouped by file group of the index at a time, which copies them."""

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
    """The slice with the new log files, if those may contain deletes; else all of their keys were
    added."""
    added_at: str | None = None
    """If no key was removed from a base file that was rewritten: the instant of its new rows."""
    may_add: bool = True
    """Whether keys may have been added to a base file that was rewritten."""
    ranges: Ranges | None = None

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield a record for each key that was added or removed."""
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
    """Yield records of keys that were added to a file group, and of keys that were removed.

    A data partition that is not in the index has no record to remove.
    """
    location = task.read.slice if isinstance(task, SliceTask) else task
    ranges = task.ranges
    if ranges is not None and location.partition not in ranges and not len(added):
        return
    for start in range(0, max(len(added), len(removed)), _BATCH_KEYS):
        yield task.task_context.record_builder().locations(
            location.partition,
            location.file_id,
            task.instant_ms,
            added=added.slice(start, _BATCH_KEYS),
            removed=removed.slice(start, _BATCH_KEYS),
            groups=None if ranges is None else ranges[location.partition],
        )


def _find_changed_keys(task: KeysTask) -> tuple[pa.Array[Any], pa.Array[Any]]:
    """Return the keys that were added to the file group, and those that were removed."""
    if task.base is None:
        logs = list(task.logs)
        if task.after is None:
            keys = _keys(task, None, logs)
            return keys, keys.slice(0, 0)
        changed_keys = _column(
            _native.read_log_keys(task.task_context.storage.native, logs)
        ).unique()
        live = _keys_with_record(task.after, changed_keys)
        return live, _exclude_keys(changed_keys, live)
    if task.previous is not None and task.added_at is None and not task.may_add:
        before, after = (_read_keys(task, base, []) for base in (task.previous, task.base))
        removed = _native.lost_keys(before, after)
        return removed.slice(0, 0), removed
    keys_before = _read_keys_before(task)
    if keys_before is None:
        new = _keys(task, task.base, [])
        return new, new.slice(0, 0)
    if task.added_at is not None:
        written = _read_written_keys(task, task.base, task.added_at)
        return written.filter(pc.invert(_is_member(written, keys_before))), written.slice(0, 0)
    before, new = _concat(keys_before), _keys(task, task.base, [])
    removed = _exclude_keys(before, new)
    return (_exclude_keys(new, before) if task.may_add else removed.slice(0, 0)), removed


def _read_keys_before(task: KeysTask) -> Iterator[pa.Array[Any]] | None:
    """Return the keys of a file group before its base file was rewritten; None for a new one."""
    if task.before is not None:
        return (batch.column(0) for batch in read_task(task.before))
    return None if task.previous is None else _key_batches(task, task.previous, [])


def _read_written_keys(task: KeysTask, base: str, instant: str) -> pa.Array[Any]:
    """Return keys of the rows with the write's own time: usually few rows of a large file."""
    times = pa.array([instant], pa.string())
    rows, _ = _native.read_slice(
        task.task_context.storage.native,
        base=base,
        logs=[],
        schema=task.schema,
        columns=[RECORD_KEY, COMMIT_TIME],
        merge_mode="COMMIT_TIME_ORDERING",
        filters=[(COMMIT_TIME, "=", times)],
    )
    own = (batch.filter(pc.equal(batch.column(1), instant)).column(0) for batch in rows)
    return _concat(own)


def _keys_with_record(slice_: ReadTask, keys: pa.Array[Any]) -> pa.Array[Any]:
    """Return those of the keys that have a record in a slice."""
    return keys.filter(_is_member(keys, (batch.column(0) for batch in read_task(slice_))))


def _keys(task: KeysTask, base: str | None, logs: list[str]) -> pa.Array[Any]:
    return _concat(_key_batches(task, base, logs))


def _key_batches(task: KeysTask, base: str | None, logs: list[str]) -> Iterator[pa.Array[Any]]:
    return (batch.column(0) for batch in _read_keys(task, base, logs))


def _read_keys(task: KeysTask, base: str | None, logs: list[str]) -> _native.BatchReader:
    return _native.read_keys(
        task.task_context.storage.native, base=base, logs=logs, schema=task.schema
    )


def _column(reader: Iterable[pa.RecordBatch]) -> pa.Array[Any]:
    return _concat(batch.column(0) for batch in reader)


def _concat(parts: Iterable[pa.Array[Any]]) -> pa.Array[Any]:
    arrays = list(parts)
    return pa.concat_arrays(arrays) if arrays else pa.array([], pa.string())


def _exclude_keys(keys: pa.Array[Any], parts: pa.Array[Any]) -> pa.Array[Any]:
    return keys.filter(pc.invert(_is_member(keys, [parts])))


def _is_member(keys: pa.Array[Any], parts: Iterable[pa.Array[Any]]) -> pa.Array[Any]:
    """Return for each key whether it is among others, with far less memory than `is_in` takes."""
    tagger = _native.KeyTagger(keys)
    schema = pa.schema([pa.field("key", pa.string())])
    for part in parts:
        tagger.probe(pa.RecordBatch.from_arrays([part], schema=schema), 0)
    return pc.is_valid(tagger.locations())
