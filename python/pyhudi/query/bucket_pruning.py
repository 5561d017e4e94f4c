"""Pruning by bucket indexes: the file groups that a record key can be in, by its hash.

The simple index numbers its file groups; their number is a writer's option that no table stores, so
it must be set. The consistent-hashing index stores its metadata. Sources: `BucketIdentifier`,
`ConsistentBucketIdentifier`, `HoodieConsistentHashingMetadata` (Hudi 1.2.0).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import pyarrow as pa

from pyhudi import _native
from pyhudi.config.index_options import BUCKETS, IndexOptions
from pyhudi.config.table_config import TableConfig
from pyhudi.engine.local import LocalEngine, choose_engine
from pyhudi.errors import MissingFile
from pyhudi.index.bucket_lookup import ENOUGH_KEYS, IsInBucket, in_bucket, sample_keys_of_slices
from pyhudi.index.detection import has_buckets_by_partition
from pyhudi.index.key_reader import KeySource
from pyhudi.schema.key_predicates import field_keys, find_record_keys
from pyhudi.schema.predicates import Conjunct
from pyhudi.slices.bucket_hash import (
    KeyHash,
    check_hash_fields,
    hash_fields,
    key_hashes,
    may_be_split,
)
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.hashing_metadata import (
    HashingNodes,
    has_consistent_hashing,
    read_committed_hashing_metadata,
)
from pyhudi.storage.storage import Storage
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline

_BUCKET_FILE_ID = re.compile(r"(\d{8})-")

SliceTest = Callable[["FileSlice"], bool]


def simple_buckets(
    config: TableConfig,
    options: Mapping[str, str],
    conjuncts: Sequence[Conjunct],
    excluded: frozenset[str],
) -> SliceTest | None:
    """Return a test that is false for slices of other buckets than those of the requested keys.

    None if the number of buckets is not set, or the filter does not fix the hash fields.
    """
    if BUCKETS not in options:
        return None
    index = IndexOptions.of(options)
    count, hash_keys = index.buckets, _hash_keys(config, index, conjuncts, excluded)
    if hash_keys is None:
        return None
    selected = frozenset(_native.possible_bucket_ids(*hash_keys, count))

    def may_match(slice_: FileSlice) -> bool:
        match = _BUCKET_FILE_ID.match(slice_.file_id)
        if match is None or int(match[1]) >= count:
            return True
        return int(match[1]) in selected

    return may_match


def prune_by_bucket(
    table: TableSnapshot, slices: Sequence[FileSlice], test: SliceTest
) -> list[bool] | None:
    """Return which slices a test of `simple_buckets` keeps.

    None if partitions differ in their number of buckets
    (`hoodie.bucket.index.partition.expressions` of Hudi 1.1). Any other number may be wrong, too.
    """
    if not all(map(test, slices)) and has_buckets_by_partition(table.storage, table.timeline):
        return None
    count = IndexOptions.of(table.options).buckets
    return _prune_if_verified(
        table, slices, test, lambda key_hash, slice_, keys: in_bucket(key_hash, slice_, keys, count)
    )


def prune_by_consistent_hashing(
    table: TableSnapshot, slices: Sequence[FileSlice], pruner: ConsistentBucketPruner
) -> list[bool]:
    """Return which slices the metadata of `consistent_bucket_pruner` keeps."""
    if len(table.config.record_key_fields) == 1:
        return list(map(pruner.may_match, slices))
    return _prune_if_verified(table, slices, pruner.may_match, pruner.is_in_bucket)


def _prune_if_verified(
    table: TableSnapshot, slices: Sequence[FileSlice], test: SliceTest, is_in_bucket: IsInBucket
) -> list[bool]:
    """Return which slices a test that depends on writers' options keeps.

    A partition's slices are pruned only if stored keys confirm the options: all of the keys, or
    enough of them, are in the buckets that the options predict.
    """
    is_kept = [test(slice_) for slice_ in slices]
    pruned = [s for s, keep in zip(slices, is_kept, strict=True) if not keep]
    if not pruned:
        return is_kept
    candidates = key_hashes(table.config, IndexOptions.of(table.options))
    engine = choose_engine(LocalEngine(), table.storage)
    try:
        key_samples = sample_keys_of_slices(engine, KeySource.of(table), pruned, candidates[0])
    except MissingFile:  # The reader of the slice reports the missing file.
        return [True] * len(slices)
    hashes: Counter[str] = Counter()
    other_buckets, sampled_partitions = set(), set()
    for sample in key_samples:
        partition = sample.slice.partition
        hashes[partition] += sample.hashes
        if not any(is_in_bucket(candidate, sample.slice, sample.keys) for candidate in candidates):
            other_buckets.add(partition)
        if len(sample.keys) >= ENOUGH_KEYS:
            sampled_partitions.add(partition)
    unverified = other_buckets | {path for path in sampled_partitions if hashes[path] < ENOUGH_KEYS}
    return [
        keep or slice_.partition in unverified for slice_, keep in zip(slices, is_kept, strict=True)
    ]


def _hash_keys(
    config: TableConfig,
    options: IndexOptions,
    conjuncts: Sequence[Conjunct],
    excluded: frozenset[str],
) -> tuple[list[str], tuple[str, ...]] | None:
    """Return keys and their hash fields: whole keys, or keys of the hash fields alone."""
    hashed = hash_fields(config, options)
    keys = find_record_keys(config, conjuncts, excluded)
    # Hudi 0.15 may parse a part of another field as the value of a hash field.
    if keys is None and config.key_generator != "USER_PROVIDED" and not may_be_split(config):
        fields = [name for name in config.record_key_fields if name in hashed]
        keys = field_keys(conjuncts, fields, excluded)
        # A separator within a value may make Hudi split the whole key elsewhere.
        if keys is not None and not all(_has_no_separator(key, len(fields)) for key in keys):
            keys = None
    return None if keys is None else (keys, hashed)


def _has_no_separator(key: str, fields: int) -> bool:
    return key.count(":") <= fields and key.count(",") < fields


class ConsistentBucketPruner:
    """Prunes by the metadata of a consistent-hashing index, read for each partition on demand."""

    def __init__(
        self,
        storage: Storage,
        timeline: Timeline,
        keys: Sequence[str],
        fields: Sequence[str],
    ) -> None:
        self._storage = storage
        self._timeline = timeline
        self._hash_values = _native.possible_consistent_hashes(keys, fields)
        self._hashing: dict[str, tuple[HashingNodes, frozenset[str], frozenset[str]] | None] = {}

    def may_match(self, slice_: FileSlice) -> bool:
        """Return False for slices of hash nodes without any of the keys."""
        hashing = self._hashing_of_partition(slice_.partition)
        if hashing is None:
            return True
        _, all_prefixes, selected = hashing
        prefix = _prefix(slice_)
        return prefix not in all_prefixes or prefix in selected

    def is_in_bucket(self, key_hash: KeyHash, slice_: FileSlice, keys: pa.Array[Any]) -> bool:
        """Return whether all keys of a slice belong to it."""
        hashing = self._hashing_of_partition(slice_.partition)
        hash_values = key_hash.consistent_hashes(keys).unique().to_pylist()
        return hashing is not None and {_node(hashing[0], value) for value in hash_values} <= {
            _prefix(slice_)
        }

    def _hashing_of_partition(
        self, partition: str
    ) -> tuple[HashingNodes, frozenset[str], frozenset[str]] | None:
        """Return all nodes, their prefixes and the matching prefixes; None to keep everything."""
        if partition not in self._hashing:
            metadata = read_committed_hashing_metadata(self._storage, self._timeline, partition)
            nodes = metadata.nodes if metadata is not None and not metadata.resizing else []
            self._hashing[partition] = self._select_nodes(nodes) if nodes else None
        return self._hashing[partition]

    def _select_nodes(
        self, nodes: HashingNodes
    ) -> tuple[HashingNodes, frozenset[str], frozenset[str]]:
        all_prefixes = frozenset(prefix for _, prefix in nodes)
        return nodes, all_prefixes, frozenset(_node(nodes, value) for value in self._hash_values)


def _node(nodes: HashingNodes, hash_value: int) -> str:
    """Return the file id prefix of the node of a hash: the first node that is not before it."""
    return nodes[bisect_left(nodes, hash_value, key=itemgetter(0)) % len(nodes)][1]


def _prefix(slice_: FileSlice) -> str:
    return slice_.file_id.rpartition("-")[0]


def consistent_bucket_pruner(
    storage: Storage,
    timeline: Timeline,
    config: TableConfig,
    options: Mapping[str, str],
    conjuncts: Sequence[Conjunct],
    excluded: frozenset[str],
) -> ConsistentBucketPruner | None:
    """Return the pruner by hashing metadata; None without any or if hash fields are not fixed.

    No table stores which fields are hashed; with one key field there is no choice. Raises
    `ConfigError` if the options name a field that is not part of the key.
    """
    index = IndexOptions.of(options)
    are_hash_fields_fixed = len(config.record_key_fields) == 1 or bool(index.bucket_fields)
    hash_keys = _hash_keys(config, index, conjuncts, excluded) if are_hash_fields_fixed else None
    if hash_keys is None or timeline.bound is not None:
        return None
    if not has_consistent_hashing(storage):
        return None
    check_hash_fields(config, index)
    return ConsistentBucketPruner(storage, timeline, *hash_keys)
