"""Partitions and their files, found by listing storage. The metadata table is not used here.

A directory is a partition if it has a file whose name starts with `.hoodie_partition_metadata`. No
partition is inside another, and none is inside a directory called `.hoodie` at any depth, though
one below the first level may have that name (`FileSystemBackedTableMetadata`, Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from pyhudi.config.file_names import PARTITION_METADATA_PREFIX, is_partition_metadata
from pyhudi.storage.properties_file import FILE as PROPERTIES
from pyhudi.storage.storage import Entry, Storage

METAFOLDER = ".hoodie"

PartitionFilter = Callable[[str], bool] | Collection[str]
"""The partitions to list: a test of the partition path, or the paths."""


class FileSource(Protocol):
    """A source of the files of a table."""

    def list_files(
        self, partitions: PartitionFilter | None = None
    ) -> Iterator[tuple[str, list[Entry]]]:
        """Yield every selected partition with its files, in no order.

        partitions: None for all. A partition that is given as path and does not exist has no files.
        """
        ...


class StorageListing:
    """The files on storage."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def list_files(
        self, partitions: PartitionFilter | None = None
    ) -> Iterator[tuple[str, list[Entry]]]:
        """See `FileSource.list_files`; partitions given as paths are listed directly.

        The files of a partition are in memory only until the caller asks for the next one.
        """
        if partitions is None or callable(partitions):
            return walk_partitions(self._storage, partitions)
        return list_files(self._storage, partitions)


class ListedOnce:
    """The files that were on storage at the first listing.

    For an operation on one snapshot that lists repeatedly: files that other writers have removed
    since stay, and reading them fails.
    """

    def __init__(
        self,
        storage: Storage,
        check: Callable[[], None] = lambda: None,
        listed: Mapping[str, list[Entry]] | None = None,
    ) -> None:
        """check: called after each listing; raises if files may be missing in it.

        listed: files by partition that need not be listed again.
        """
        self._storage = storage
        self._check = check
        self._listed: dict[str, list[Entry]] = {**(listed or {})}
        self._all: list[str] | None = None
        """Paths of the partitions, if all were listed."""

    def list_files(
        self, partitions: PartitionFilter | None = None
    ) -> Iterator[tuple[str, list[Entry]]]:
        """See `FileSource.list_files`; each partition is listed once."""
        if partitions is None or callable(partitions):
            paths = [path for path in self._all_paths() if partitions is None or partitions(path)]
        else:
            paths = sorted(set(partitions))
            self._list([path for path in paths if path not in self._listed])
        return ((path, self._listed[path]) for path in paths)

    @property
    def listed(self) -> Mapping[str, list[Entry]]:
        """The files of each partition that was listed."""
        return self._listed

    def _all_paths(self) -> list[str]:
        if self._all is None:
            listed = dict(list_files(self._storage))
            self._check()
            self._listed = {**listed, **self._listed}
            self._all = sorted(listed)
        return self._all

    def _list(self, paths: Collection[str]) -> None:
        if paths:
            listed = dict(list_files(self._storage, paths))
            self._check()
            self._listed.update(listed)


class GivenFiles:
    """Files that the caller knows, by partition path, such as those that some commits wrote."""

    def __init__(self, files: Mapping[str, list[Entry]]) -> None:
        self._files = files

    def list_files(
        self, partitions: PartitionFilter | None = None
    ) -> Iterator[tuple[str, list[Entry]]]:
        """See `FileSource.list_files`."""
        for path in sorted(self._files):
            if partitions is None or (
                partitions(path) if callable(partitions) else path in partitions
            ):
                yield path, self._files[path]


def list_files(
    storage: Storage, partitions: PartitionFilter | None = None
) -> Iterator[tuple[str, list[Entry]]]:
    """See `FileSource.list_files`, from storage, sorted by partition path."""
    if partitions is None or callable(partitions):
        return iter(sorted(walk_partitions(storage, partitions), key=lambda pair: pair[0]))
    paths = sorted(set(partitions))
    listed = storage.list_dirs(paths)
    return ((path, files) for path, (_, files) in zip(paths, listed, strict=True))


LISTED_AT_ONCE = 64
"""Directories per request: storage may be remote."""


def walk_partitions(
    storage: Storage,
    is_selected: Callable[[str], bool] | None = None,
    within: Iterable[str] = ("",),
) -> Iterator[tuple[str, list[Entry]]]:
    """Yield every selected partition with its files, directory by directory, in no order.

    within: the directories that are searched, including themselves. For a partition that is not
    selected, only the existence of its metadata file is checked, as long as that has its usual
    name.
    """
    pending = list(within)
    while pending:
        # The last ones first: of nested directories few are pending at a time.
        chunk = pending[-LISTED_AT_ONCE:]
        del pending[-LISTED_AT_ONCE:]
        unselected = {
            folder for folder in chunk if is_selected is not None and not is_selected(folder)
        }
        searched = _directories_without_metadata(storage, sorted(unselected)) | (
            set(chunk) - unselected
        )
        listed = sorted(searched)
        for folder, (folders, files) in zip(listed, storage.list_dirs(listed), strict=True):
            if is_another_table(storage, folder, folders):
                continue
            if not is_marked(files):
                if not is_metafolder(folder):
                    pending.extend(path for path in folders if path != METAFOLDER)
            elif folder not in unselected:
                yield folder, files


def is_marked(files: Iterable[Entry]) -> bool:
    """Return whether the files of a directory make it a partition."""
    return any(is_partition_metadata(file.name) for file in files)


def is_metafolder(path: str) -> bool:
    """Return whether a directory is one of Hudi's own, by its name."""
    return path.rsplit("/", 1)[-1] == METAFOLDER


def is_another_table(storage: Storage, folder: str, folders: Iterable[str]) -> bool:
    """Return whether a directory, with these subdirectories, is another table inside this one."""
    own = f"{folder}/{METAFOLDER}"
    return folder != "" and own in folders and storage.exists(f"{folder}/{PROPERTIES}")


def _directories_without_metadata(storage: Storage, folders: Sequence[str]) -> set[str]:
    """Return the directories without a partition's metadata file of the usual name."""
    marks = {folder: f"{folder}/{PARTITION_METADATA_PREFIX}".lstrip("/") for folder in folders}
    with storage.prefetch(heads=marks.values()):
        return {folder for folder, mark in marks.items() if not storage.exists(mark)}
