"""Base files with several rows of one key, which what is written by key cannot tell apart.

So a verb that would change some of them alone is refused. A delete in a log file takes the first of
them: readers of merge-on-read tables, Hudi's and pyhudi's, merge a log record with one base row.
Where all are to go the base file is written anew.
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
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.timeline.key_uniqueness import keys_are_unique


def duplicate_keys_error(found: str) -> SchemaMismatch:
    """What a verb raises that would change rows beside their copies. found: which they are."""
    return SchemaMismatch(
        f"{found}: a write by key cannot tell them apart",
        hint="Remove the duplicates first: overwrite the table with one row per key.",
    )


def copy_source(table: IndexedTable) -> KeySource | None:
    """How the keys of base files are read to find copies; None where keys are known not to repeat.

    They are where the table makes them, and where a record index and the commits tell so.
    """
    made = not table.config.record_key_fields
    return None if made or _are_unique(table) else table.key_source


def find_duplicate_keys(source: KeySource, slice_: FileSlice, keys: pa.Array[Any]) -> pa.Array[Any]:
    """Those of some keys that a slice's base file has several times."""
    if slice_.base is None or not len(keys):
        return keys.slice(0, 0)
    tagger = _native.KeyTagger(keys)
    tagger.probe_rows(source.keys_of(replace(slice_, logs=())))
    found, in_one_row = pc.is_valid(tagger.locations()), pc.is_valid(tagger.positions())
    return keys.filter(pc.and_not(found, in_one_row))


@dataclass(frozen=True)
class CopiesTask:
    """Find out whether a base file has one of the keys several times."""

    source: KeySource
    slice: FileSlice
    keys: pa.Array[Any] | None
    """None for any key."""


def has_duplicate_keys(task: CopiesTask, _attempt: Attempt) -> bool:
    """Whether it has."""
    if task.keys is not None:
        return len(find_duplicate_keys(task.source, task.slice, task.keys)) > 0
    every = [batch.column(0) for batch in task.source.keys_of(replace(task.slice, logs=()))]
    found = pa.concat_arrays([pa.array([], pa.string()), *every])
    return len(found.unique()) < len(found)


def groups_with_copies(
    table: IndexedTable, groups: Sequence[FileGroup], keys: Mapping[int, pa.Array[Any] | None]
) -> frozenset[int]:
    """Those of the numbered file groups whose base files have some of the keys several times.

    keys: None where executors alone have them; then a group counts that has any key several times.
    Looked for only where a log file would be wrong, and where keys may repeat at all.
    """
    if not table.config.is_merge_on_read or _are_unique(table):
        return frozenset()
    read = {number: groups[number].read_slice for number in keys}
    asked = [number for number, slice_ in read.items() if slice_.base is not None]
    tasks = [CopiesTask(table.key_source, read[number], keys[number]) for number in asked]
    found = table.engine.run(has_duplicate_keys, tasks, label="find duplicate keys")
    return frozenset(number for number, copies in zip(asked, found, strict=True) if copies)


def groups_to_rewrite(
    table: IndexedTable, groups: Sequence[FileGroup], copies: Collection[int]
) -> frozenset[int]:
    """Those of the numbered file groups that get base files, to delete keys with `copies` there.

    Raises `CommitConflict` where a compaction of one is pending.
    """
    if not table.config.is_merge_on_read:
        return frozenset()
    for number in copies:
        pending = groups[number].compaction
        if pending is not None:
            msg = (
                f"the compaction {pending} of the file group {groups[number].slice.file_id} is "
                "pending, which has rows of one key that can only be deleted in its base file"
            )
            raise CommitConflict(msg, hint="Complete the compaction, then delete again.")
    return frozenset(copies)


def _are_unique(table: IndexedTable) -> bool:
    # Without such an index pyhudi's commits do not tell, and many would have to be read.
    indexed = RECORD_INDEX in table.config.metadata_partitions
    return indexed and keys_are_unique(table.timeline)
