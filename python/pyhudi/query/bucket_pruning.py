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
from pyhudi.index.bucket_lookup import ENOUGH_KEYS, IsInBucket, in_bucket, samples
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
from pyhudi.slices.hashing_metadata import Ring, has_rings, read_committed_ring
from pyhudi.storage.storage import Storage
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline

_BUCKET_FILE_ID = re.compile(r"(\d{8})-")

Keep = Callable[["FileSlice"], bool]


def simple_buckets(
    config: TableConfig,
    options: Mapping[str, str],
    conjuncts: Sequence[Conjunct],
    excluded: frozenset[str],
) -> Keep | None:
    """Return a test that is false for slices of other buckets than those of the requested keys.

    None if the number of buckets is not set, or the filter does not fix the hash fields.
    """
    if BUCKETS not in options:
        return None
    index = IndexOptions.of(options)
    count, hash_keys = index.buckets, _hash_keys(config, index, conjuncts, excluded)
    if hash_keys is None:
        return None
    selected = frozenset(_native.bucket_ids(*hash_keys, count))

    def may_match(slice_: FileSlice) -> bool:
        match = _BUCKET_FILE_ID.match(slice_.file_id)
        if match is None or int(match[1]) >= count:
            return True
        return int(match[1]) in selected

    return may_match


def prune_by_bucket(
    table: TableSnapshot, slices: Sequence[FileSlice], test: Keep
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


def prune_by_ring(
    table: TableSnapshot, slices: Sequence[FileSlice], rings: HashRings
) -> list[bool]:
    """Return which slices the metadata of `hash_rings` keeps."""
    if len(table.config.record_key_fields) == 1:
        return list(map(rings.may_match, slices))
    return _prune_if_verified(table, slices, rings.may_match, rings.is_in_bucket)


def _prune_if_verified(
    table: TableSnapshot, slices: Sequence[FileSlice], test: Keep, is_in_bucket: IsInBucket
) -> list[bool]:
    """Return which slices a test that depends on writers' options keeps.

    A partition's slices are pruned only if stored keys confirm the options: all of the keys, or
    enough of them, are in the buckets that the options predict.
    """
    stays = [test(slice_) for slice_ in slices]
    left_out = [s for s, stay in zip(slices, stays, strict=True) if not stay]
    if not left_out:
        return stays
    candidates = key_hashes(table.config, IndexOptions.of(table.options))
    engine = choose_engine(LocalEngine(), table.storage)
    try:
        key_samples = samples(engine, KeySource.of(table), left_out, candidates[0])
    except MissingFile:  # The reader of the slice reports the missing file.
        return [True] * len(slices)
    hashes: Counter[str] = Counter()
    elsewhere, in_part = set(), set()
    for sample in key_samples:
        partition = sample.slice.partition
        hashes[partition] += sample.hashes
        if not any(is_in_bucket(candidate, sample.slice, sample.keys) for candidate in candidates):
            elsewhere.add(partition)
        if len(sample.keys) >= ENOUGH_KEYS:
            in_part.add(partition)
    unverified = elsewhere | {path for path in in_part if hashes[path] < ENOUGH_KEYS}
    return [
        stay or slice_.partition in unverified for slice_, stay in zip(slices, stays, strict=True)
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
        if keys is not None and not all(_is_plain(key, len(fields)) for key in keys):
            keys = None
    return None if keys is None else (keys, hashed)


def _is_plain(key: str, fields: int) -> bool:
    return key.count(":") <= fields and key.count(",") < fields


class HashRings:
    """The metadata of a consistent-hashing index by partition, read on demand."""

    def __init__(
        self,
        storage: Storage,
        timeline: Timeline,
        keys: Sequence[str],
        fields: Sequence[str],
    ) -> None:
        self._storage = storage
        self._timeline = timeline
        self._hash_values = _native.ring_places(keys, fields)
        self._rings: dict[str, tuple[Ring, frozenset[str], frozenset[str]] | None] = {}

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
        hash_values = key_hash.places(keys).unique().to_pylist()
        return hashing is not None and {_node(hashing[0], value) for value in hash_values} <= {
            _prefix(slice_)
        }

    def _hashing_of_partition(
        self, partition: str
    ) -> tuple[Ring, frozenset[str], frozenset[str]] | None:
        """Return all nodes, their prefixes and the matching prefixes; None to keep everything."""
        if partition not in self._rings:
            metadata = read_committed_ring(self._storage, self._timeline, partition)
            ring = metadata.nodes if metadata is not None and not metadata.resizing else []
            self._rings[partition] = self._select_nodes(ring) if ring else None
        return self._rings[partition]

    def _select_nodes(self, ring: Ring) -> tuple[Ring, frozenset[str], frozenset[str]]:
        all_prefixes = frozenset(prefix for _, prefix in ring)
        return ring, all_prefixes, frozenset(_node(ring, value) for value in self._hash_values)


def _node(ring: Ring, hash_value: int) -> str:
    """Return the file id prefix of the node of a hash: the first node that is not before it."""
    return ring[bisect_left(ring, hash_value, key=itemgetter(0)) % len(ring)][1]


def _prefix(slice_: FileSlice) -> str:
    return slice_.file_id.rpartition("-")[0]


def hash_rings(
    storage: Storage,
    timeline: Timeline,
    config: TableConfig,
    options: Mapping[str, str],
    conjuncts: Sequence[Conjunct],
    excluded: frozenset[str],
) -> HashRings | None:
    """Return the table's hashing metadata, None without any or if hash fields are not fixed.

    No table stores which fields are hashed; with one key field there is no choice. Raises
    `ConfigError` if the options name a field that is not part of the key.
    """
    index = IndexOptions.of(options)
    certain = len(config.record_key_fields) == 1 or bool(index.bucket_fields)
    hash_keys = _hash_keys(config, index, conjuncts, excluded) if certain else None
    if hash_keys is None or timeline.bound is not None:
        return None
    if not has_rings(storage):
        return None
    check_hash_fields(config, index)
    return HashRings(storage, timeline, *hash_keys)
