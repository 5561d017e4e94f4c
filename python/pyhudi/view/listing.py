"""Partitions and their files, found by listing storage. The metadata table is not asked here.

A folder is a partition when it holds a file whose name starts with `.hoodie_partition_metadata`; no
partition lies within another (`FileSystemBackedTableMetadata`, Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING

from pyhudi.view.names import is_partition_metadata

if TYPE_CHECKING:
    from pyhudi.storage import Entry, Storage

METAFOLDER = ".hoodie"

PartitionFilter = Callable[[str], bool] | Collection[str]
"""Which partitions to list: a test of the partition path, or the very paths."""


def list_partitions(storage: Storage) -> list[str]:
    """Paths of all partitions, sorted; [""] for a table without partitions that holds data."""
    return sorted(partition for partition, _ in walk_partitions(storage))


def list_files(
    storage: Storage, partitions: PartitionFilter | None = None
) -> Iterator[tuple[str, list[Entry]]]:
    """Every wanted partition with its files, sorted by partition path.

    partitions: None for all. Partitions given as paths are listed directly; a missing one has no
    files.
    """
    if partitions is None or callable(partitions):
        found = sorted(walk_partitions(storage), key=lambda pair: pair[0])
        return (pair for pair in found if partitions is None or partitions(pair[0]))
    return ((path, storage.list_dir(path)[1]) for path in sorted(set(partitions)))


def walk_partitions(storage: Storage) -> Iterator[tuple[str, list[Entry]]]:
    """Every partition with its files, in no particular order, folder by folder."""
    pending = [""]
    while pending:
        folder = pending.pop()
        folders, files = storage.list_dir(folder)
        if any(is_partition_metadata(_base_name(file.path)) for file in files):
            yield folder, files
        else:
            pending.extend(path for path in folders if path != METAFOLDER)


def _base_name(path: str) -> str:
    return path.rsplit("/", 1)[-1]
