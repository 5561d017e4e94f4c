"""File groups and file slices of a table as of its timeline, from a list of its files.

It determines the files that a query reads and the slice that a writer appends to. It reads no data
file and ignores files that no committed instant wrote, up to table version 6 except for single log
blocks, which their reader must check (`TableVersion.blocks_need_commit_check`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from pyhudi import _native
from pyhudi.cached_property import cached_property
from pyhudi.config.actions import COMPACTION, REPLACE_COMMIT
from pyhudi.config.file_names import parse_base_name
from pyhudi.config.table_config import TableConfig
from pyhudi.slices import slice_builder
from pyhudi.slices.bootstrap import with_sources
from pyhudi.slices.file_slice import BaseFile, FileSlice, LogFile, Selection
from pyhudi.slices.file_slices import FileSlices, snapshot_slice
from pyhudi.slices.listing import FileSource, PartitionFilter, StorageListing
from pyhudi.slices.slice_builder import FileGroups, GroupKey
from pyhudi.storage.storage import Entry, Storage
from pyhudi.timeline import Timeline


class NamedFile(NamedTuple):
    """A data file that a commit, or an earlier listing, names."""

    path: str
    """Relative to the table."""
    file_id: str

    @property
    def partition(self) -> str:
        """Partition path."""
        return self.path.rpartition("/")[0]


class FileSystemView:
    """The file groups of a table, listed on first use; create a new one to see later files."""

    def __init__(
        self,
        storage: Storage,
        config: TableConfig,
        timeline: Timeline,
        partitions: PartitionFilter | None = None,
        files: FileSource | None = None,
        *,
        listed: _native.FileGroups | None = None,
        change_logs: bool = False,
        with_replaced: bool = False,
        check: Callable[[FileSystemView], None] | None = None,
    ) -> None:
        """`partitions`: a test of the path, or paths; None for all.

        files: the source of listings, storage if it is None. listed: the files of all selected
        partitions, in place of a listing. change_logs: include change logs,
        which no query merges, in the log files of their slices. with_replaced: include slices of
        replaced groups. check: called once the files are listed; raises if they must not be used.
        """
        self._storage = storage
        self._config = config
        self._timeline = timeline
        self._partitions = partitions
        self._files = files or StorageListing(storage)
        self._listed = listed
        self._change_logs = change_logs
        self._with_replaced = with_replaced
        self._check = check

    def slices(self) -> FileSlices:
        """Return the slices of a snapshot: one per group, by partition and file id.

        The slice before a pending compaction is joined with the log files written since.
        """
        return self._find("snapshot")

    def base_slices(self) -> FileSlices:
        """Return the slices of a read-optimized query: each group's newest committed base file."""
        return self._find("base files")

    def iter_newest_slices(self) -> FileSlices:
        """Return the newest slice of every group, to which log files are appended.

        A pending compaction's slice is one of them, without base file and perhaps without log
        files.
        """
        return self._find("newest")

    def all_slices(self) -> FileSlices:
        """Return every committed slice of groups that are not replaced, newest first."""
        return self._find("all")

    def slices_of_versions(self, also: Collection[GroupKey] = ()) -> FileSlices:
        """Return `all_slices` of the groups that may have several, and of those in `also`."""
        _ = self._checked_groups
        return self._slices(self._finder.find_versions(list(self._without), list(also)))

    def slices_of(self, key: GroupKey) -> FileSlices:
        """Return every committed slice of one group, newest first, also of a replaced one."""
        _ = self._checked_groups
        return self._slices(self._finder.find_one(*key))

    def snapshot_slice_of(self, key: GroupKey) -> FileSlice | None:
        """Return the slice that a snapshot reads of one group, as if it were not replaced."""
        return snapshot_slice(self.slices_of(key), self._pending_compactions.get(key))

    def with_change_logs(self) -> FileSystemView:
        """Return a view of the same listing that includes change logs."""
        return FileSystemView(
            self._storage,
            self._config,
            self._timeline,
            self._partitions,
            listed=self._checked_groups,
            change_logs=True,
        )

    @property
    def groups(self) -> FileGroups:
        """All data files by group, including replaced groups and uncommitted files."""
        return FileGroups(self._checked_groups, appended=self._appended)

    @property
    def partitions(self) -> list[str]:
        """Paths of the listed partitions, sorted, including those without live file groups."""
        return self._checked_groups.partitions()

    @cached_property
    def replaced(self) -> dict[GroupKey, str]:
        """Groups that a completed replace commit replaced, with its requested time."""
        times: dict[GroupKey, str] = {}
        for instant in self._timeline.filter_completed(REPLACE_COMMIT):
            for key in self._timeline.commit_metadata(instant).replaced:
                times.setdefault(key, instant.requested)
        return times

    def _find(self, selection: Selection) -> FileSlices:
        _ = self._checked_groups
        return self._slices(self._finder.find(selection, list(self._without)))

    def _slices(self, native: _native.FileSlices) -> FileSlices:
        slices = FileSlices(native, appended=self._appended)
        return with_sources(self._storage, self._config, slices)

    @property
    def _without(self) -> Collection[GroupKey]:
        return () if self._with_replaced else self.replaced

    @property
    def _appended(self) -> bool:
        """Whether commits append to existing log files."""
        return self._config.version.logs_named_by_base_instant

    def find_missing(
        self, absent: Iterable[NamedFile], *, base_only: bool = False
    ) -> list[BaseFile | LogFile]:
        """Return missing files that a snapshot would read, sorted by path.

        Files of replaced groups and of older slices are not among them. base_only: only base files
        count, as for a read-optimized query.
        """
        by_partition: dict[str, set[str]] = {}
        for file in absent:
            by_partition.setdefault(file.partition, set()).add(file.path)
        if not by_partition:
            return []
        whole = self._groups_with(by_partition)
        keys = whole.keys()
        outside = [key for key in keys if not self.includes_partition(key[0])]
        finder = self._finder_of(whole)
        selection: Selection = "base files" if base_only else "snapshot"
        slices = FileSlices(
            finder.find(selection, [*self.replaced, *outside]), appended=self._appended
        )
        lost = (file for slice_ in slices for file in slice_.files if not self.has_file(file.path))
        return sorted(lost, key=lambda file: file.path)

    def _groups_with(self, absent: Mapping[str, Collection[str]]) -> _native.FileGroups:
        """Return the file groups of absent files, with their listed files."""
        entries = {
            partition: [Entry(path, 0, 0) for path in sorted(paths)]
            for partition, paths in absent.items()
        }
        existing = FileGroups(self._groups, appended=self._appended)
        for partition, file_id in self._group(entries.items()).keys():  # noqa: SIM118 - no mapping
            group = existing.get((partition, file_id))
            if group is not None:
                entries[partition] += [Entry(base.path, base.size, 0) for base in group.bases]
                entries[partition] += [Entry(log.path, log.size, 0) for log in group.logs]
        return self._group(entries.items())

    def includes_partition(self, partition: str) -> bool:
        """Return whether the view includes a partition, whether it exists or not."""
        selected = self._partitions
        if selected is None or partition in self._partition_set:
            return True
        return selected(partition) if callable(selected) else partition in selected

    def is_superseded(self, path: str, file_id: str, committed: str) -> bool:
        """Return whether a listed base file is certainly newer than the slice of a file.

        committed: the completion time of the commit that names the file; up to table version 6, its
        requested time.
        """
        newest = self._finder.newest_base(path.rpartition("/")[0], file_id)
        return newest is not None and len(newest) == len(committed) and committed < newest

    def has_file(self, path: str) -> bool:
        """Return whether a data file is listed."""
        partition, _, name = path.rpartition("/")
        return self._groups.has_file(partition, name)

    def find_absent(self, paths: list[str]) -> list[int]:
        """Return the positions of the paths of data files that are not listed."""
        return self._groups.absent(paths)

    @property
    def listed(self) -> _native.FileGroups:
        """All listed files, in the core; the view's check has not run on them."""
        return self._groups

    def count_files(self, partition: str) -> int:
        """Return the number of a partition's data files, committed or not."""
        return self._groups.files_in(partition)

    @property
    def total(self) -> tuple[int, int]:
        """Number and bytes of all data files, committed or not."""
        return self._checked_groups.total()

    @cached_property
    def _partition_set(self) -> frozenset[str]:
        return frozenset(self._groups.partitions())

    @cached_property
    def _checked_groups(self) -> _native.FileGroups:
        groups = self._groups
        if self._check is not None:
            self._check(self)
        return groups

    @cached_property
    def _groups(self) -> _native.FileGroups:
        if self._listed is not None:
            groups = self._listed
        else:
            groups = self._group(self._files.list_files(self._partitions))
        return groups.with_change_logs(self._change_logs)

    def _group(self, listed: Iterable[tuple[str, list[Entry]]]) -> _native.FileGroups:
        builder = _native.FileGroupsBuilder(self._config.base_extension)
        for partition, entries in listed:
            check_supported(builder.add(partition, entries), self._config)
        return builder.finish()

    @cached_property
    def _finder(self) -> _native.SliceFinder:
        return self._finder_of(self._groups)

    def _finder_of(self, groups: _native.FileGroups) -> _native.SliceFinder:
        return _native.SliceFinder(
            groups,
            is_committed=self._timeline.is_committed,
            # The garbage collector does not see references in the core: none may lead to the view.
            completion_time=partial(_completion_time, self._timeline),
            logs_named_by_base_instant=self._config.version.logs_named_by_base_instant,
            compactions=list(self._pending_compactions.items()),
        )

    @cached_property
    def _pending_compactions(self) -> dict[GroupKey, str]:
        """The newest pending compaction of every group that has one."""
        return {
            key: instant.requested
            for instant in self._timeline.pending(COMPACTION)
            for key in slice_builder.groups_of_plan(self._timeline.plan(instant))
        }


def _completion_time(timeline: Timeline, instant: str) -> str:
    return timeline.completion_time(instant) or timeline.archive.completion_time(instant)


def check_supported(unsupported: str | None, config: TableConfig) -> None:
    """Raise the error of a file name that the core does not support, if there is one."""
    if unsupported is not None:
        parse_base_name(unsupported, config.base_extension)
