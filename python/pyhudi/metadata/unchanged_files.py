"""The files of a partition that a commit does not change, and their statistics.

Statistics of a partition are computed from those of all its files, as Hudi does if it has
statistics of files (`PartitionStatsIndexer`, Hudi 1.2.0): the new record is complete, and readers
forget the old one. If statistics have no types (index version 1), readers widen the old record by
those of the written files. A column without an old record becomes known then, and so does one that
had another type, because bounds of two types cannot be compared (`mergeColumnStatsRecords`, Hudi
1.0.2). Bytes are compared as signed there, and unsigned in filters, so they are never widened.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.cached_property import cached_property
from pyhudi.config.file_names import parse_base_name
from pyhudi.config.metadata_names import COLUMN_STATS, PARTITION_STATS
from pyhudi.metadata.file_group import MetadataGroup, open_together
from pyhudi.metadata.reader import MetadataTable
from pyhudi.schema.internal_schema import LATEST_SCHEMA
from pyhudi.schema.table_schema import earlier_schemas, field_at
from pyhudi.slices.bootstrap import skeletons
from pyhudi.slices.file_slice import BootstrapFile, FileSlice
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.listing import FileSource
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.commit_metadata import CommitMetadata, WriteStat


class RestOfPartitions:
    """The other files of the table when a commit is about to complete."""

    def __init__(
        self,
        data: TableSnapshot,
        metadata_table: MetadataTable,
        metadata: CommitMetadata,
        listing: FileSource,
    ) -> None:
        """`data`, `metadata_table`: current. `metadata`: of the commit.

        listing: has the files of the data table.
        """
        self._data = data
        self._metadata_table = metadata_table
        self._metadata = metadata
        self._listing = listing
        self._lacking: dict[str, set[str]] = {}

    def of(self, partition: str) -> tuple[tuple[str, bool], ...]:
        """Return paths of a partition's files, and whether each is a log file."""
        return tuple(file for slice_ in self._slices(partition) for file in _files(slice_))

    def sources(self, partition: str) -> dict[str, BootstrapFile]:
        """Return the location of the source rows of each skeleton file, by path."""
        return skeletons(self._slices(partition)) if self._data.config.bootstrap_path else {}

    @cached_property
    def known(self) -> tuple[MetadataGroup, ...]:
        """The file groups of `column_stats` before the commit."""
        return tuple(self._metadata_table.file_groups(COLUMN_STATS))

    def never_widened(self, partition: str, columns: pa.Schema) -> pa.Schema:
        """Return columns of bytes, and those that are new in a partition."""
        late = self._late_columns(partition, columns).names
        whole = set(bytes_of(columns).names)
        return pa.schema([field for field in columns if field.name in whole.union(late)])

    def _late_columns(self, partition: str, columns: pa.Schema) -> pa.Schema:
        """Return columns without statistics in a partition with other files, or of another type."""
        widened = [field for field in columns if self._was_narrower(field)]
        may_be_new = self._altered or partition in self._without(columns.field(-1))
        late = [f for f in (columns if may_be_new else widened) if partition in self._without(f)]
        is_alone = not (late and self.of(partition))
        return pa.schema([field for field in late if field in widened] if is_alone else late)

    @cached_property
    def _altered(self) -> bool:
        """Return whether a new column may be elsewhere than in the last position."""
        return LATEST_SCHEMA in self._metadata.extra_metadata

    def _without(self, field: pa.Field[Any]) -> set[str]:
        """Return the partitions of the commit without statistics of a column's current type."""
        if field.name not in self._lacking:
            paths = pa.array([*self._metadata.partition_to_write_stats], pa.string())
            known = self._whole.stats(field.name, field.type, paths)
            lacking = pc.is_null(known.column("value_count"))
            if self._was_narrower(field):
                lacking = pc.or_(lacking, self._may_be_narrower(field, paths, known))
            self._lacking[field.name] = set(paths.filter(lacking).to_pylist())
        return self._lacking[field.name]

    def _may_be_narrower(
        self, field: pa.Field[Any], paths: pa.StringArray, known: pa.RecordBatch
    ) -> pa.BooleanArray:
        """Return whether bounds may be of another type. Those of an int become long too."""
        if pa.types.is_int64(field.type):
            return pc.is_valid(self._whole.stats(field.name, pa.int32(), paths).column("min"))
        return pc.and_not(pc.is_null(known.column("min")), known.column("only_nulls"))

    def _was_narrower(self, field: pa.Field[Any]) -> bool:
        """Return whether a column had another type, which an older partition may have kept."""
        had = (field_at(schema, field.name) for schema in self._earlier)
        return any(one is not None and one.type != field.type for one in had)

    @cached_property
    def _earlier(self) -> list[pa.Schema]:
        return earlier_schemas(self._data.config, self._data.timeline)

    @cached_property
    def _whole(self) -> _native.MetadataPartition:
        return open_together(self._metadata_table.file_groups(PARTITION_STATS))

    def _slices(self, partition: str) -> Iterator[FileSlice]:
        """Return slices that are neither replaced nor rewritten. A log file rewrites nothing."""
        metadata = self._metadata
        gone = set((metadata.partition_to_replace_file_ids or {}).get(partition, ()))
        rewritten = dict(_new_bases(metadata.partition_to_write_stats.get(partition, ())))
        for slice_ in self._merged.get(partition, ()):
            if slice_.file_id not in gone and slice_.file_id not in rewritten:
                yield slice_
        for slice_ in self._unmerged.get(partition, ()) if rewritten else ():
            # A compaction leaves what was appended since it was scheduled.
            if slice_.base is None and rewritten.get(slice_.file_id) == slice_.base_instant:
                yield slice_

    @cached_property
    def _merged(self) -> dict[str, list[FileSlice]]:
        return _by_partition(self._view.slices())

    @cached_property
    def _unmerged(self) -> dict[str, list[FileSlice]]:
        return _by_partition(self._view.iter_newest_slices())

    @cached_property
    def _view(self) -> FileSystemView:
        """One view for all partitions of the commit: a view reads plans and replace commits."""
        data, partitions = self._data, self._metadata.partition_to_write_stats
        return FileSystemView(
            data.storage, data.config, data.timeline, set(partitions), self._listing
        )


def bytes_of(columns: pa.Schema) -> pa.Schema:
    """Return the columns of bytes."""
    return pa.schema([field for field in columns if pa.types.is_binary(field.type)])


def _new_bases(stats: Iterable[WriteStat]) -> Iterator[tuple[str, str]]:
    """Return file groups with a new base file, and its instant."""
    for stat in stats:
        name = (stat.path or "").rsplit("/", 1)[-1]
        base = None if name.startswith(".") else parse_base_name(name)
        if base is not None:
            yield base.file_id, base.instant


def _by_partition(slices: Iterable[FileSlice]) -> dict[str, list[FileSlice]]:
    found: dict[str, list[FileSlice]] = {}
    for slice_ in slices:
        found.setdefault(slice_.partition, []).append(slice_)
    return found


def _files(slice_: FileSlice) -> Iterator[tuple[str, bool]]:
    if slice_.base is not None:
        yield slice_.base.path, False
    yield from ((log.path, True) for log in slice_.logs)
