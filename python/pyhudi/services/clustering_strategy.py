"""What a clustering takes, by Hudi's size-based strategy: file slices in, groups out. No storage.

Sources: `ClusteringPlanActionExecutor`, `PartitionAwareClusteringPlanStrategy`,
`SparkSizeBasedClusteringPlanStrategy`, `ClusteringPlanPartitionFilter` (Hudi 0.15.0, 1.0.2, 1.2.0).
Where releases differ it is as in 1.2.0. Unlike there, what a clustering has brought about already
is left alone, as nothing would be gained; and filters of partitions go by all of the table, as in
1.2.0 without `hoodie.table.services.incremental.enabled`.
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
class Chosen:
    """What a clustering takes, and what it leaves."""

    groups: tuple[PlannedGroup, ...]
    missing: tuple[str, ...]
    """Partitions with slices that were left, which the next plan has to look at."""


@dataclass(frozen=True)
class Settled:
    """What clusterings have brought about, by their instants."""

    orders: dict[str, Order]
    """How each has sorted."""

    def has(self, group: PlannedGroup, wanted: Order) -> bool:
        """Whether a group is as clustering would leave it: any layout will do where none is said.

        A plan that says none, as those of Hudi, is taken to be linear, which is the default.
        """
        if len(group.slices) > group.outputs or any(slice_.logs for slice_ in group.slices):
            return False
        made = {slice_.base_instant for slice_ in group.slices}
        columns, layout = wanted
        if not columns:
            return True
        order = self.orders.get(made.pop()) if len(made) == 1 else None
        if order is None:
            return False
        by, along = order
        return by == columns and (len(by) == 1 or layout in (None, along or "linear"))


def choose(
    slices: Iterable[FileSlice],
    options: ClusteringOptions,
    write: WriteOptions,
    settled: Settled,
    wanted: Order,
    kept: Collection[str],
) -> Chosen:
    """Takes small files by partition.

    slices: the newest of each file group that no other service waits for. wanted: how they are to
    be sorted. kept: `select_partitions`.
    """
    small: dict[str, list[FileSlice]] = {}
    for slice_ in slices:
        if (slice_.base.size if slice_.base else 0) < options.small_file_limit:
            small.setdefault(slice_.partition, []).append(slice_)
    groups, candidates = [], set()
    for path in sorted(small):
        found = [
            group
            for group in _groups(small[path], options, write.max_file_size)
            if not settled.has(group, wanted) and _is_worth_it(group, options)
        ]
        if found:
            candidates.add(path)
        groups += found if path in kept else []
    chosen = groups[: options.max_groups]
    # A partition of which a part is left stays one to look at.
    whole = candidates - {group.partition for group in groups[options.max_groups :]}
    missing = candidates - whole.intersection(kept)
    return Chosen(tuple(chosen), tuple(sorted(missing)))


def _is_worth_it(group: PlannedGroup, options: ClusteringOptions) -> bool:
    alone = len(group.slices) == 1 and group.outputs == 1
    return options.single_group or bool(options.sort_columns) or not alone


# --- partitions -----------------------------------------------------------------------------------


def select_partitions(paths: Sequence[str], options: ClusteringOptions, hour: int) -> set[str]:
    """Those of all partitions, sorted, that the options let be clustered.

    Whatever is in them: that comes after, as in Hudi. hour: of the day in the table's zone.
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
    slices: Iterable[FileSlice], options: ClusteringOptions, largest: int
) -> Iterator[PlannedGroup]:
    """largest: bytes that a slice without base file is taken to have."""

    def size(slice_: FileSlice) -> int:
        return slice_.base.size if slice_.base else largest

    held: list[FileSlice] = []
    total = 0
    for slice_ in sorted(slices, key=lambda slice_: (-size(slice_), slice_.file_id)):
        if held and total + size(slice_) > options.max_group_bytes:
            yield PlannedGroup(tuple(held), -(-total // options.target_bytes))
            held, total = [], 0
        held.append(slice_)
        total += size(slice_)
    if held:
        yield PlannedGroup(tuple(held), -(-total // options.target_bytes))
