"""Choice of buckets to split and merge: file slices and hashing metadata in, groups out. Pure.

A bucket above one size is split into two; neighbors below another size are merged. Hudi also
rewrites all other buckets of the partition, to sort their rows, whenever it runs; pyhudi leaves
them as they are. Source: `BaseConsistentHashingBucketClusteringPlanStrategy` (Hudi 0.15.0, 1.0.2,
1.2.0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pyhudi.config.clustering_options import ResizeOptions
from pyhudi.slices.clustering_plan import PlannedGroup
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.hashing_metadata import (
    ChildNode,
    HashingMetadata,
    HashingNodes,
    file_id_of,
    midpoint_of,
)


def choose_resizes(
    slices: Sequence[FileSlice],
    hashing: HashingMetadata,
    options: ResizeOptions,
    new_prefix: Callable[[], str],
) -> list[PlannedGroup]:
    """Choose splits, the largest bucket first, then merges.

    slices: those of one partition without a pending service. new_prefix: returns the prefix of a
    new file id.
    """
    by_id = {slice_.file_id: slice_ for slice_ in slices}
    buckets = [by_id.get(file_id_of(prefix)) for _, prefix in hashing.nodes]
    room = max(options.max_buckets - len(hashing.nodes), 0)
    split: list[PlannedGroup] = []
    for at in sorted(range(len(buckets)), key=lambda at: (-_size(buckets[at]), at)):
        slice_ = buckets[at]
        if slice_ is None or slice_.size <= options.split_bytes or len(split) == room:
            break
        children = _split_node(hashing.nodes, at, new_prefix)
        if children:
            split.append(PlannedGroup((slice_,), len(children), children, hashing.sequence_number))
            buckets[at] = None
    max_removed = max(len(hashing.nodes) + len(split) - options.min_buckets, 0)
    merged = [
        PlannedGroup(
            tuple(slice_ for at in run if (slice_ := buckets[at]) is not None),
            1,
            _merge(hashing.nodes, run, new_prefix),
            hashing.sequence_number,
        )
        for run in _runs(buckets, options.merge_bytes, max_removed)
    ]
    return [*split, *merged]


def _size(slice_: FileSlice | None) -> int:
    return 0 if slice_ is None else slice_.size


def _split_node(
    nodes: HashingNodes, at: int, new_prefix: Callable[[], str]
) -> tuple[ChildNode, ...]:
    value = nodes[at][0]
    middle = midpoint_of(nodes, value)
    if middle is None:
        return ()
    return ChildNode(middle, new_prefix()), ChildNode(value, new_prefix())


def _merge(
    nodes: HashingNodes, run: Sequence[int], new_prefix: Callable[[], str]
) -> tuple[ChildNode, ...]:
    """Merge a run of nodes: the last one takes the ranges of those before it."""
    removed = tuple(ChildNode(nodes[at][0], None) for at in run[:-1])
    return (*removed, ChildNode(nodes[run[-1]][0], new_prefix()))


def _runs(
    buckets: Sequence[FileSlice | None], max_bytes: int, max_removed: int
) -> Iterator[tuple[int, ...]]:
    """Yield runs of at least two small neighbors, by their positions in the hashing metadata.

    max_removed: maximum number of buckets to remove.
    """
    free = {
        at for at, slice_ in enumerate(buckets) if slice_ is not None and slice_.size <= max_bytes
    }
    for start in range(len(buckets)):
        if start not in free:
            continue
        run, total = [start], _size(buckets[start])
        free.discard(start)
        for step in (-1, 1):
            while max_removed and total <= max_bytes:
                at = (run[0 if step < 0 else -1] + step) % len(buckets)
                if at not in free:
                    break
                free.discard(at)
                run.insert(0 if step < 0 else len(run), at)
                total += _size(buckets[at])
                max_removed -= 1
        if len(run) > 1:
            yield tuple(run)
