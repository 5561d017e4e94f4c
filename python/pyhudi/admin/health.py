"""The health of a table: the state of its files and timeline, and which services are worthwhile.

Nothing is changed, and no data file is read: a listing of the table and its timeline suffice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.cached_property import cached_property
from pyhudi.config.actions import ROLLBACK
from pyhudi.config.clustering_options import ClusteringOptions
from pyhudi.config.file_names import BUCKET_FILE_ID
from pyhudi.config.formatting import HtmlRepr, count_text, size_text
from pyhudi.config.metadata_names import FILES, FOLDER, PROPERTIES
from pyhudi.config.retention_options import ArchiveOptions, CleanOptions
from pyhudi.services import archiving, bucket_resize, cleaning
from pyhudi.services.archiving import since_compaction
from pyhudi.services.clustering import pending
from pyhudi.services.clustering_strategy import select_partitions
from pyhudi.slices.file_groups import pending_clusterings, pending_compactions
from pyhudi.slices.file_slices import FileSlices, total_size
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.hashing_metadata import has_consistent_hashing
from pyhudi.slices.missing_files import check_complete
from pyhudi.slices.slice_builder import GroupKey
from pyhudi.storage.storage import Entry
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.staleness import check_listing_complete
from pyhudi.timeline.time_travel import incomplete_writes
from pyhudi.txn import heartbeat

if TYPE_CHECKING:
    import pyarrow.compute as pc
else:
    from pyhudi.schema import lazy_compute as pc

_MAX_LOGS = 8
"""Number of log files of a slice above which each read spends more on opening them than on rows."""
_LOG_SHARE = 5
"""A file group is worth compacting if its log bytes are at least this fraction of its base file."""
_TINY_BASE = 256 * 1024
"""Minimum size that a base file counts as, because opening it costs a read as much."""
SMALL = 32 * 1024 * 1024
"""A base file of fewer bytes is small."""
_SMALL_FEW = 4
"""Number of small base files in one partition from which they are worth clustering."""


REBUILD = "rebuild_metadata"
ROLL_BACK = "rollback"


@dataclass(frozen=True)
class Advice:
    """One service that is worthwhile now."""

    service: str
    """compact, cluster, clean or archive; or `REBUILD` or `ROLL_BACK`, which are not services."""
    reason: str
    groups: Mapping[GroupKey, int] = field(default_factory=dict)
    """The file groups to work on with the bytes that are read of each, the most valuable first."""

    def __repr__(self) -> str:
        return f"<Advice {self.service}: {self.reason}>"


@dataclass(frozen=True)
class Health(HtmlRepr):
    """A table's figures, and what to do about them."""

    partitions: int
    file_groups: int
    base_files: int
    """Base files of the slices that a snapshot query reads; the next three fields count the same
    slices."""
    base_bytes: int
    log_files: int
    log_bytes: int
    small_files: int
    """Base files of less than 32 MiB in partitions that have several."""
    old_files: int
    """Files that only older snapshots read, or no snapshot."""
    old_bytes: int
    active_instants: int
    commits_since_clean: int
    delta_commits_since_compaction: int
    pending: int
    """Instants that are planned or running."""
    metadata_files: int
    metadata_bytes: int
    advice: tuple[Advice, ...] = ()

    def to_arrow(self) -> pa.Table:
        """Return the figures as a table.

        Returns:
            Columns: figure, value (bytes if the name says so, else a number).
        """
        names = [figure.name for figure in fields(self) if figure.name != "advice"]
        values = [getattr(self, name) for name in names]
        return pa.table({"figure": names, "value": pa.array(values, pa.int64())})

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        return str(self)

    def _lines(self) -> Iterator[str]:
        newest = f"{count_text(self.base_files, 'base file')} of {size_text(self.base_bytes)}"
        logs = f"{count_text(self.log_files, 'log file')} of {size_text(self.log_bytes)}"
        groups = count_text(self.file_groups, "file group")
        yield f"{groups} in {count_text(self.partitions, 'partition')}: {newest}, {logs}"
        old, metadata = (
            count_text(files, "file") for files in (self.old_files, self.metadata_files)
        )
        yield f"older file slices: {old} of {size_text(self.old_bytes)}"
        instants = count_text(self.active_instants, "instant")
        yield f"timeline: {instants}, {self.pending} of them pending"
        yield f"metadata table: {metadata} of {size_text(self.metadata_bytes)}"
        for advice in self.advice:
            yield f"{advice.service}: {advice.reason}"
        if not self.advice:
            yield "no service is needed"


class GroupSizes(Mapping[GroupKey, int]):
    """File groups of slices with the bytes that are read of each, in the order of the slices."""

    def __init__(self, slices: FileSlices) -> None:
        self._slices = slices

    def __len__(self) -> int:
        return len(self._slices)

    def __iter__(self) -> Iterator[GroupKey]:
        return iter(self._sizes)

    def __getitem__(self, key: GroupKey) -> int:
        return self._sizes[key]

    @cached_property
    def _sizes(self) -> dict[GroupKey, int]:
        return {slice_.key: slice_.size for slice_ in self._slices}

    def __repr__(self) -> str:
        return repr(self._sizes)


def assess_health(table: TableSnapshot) -> Health:
    """Return the health of a table, from listings of its files and of its metadata table.

    Raises `HistoryUnavailable` if other writers may have removed files of its snapshot,
    `MissingFile` if the storage has lost some of them.
    """
    view = FileSystemView(table.storage, table.config, table.timeline)
    slices = view.slices()
    files, file_bytes = view.total
    bases, base_bytes, logs, log_bytes = slices.totals
    of_services = (*_cleaning(table, view), *_archiving(table))
    metadata = table.storage.list(FOLDER)
    timeline = table.timeline
    check_listing_complete(table.storage, table.config, timeline)
    check_complete(table, view)
    return Health(
        partitions=len(view.partitions),
        file_groups=len(slices),
        base_files=bases,
        base_bytes=base_bytes,
        log_files=logs,
        log_bytes=log_bytes,
        small_files=len(small_files(slices)),
        old_files=files - bases - logs,
        old_bytes=file_bytes - base_bytes - log_bytes,
        active_instants=len(timeline.instants),
        commits_since_clean=cleaning.commits_since_clean(timeline),
        delta_commits_since_compaction=len(since_compaction(timeline)),
        pending=len(timeline.pending()),
        metadata_files=len(metadata),
        metadata_bytes=sum(file.size for file in metadata),
        advice=(
            *_rebuilding(table, metadata),
            *_rolling_back(table),
            *of_services,
            *_compaction(table, slices),
            *_clustering(table, slices, view.partitions),
        ),
    )


def small_files(slices: FileSlices) -> FileSlices:
    """Return slices with small base files, in partitions that have several, except buckets."""
    candidates = slices.filter(pc.less(slices.whole_base_sizes, SMALL))
    are_buckets = pc.match_substring_regex(candidates.native.file_ids(), BUCKET_FILE_ID)
    candidates = candidates.filter(pc.invert(are_buckets))
    counts = pc.value_counts(candidates.sizes["partition"]).to_pylist()
    several = [count["values"] for count in counts if count["counts"] >= _SMALL_FEW]
    return candidates.filter(candidates.native.in_partitions(several))


def _rebuilding(table: TableSnapshot, files: Sequence[Entry]) -> Iterator[Advice]:
    listed = FILES in table.config.metadata_partitions
    if listed and f"{FOLDER}/{PROPERTIES}" not in {file.path for file in files}:
        yield Advice(REBUILD, "the metadata table is missing; writes need it")


def _rolling_back(table: TableSnapshot) -> Iterator[Advice]:
    """Advise about failed writes and rollbacks. Those of active writers have a heartbeat."""
    pending = (*incomplete_writes(table.timeline), *table.timeline.pending(ROLLBACK))
    failed = {instant.requested for instant in pending}
    failed -= set(heartbeat.live_instants(table.storage, failed, table.clock, only_reads=True))
    if failed:
        description = (
            f"{count_text(len(failed), 'instant')} of failed writers ({', '.join(sorted(failed))})"
        )
        yield Advice(
            ROLL_BACK, f"{description}: maintain() or the next write rolls back what they left"
        )


def _cleaning(table: TableSnapshot, view: FileSystemView) -> Iterator[Advice]:
    planned = cleaning.preview_clean(table, CleanOptions.of(table.options), view)
    if planned.left:
        yield Advice("clean", f"{count_text(len(planned.left), 'pending clean')} to execute")
    elif planned.files_removed:
        size = size_text(planned.bytes_removed)
        yield Advice(
            "clean",
            f"no retained commit needs {count_text(planned.files_removed, 'file')} of {size}",
        )


def _archiving(table: TableSnapshot) -> Iterator[Advice]:
    options = ArchiveOptions.of(table.options)
    planned = archiving.preview_archive(table, options)
    commits = len(table.timeline.commits)
    if planned.instants:
        instants = count_text(len(planned.instants), "instant")
        yield Advice(
            "archive", f"{instants} can leave the timeline, of {count_text(commits, 'commit')}"
        )
    elif planned.left:
        yield Advice(
            "archive", f"{count_text(commits, 'commit')} on the timeline: {planned.left[0]}"
        )


def _compaction(table: TableSnapshot, slices: FileSlices) -> Iterator[Advice]:
    if not table.config.is_merge_on_read:
        return
    planned = {**pending_compactions(table.timeline), **pending_clusterings(table.timeline)}
    candidates = slices.with_logs
    candidates = candidates.filter(pc.invert(candidates.in_groups(planned)))
    sizes = candidates.sizes
    # Log bytes divided by those of the base file.
    bases = pc.max_element_wise(sizes["base_size"], _TINY_BASE)
    shares = pc.divide(sizes["log_size"].cast(pa.float64()), bases.cast(pa.float64()))
    is_worth = pc.or_(
        pc.greater_equal(sizes["logs"], _MAX_LOGS),
        pc.greater_equal(pc.multiply(shares, float(_LOG_SHARE)), 1.0),
    )
    worth = candidates.filter(is_worth)
    pending_plans = table.timeline.pending_compactions
    if pending_plans:
        yield Advice(
            "compact", f"{count_text(len(pending_plans), 'pending compaction')} to execute"
        )
    if worth:
        largest = pc.array_sort_indices(shares.filter(is_worth), order="descending")
        worth = worth.take(largest.to_pylist())
        _, _, count, size = worth.totals
        reason = (
            f"each read merges {count_text(count, 'log file')} of {size_text(size)} in "
            f"{count_text(len(worth), 'file group')}"
        )
        yield Advice("compact", reason, GroupSizes(worth))


def _clustering(table: TableSnapshot, slices: FileSlices, paths: Sequence[str]) -> Iterator[Advice]:
    waiting = pending(table.timeline)
    if waiting:
        yield Advice("cluster", f"{count_text(len(waiting), 'pending clustering')} to execute")
        return
    planned = pending_compactions(table.timeline)
    free = slices.filter(pc.invert(slices.in_groups(planned)))
    if has_consistent_hashing(table.storage):
        yield from _resizing(table, free, paths)
        return
    small = small_files(free)
    timeline = table.timeline
    # Inserts after the first commit fill its small files.
    if small and (len(timeline.commits) > 1 or not timeline.archive.is_empty):
        partitions = count_text(len(small.partitions), "partition")
        size = size_text(total_size(small))
        files = count_text(len(small), "small file")
        reason = f"{files} of {size} in {partitions} can be joined"
        yield Advice("cluster", reason, GroupSizes(small))


def _resizing(table: TableSnapshot, free: FileSlices, paths: Sequence[str]) -> Iterator[Advice]:
    if not table.config.is_merge_on_read or bucket_resize.reason_to_wait(table):
        return
    options = ClusteringOptions.of(table.options)
    selected = select_partitions(paths, options, hour=0)
    chosen = bucket_resize.choose_buckets(table, free, options, selected)
    groups = {slice_.key: slice_.size for group in chosen.groups for slice_ in group.slices}
    if groups:
        yield Advice(
            "cluster", f"{count_text(len(groups), 'bucket')} can be split or merged", groups
        )
