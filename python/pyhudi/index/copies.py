"""Base files with several rows of one key, of which a log file's delete takes the first alone.

Readers of merge-on-read tables, Hudi's and pyhudi's, merge a log record with one base row. What is
to be deleted from such a file group is deleted by writing its base file anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.metadata_names import RECORD_INDEX
from pyhudi.engine.protocol import Attempt
from pyhudi.errors import CommitConflict
from pyhudi.index.key_source import KeySource
from pyhudi.index.protocol import IndexedTable
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.timeline.unique_keys import keys_are_unique


@dataclass(frozen=True)
class CopiesTask:
    """Find out whether a base file has one of the keys several times."""

    source: KeySource
    slice: FileSlice
    keys: pa.Array[Any] | None
    """None for any key."""


def has_copies(task: CopiesTask, _attempt: Attempt) -> bool:
    """Whether it has."""
    base = replace(task.slice, logs=())
    hits = [
        keys if task.keys is None else keys.filter(pc.is_in(keys, value_set=task.keys))
        for keys in (batch.column(0) for batch in task.source.keys_of(base))
    ]
    found = pa.concat_arrays([pa.array([], pa.string()), *hits])
    return len(found.unique()) < len(found)


def groups_with_copies(
    table: IndexedTable, groups: Sequence[FileGroup], keys: Mapping[int, pa.Array[Any] | None]
) -> frozenset[int]:
    """Those of the numbered file groups that have to be written anew to delete keys from them.

    keys: None where executors alone have them; then a group counts that has any key several times.
    None are found where a record index and the commits tell that keys are unique. Raises
    `CommitConflict` where a compaction of such a group is pending.
    """
    if not table.config.is_merge_on_read or _are_unique(table):
        return frozenset()
    read = {number: groups[number].read_slice for number in keys}
    asked = [number for number, slice_ in read.items() if slice_.base is not None]
    tasks = [CopiesTask(table.key_source, read[number], keys[number]) for number in asked]
    found = table.engine.run(has_copies, tasks, label="look for keys that repeat")
    hit = frozenset(number for number, copies in zip(asked, found, strict=True) if copies)
    for number in hit:
        pending = groups[number].compaction
        if pending is not None:
            msg = (
                f"the compaction {pending} of the file group {groups[number].slice.file_id} is "
                "pending, which has rows of one key that can only be deleted in its base file"
            )
            raise CommitConflict(msg, hint="Complete the compaction, then delete again.")
    return hit


def _are_unique(table: IndexedTable) -> bool:
    # Without such an index pyhudi's commits do not tell, and many would have to be read.
    indexed = RECORD_INDEX in table.config.metadata_partitions
    return indexed and keys_are_unique(table.timeline)
