"""Bucket indexes: which file groups a record key can be in, by its hash.

The simple one numbers its file groups; how many there are is a writer's option that no table
stores, so it must be given. The consistent-hashing one stores its ring. Sources:
`BucketIdentifier`, `ConsistentBucketIdentifier`, `HoodieConsistentHashingMetadata` (Hudi 1.2.0).
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
from pyhudi.engine.local import LocalEngine, choose_io_engine
from pyhudi.errors import MissingFile
from pyhudi.index.bucket_lookup import ENOUGH_KEYS, Holds, in_bucket, samples
from pyhudi.index.detection import numbers_differ
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
from pyhudi.slices.hashing_metadata import Ring
from pyhudi.slices.hashing_metadata_files import has_rings, read_committed_ring
from pyhudi.storage.storage import Storage
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline

_BUCKET_FILE_ID = re.compile(r"(\d{8})-")

Keep = Callable[["FileSlice"], bool]


def simple_buckets(
    config: TableConfig,
    options: Mapping[str, str],
    conjuncts: Sequence[Conjunct],
    besides: frozenset[str],
) -> Keep | None:
    """A test that is false for slices of other buckets than those of the wanted keys.

    None when the number of buckets was not given, or the filter does not fix the hash fields.
    """
    if BUCKETS not in options:
        return None
    index = IndexOptions.of(options)
    count, found = index.buckets, _hash_keys(config, index, conjuncts, besides)
    if found is None:
        return None
    wanted = frozenset(_native.bucket_ids(*found, count))

    def may_match(slice_: FileSlice) -> bool:
        match = _BUCKET_FILE_ID.match(slice_.file_id)
        if match is None or int(match[1]) >= count:
            return True
        return int(match[1]) in wanted

    return may_match


def prune_by_bucket(
    table: TableSnapshot, slices: Sequence[FileSlice], test: Keep
) -> list[bool] | None:
    """Which slices stay by a test of `simple_buckets`.

    None where each partition has a number of its own (`hoodie.bucket.index.partition.expressions`
    of Hudi 1.1). Another number may be wrong, too.
    """
    if not all(map(test, slices)) and numbers_differ(table.storage):
        return None
    count = IndexOptions.of(table.options).buckets
    return _proven(
        table, slices, test, lambda way, slice_, keys: in_bucket(way, slice_, keys, count)
    )


def prune_by_ring(
    table: TableSnapshot, slices: Sequence[FileSlice], rings: HashRings
) -> list[bool]:
    """Which slices stay by the rings of `hash_rings`."""
    if len(table.config.record_key_fields) == 1:
        return list(map(rings.may_match, slices))
    return _proven(table, slices, rings.may_match, rings.holds)


def _proven(
    table: TableSnapshot, slices: Sequence[FileSlice], test: Keep, holds: Holds
) -> list[bool]:
    """Which slices stay by a test that goes by options of writers.

    Of a partition slices go only where the keys in them are where the options say, either all of
    the keys or enough to tell that the options are right.
    """
    stays = [test(slice_) for slice_ in slices]
    left_out = [s for s, kept in zip(slices, stays, strict=True) if not kept]
    if not left_out:
        return stays
    ways = key_hashes(table.config, IndexOptions.of(table.options))
    engine = choose_io_engine(LocalEngine(), table.storage, 0)
    try:
        found = samples(engine, KeySource.of(table), left_out, ways[0])
    except MissingFile:  # Who reads the slice says what took it.
        return [True] * len(slices)
    hashes: Counter[str] = Counter()
    elsewhere, in_part = set(), set()
    for sample in found:
        partition = sample.slice.partition
        hashes[partition] += sample.hashes
        if not any(holds(way, sample.slice, sample.keys) for way in ways):
            elsewhere.add(partition)
        if len(sample.keys) >= ENOUGH_KEYS:
            in_part.add(partition)
    doubtful = elsewhere | {path for path in in_part if hashes[path] < ENOUGH_KEYS}
    return [
        kept or slice_.partition in doubtful for slice_, kept in zip(slices, stays, strict=True)
    ]


def _hash_keys(
    config: TableConfig,
    options: IndexOptions,
    conjuncts: Sequence[Conjunct],
    besides: frozenset[str],
) -> tuple[list[str], tuple[str, ...]] | None:
    """Keys and hash fields to hash them by: whole keys, or keys of the hash fields alone."""
    hashed = hash_fields(config, options)
    keys = find_record_keys(config, conjuncts, besides)
    # What Hudi 0.15 takes for the value of a hash field may be a piece of another field's.
    if keys is None and config.key_generator != "USER_PROVIDED" and not may_be_split(config):
        fields = [name for name in config.record_key_fields if name in hashed]
        keys = field_keys(conjuncts, fields, besides)
        # A separator within a value may make Hudi cut the whole key elsewhere.
        if keys is not None and not all(_is_plain(key, len(fields)) for key in keys):
            keys = None
    return None if keys is None else (keys, hashed)


def _is_plain(key: str, fields: int) -> bool:
    return key.count(":") <= fields and key.count(",") < fields


class HashRings:
    """The rings of a consistent-hashing index, partition by partition, read when asked for."""

    def __init__(
        self,
        storage: Storage,
        timeline: Timeline,
        keys: Sequence[str],
        fields: Sequence[str],
    ) -> None:
        self._storage = storage
        self._timeline = timeline
        self._places = _native.ring_places(keys, fields)
        self._rings: dict[str, tuple[Ring, frozenset[str], frozenset[str]] | None] = {}

    def may_match(self, slice_: FileSlice) -> bool:
        """False for slices of nodes of the ring that none of the keys hashes to."""
        known = self._hashing_of_partition(slice_.partition)
        if known is None:
            return True
        _, everyone, wanted = known
        prefix = _prefix(slice_)
        return prefix not in everyone or prefix in wanted

    def holds(self, key_hash: KeyHash, slice_: FileSlice, keys: pa.Array[Any]) -> bool:
        """Whether all keys of a slice belong to it."""
        known = self._hashing_of_partition(slice_.partition)
        places = key_hash.places(keys).unique().to_pylist()
        return known is not None and {_node(known[0], p) for p in places} <= {_prefix(slice_)}

    def _hashing_of_partition(
        self, partition: str
    ) -> tuple[Ring, frozenset[str], frozenset[str]] | None:
        """The ring, the prefixes of all nodes and of the wanted ones; None to keep everything."""
        if partition not in self._rings:
            found = read_committed_ring(self._storage, self._timeline, partition)
            ring = found.nodes if found is not None and not found.resizing else []
            self._rings[partition] = self._select_nodes(ring) if ring else None
        return self._rings[partition]

    def _select_nodes(self, ring: Ring) -> tuple[Ring, frozenset[str], frozenset[str]]:
        everyone = frozenset(prefix for _, prefix in ring)
        return ring, everyone, frozenset(_node(ring, place) for place in self._places)


def _node(ring: Ring, place: int) -> str:
    """The file id prefix of the node of a place: the first that is not before it."""
    return ring[bisect_left(ring, place, key=itemgetter(0)) % len(ring)][1]


def _prefix(slice_: FileSlice) -> str:
    return slice_.file_id.rpartition("-")[0]


def hash_rings(
    storage: Storage,
    timeline: Timeline,
    config: TableConfig,
    options: Mapping[str, str],
    conjuncts: Sequence[Conjunct],
    besides: frozenset[str],
) -> HashRings | None:
    """The table's rings, None when it has none or the filter does not fix the hash fields.

    Which fields are hashed no table tells; with one key field it can be no other. Raises
    `ConfigError` where the options name a field that is none of the key.
    """
    index = IndexOptions.of(options)
    certain = len(config.record_key_fields) == 1 or bool(index.bucket_fields)
    found = _hash_keys(config, index, conjuncts, besides) if certain else None
    if found is None or timeline.bound is not None:
        return None
    if not has_rings(storage):
        return None
    check_hash_fields(config, index)
    return HashRings(storage, timeline, *found)
