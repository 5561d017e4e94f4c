"""What a table tells of the index that it is written with.

Only bucket indexes leave traces in files; the record index is a partition of the metadata table.
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
from pyhudi.slices.hashing_metadata_files import RING_FOLDER
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline

BUCKET_FOLDER = RING_FOLDER.rpartition("/")[0]
_BY_PARTITION = f"{BUCKET_FOLDER}/partition_bucket_index_meta"


@dataclass(frozen=True)
class IndexDetector:
    """A table, looked at once."""

    storage: Storage
    config: TableConfig
    timeline: Timeline
    definitions: Mapping[str, IndexDefinition] | None = None
    """Of its indexes, where they were read already."""

    @cached_property
    def has_rings(self) -> bool:
        """Its buckets are ranges of hash rings.

        Raises `UnsupportedTableFeature` for numbers of buckets that differ by partition.
        """
        found = _bucket_folders(self.storage)
        if _BY_PARTITION in found:
            msg = f"hoodie.bucket.index.partition.expressions: the table has {_BY_PARTITION}"
            raise UnsupportedTableFeature(msg, hint="Write to this table with Apache Hudi.")
        return RING_FOLDER in found

    @cached_property
    def has_buckets(self) -> bool:
        """Its file groups are buckets. Raises as `has_rings`."""
        if self.has_rings:
            return True
        ids: set[str] = set()
        for written in _files_by_commit(self.timeline):
            ids.update(file_id for _, file_id in written)
            # Few tell little: those of the commits before are looked at, too.
            if len(ids) >= ENOUGH_IDS or not all(map(is_bucket, ids)):
                break
        return are_buckets(ids)

    @cached_property
    def written(self) -> list[tuple[str, str]]:
        """As `last_written`."""
        return last_written(self.timeline)

    @cached_property
    def record_index_by_partition(self) -> bool | None:
        """Whether it has a record index by data partition, None where it has none at all.

        Also while the index is being made again.
        """
        if RECORD_INDEX not in self.config.metadata_partitions:
            undone = PendingOperation.of(self.config)
            lost = () if undone.beside else undone.partitions_for(self.config.version)
            return undone.by_partition if RECORD_INDEX in lost else None
        known = self.definitions
        if known is None:
            known = index_definitions(self.storage, self.config)
        definition = known.get(RECORD_INDEX)
        return definition is not None and definition.is_partitioned


def numbers_differ(storage: Storage) -> bool:
    """Whether partitions have numbers of buckets of their own."""
    return _BY_PARTITION in _bucket_folders(storage)


def _bucket_folders(storage: Storage) -> list[str]:
    """Where bucket indexes keep what they know, if anything."""
    folders, _ = storage.list_dir(BUCKET_FOLDER)
    # An object store has no empty folders, a file system may.
    known = (_BY_PARTITION, RING_FOLDER)
    return [folder for folder in known if folder in folders and storage.list(folder)]


def last_written(timeline: Timeline) -> list[tuple[str, str]]:
    """Partition path and file id of all that the newest commit with any files wrote."""
    return next(_files_by_commit(timeline), [])


def _files_by_commit(timeline: Timeline) -> Iterator[list[tuple[str, str]]]:
    """The same of each commit that wrote files, newest first."""
    for instant in reversed(timeline.commits):
        found = timeline.commit_metadata(instant).partition_to_write_stats
        written = [(path, stat.file_id) for path, stats in found.items() for stat in stats]
        if written:
            yield written
