"""The metadata table's own services: which are due once a commit of the table is complete.

Order and conditions are those of `HoodieBackedTableMetadataWriter.performTableServices` and
`HoodieMetadataWriteUtils` (Hudi 0.15.0, 1.2.0): pending services first, then cleaning, compaction,
archiving. The package `services` has their steps. A compaction merges the records of each slice by
the payload's rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from pyhudi import _native
from pyhudi.config.actions import CLEAN, COMMIT, COMPACTION, DELTA_COMMIT, Instant
from pyhudi.config.log import warn
from pyhudi.config.metadata_names import FILES
from pyhudi.config.metadata_options import MetadataOptions
from pyhudi.config.retention_options import ArchiveOptions, CleanOptions, HistoryOptions
from pyhudi.engine.protocol import Attempt
from pyhudi.errors import MetadataTableWarning, without_hint
from pyhudi.metadata.consistency import has_data_instant
from pyhudi.metadata.file_group_handle import FileGroupHandle, handles_of
from pyhudi.metadata.index_definitions import definitions_path
from pyhudi.metadata.reader import MetadataTable
from pyhudi.metadata.record_tasks import record_schema
from pyhudi.metadata.table_writer import (
    delta_commit,
    observe,
    open_metadata_table,
    remove_delta_commit,
)
from pyhudi.services import archiving, cleaning, compaction
from pyhudi.services.archiving import ArchivingPolicy, since_compaction
from pyhudi.services.clean_policy import oldest_retained
from pyhudi.services.compaction import CompactionWork
from pyhudi.slices.compaction_task import compaction_stat
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.listing import ListedOnce
from pyhudi.storage.prefetch import forget
from pyhudi.storage.storage import Storage
from pyhudi.table.participants import ArchiveBound
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.timeline.rollbacks import was_rolled_back
from pyhudi.txn import zombie_commits
from pyhudi.txn.orphan_files import is_staged, remove_staged

RETAINED = 20
"""Commits whose slices are retained (`DEFAULT_METADATA_CLEANER_COMMITS_RETAINED`)."""
HISTORY = HistoryOptions()
"""Options of the archive's files. The table's own apply to its data timeline only."""
_SINCE_COMPACTION = 3
"""Instants after a compaction before a clean: readers may still read the compacted files."""
_COMPACTION_SUFFIX = "001"
"""A compaction's instant is that of the last delta commit with this suffix, up to version 6."""
_CLEAN_SUFFIX = "002"
"""The same for a clean."""


def run_services(data: TableSnapshot, synced_table: TableSnapshot | None = None) -> None:
    """Run the services that are due. The commit is complete, so a failure is a warning.

    A later commit, by pyhudi or by Apache Hudi, runs what failed.

    synced_table: the metadata table right after the commit, if the critical section has lasted
    since.
    """
    if FILES not in data.config.metadata_partitions:
        return
    try:
        options = MetadataOptions.of(data.options)
        if synced_table is None or _may_be_due(data, synced_table, options):
            _run(data, synced_table or open_metadata_table(data), options)
    except Exception as error:  # noqa: BLE001  an error would say that the commit failed
        cause = without_hint(error)
        warn(
            f"{data.storage.uri}: services of the metadata table failed and will be retried: "
            f"{cause}",
            MetadataTableWarning,
        )


def _run(data: TableSnapshot, metadata_table: TableSnapshot, options: MetadataOptions) -> None:
    observe(metadata_table)
    remove_staged(
        metadata_table.storage, metadata_table.timeline.other_entries[1], metadata_table.clock
    )
    if compaction.complete_pending(metadata_table, metadata_compaction()):
        metadata_table = metadata_table.reload()
    if cleaning.complete_pending(metadata_table):
        metadata_table = metadata_table.reload()
    if _clean(data, metadata_table):
        metadata_table = metadata_table.reload()
    if is_compaction_due(metadata_table, options.compact_after) and _compact(data, metadata_table):
        metadata_table = metadata_table.reload()
    bounds = lambda _: _oldest(Timeline.load(data.storage, data.config))  # noqa: E731
    archiving.archive(metadata_table, _archiving_policy(data, options, bounds))


def _may_be_due(
    data: TableSnapshot, metadata_table: TableSnapshot, options: MetadataOptions
) -> bool:
    """Return whether any service may have something to do. Reads no storage."""
    timeline = metadata_table.timeline
    if timeline.pending() or any(is_staged(file.name) for file in timeline.other_entries[1]):
        return True
    policy = _archiving_policy(data, options, lambda _: _oldest(data.timeline))
    return (
        is_compaction_due(metadata_table, options.compact_after)
        or _earliest_commit_to_retain(timeline) is not None
        or archiving.has_due_instants(metadata_table, policy)
    )


def _archiving_policy(
    data: TableSnapshot,
    options: MetadataOptions,
    bounds: Callable[[TableSnapshot], Iterable[ArchiveBound]],
) -> ArchivingPolicy:
    data_options = ArchiveOptions.of(data.options)
    return ArchivingPolicy(
        min_commits=data_options.min_commits + 1,
        max_commits=data_options.max_commits + 1,
        retained=CleanOptions(commits=RETAINED),
        compact_after=options.compact_after,
        bounds=bounds,
        history=HISTORY,
    )


def _earliest_commit_to_retain(timeline: Timeline) -> Instant | None:
    """Return the earliest commit that a clean retains; None if none is due."""
    earliest_retained = oldest_retained(timeline, RETAINED)
    if (
        earliest_retained is None
        or _is_just_compacted(timeline)
        or not _has_superseded_slices(timeline, earliest_retained)
    ):
        return None
    return earliest_retained


def _clean(data: TableSnapshot, metadata_table: TableSnapshot) -> str | None:
    instant = _service_instant(metadata_table, _CLEAN_SUFFIX)
    earliest_retained = _earliest_commit_to_retain(metadata_table.timeline)
    if instant is None or earliest_retained is None:
        return None
    return cleaning.clean(
        metadata_table, earliest_retained, instant, data.config.metadata_partitions
    )


def _has_superseded_slices(timeline: Timeline, earliest_retained: Instant) -> bool:
    """Return whether a compaction may have superseded slices since the last clean.

    Without this check, each commit would list the whole table. Slices that it misses are cleaned
    after the next compaction.
    """
    compactions = timeline.filter_completed(COMMIT)
    superseded = [
        instant.requested
        for instant in compactions
        if instant.requested <= earliest_retained.requested
    ]
    clean = next(reversed(timeline.filter_completed(CLEAN)), None)
    if not superseded or clean is None:
        return bool(superseded)
    earlier = oldest_retained(timeline.until(clean.requested), RETAINED)
    return earlier is None or earlier.requested < superseded[-1]


def _is_just_compacted(timeline: Timeline) -> bool:
    last = next(reversed(timeline.filter_completed(COMMIT)), None)
    if last is None:
        return False
    later = [
        instant for instant in timeline.filter_completed() if instant.requested > last.requested
    ]
    return len(later) < _SINCE_COMPACTION


def _compact(data: TableSnapshot, metadata_table: TableSnapshot) -> bool:
    """Compact all slices with log files, if possible; return whether its timeline has changed.

    data: the snapshot before the commit.
    """
    storage, config = metadata_table.storage, metadata_table.config
    partitions = data.config.metadata_partitions
    with (
        storage.prefetch(folders=partitions),
        data.storage.prefetch(files=[definitions_path(data.config)]),
    ):
        # A zombie commit may exist since this writer's check.
        timeline = zombie_commits.load_timeline(data)
        current = _without_rolled_back_commits(timeline, metadata_table)
        instant = _service_instant(current, _COMPACTION_SUFFIX)
        if instant is None or _must_wait_for_pending(timeline, current):
            return current is not metadata_table
        files = ListedOnce(storage)
        opened = MetadataTable(
            data.storage, data.config, data.timeline, opened=current, files=files
        )
        for name in partitions:
            # The compaction would make the loss of a log file permanent.
            opened.check_groups(name)
    slices = compaction.slices_with_logs(
        FileSystemView(storage, config, current.timeline, partitions, files)
    )
    compacted = compaction.compact(current, metadata_compaction(), slices, instant)
    return compacted is not None or current is not metadata_table


def _without_rolled_back_commits(
    timeline: Timeline, metadata_table: TableSnapshot
) -> TableSnapshot:
    """Remove delta commits of writes that were rolled back before they added them.

    Their writers stalled, and have failed or will roll them back. After a compaction their records
    could no longer be distinguished from valid ones.

    timeline: the data table's current one.
    """
    existing, first = (
        {instant.requested for instant in timeline.instants},
        timeline.first_active or "",
    )
    targets = [
        delta.requested
        for delta in metadata_table.timeline.filter_completed(DELTA_COMMIT)
        if delta.requested > first and delta.requested not in existing
        if has_data_instant(delta.requested) and was_rolled_back(timeline, delta.requested)
    ]
    for target in targets:
        remove_delta_commit(metadata_table, target)
        metadata_table = metadata_table.reload()
    if targets:
        # The removal has changed prefetched directories.
        forget()
    return metadata_table


def is_compaction_due(table: TableSnapshot, delta_commits: int) -> bool:
    """Return whether enough delta commits completed since the last compaction.

    No compaction is due while one is pending, including a log compaction of Hudi.
    """
    timeline = table.timeline
    if any(
        not instant.is_completed and instant.action.endswith(COMPACTION)
        for instant in timeline.instants
    ):
        return False
    return len(since_compaction(timeline)) >= delta_commits


def _service_instant(table: TableSnapshot, suffix: str) -> str | None:
    """Return the instant of a service that is about to start; None if no instant is possible."""
    if not table.config.version.metadata_services_have_suffixes:
        return table.generator.next()
    delta_commits = table.timeline.filter_completed(DELTA_COMMIT)
    instant = f"{delta_commits[-1].requested}{suffix}" if delta_commits else None
    existing = {existing.requested for existing in table.timeline.instants}
    return None if instant in existing else instant


def _must_wait_for_pending(timeline: Timeline, metadata_table: TableSnapshot) -> bool:
    """Return whether a pending instant of the table may have records already.

    In base files they could no longer be distinguished. From table version 8 on, Hudi compacts up
    to this instant. An active write adds its records in its critical section, after the
    compaction, so pyhudi waits only for a writer that failed there. Up to version 6 it waits for
    all older instants, as Hudi does.

    timeline: the data table's current one.
    """
    delta_commits = metadata_table.timeline.filter_completed(DELTA_COMMIT)
    last = delta_commits[-1].requested if delta_commits else ""
    pending = timeline.pending()
    if metadata_table.timeline.completes_in_names:
        return any(
            delta_commit(metadata_table, instant.requested) is not None for instant in pending
        )
    return any(instant.requested <= last for instant in pending)


def _oldest(timeline: Timeline) -> Iterator[ArchiveBound]:
    """Yield the data table's oldest instant, since a rollback may need its delta commit."""
    existing = (*timeline.commits, *timeline.pending())
    oldest = min(existing, key=lambda instant: instant.requested, default=None)
    if oldest is not None:
        yield ArchiveBound(oldest.requested, f"the table's timeline has {oldest}")


# --- compaction -----------------------------------------------------------------------------------


EXTENSION = "hfile"


@dataclass(frozen=True)
class CompactGroupTask:
    """Merge one slice into its file group's next base file."""

    group: FileGroupHandle
    slice: FileSlice
    instant: str
    """The instant of the compaction."""
    avro_schema: str
    """The schema of the records, with meta fields."""
    names_previous: bool
    """Write stats name the base file that is replaced."""

    @property
    def storage(self) -> Storage:
        """The metadata table's storage."""
        return self.group.storage


def metadata_compaction() -> CompactionWork[CompactGroupTask]:
    """Return how to compact a metadata table's slices."""
    return CompactionWork(
        _tasks,
        compact_group,
        has_markers=False,
        label="compact the metadata table",
    )


def _tasks(
    table: TableSnapshot, instant: str, slices: Sequence[FileSlice]
) -> list[CompactGroupTask]:
    version = table.config.version
    schema = record_schema(version.metadata_schema)
    groups = handles_of(table.storage, table.config, table.timeline, slices)
    names_previous = not version.commit_metadata_as_json
    return [
        CompactGroupTask(group, slice_, instant, schema, names_previous)
        for group, slice_ in zip(groups, slices, strict=True)
    ]


def compact_group(task: CompactGroupTask, attempt: Attempt) -> WriteStat:
    """Write the slice's merged records. A group without records gets an empty base file."""
    slice_ = task.slice
    name = f"{slice_.file_id}_{attempt.write_token}_{task.instant}.{EXTENSION}"
    written = store_group_base(task, f"{slice_.partition}/{name}")
    return compaction_stat(
        slice_, written, names_previous=task.names_previous, num_update_writes=written.rows
    )


def store_group_base(task: CompactGroupTask, path: str) -> _native.BaseFile:
    """Store a base file: the one place where compactions of the metadata table write."""
    return _native.compact_metadata_group(task.group.open(), path, avro_schema=task.avro_schema)
