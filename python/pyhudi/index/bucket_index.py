"""The bucket indexes: the hash of a key selects a file group of its partition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import pyarrow as pa

from pyhudi.config.file_names import is_bucket
from pyhudi.config.index_options import BUCKET_ENGINE, INDEX_TYPE, IndexOptions
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.index import bucket_lookup, consistent_hashing
from pyhudi.index.detection import IndexDetector
from pyhudi.index.protocol import Index, IndexedTable, TagResult
from pyhudi.index.simple import tag_from_files
from pyhudi.slices.bucket_hash import check_hash_fields
from pyhudi.slices.write_tasks import FileGroup

_BUCKET = "bucket "


class BucketIndex(Index):
    """The hash is the number of the file group (engine SIMPLE)."""

    index_type = "BUCKET"
    has_buckets = True
    supports_virtual_keys = True
    is_binding = True
    tag: ClassVar[Callable[..., TagResult]] = staticmethod(bucket_lookup.tag)

    @classmethod
    def detect(cls, detector: IndexDetector) -> bool:
        return detector.has_buckets

    @classmethod
    def of(cls, detector: IndexDetector, options: IndexOptions) -> Index:
        """Return the index: consistent hashing if the table has it, or a new table requests it."""
        config = detector.config
        has_numbers = all(is_bucket(file_id) for _, file_id in detector.written)
        if not (detector.has_consistent_hashing or has_numbers):
            msg = f"{INDEX_TYPE} is BUCKET, but the table's file groups are not buckets"
            raise ConfigError(msg, hint="Leave the option out.")
        is_consistent = detector.has_consistent_hashing or (
            options.consistent and not detector.written
        )
        if options.consistent and not is_consistent:
            msg = f"{BUCKET_ENGINE} is CONSISTENT_HASHING, but the table has the engine SIMPLE"
            raise ConfigError(msg, hint="Leave the option out.")
        if is_consistent and not config.is_merge_on_read:
            msg = f"{BUCKET_ENGINE} is CONSISTENT_HASHING: pyhudi writes it to merge-on-read only"
            raise UnsupportedTableFeature(msg, hint="Use the engine SIMPLE.")
        check_hash_fields(config, options)
        return ConsistentBucketIndex() if is_consistent else cls()

    def finds_by_key(self, *, any_partition: bool) -> bool:
        return not any_partition

    def find(self, table: IndexedTable, keys: pa.Table, *, any_partition: bool) -> TagResult:
        """Return every location of the keys. Only the files show which keys a bucket contains."""
        return tag_from_files(table, keys, any_partition=any_partition)

    def look_up(
        self, table: IndexedTable, keys: pa.Table, new: pa.Array[Any], *, rewrite: bool = False
    ) -> TagResult:
        return self.tag(table, keys, new, rewrite=rewrite)

    def identity(self, file_id: str) -> str:
        """Return the bucket number, because each lookup gives a new bucket a new file id."""
        return f"{_BUCKET}{bucket_lookup.bucket_of(file_id)}"

    def with_new_groups(
        self, table: IndexedTable, groups: list[FileGroup], locations: Sequence[tuple[str, str]]
    ) -> list[FileGroup]:
        """Return the file groups, and those to create for the first rows of a bucket.

        Raises `UnsupportedTableFeature` if concurrent tasks would have to create the same one.
        """
        existing = {self.location_of(group.slice) for group in groups}
        new = [
            self._new_group(table, *location) for location in locations if location not in existing
        ]
        is_shared = table.options.index.shares_buckets or any(
            bucket_lookup.is_shared(group.slice.file_id) for group in groups
        )
        if new and not self.has_consistent_hashing and is_shared:
            msg = f"{INDEX_TYPE} is {self.index_type}: several tasks would create one file id"
            raise UnsupportedTableFeature(msg, hint="Pass Arrow data instead of a Spark DataFrame.")
        return [*groups, *new]

    def _new_group(self, table: IndexedTable, partition: str, identity: str) -> FileGroup:
        number = int(identity.removeprefix(_BUCKET))
        return bucket_lookup.new_group(
            partition, bucket_lookup.new_file_id(number, table.new_file_id)
        )


class ConsistentBucketIndex(BucketIndex):
    """A file group covers a stored range of hashes (engine CONSISTENT_HASHING)."""

    has_consistent_hashing = True
    supports_virtual_keys = False
    tag = staticmethod(consistent_hashing.tag)

    def identity(self, file_id: str) -> str:
        return file_id

    def _new_group(self, table: IndexedTable, partition: str, identity: str) -> FileGroup:
        return bucket_lookup.new_group(partition, identity, by_log=True)
