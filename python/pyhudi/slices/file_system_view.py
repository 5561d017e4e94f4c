"""File groups and file slices of a table as of its timeline, from a list of its files.

It determines the files that a query reads and the slice that a writer appends to. It reads no data
file and ignores files that no committed instant wrote, up to table version 6 except for single log
blocks, which their reader must check (`TableVersion.blocks_need_commit_check`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from pyhudi.cached_property import cached_property
from pyhudi.config.actions import COMPACTION, REPLACE_COMMIT
from pyhudi.config.table_config import TableConfig
from pyhudi.slices import slice_builder
from pyhudi.slices.bootstrap import with_sources
from pyhudi.slices.file_slice import BaseFile, FileSlice, LogFile
from pyhudi.slices.listing import FileSource, PartitionFilter, StorageListing
from pyhudi.slices.slice_builder import GroupFiles, GroupKey, TimelineState
from pyhudi.storage.storage import Entry, Storage
from pyhudi.timeline import Timeline

_MAX_CACHED_GROUPS = 1_000
"""Maximum number of file groups of a view whose slices are cached."""


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
        change_logs: bool = False,
        with_replaced: bool = False,
        check: Callable[[FileSystemView], None] | None = None,
    ) -> None:
        """`partitions`: a test of the path, or paths; None for all.

        files: the source of listings, storage if it is None. change_logs: include change logs,
        which no query merges, in the log files of their slices. with_replaced: include slices of
        replaced groups. check: called once the files are listed; raises if they must not be used.
        """
        self._storage = storage
        self._config = config
        self._timeline = timeline
        self._partitions = partitions
        self._files = files or StorageListing(storage)
        self._change_logs = change_logs
        self._with_replaced = with_replaced
        self._check = check
        # Writes ask for the newest slices and for those of a snapshot.
        self._slices: dict[GroupKey, list[FileSlice]] = {}

    def slices(self) -> list[FileSlice]:
        """Return the slices of a snapshot: one per group, by partition and file id.

        The slice before a pending compaction is joined with the log files written since.
        """
        compactions = self._timeline_state.pending_compactions
        merged = (
            slice_builder.snapshot_slice(self._find_slices(group), compactions.get(key))
            for key, group in self._live_groups()
        )
        return self._with_sources(slice_ for slice_ in merged if slice_ is not None)

    def base_slices(self) -> list[FileSlice]:
        """Return the slices of a read-optimized query: each group's newest committed base file."""
        newest = (
            slice_builder.base_slice(self._find_slices(group)) for _, group in self._live_groups()
        )
        return self._with_sources(slice_ for slice_ in newest if slice_ is not None)

    def iter_newest_slices(self) -> list[FileSlice]:
        """Return the newest slice of every group, to which log files are appended.

        A pending compaction's slice is one of them, without base file and perhaps without log
        files.
        """
        slices_by_group = (self._find_slices(group) for _, group in self._live_groups())
        return self._with_sources(slices[0] for slices in slices_by_group if slices)

    def all_slices(self) -> list[FileSlice]:
        """Return every committed slice of groups that are not replaced, newest first."""
        return self._with_sources(
            slice_ for _, group in self._live_groups() for slice_ in self._find_slices(group)
        )

    def slices_of(self, key: GroupKey) -> list[FileSlice]:
        """Return every committed slice of one group, newest first, also of a replaced one."""
        group = self.groups.get(key)
        if group is None:
            return []
        return self._with_sources(self._find_slices(group))

    def snapshot_slice_of(self, key: GroupKey) -> FileSlice | None:
        """Return the slice that a snapshot reads of one group, as if it were not replaced."""
        compaction = self._timeline_state.pending_compactions.get(key)
        return slice_builder.snapshot_slice(self.slices_of(key), compaction)

    @property
    def groups(self) -> dict[GroupKey, GroupFiles]:
        """All data files by group, including replaced groups and uncommitted files."""
        return self._listed[1]

    @property
    def partitions(self) -> list[str]:
        """Paths of the listed partitions, sorted, including those without live file groups."""
        return sorted(self._listed[0])

    @cached_property
    def replaced(self) -> dict[GroupKey, str]:
        """Groups that a completed replace commit replaced, with its requested time."""
        times: dict[GroupKey, str] = {}
        for instant in self._timeline.filter_completed(REPLACE_COMMIT):
            for key in self._timeline.commit_metadata(instant).replaced:
                times.setdefault(key, instant.requested)
        return times

    def _find_slices(self, group: GroupFiles) -> list[FileSlice]:
        slices = self._slices.get(group.key)
        if slices is None:
            slices = slice_builder.find_committed_slices(group, self._timeline_state)
            if len(self._slices) < _MAX_CACHED_GROUPS:
                self._slices[group.key] = slices
        return slices

    def _with_sources(self, slices: Iterable[FileSlice]) -> list[FileSlice]:
        return with_sources(self._storage, self._config, list(slices))

    def _live_groups(self) -> Iterator[tuple[GroupKey, GroupFiles]]:
        groups = self._listed[1]
        replaced = {} if self._with_replaced else self.replaced
        return ((key, groups[key]) for key in sorted(groups) if key not in replaced)

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
        groups = self._absent_groups(by_partition)
        lost = (
            file for group in groups for file in self._find_lost_files(group, base_only=base_only)
        )
        return sorted(lost, key=lambda file: file.path)

    def _absent_groups(self, absent: Mapping[str, Iterable[str]]) -> Iterator[GroupFiles]:
        """Files of live groups in the partitions of the view."""
        groups: dict[GroupKey, GroupFiles] = {}
        for partition, paths in absent.items():
            self._group(partition, [Entry(path, 0, 0) for path in sorted(paths)], groups)
        for key, group in groups.items():
            if key not in self.replaced and self.includes_partition(group.partition):
                yield group

    def _find_lost_files(
        self, absent: GroupFiles, *, base_only: bool
    ) -> Iterator[BaseFile | LogFile]:
        existing = self._files_by_group[1].get(
            absent.key, GroupFiles(absent.partition, absent.file_id)
        )
        whole = replace(
            existing, bases=[*existing.bases, *absent.bases], logs=[*existing.logs, *absent.logs]
        )
        slices = slice_builder.find_committed_slices(whole, self._timeline_state)
        compaction = self._timeline_state.pending_compactions.get(absent.key)
        merged = slice_builder.snapshot_slice(slices, compaction)
        read = slice_builder.base_slice(slices) if base_only else merged
        if read is not None:
            yield from (file for file in read.files if file.path not in self.paths)

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
        newest = self._newest_bases.get((path.rpartition("/")[0], file_id))
        return newest is not None and len(newest) == len(committed) and committed < newest

    @cached_property
    def _partition_set(self) -> frozenset[str]:
        return frozenset(self._files_by_group[0])

    @cached_property
    def _newest_bases(self) -> dict[GroupKey, str]:
        """Instants of the newest listed base files that are committed."""
        is_committed = self._timeline.is_committed
        instants = {}
        for key, group in self._files_by_group[1].items():
            times = sorted((base.instant for base in group.bases), reverse=True)
            newest = next(filter(is_committed, times), None)
            if newest is not None:
                instants[key] = newest
        return instants

    @cached_property
    def paths(self) -> set[str]:
        """Paths of all listed files."""
        groups = self._files_by_group[1].values()
        bases = {base.path for group in groups for base in group.bases}
        return bases | {log.path for group in groups for log in group.logs}

    @cached_property
    def _listed(self) -> tuple[list[str], dict[GroupKey, GroupFiles]]:
        listed = self._files_by_group
        if self._check is not None:
            self._check(self)
        return listed

    @cached_property
    def _files_by_group(self) -> tuple[list[str], dict[GroupKey, GroupFiles]]:
        partitions: list[str] = []
        groups: dict[GroupKey, GroupFiles] = {}
        for partition, entries in self._files.list_files(self._partitions):
            partitions.append(partition)
            self._group(partition, entries, groups)
        return partitions, groups

    def _group(
        self, partition: str, entries: Iterable[Entry], groups: dict[GroupKey, GroupFiles]
    ) -> None:
        slice_builder.group_files(
            partition,
            entries,
            groups,
            self._config.base_extension,
            appended=self._config.version.logs_named_by_base_instant,
            change_logs=self._change_logs,
        )

    @cached_property
    def _timeline_state(self) -> TimelineState:
        return TimelineState(
            logs_named_by_base_instant=self._config.version.logs_named_by_base_instant,
            is_committed=self._timeline.is_committed,
            completion_time=self._completion_times(),
            pending_compactions=self._pending_compactions(),
        )

    def _completion_times(self) -> Callable[[str], str]:
        active, archive = self._timeline, self._timeline.archive
        return lambda instant: active.completion_time(instant) or archive.completion_time(instant)

    def _pending_compactions(self) -> dict[GroupKey, str]:
        """Return the newest pending compaction of every group that has one."""
        return {
            key: instant.requested
            for instant in self._timeline.pending(COMPACTION)
            for key in slice_builder.groups_of_plan(self._timeline.plan(instant))
        }
