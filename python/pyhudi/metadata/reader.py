"""Opens the metadata table of a data table, and hands its partitions to the Rust core.

It is a merge-on-read table of HFiles with its own timeline, so the code that reads any table reads
timeline and file groups. What its records mean for a query is decided elsewhere. Layout:
`HoodieTableMetadata`, `MetadataPartitionType` (Hudi 0.15.0 and 1.2.0).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple
from weakref import WeakKeyDictionary

import pyarrow as pa

from pyhudi import _native
from pyhudi.cached_property import cached_property
from pyhudi.config.metadata_names import (
    ALL_PARTITIONS,
    FILES,
    FOLDER,
    NO_PATH,
    PROPERTIES,
    REBUILD_HINT,
    RECORD_INDEX,
)
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CorruptTable
from pyhudi.metadata.consistency import (
    check_files,
    check_not_stale,
    find_writes_since,
    is_initial_time,
    may_be_ahead,
)
from pyhudi.metadata.file_group_handle import FileGroupHandle, handles_of, open_groups
from pyhudi.metadata.index_definitions import IndexDefinition, index_definitions
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.listing import FileSource
from pyhudi.storage.options import is_remote
from pyhudi.storage.prefetch import MAX_CONCURRENT
from pyhudi.storage.storage import Entry, Storage
from pyhudi.storage.threads import ThreadPool
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline

_PLANNED_ON: WeakKeyDictionary[Timeline, MetadataTable] = WeakKeyDictionary()
"""By the data table's timeline on which a write is planned."""

_GROUP_NUMBER = re.compile(r"-(\d{4,})(?:-0)?$")

_CACHED_CONFIGS = 64
"""Number of cached properties: each commit reads those of its metadata table twice."""

_FEW_KEYS = 32
"""The maximum number of keys that are looked up one by one."""

_ESCAPED_IN_IDS = frozenset("\"#%'*/:=?\\{[]^\x7f_-") | {chr(code) for code in range(1, 32)}


class AddedFiles(NamedTuple):
    """The result of `MetadataTable.add_data_files`."""

    unsupported: str | None
    """The name of a base file of another format, or of another writer; None without any."""


class MetadataTable:
    """A metadata table at the instant of its data table's timeline."""

    def __init__(
        self,
        storage: Storage,
        config: TableConfig,
        timeline: Timeline,
        *,
        opened: TableSnapshot | None = None,
        files: FileSource | None = None,
        for_write: bool = False,
        partitioned_index: bool | None = None,
    ) -> None:
        """Read its timeline. The arguments are the data table's.

        opened: an earlier instance from just before. files: lists its files. for_write: ignore what
        started since the data table's timeline was loaded; readers use `may_be_ahead`.
        partitioned_index: whether its record index is partitioned; None to read the definitions.
        Raises `CorruptTable` if it is missing, damaged or out of date.
        """
        self._data_storage = storage
        self._data_config = config
        self._storage = storage.below(FOLDER)
        self._files = files
        self._partitioned_index = partitioned_index
        if opened is None:
            self._config, metadata = load_metadata(self._storage, config)
        else:
            self._config, metadata = opened.config, opened.timeline
        # A crash between its delta commit and the data table's commit leaves one that must not
        # count.
        pending = {instant.requested for instant in timeline.pending()}
        pending &= {instant.requested for instant in metadata.filter_completed()}
        # A pending clean may have the time of a completed commit, whose delta commit it is.
        pending -= {commit.requested for commit in timeline.commits}
        if for_write:
            # Its writer may still fail, and the commit checks only complete ones again.
            pending |= find_writes_since(timeline, metadata)
        self._timeline = metadata.with_reopened(pending) if pending else metadata
        self._listed = metadata
        check_not_stale(timeline, self._timeline)
        self.may_be_ahead: bool = may_be_ahead(timeline.uncut, metadata)
        """Whether it may have commits that the data table's timeline does not."""
        self._opened: dict[str, _native.MetadataPartition] = {}
        # By name, and by data partition for a partitioned record index.
        self._groups: dict[tuple[str, str | None], list[FileGroupHandle]] = {}
        if for_write:
            _PLANNED_ON[timeline] = self

    @classmethod
    def for_plan(cls, data: TableSnapshot) -> MetadataTable:
        """Return the one that was opened last to plan a write on a snapshot, or open one."""
        opened = _PLANNED_ON.get(data.timeline)
        return opened or cls(data.storage, data.config, data.timeline, for_write=True)

    @classmethod
    def of_snapshots(
        cls, data: TableSnapshot, opened: TableSnapshot, files: FileSource
    ) -> MetadataTable:
        """Return that of a data table which is in sync with a commit. Both are current."""
        return cls(data.storage, data.config, data.timeline, opened=opened, files=files)

    def has(self, partition: str) -> bool:
        """Return whether a partition is complete, so that readers may use it."""
        return partition in self._data_config.metadata_partitions

    @property
    def applied(self) -> set[str]:
        """Return the times of its commits, with its own services and initialisations."""
        return {instant.requested for instant in self._timeline.filter_completed()}

    @cached_property
    def definitions(self) -> Mapping[str, IndexDefinition]:
        """The table's index definitions by name."""
        return index_definitions(self._data_storage, self._data_config)

    def partition(self, name: str) -> _native.MetadataPartition:
        """Open the records of one of its partitions."""
        if name not in self._opened:
            groups = self._groups_of(name)
            empty = _native.MetadataPartition(self._storage.native, [])
            self._opened[name] = open_groups(groups) if groups else empty
        return self._opened[name]

    def locations(self, keys: Sequence[str]) -> list[pa.RecordBatch]:
        """Return the record locations of keys: see `_native.MetadataPartition`.

        keys: sorted. Many keys are looked up in several file groups concurrently: most of the work
        is decompression of blocks.
        """
        if len(keys) <= _FEW_KEYS:
            return [self.partition(RECORD_INDEX).locations(list(keys))]
        groups = self._groups_of(RECORD_INDEX)
        by_group: list[list[str]] = [[] for _ in groups]
        keys_array = pa.array(keys, pa.string())
        for key, group in zip(keys, _native.metadata_groups(keys_array, len(groups)), strict=True):
            by_group[group.as_py()].append(key)
        pairs = [pair for pair in zip(groups, by_group, strict=True) if pair[1]]
        threads = MAX_CONCURRENT if is_remote(self._storage.uri) else os.cpu_count()
        with ThreadPool(threads, thread_name_prefix="pyhudi-look-up") as pool:
            return list(pool.map(lambda pair: pair[0].open().locations(pair[1]), pairs))

    def _groups_of(self, name: str, path: str | None = None) -> list[FileGroupHandle]:
        """Return `file_groups`, listed once."""
        if (name, path) not in self._groups:
            self._groups[name, path] = self.file_groups(name, path)
        return self._groups[name, path]

    def record_index_of_partition(self, path: str) -> _native.MetadataPartition | None:
        """Return the record index of one data partition; None if it has none."""
        groups = self._groups_of(RECORD_INDEX, path)
        return open_groups(groups) if groups else None

    def file_groups(self, name: str, path: str | None = None) -> list[FileGroupHandle]:
        """Return the file groups of one of its partitions by number, each to be opened by itself.

        path: the data partition of a partitioned record index; empty if that has no index. None
        returns the file groups of all data partitions.
        """
        slices = self._slices(name)
        if path is not None:
            slices = self._of_data_partition(slices, path)
        if path is None and self._is_partitioned(name):
            # Each data partition numbers its file groups from 0.
            for _, ids in groupby(slices, lambda slice_: _GROUP_NUMBER.sub("", slice_.file_id)):
                _check_numbers(name, ids)
        else:
            _check_numbers(name, slices)
        return handles_of(self._storage, self._config, self._timeline, slices)

    def files(self, name: str) -> list[tuple[Storage, str, bool]]:
        """Return the current files of one of its partitions: storage, path, whether it is a log."""
        slices = self._slices(name)
        bases = [(slice_.base.path, False) for slice_ in slices if slice_.base is not None]
        logs = [(log.path, True) for slice_ in slices for log in slice_.logs]
        return [(self._storage, path, is_log) for path, is_log in (*bases, *logs)]

    def check_not_rebuilt(self, *, is_reused: bool) -> None:
        """Raise `CorruptTable` if another writer has rebuilt it, or a part of it, since.

        First files have names that recur, and instants before the timeline's start, which count as
        committed; any other file would be missing. The partition that lists files is read first,
        but a cached one may have opened another partition much later.

        is_reused: it was read before.
        """
        group_lists = self._groups.values() if is_reused else [self._groups_of(FILES)]
        groups = [group for groups in group_lists for group in groups if _has_first_files(group)]
        times = {time for group in groups for time in group.instants}
        if not times:
            return
        current, opened = Timeline.load(self._storage, self._config), self._listed
        if any(current.completion_time(time) != opened.completion_time(time) for time in times):
            raise CorruptTable(f"{FOLDER} was rebuilt since it was opened")
        # What was built and archived since looks like what was archived before.
        start_changed = current.first_active != opened.first_active
        if start_changed and any(map(opened.is_before_start, times)):
            raise CorruptTable(f"{FOLDER} was archived since it was opened")

    def check_groups(self, name: str) -> None:
        """Raise `CorruptTable` if files of one of its partitions are missing or truncated."""
        slices = self._slices(name)
        if not self._is_partitioned(name):
            _check_numbers(name, slices)

    def data_partitions(self) -> list[str]:
        """Return the paths of the data table's partitions, sorted."""
        records = self.partition(FILES).files([ALL_PARTITIONS])
        live = zip(records["name"].to_pylist(), records["is_deleted"].to_pylist(), strict=True)
        return sorted(
            "" if name == NO_PATH else name for name, is_deleted in live if not is_deleted
        )

    def add_data_files(
        self, builder: _native.FileGroupsBuilder, partitions: Iterable[str]
    ) -> AddedFiles:
        """Add the files of data partitions; an unknown partition has none."""
        paths = {path or NO_PATH: path for path in partitions}
        return AddedFiles(builder.add_metadata(self.partition(FILES), paths))

    def data_files(self, partitions: Iterable[str]) -> dict[str, list[Entry]]:
        """Return the files of data partitions; an unknown partition has none."""
        paths = {path or NO_PATH: path for path in partitions}
        files: dict[str, list[Entry]] = {path: [] for path in paths.values()}
        records = self.partition(FILES).files(list(paths))
        columns = (
            records[name].to_pylist() for name in ("partition", "name", "size", "is_deleted")
        )
        for key, name, size, is_deleted in zip(*columns, strict=True):
            if not is_deleted:
                path = paths[key]
                files[path].append(Entry(f"{path}/{name}" if path else name, size, 0))
        return files

    def find_unlisted(
        self, listed: _native.FileGroups, includes_partition: Callable[[str], bool]
    ) -> list[str]:
        """Return paths of files of some data partitions that are not among listed ones."""
        partitions = {
            path or NO_PATH: path for path in self.data_partitions() if includes_partition(path)
        }
        return listed.absent_of(self.partition(FILES), partitions)

    @staticmethod
    def _of_data_partition(slices: Iterable[FileSlice], path: str) -> list[FileSlice]:
        pattern = re.compile(re.escape(f"record-index-{escape_path(path)}-") + r"\d{4,}(-0)?")
        return [slice_ for slice_ in slices if pattern.fullmatch(slice_.file_id)]

    def _is_partitioned(self, name: str) -> bool:
        """Return whether each data partition has its own file groups there; none without rows."""
        if name != RECORD_INDEX:
            return False
        if self._partitioned_index is not None:
            return self._partitioned_index
        definition = self.definitions.get(name)
        return definition is not None and definition.is_partitioned

    def _slices(self, name: str) -> list[FileSlice]:
        if not self.has(name):
            raise CorruptTable(f"{FOLDER} has no partition {name}")
        view = FileSystemView(self._storage, self._config, self._timeline, {name}, self._files)
        present: dict[str, tuple[str, int]] = {}
        for group in view.groups.values():
            present.update((file.name, (file.file_id, file.size)) for file in group.bases)
            present.update((file.name, (file.file_id, file.size)) for file in group.logs)
        check_files(self._timeline, name, present)
        slices = list(view.slices())
        if not slices and not self._is_partitioned(name):
            raise CorruptTable(f"{FOLDER}/{name} has no files", hint=REBUILD_HINT)
        return slices


def escape_path(path: str) -> str:
    """Return a data partition's path as file ids of the record index contain it."""
    return "".join(f"%{ord(c):02X}" if c in _ESCAPED_IN_IDS else c for c in path)


def load_metadata(storage: Storage, data: TableConfig) -> tuple[TableConfig, Timeline]:
    """Return configuration and timeline of a metadata table. storage: its own.

    data: the data table's, whose layout it has. Raises `CorruptTable` if it is missing.
    """
    with storage.prefetch(files=[PROPERTIES], folders=[data.layout.folder]):
        config = open_config(storage)
        return config, Timeline.load(storage, config)


def open_config(storage: Storage) -> TableConfig:
    """Return the metadata table's own configuration. Raises `CorruptTable` if it is missing."""
    data = storage.read_or_none(PROPERTIES)
    if data is None:
        msg = f"the metadata table is missing: {FOLDER} has no {PROPERTIES}"
        raise CorruptTable(msg, hint=REBUILD_HINT)
    return _parse_config(data)


@lru_cache(_CACHED_CONFIGS)
def _parse_config(data: bytes) -> TableConfig:
    return TableConfig.parse(data, f"{FOLDER}/{PROPERTIES}")


def _has_first_files(group: FileGroupHandle) -> bool:
    """Return whether a file group has only the files that it was built with."""
    return all(map(is_initial_time, group.instants))


def _check_numbers(name: str, slices: Iterable[FileSlice]) -> None:
    """Check that no file group is missing: their number is part of the hash of keys."""
    for expected, slice_ in enumerate(slices):
        check_group_number(name, slice_.file_id, expected)


def check_group_number(name: str, file_id: str, expected: int) -> None:
    """Raise `CorruptTable` if a file group's position in its partition is not its number."""
    match = _GROUP_NUMBER.search(file_id)
    if match is None or int(match[1]) != expected:
        msg = f"{FOLDER}/{name} does not have the file group {expected}, but has {file_id}"
        raise CorruptTable(msg, hint=REBUILD_HINT)
