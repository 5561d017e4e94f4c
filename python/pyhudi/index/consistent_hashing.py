"""The consistent-hashing bucket index: hash ranges for each partition, stored as JSON.

A new partition gets the hashing metadata that Hudi starts with. Clustering splits and merges
buckets (`services/bucket_resize.py`); `replaced_buckets.py` gives replaced buckets new file ids.
Sources: `HoodieConsistentHashingMetadata`, `ConsistentBucketIndexUtils` (Hudi 0.15.0, 1.2.0).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.index.bucket_lookup import assign_to_buckets, detect_hash, new_group
from pyhudi.index.protocol import IndexedTable, TagResult
from pyhudi.index.replaced_buckets import find_replaced_file_ids, usable_ring
from pyhudi.slices.bucket_hash import KeyHash
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.hashing_metadata import Ring, StoredRing, file_id_of, put_ring, ring_to_write_by
from pyhudi.slices.tagged_rows import group_values, row_numbers
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.storage.storage import Storage


def tag(
    table: IndexedTable, rows: pa.Table, needs_group: pa.Array[Any], *, rewrite: bool = False
) -> TagResult:
    """Return the node of each row: an existing file group, or a new one.

    Arguments and errors are those of `bucket_lookup.tag`. Raises `CommitConflict` while a partition
    is being resized, and `CorruptTable` as `replaced_buckets.usable_ring` does. A partition without
    hashing metadata gets its first on storage.
    """
    partitions = rows.column(PARTITION_PATH).unique().to_pylist()
    groups, slices = table.groups(partitions)
    growing = rows.column(PARTITION_PATH).filter(needs_group).unique().to_pylist()
    rings = {path: _ring(table, path, make=path in growing) for path in partitions}
    if rewrite:
        groups = []
    else:
        rings = _usable(table, rings, groups)

    def is_in_bucket(key_hash: KeyHash, slice_: FileSlice, keys: pa.Array[Any]) -> bool:
        ring = rings.get(slice_.partition) or _ring(table, slice_.partition, make=False)
        if rewrite and slice_.file_id not in {_file_id(node) for node in ring}:
            return True
        if not ring:
            return False
        nodes = _nodes_of(ring, key_hash.places(keys)).unique().to_pylist()
        return all(_file_id(ring[node]) == slice_.file_id for node in nodes)

    key_hash = detect_hash(table, slices, is_in_bucket)
    existing = {}
    for number, group in enumerate(groups):
        nodes = {_file_id(node): at for at, node in enumerate(rings[group.slice.partition])}
        existing[group.slice.partition, nodes[group.slice.file_id]] = number
    nodes_of_rows = _nodes(rows, rings, key_hash)
    return assign_to_buckets(
        rows,
        nodes_of_rows,
        needs_group,
        groups,
        existing,
        lambda path, node: new_group(path, _file_id(rings[path][node]), by_log=not rewrite),
    )


def _usable(
    table: IndexedTable, rings: dict[str, Ring], groups: Sequence[FileGroup]
) -> dict[str, Ring]:
    live: dict[str, set[str]] = {path: set() for path in rings}
    for group in groups:
        live[group.slice.partition].add(group.slice.file_id)
    replaced_ids = find_replaced_file_ids(table)
    return {
        path: usable_ring(table, path, ring, live[path], replaced_ids.get(path, {}))
        for path, ring in rings.items()
    }


def _file_id(node: tuple[int, str]) -> str:
    return file_id_of(node[1])


def _nodes(rows: pa.Table, rings: dict[str, Ring], key_hash: KeyHash) -> pa.Array[Any]:
    """Return for each row the number of its node in its partition."""
    hash_values = key_hash.places(rows.column(RECORD_KEY).combine_chunks())
    numbers, nodes = [pa.array([], pa.int64())], [pa.array([], pa.int64())]
    paths = rows.column(PARTITION_PATH).combine_chunks()
    for path, of_path in group_values(paths, row_numbers(rows.num_rows)):
        numbers.append(of_path)
        nodes.append(_nodes_of(rings[path], hash_values.take(of_path)))
    order = pc.sort_indices(pa.concat_arrays(numbers))
    return pa.concat_arrays(nodes).take(order)


def _nodes_of(ring: Ring, hash_values: pa.Array[Any]) -> pa.Array[Any]:
    """Return the first node whose last hash is not below a hash, else the first of all."""
    ends = pa.array([value for value, _ in ring], pa.int64())
    below = pa.repeat(pa.scalar(0, pa.int64()), len(hash_values))
    for end in ends:
        below = pc.add(below, pc.greater(hash_values, end).cast(pa.int64()))
    beyond = pc.greater_equal(below, len(ring))
    return pc.if_else(beyond, pa.scalar(0, pa.int64()), below)


# --- rings on storage -----------------------------------------------------------------------------


def _ring(table: IndexedTable, partition: str, *, make: bool) -> Ring:
    """Return a partition's hashing metadata, stored if missing and `make`, else empty."""
    ring = ring_to_write_by(table.storage, table.timeline, partition)
    if ring is None and make:
        return store_initial_hashing_metadata(table.storage, partition, table.options.index.buckets)
    return ring or []


def store_initial_hashing_metadata(storage: Storage, partition: str, buckets: int) -> Ring:
    """Store the hashing metadata that a partition starts with, unless another writer just did."""
    first = StoredRing(_native.first_ring(partition, buckets), buckets=buckets)
    return put_ring(storage, partition, first).nodes
