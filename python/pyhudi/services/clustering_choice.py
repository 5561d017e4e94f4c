"""What a clustering takes, by Hudi's size-based strategy: file slices in, groups out. No storage.

Sources: `ClusteringPlanActionExecutor`, `PartitionAwareClusteringPlanStrategy`,
`SparkSizeBasedClusteringPlanStrategy`, `ClusteringPlanPartitionFilter` (Hudi 0.15.0, 1.0.2, 1.2.0).
Where releases differ it is as in 1.2.0. Unlike there, what a clustering has brought about already
is left alone, as nothing would be gained.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pyhudi.config.clustering_options import ClusteringOptions
from pyhudi.config.write_options import WriteOptions
from pyhudi.slices.clustering_plan import PlannedGroup
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

    sorted_by: dict[str, str]
    """The sort columns of each, as `sorting` says them."""

    def has(self, group: PlannedGroup, wanted: str) -> bool:
        """Whether a group is as clustering would leave it."""
        if len(group.slices) > group.outputs or any(slice_.logs for slice_ in group.slices):
            return False
        made = {slice_.base_instant for slice_ in group.slices}
        if not wanted:
            return True
        return len(made) == 1 and self.sorted_by.get(*made) == wanted


def choose(
    slices: Iterable[FileSlice],
    options: ClusteringOptions,
    write: WriteOptions,
    settled: Settled,
    wanted: str,
    hour: int,
) -> Chosen:
    """Takes small files by partition.

    slices: the newest of each file group that no other service waits for. wanted: how they are to
    be sorted, as `Settled` has it. hour: of the day in the table's zone.
    """
    small: dict[str, list[FileSlice]] = {}
    for slice_ in slices:
        if (slice_.base.size if slice_.base else 0) < options.small_file_limit:
            small.setdefault(slice_.partition, []).append(slice_)
    kept = set(wanted_partitions(sorted(small), options, hour))
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
    missing = candidates - (whole & kept)
    return Chosen(tuple(chosen), tuple(sorted(missing)))


def _is_worth_it(group: PlannedGroup, options: ClusteringOptions) -> bool:
    alone = len(group.slices) == 1 and group.outputs == 1
    return options.single_group or bool(options.sort_columns) or not alone


# --- partitions -----------------------------------------------------------------------------------


def wanted_partitions(paths: Sequence[str], options: ClusteringOptions, hour: int) -> Iterable[str]:
    """Those of some partitions, sorted, that the options let be clustered."""
    if options.selected:
        return set(options.selected).intersection(paths)
    if options.pattern:
        paths = [path for path in paths if re.fullmatch(options.pattern, path)]
    if options.filter_mode == "RECENT_DAYS":
        return sorted(paths, reverse=True)[options.skip_latest :][: options.lookback]
    if options.filter_mode == "SELECTED_PARTITIONS":
        return [path for path in paths if options.begin <= path <= (options.end or path)]
    if options.filter_mode == "DAY_ROLLING":
        return [path for number, path in enumerate(paths) if number % _HOURS == hour]
    return paths


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
