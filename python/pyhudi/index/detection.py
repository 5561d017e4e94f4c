"""Detects the index that a table is written with.

Only bucket indexes are visible in data files; the record index is a partition of the metadata
table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyhudi.cached_property import cached_property
from pyhudi.config.file_names import ENOUGH_IDS, are_buckets, is_bucket
from pyhudi.config.metadata_names import RECORD_INDEX
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.metadata.index_definitions import IndexDefinition, index_definitions
from pyhudi.metadata.pending_operation import PendingOperation
from pyhudi.slices.hashing_metadata import HASHING_METADATA_FOLDER
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline

BUCKET_FOLDER = HASHING_METADATA_FOLDER.rpartition("/")[0]
_BUCKETS_BY_PARTITION = f"{BUCKET_FOLDER}/partition_bucket_index_meta"


@dataclass(frozen=True)
class IndexDetector:
    """Detects the index of a table; reads each property once."""

    storage: Storage
    config: TableConfig
    timeline: Timeline
    definitions: Mapping[str, IndexDefinition] | None = None
    """The definitions of its indexes, if the caller has read them."""

    @cached_property
    def has_consistent_hashing(self) -> bool:
        """Return whether its buckets are hash ranges.

        Raises `UnsupportedTableFeature` if the number of buckets differs by partition.
        """
        folders = _bucket_folders(self.storage, self.timeline)
        if _BUCKETS_BY_PARTITION in folders:
            msg = (
                f"hoodie.bucket.index.partition.expressions: the table has {_BUCKETS_BY_PARTITION}"
            )
            raise UnsupportedTableFeature(msg, hint="Write to this table with Apache Hudi.")
        return HASHING_METADATA_FOLDER in folders

    @cached_property
    def has_buckets(self) -> bool:
        """Return whether its file groups are buckets. Raises as `has_consistent_hashing` does."""
        if self.has_consistent_hashing:
            return True
        ids: set[str] = set()
        for files in _files_by_commit(self.timeline):
            ids.update(file_id for _, file_id in files)
            # Few file ids prove little, so earlier commits are read too.
            if len(ids) >= ENOUGH_IDS or not all(map(is_bucket, ids)):
                break
        return are_buckets(ids)

    @cached_property
    def written(self) -> list[tuple[str, str]]:
        """The result of `last_written`."""
        return last_written(self.timeline)

    @cached_property
    def record_index_by_partition(self) -> bool | None:
        """Return whether the record index is partitioned; None if the table has no record index.

        Also answers while the index is being rebuilt.
        """
        if RECORD_INDEX not in self.config.metadata_partitions:
            pending = PendingOperation.of(self.config)
            pending_partitions = (
                () if pending.is_concurrent else pending.partitions_for(self.config.version)
            )
            return (
                pending.has_partitioned_record_index if RECORD_INDEX in pending_partitions else None
            )
        definitions = self.definitions
        if definitions is None:
            definitions = index_definitions(self.storage, self.config)
        definition = definitions.get(RECORD_INDEX)
        return definition is not None and definition.is_partitioned


def has_buckets_by_partition(storage: Storage, timeline: Timeline) -> bool:
    """Return whether partitions have their own numbers of buckets."""
    return _BUCKETS_BY_PARTITION in _bucket_folders(storage, timeline)


def _bucket_folders(storage: Storage, timeline: Timeline) -> list[str]:
    """Return the directories in which bucket indexes store their metadata."""
    if BUCKET_FOLDER not in timeline.meta_folder[0]:
        return []
    folders, _ = storage.list_dir(BUCKET_FOLDER)
    # An object store has no empty directories, a file system may have them.
    candidates = (_BUCKETS_BY_PARTITION, HASHING_METADATA_FOLDER)
    return [folder for folder in candidates if folder in folders and storage.list(folder)]


def last_written(timeline: Timeline) -> list[tuple[str, str]]:
    """Return partition path and file id of each file that the newest commit with files wrote."""
    return next(_files_by_commit(timeline), [])


def _files_by_commit(timeline: Timeline) -> Iterator[list[tuple[str, str]]]:
    """Yield what `last_written` returns for each commit that wrote files, newest first."""
    for instant in reversed(timeline.commits):
        write_stats = timeline.commit_metadata(instant).partition_to_write_stats
        written = [(path, stat.file_id) for path, stats in write_stats.items() for stat in stats]
        if written:
            yield written
