"""Which index a table is written with: the writer's option, what the table has, what files show.

Only bucket indexes leave traces in files and must be followed by every writer; the record index is
a partition of the metadata table. All others find keys wherever they are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyhudi.config import index_options as names
from pyhudi.config.index_options import IndexOptions
from pyhudi.config.metadata_names import RECORD_INDEX
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.metadata.definitions import index_definitions
from pyhudi.metadata.unfinished import Unfinished
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline

_RINGS = ".hoodie/.bucket_index/consistent_hashing_metadata"
_BY_PARTITION = ".hoodie/.bucket_index/partition_bucket_index_meta"

# A random file id looks like a bucket's once in thirty million times.
_BUCKET_FILE_ID = re.compile(r"000\d{5}-")


@dataclass(frozen=True)
class IndexChoice:
    """The index of one write."""

    kind: str
    """A type of `index.options`."""
    consistent: bool = False
    """A bucket index with hash rings."""
    moves: bool = False
    """A global index lets rows move to another partition."""

    @property
    def is_global(self) -> bool:
        """A key is looked for in every partition."""
        return self.kind in (names.GLOBAL_SIMPLE, names.GLOBAL_BLOOM, names.RECORD_INDEX)

    @property
    def is_record_index(self) -> bool:
        """The metadata table says where each key is."""
        return self.kind in (names.RECORD_INDEX, names.PARTITIONED_RECORD_INDEX)


def choose(
    storage: Storage, config: TableConfig, timeline: Timeline, options: IndexOptions
) -> IndexChoice:
    """The index for a write.

    Raises `ConfigError` for an option that contradicts the table's files or its metadata table,
    `UnsupportedTableFeature` for numbers of buckets that differ by partition.
    """
    shown = _shown_buckets(storage, timeline)
    record_index = _record_index(storage, config)
    kind = options.kind or (shown and names.BUCKET) or record_index or names.SIMPLE
    if shown and kind != names.BUCKET:
        msg = f"{names.INDEX_TYPE} is {kind}, but the table's file groups are buckets"
        raise ConfigError(msg, hint="Leave the option out, or give BUCKET.")
    if kind in (names.RECORD_INDEX, names.PARTITIONED_RECORD_INDEX) and kind != record_index:
        msg = f"{names.INDEX_TYPE} is {kind}, but the table's metadata table has no such index"
        raise ConfigError(msg, hint="Leave the option out.")
    if kind == names.BUCKET:
        return _bucket(config, timeline, options, shown)
    moves = {
        names.GLOBAL_SIMPLE: options.move_simple,
        names.GLOBAL_BLOOM: options.move_bloom,
        names.RECORD_INDEX: options.move_record,
    }
    return IndexChoice(kind, moves=moves.get(kind, False))


def _bucket(
    config: TableConfig, timeline: Timeline, options: IndexOptions, shown: str | None
) -> IndexChoice:
    if shown is None and last_written(timeline):
        msg = f"{names.INDEX_TYPE} is BUCKET, but the table's file groups are no buckets"
        raise ConfigError(msg, hint="Leave the option out.")
    consistent = options.consistent if shown is None else shown == "CONSISTENT_HASHING"
    if options.consistent and not consistent:
        msg = f"{names.BUCKET_ENGINE} is CONSISTENT_HASHING, but the table's buckets are numbers"
        raise ConfigError(msg, hint="Leave the option out.")
    if consistent and not config.is_merge_on_read:
        msg = f"{names.BUCKET_ENGINE} is CONSISTENT_HASHING: pyhudi writes with it to MOR only"
        raise UnsupportedTableFeature(msg, hint="Use the engine SIMPLE.")
    unknown = [name for name in options.bucket_fields if name not in config.record_key_fields]
    if unknown:
        msg = f"{names.BUCKET_FIELDS} names {unknown[0]!r}, which is no record key field"
        raise ConfigError(msg)
    return IndexChoice(names.BUCKET, consistent=consistent)


def _shown_buckets(storage: Storage, timeline: Timeline) -> str | None:
    """The bucket engine that storage tells of."""
    if storage.list(_BY_PARTITION):
        msg = f"hoodie.bucket.index.partition.expressions: the table has {_BY_PARTITION}"
        raise UnsupportedTableFeature(msg, hint="Write to this table with Apache Hudi.")
    if storage.list(_RINGS):
        return "CONSISTENT_HASHING"
    written = last_written(timeline)
    if written and all(is_bucket(file_id) for _, file_id in written):
        return "SIMPLE"
    return None


def is_bucket(file_id: str) -> bool:
    """Whether a file id begins with a bucket number."""
    return _BUCKET_FILE_ID.match(file_id) is not None


def last_written(timeline: Timeline) -> list[tuple[str, str]]:
    """Partition path and file id of all that the newest commit with any files wrote."""
    for instant in reversed(timeline.commits):
        found = timeline.commit_metadata(instant).partition_to_write_stats
        written = [(path, stat.file_id) for path, stats in found.items() for stat in stats]
        if written:
            return written
    return []


def _record_index(storage: Storage, config: TableConfig) -> str | None:
    """The kind of record index that the table has, also while it is being made again."""
    if RECORD_INDEX not in config.metadata_partitions:
        undone = Unfinished.of(config)
        if RECORD_INDEX not in undone.partitions_for(config.version):
            return None
        return names.PARTITIONED_RECORD_INDEX if undone.by_partition else names.RECORD_INDEX
    definition = index_definitions(storage, config).get(RECORD_INDEX)
    partitioned = definition is not None and definition.is_partitioned
    return names.PARTITIONED_RECORD_INDEX if partitioned else names.RECORD_INDEX
