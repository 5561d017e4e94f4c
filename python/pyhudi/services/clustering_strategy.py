"""Choice of file slices to cluster, by Hudi's size-based strategy. No storage.

Sources: `ClusteringPlanActionExecutor`, `PartitionAwareClusteringPlanStrategy`,
`SparkSizeBasedClusteringPlanStrategy`, `ClusteringPlanPartitionFilter` (Hudi 0.15.0, 1.0.2, 1.2.0).
If releases differ, it follows 1.2.0. Unlike Hudi, pyhudi skips results of an earlier clustering
that would not change. Partition filters apply to the whole table, as in 1.2.0 without
`hoodie.table.services.incremental.enabled`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from pyhudi.config.clustering_options import ClusteringOptions
from pyhudi.config.write_options import WriteOptions
from pyhudi.slices.clustering_plan import Order, PlannedGroup
from pyhudi.slices.file_slice import FileSlice

_HOURS = 24


@dataclass(frozen=True)
class GroupChoice:
    """The slices that a clustering takes, and the partitions that it skips."""

    groups: tuple[PlannedGroup, ...]
    missing: tuple[str, ...]
    """Partitions with skipped slices, which the next plan must check."""


@dataclass(frozen=True)
class EarlierClusterings:
    """The results of earlier clusterings, by their instants."""

    orders: dict[str, Order]
    """The sort order of each clustering."""

    def has(self, group: PlannedGroup, requested: Order) -> bool:
        """Return whether clustering would change nothing; any layout matches if none is requested.

        A plan without a layout, as in Hudi, counts as linear, which is the default.
        """
        if len(group.slices) > group.outputs or any(slice_.logs for slice_ in group.slices):
            return False
        instants = {slice_.base_instant for slice_ in group.slices}
        columns, layout = requested
        if not columns:
            return True
        order = self.orders.get(instants.pop()) if len(instants) == 1 else None
        if order is None:
            return False
        sort_columns, sort_layout = order
        return sort_columns == columns and (
            len(sort_columns) == 1 or layout in (None, sort_layout or "linear")
        )


def choose(
    slices: Iterable[FileSlice],
    options: ClusteringOptions,
    write: WriteOptions,
    earlier: EarlierClusterings,
    requested: Order,
    selected: Collection[str],
) -> GroupChoice:
    """Choose small files by partition.

    slices: the newest of each file group without a pending service. requested: the sort
    order. selected: `select_partitions`.
    """
    small: dict[str, list[FileSlice]] = {}
    for slice_ in slices:
        if (slice_.base.size if slice_.base else 0) < options.small_file_limit:
            small.setdefault(slice_.partition, []).append(slice_)
    groups, candidates = [], set()
    for path in sorted(small):
        suitable = [
            group
            for group in _groups(small[path], options, write.max_file_size)
            if not earlier.has(group, requested) and _is_useful(group, options)
        ]
        if suitable:
            candidates.add(path)
        groups += suitable if path in selected else []
    chosen = groups[: options.max_groups]
    # A partition with skipped slices must be checked again.
    complete = candidates - {group.partition for group in groups[options.max_groups :]}
    missing = candidates - complete.intersection(selected)
    return GroupChoice(tuple(chosen), tuple(sorted(missing)))


def _is_useful(group: PlannedGroup, options: ClusteringOptions) -> bool:
    alone = len(group.slices) == 1 and group.outputs == 1
    return options.single_group or bool(options.sort_columns) or not alone


# --- partitions -----------------------------------------------------------------------------------


def select_partitions(paths: Sequence[str], options: ClusteringOptions, hour: int) -> set[str]:
    """Return the partitions that the options select, whatever their content, as in Hudi.

    paths: all partitions, sorted. hour: of the day in the table's time zone.
    """
    if options.selected:
        paths = sorted(options.selected)
    elif options.pattern:
        paths = [path for path in paths if re.fullmatch(options.pattern, path)]
    if options.filter_mode == "RECENT_DAYS":
        paths = sorted(paths, reverse=True)[options.skip_latest :][: options.lookback or None]
    elif options.filter_mode == "SELECTED_PARTITIONS":
        paths = [path for path in paths if options.begin <= path <= (options.end or path)]
    elif options.filter_mode == "DAY_ROLLING":
        paths = [path for number, path in enumerate(paths) if number % _HOURS == hour]
    return set(paths)


# --- groups ---------------------------------------------------------------------------------------


def _groups(
    slices: Iterable[FileSlice], options: ClusteringOptions, default_bytes: int
) -> Iterator[PlannedGroup]:
    """default_bytes: assumed bytes of a slice without base file."""

    def size(slice_: FileSlice) -> int:
        return slice_.base.size if slice_.base else default_bytes

    members: list[FileSlice] = []
    total = 0
    for slice_ in sorted(slices, key=lambda slice_: (-size(slice_), slice_.file_id)):
        if members and total + size(slice_) > options.max_group_bytes:
            yield PlannedGroup(tuple(members), -(-total // options.target_bytes))
            members, total = [], 0
        members.append(slice_)
        total += size(slice_)
    if members:
        yield PlannedGroup(tuple(members), -(-total // options.target_bytes))
