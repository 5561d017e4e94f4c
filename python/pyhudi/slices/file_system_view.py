"""File groups and file slices of a table as of its timeline, from a list of its files.

It answers which files a query reads and which slice a writer appends to. It reads no data file and
leaves out what no committed instant wrote, up to table version 6 except for single log blocks,
which their reader must test (`TableVersion.blocks_need_commit_check`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pyhudi.config.actions import COMPACTION, REPLACE_COMMIT
from pyhudi.config.table_config import TableConfig
from pyhudi.lazy import cached_property
from pyhudi.slices import grouping
from pyhudi.slices.bootstrap import with_sources
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.grouping import CommitFacts, GroupFiles, GroupKey
from pyhudi.slices.listing import FileSource, PartitionFilter, StorageListing
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline


class FileSystemView:
    """The file groups of a table, listed on first use; make a new one to see later files."""

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
    ) -> None:
        """`partitions`: which to look at (a test of the path, or paths), None for all.

        files: what lists them, storage when it is None. change_logs: change logs, which no query
        merges, are among the log files of their slices. with_replaced: slices of groups that were
        taken away are there too.
        """
        self._storage = storage
        self._config = config
        self._timeline = timeline
        self._partitions = partitions
        self._files = files or StorageListing(storage)
        self._change_logs = change_logs
        self._with_replaced = with_replaced

    def slices(self) -> list[FileSlice]:
        """What a snapshot reads: one slice a group, by partition and file id.

        The slice before a pending compaction is joined with the log files written since.
        """
        compactions = self._facts.pending_compactions
        merged = (
            grouping.merged_slice(
                grouping.committed_slices(group, self._facts), compactions.get(key)
            )
            for key, group in self._live_groups()
        )
        return self._with_sources(slice_ for slice_ in merged if slice_ is not None)

    def base_slices(self) -> list[FileSlice]:
        """What a read-optimized query reads: the newest committed base file of every group."""
        found = (
            grouping.base_slice(grouping.committed_slices(group, self._facts))
            for _, group in self._live_groups()
        )
        return self._with_sources(slice_ for slice_ in found if slice_ is not None)

    def unmerged_slices(self) -> list[FileSlice]:
        """The newest slice of every group: the one that a log append goes to.

        A pending compaction's slice is one of them, without base file and perhaps without log
        files.
        """
        found = (grouping.committed_slices(group, self._facts) for _, group in self._live_groups())
        return self._with_sources(slices[0] for slices in found if slices)

    def all_slices(self) -> list[FileSlice]:
        """Every committed slice, older ones too, of groups that are not replaced; newest first."""
        return self._with_sources(
            slice_
            for _, group in self._live_groups()
            for slice_ in grouping.committed_slices(group, self._facts)
        )

    def slices_of(self, key: GroupKey) -> list[FileSlice]:
        """Every committed slice of one group, newest first, also of a replaced one."""
        group = self.groups.get(key)
        if group is None:
            return []
        return self._with_sources(grouping.committed_slices(group, self._facts))

    def merged_slice_of(self, key: GroupKey) -> FileSlice | None:
        """What a snapshot reads of one group, or would read were it not replaced."""
        compaction = self._facts.pending_compactions.get(key)
        return grouping.merged_slice(self.slices_of(key), compaction)

    @property
    def groups(self) -> dict[GroupKey, GroupFiles]:
        """All data files by group, replaced groups and uncommitted files among them."""
        return self._listed[1]

    @property
    def partitions(self) -> list[str]:
        """Paths of the partitions looked at, sorted, those without live file groups included."""
        return sorted(self._listed[0])

    @cached_property
    def replaced(self) -> dict[GroupKey, str]:
        """Groups that a completed replace commit took away, with its requested time."""
        found: dict[GroupKey, str] = {}
        for instant in self._timeline.completed(REPLACE_COMMIT):
            for key in self._timeline.commit_metadata(instant).replaced:
                found.setdefault(key, instant.requested)
        return found

    def _with_sources(self, slices: Iterable[FileSlice]) -> list[FileSlice]:
        return with_sources(self._storage, self._config, list(slices))

    def _live_groups(self) -> Iterator[tuple[GroupKey, GroupFiles]]:
        groups = self._listed[1]
        gone = {} if self._with_replaced else self.replaced
        return ((key, groups[key]) for key in sorted(groups) if key not in gone)

    @cached_property
    def _listed(self) -> tuple[list[str], dict[GroupKey, GroupFiles]]:
        partitions: list[str] = []
        groups: dict[GroupKey, GroupFiles] = {}
        extension = self._config.base_extension
        appended = self._config.version.logs_named_by_base_instant
        for partition, entries in self._files.list_files(self._partitions):
            partitions.append(partition)
            grouping.group_files(
                partition,
                entries,
                groups,
                extension,
                appended=appended,
                change_logs=self._change_logs,
            )
        return partitions, groups

    @cached_property
    def _facts(self) -> CommitFacts:
        return CommitFacts(
            logs_named_by_base_instant=self._config.version.logs_named_by_base_instant,
            is_committed=self._timeline.is_committed,
            completion_time=self._completion_times(),
            pending_compactions=self._pending_compactions(),
        )

    def _completion_times(self) -> Callable[[str], str]:
        active, archive = self._timeline, self._timeline.archive
        return lambda instant: active.completion_time(instant) or archive.completion_time(instant)

    def _pending_compactions(self) -> dict[GroupKey, str]:
        """The newest pending compaction of every group that waits for one."""
        return {
            key: instant.requested
            for instant in self._timeline.pending(COMPACTION)
            for key in grouping.groups_of_plan(self._timeline.plan(instant))
        }
