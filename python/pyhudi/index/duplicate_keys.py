"""Base files with several rows of one key. An operation by key cannot distinguish the rows.

An operation that would change only some of these rows raises an error. A delete in a log file
removes only the first of them, because readers of merge-on-read tables (Hudi's and pyhudi's) merge
a log record with one base row. To delete all of them, the base file is rewritten.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.config.metadata_names import RECORD_INDEX
from pyhudi.engine.protocol import Attempt
from pyhudi.errors import CommitConflict, SchemaMismatch
from pyhudi.index.key_reader import KeySource
from pyhudi.index.protocol import IndexedTable
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.task_packing import engine_for_slices
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.timeline.key_uniqueness import keys_are_unique


def duplicate_keys_error(description: str) -> SchemaMismatch:
    """Return the error of an operation that would change only some of several rows of a key."""
    return SchemaMismatch(
        f"{description}: a write by key cannot distinguish them",
        hint="Remove the duplicates first: overwrite the table with one row per key.",
    )


def duplicate_key_source(table: IndexedTable) -> KeySource | None:
    """Return how to read base files to find duplicate keys; None if keys are unique.

    Keys are unique if the table generates them, or if a record index and the commits prove it.
    """
    is_generated = not table.config.record_key_fields
    return None if is_generated or _are_unique(table) else table.key_source


def find_duplicate_keys(source: KeySource, slice_: FileSlice, keys: pa.Array[Any]) -> pa.Array[Any]:
    """Return those of the keys that a slice's base file has several times."""
    if slice_.base is None or not len(keys):
        return keys.slice(0, 0)
    tagger = _native.KeyTagger(keys)
    tagger.probe_rows(source.keys_of(replace(slice_, logs=())))
    has_location, is_single = pc.is_valid(tagger.locations()), pc.is_valid(tagger.positions())
    return keys.filter(pc.and_not(has_location, is_single))


@dataclass(frozen=True)
class DuplicateKeysTask:
    """Check whether a base file has one of the keys several times."""

    source: KeySource
    slice: FileSlice
    keys: pa.Array[Any] | None
    """None for any key."""


def has_duplicate_keys(task: DuplicateKeysTask, _attempt: Attempt) -> bool:
    """Return whether the base file of the task has one of the keys several times."""
    if task.keys is not None:
        return len(find_duplicate_keys(task.source, task.slice, task.keys)) > 0
    batches = [batch.column(0) for batch in task.source.keys_of(replace(task.slice, logs=()))]
    keys = pa.concat_arrays([pa.array([], pa.string()), *batches])
    return len(keys.unique()) < len(keys)


def groups_with_duplicates(
    table: IndexedTable, groups: Sequence[FileGroup], keys: Mapping[int, pa.Array[Any] | None]
) -> frozenset[int]:
    """Return the numbered file groups whose base files have some of the keys several times.

    keys: None if only executors have them; then any duplicate key counts. Base files are read only
    if a log file would be wrong, and only if keys may repeat at all.
    """
    if not table.config.is_merge_on_read or _are_unique(table):
        return frozenset()
    slices_to_read = {number: groups[number].read_slice for number in keys}
    numbers = [number for number, slice_ in slices_to_read.items() if slice_.base is not None]
    tasks = [
        DuplicateKeysTask(table.key_source, slices_to_read[number], keys[number])
        for number in numbers
    ]
    engine = engine_for_slices(table.engine, table.storage, (task.slice for task in tasks))
    results = engine.run(has_duplicate_keys, tasks, label="find duplicate keys")
    return frozenset(number for number, repeats in zip(numbers, results, strict=True) if repeats)


def groups_to_rewrite(
    table: IndexedTable, groups: Sequence[FileGroup], with_duplicates: Collection[int]
) -> frozenset[int]:
    """Return the numbered file groups that need new base files to delete keys.

    with_duplicates: the groups whose base files have some of the keys several times. Raises
    `CommitConflict` if a compaction of one is pending.
    """
    if not table.config.is_merge_on_read:
        return frozenset()
    for number in with_duplicates:
        pending = groups[number].compaction
        if pending is not None:
            msg = (
                f"file group {groups[number].slice.file_id} has several rows of one key: only a "
                f"rewrite of its base file deletes them, but its compaction {pending} is pending"
            )
            raise CommitConflict(msg, hint="Complete the compaction, then delete again.")
    return frozenset(with_duplicates)


def _are_unique(table: IndexedTable) -> bool:
    # Without a record index, pyhudi's commits do not prove it, and many would have to be read.
    indexed = RECORD_INDEX in table.config.metadata_partitions
    return indexed and keys_are_unique(table.timeline)
