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
from pyhudi.index.replaced_buckets import find_replaced_file_ids, usable_nodes
from pyhudi.slices.bucket_hash import KeyHash
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.hashing_metadata import (
    HashingMetadata,
    HashingNodes,
    file_id_of,
    nodes_for_write,
    store_hashing_metadata,
)
from pyhudi.slices.tagged_rows import group_values, row_numbers
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.storage.storage import Storage


def tag(
    table: IndexedTable, rows: pa.Table, needs_group: pa.Array[Any], *, rewrite: bool = False
) -> TagResult:
    """Return the node of each row: an existing file group, or a new one.

    Arguments and errors are those of `bucket_lookup.tag`. Raises `CommitConflict` while a partition
    is being resized, and `CorruptTable` as `replaced_buckets.usable_nodes` does. A partition
    without hashing metadata gets its first on storage.
    """
    partitions = rows.column(PARTITION_PATH).unique().to_pylist()
    groups, slices = table.groups(partitions)
    to_initialize = rows.column(PARTITION_PATH).filter(needs_group).unique().to_pylist()
    nodes_by_partition = {
        path: _nodes_of_partition(table, path, create=path in to_initialize) for path in partitions
    }
    if rewrite:
        groups = []
    else:
        nodes_by_partition = _usable_nodes(table, nodes_by_partition, groups)

    def is_in_bucket(key_hash: KeyHash, slice_: FileSlice, keys: pa.Array[Any]) -> bool:
        nodes = nodes_by_partition.get(slice_.partition) or _nodes_of_partition(
            table, slice_.partition, create=False
        )
        if rewrite and slice_.file_id not in {_file_id(node) for node in nodes}:
            return True
        if not nodes:
            return False
        hashes = key_hash.consistent_hashes(keys)
        numbers = _node_numbers_of_hashes(nodes, hashes).unique().to_pylist()
        return all(_file_id(nodes[number]) == slice_.file_id for number in numbers)

    key_hash = detect_hash(table, slices, is_in_bucket)
    existing = {}
    for number, group in enumerate(groups):
        partition = group.slice.partition
        ids = [_file_id(node) for node in nodes_by_partition[partition]]
        existing[partition, ids.index(group.slice.file_id)] = number
    node_numbers = _node_numbers(rows, nodes_by_partition, key_hash)
    return assign_to_buckets(
        rows,
        node_numbers,
        needs_group,
        groups,
        existing,
        lambda path, node: new_group(
            path, _file_id(nodes_by_partition[path][node]), by_log=not rewrite
        ),
    )


def _usable_nodes(
    table: IndexedTable, nodes_by_partition: dict[str, HashingNodes], groups: Sequence[FileGroup]
) -> dict[str, HashingNodes]:
    current_ids: dict[str, set[str]] = {path: set() for path in nodes_by_partition}
    for group in groups:
        current_ids[group.slice.partition].add(group.slice.file_id)
    replaced_ids = find_replaced_file_ids(table)
    return {
        path: usable_nodes(table, path, nodes, current_ids[path], replaced_ids.get(path, {}))
        for path, nodes in nodes_by_partition.items()
    }


def _file_id(node: tuple[int, str]) -> str:
    return file_id_of(node[1])


def _node_numbers(
    rows: pa.Table, nodes_by_partition: dict[str, HashingNodes], key_hash: KeyHash
) -> pa.Array[Any]:
    """Return for each row the number of its node in its partition."""
    hash_values = key_hash.consistent_hashes(rows.column(RECORD_KEY).combine_chunks())
    numbers, nodes = [pa.array([], pa.int64())], [pa.array([], pa.int64())]
    paths = rows.column(PARTITION_PATH).combine_chunks()
    for path, of_path in group_values(paths, row_numbers(rows.num_rows)):
        numbers.append(of_path)
        nodes.append(_node_numbers_of_hashes(nodes_by_partition[path], hash_values.take(of_path)))
    order = pc.sort_indices(pa.concat_arrays(numbers))
    return pa.concat_arrays(nodes).take(order)


def _node_numbers_of_hashes(nodes: HashingNodes, hash_values: pa.Array[Any]) -> pa.Array[Any]:
    """Return the first node whose last hash is not below a hash, else the first of all."""
    ends = pa.array([value for value, _ in nodes], pa.int64())
    below = pa.repeat(pa.scalar(0, pa.int64()), len(hash_values))
    for end in ends:
        below = pc.add(below, pc.greater(hash_values, end).cast(pa.int64()))
    beyond = pc.greater_equal(below, len(nodes))
    return pc.if_else(beyond, pa.scalar(0, pa.int64()), below)


# --- hashing metadata on storage ------------------------------------------------------------------


def _nodes_of_partition(table: IndexedTable, partition: str, *, create: bool) -> HashingNodes:
    """Return a partition's hashing metadata, stored if missing and `create`, else empty."""
    nodes = nodes_for_write(table.storage, table.timeline, partition)
    if nodes is None and create:
        return store_initial_hashing_metadata(table.storage, partition, table.options.index.buckets)
    return nodes or []


def store_initial_hashing_metadata(storage: Storage, partition: str, buckets: int) -> HashingNodes:
    """Store the hashing metadata that a partition starts with, unless another writer just did."""
    first = HashingMetadata(_native.initial_hash_nodes(partition, buckets), buckets=buckets)
    return store_hashing_metadata(storage, partition, first).nodes
