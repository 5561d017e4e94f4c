"""Bucket indexes: which file groups a record key can be in, by its hash.

The simple one numbers its file groups; how many there are is a writer's option that no table
stores, so it must be given. The consistent-hashing one stores its ring. Sources:
`BucketIdentifier`, `ConsistentBucketIdentifier`, `HoodieConsistentHashingMetadata` (Hudi 1.2.0).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence

from pyhudi import _native
from pyhudi.config.index_options import BUCKET_FIELDS, BUCKETS, IndexOptions
from pyhudi.config.table_config import TableConfig
from pyhudi.engine.local import LocalEngine, worth_waiting
from pyhudi.errors import MissingFile
from pyhudi.index.bucket import SampleTask, in_bucket, one_each, sample_keys
from pyhudi.index.key_source import KeySource
from pyhudi.schema.key_predicates import field_keys, wanted_keys
from pyhudi.schema.predicates import Conjunct
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.key_hash import key_hashes
from pyhudi.slices.ring_files import RING_FOLDER, committed_ring
from pyhudi.slices.table import Table
from pyhudi.storage.storage import Storage
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
    count = int(options[BUCKETS])
    found = _hash_keys(config, options, conjuncts, besides)
    if found is None:
        return None
    wanted = frozenset(_native.bucket_ids(*found, count))

    def may_match(slice_: FileSlice) -> bool:
        match = _BUCKET_FILE_ID.match(slice_.file_id)
        if match is None or int(match[1]) >= count:
            return True
        return int(match[1]) in wanted

    return may_match


def kept_by_bucket(table: Table, slices: Sequence[FileSlice], test: Keep) -> list[bool]:
    """Which slices stay by a test of `simple_buckets`.

    Nothing is left out of a partition whose keys are in other buckets. The number may be wrong, and
    a writer of Hudi 1.1 can give each partition one of its own
    (`hoodie.bucket.index.partition.expressions`), which no file tells.
    """
    stays = [test(slice_) for slice_ in slices]
    left_out = one_each([s for s, kept in zip(slices, stays, strict=True) if not kept])
    if not left_out:
        return stays
    options, source = IndexOptions.of(table.options), KeySource.of(table)
    ways = key_hashes(table.config, options)
    tasks = [SampleTask(source, slice_) for slice_ in left_out]
    engine = worth_waiting(LocalEngine(), table.storage, 0)
    try:
        found = engine.run(sample_keys, tasks, label="check buckets of keys")
    except MissingFile:  # Who reads the slice says what took it.
        return [True] * len(slices)
    proven = {
        task.slice.partition
        for task, keys in zip(tasks, found, strict=True)
        if len(keys) and any(in_bucket(way, task.slice, keys, options.buckets) for way in ways)
    }
    return [
        kept or slice_.partition not in proven for slice_, kept in zip(slices, stays, strict=True)
    ]


def _hash_keys(
    config: TableConfig,
    options: Mapping[str, str],
    conjuncts: Sequence[Conjunct],
    besides: frozenset[str],
) -> tuple[list[str], list[str]] | None:
    """Keys and hash fields to hash them by: whole keys, or keys of the hash fields alone."""
    named = [n.strip() for n in options.get(BUCKET_FIELDS, "").split(",") if n.strip()]
    fields = [name for name in config.record_key_fields if not named or name in named]
    keys = wanted_keys(config, conjuncts, besides)
    if keys is None and fields:
        keys = field_keys(conjuncts, fields, besides)
        # A separator within a value may make Hudi cut the whole key elsewhere.
        if keys is not None and not all(_is_plain(key, len(fields)) for key in keys):
            keys = None
    if keys is None:
        return None
    return keys, named


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
        self._prefixes: dict[str, tuple[frozenset[str], frozenset[str]] | None] = {}

    def may_match(self, slice_: FileSlice) -> bool:
        """False for slices of nodes of the ring that none of the keys hashes to."""
        if slice_.partition not in self._prefixes:
            self._prefixes[slice_.partition] = self._load(slice_.partition)
        known = self._prefixes[slice_.partition]
        if known is None:
            return True
        everyone, wanted = known
        prefix = slice_.file_id.rpartition("-")[0]
        return prefix not in everyone or prefix in wanted

    def _load(self, partition: str) -> tuple[frozenset[str], frozenset[str]] | None:
        """The file id prefixes of all nodes and of the wanted ones; None to keep everything."""
        found = committed_ring(self._storage, self._timeline, partition)
        if found is None or found.resizing or not found.nodes:
            return None
        return self._chosen(found.nodes)

    def _chosen(self, nodes: Sequence[tuple[int, str]]) -> tuple[frozenset[str], frozenset[str]]:
        values = [value for value, _ in nodes]
        wanted = {nodes[bisect_left(values, place) % len(nodes)][1] for place in self._places}
        return frozenset(prefix for _, prefix in nodes), frozenset(wanted)


def hash_rings(
    storage: Storage,
    timeline: Timeline,
    config: TableConfig,
    options: Mapping[str, str],
    conjuncts: Sequence[Conjunct],
    besides: frozenset[str],
) -> HashRings | None:
    """The table's rings, None when it has none or the filter does not fix the hash fields.

    Which fields are hashed no table tells; with one key field it can be no other.
    """
    certain = len(config.record_key_fields) == 1 or BUCKET_FIELDS in options
    found = _hash_keys(config, options, conjuncts, besides) if certain else None
    if found is None or timeline.bound is not None:
        return None
    folders, files = storage.list_dir(RING_FOLDER)
    return HashRings(storage, timeline, *found) if folders or files else None
