"""Packing of small read tasks and splitting of large ones, for engines with costly tasks.

A pack is one task of an engine that runs many, one after the other. The rule is that of Spark's
file sources (`FilePartition`): packs have a maximum size, where opening a file counts as some bytes
too, and are smaller if there would otherwise be too few of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import pyarrow as pa

from pyhudi.engine.local import choose_engine
from pyhudi.engine.protocol import Engine
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.read_tasks import ReadTask
from pyhudi.storage.storage import Storage

Task = TypeVar("Task")


def engine_for_slices(engine: Engine, storage: Storage, slices: Iterable[FileSlice]) -> Engine:
    """Return the engine for a call that reads these slices; see `choose_engine`."""
    return choose_engine(engine, storage, size=sum(slice_.size for slice_ in slices))


@dataclass(frozen=True)
class PackSizes:
    """The size of packs."""

    max_bytes: int = 128 * 1024 * 1024
    """Bytes of a pack, as `spark.sql.files.maxPartitionBytes`."""
    open_bytes: int = 4 * 1024 * 1024
    """Cost of opening a file in bytes, as `spark.sql.files.openCostInBytes`."""
    min_packs: int = 1
    """Desired minimum number of packs: tasks that run concurrently."""

    def limit(self, sizes: Sequence[int]) -> int:
        """Return the bytes of a pack, for tasks of these sizes."""
        share = sum(size + self.open_bytes for size in sizes) // max(self.min_packs, 1)
        return min(self.max_bytes, max(self.open_bytes, share))


@dataclass(frozen=True)
class Pack(Generic[Task]):
    """Tasks that one task of an engine runs one after the other. Picklable."""

    work: Callable[[Task], Iterator[pa.RecordBatch]]
    """Module-level."""
    tasks: tuple[Task, ...]


def pack_tasks(
    work: Callable[[Task], Iterator[pa.RecordBatch]],
    tasks: Sequence[Task],
    size: Callable[[Task], int],
    sizes: PackSizes,
) -> list[Pack[Task]]:
    """Return packs of consecutive tasks, so rows come in the order of the tasks."""
    limit = sizes.limit([size(task) for task in tasks])
    packs: list[list[Task]] = []
    filled = 0
    for task in tasks:
        cost = size(task) + sizes.open_bytes
        # As in Spark, the size of files fills a pack; the cost of opening only adds up.
        if not packs or filled + size(task) > limit:
            packs.append([])
            filled = 0
        packs[-1].append(task)
        filled += cost
    return [Pack(work, tuple(pack)) for pack in packs]


def split_tasks(tasks: Sequence[ReadTask], sizes: PackSizes) -> list[ReadTask]:
    """Return the tasks, those of large base files with nothing to merge split by row groups.

    A row group belongs to the part in which it begins, so no footer is read for this; a part may
    have no row group.
    """
    # A part that is smaller than its cost of opening is not worth it.
    limit = max(sizes.limit([task_size(task) for task in tasks]), sizes.open_bytes, 1)
    return [part for task in tasks for part in _parts(task, limit)]


def task_size(task: ReadTask) -> int:
    """Return the bytes of the files that a task reads."""
    if task.base_part is None:
        return task.slice.size
    begin, end = task.base_part
    return (task.slice.size if end is None else end) - begin


def change_size(task: Any) -> int:
    """Return the bytes of the slices that a change task reads; change logs count as nothing."""
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


def read_pack(pack: Pack[Any]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all tasks of a pack, in their order."""
    for task in pack.tasks:
        yield from pack.work(task)
