"""Read tasks for engines where a task costs much: small ones in packs, a large one in parts. Pure.

A pack is one task of an engine that does many, in turn. The rule is that of Spark's file sources
(`FilePartition`): packs of at most so many bytes, where opening a file counts as some bytes too,
and of fewer where there would be less packs than are wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import pyarrow as pa

from pyhudi.slices.read_tasks import ReadTask

Task = TypeVar("Task")


@dataclass(frozen=True)
class PackSizes:
    """How large packs are."""

    most_bytes: int = 128 * 1024 * 1024
    """Bytes of a pack, as `spark.sql.files.maxPartitionBytes`."""
    open_bytes: int = 4 * 1024 * 1024
    """What opening a file counts as, as `spark.sql.files.openCostInBytes`."""
    wanted: int = 1
    """So many packs or more, where there is enough to read: tasks that run at once."""

    def limit(self, sizes: Sequence[int]) -> int:
        """Bytes of a pack, for tasks of these sizes."""
        share = sum(size + self.open_bytes for size in sizes) // max(self.wanted, 1)
        return min(self.most_bytes, max(self.open_bytes, share))


@dataclass(frozen=True)
class Pack(Generic[Task]):
    """Tasks that one task of an engine carries out in turn. Picklable."""

    work: Callable[[Task], Iterator[pa.RecordBatch]]
    """Module-level."""
    tasks: tuple[Task, ...]


def pack_tasks(
    work: Callable[[Task], Iterator[pa.RecordBatch]],
    tasks: Sequence[Task],
    size: Callable[[Task], int],
    sizes: PackSizes,
) -> list[Pack[Task]]:
    """Packs of tasks that follow one another, so rows come in the order of the tasks."""
    limit = sizes.limit([size(task) for task in tasks])
    packs: list[list[Task]] = []
    filled = 0
    for task in tasks:
        cost = size(task) + sizes.open_bytes
        # As in Spark, a pack is full by what is in the files; their opening only adds up.
        if not packs or filled + size(task) > limit:
            packs.append([])
            filled = 0
        packs[-1].append(task)
        filled += cost
    return [Pack(work, tuple(pack)) for pack in packs]


def split_tasks(tasks: Sequence[ReadTask], sizes: PackSizes) -> list[ReadTask]:
    """The tasks, those of large base files with nothing to merge in parts, by row groups.

    A row group belongs to the part that it begins in, so no footer is read for this; a part can
    turn out to have none.
    """
    # A part that is smaller than what its opening counts as is not worth it.
    limit = max(sizes.limit([task_size(task) for task in tasks]), sizes.open_bytes, 1)
    return [part for task in tasks for part in _parts(task, limit)]


def task_size(task: ReadTask) -> int:
    """Bytes of the files that a task reads."""
    if task.base_part is None:
        return task.slice.size
    begin, end = task.base_part
    return (task.slice.size if end is None else end) - begin


def change_size(task: Any) -> int:
    """Bytes of the slices that a task of changes reads; change logs count as nothing."""
    match = getattr(task, "match", task)
    return sum(task_size(side) for side in (match.before, match.after) if side is not None)


def _parts(task: ReadTask, limit: int) -> Iterator[ReadTask]:
    base = task.slice.base
    if base is None or base.source is not None or task.slice.logs or base.size <= limit:
        yield task
        return
    # Even parts: a small rest is not worth a task.
    count = -(-base.size // limit)
    bounds = [base.size * number // count for number in range(count)]
    for begin, end in zip(bounds, [*bounds[1:], None], strict=True):
        yield replace(task, base_part=(begin, end))
