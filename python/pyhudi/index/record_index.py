"""The record index: the metadata table has the file group of each key's record.

One task reads each file group of the index that a key hashes to; no base file of the table is read.
If the index is damaged, as a failed writer leaves it up to table version 6, pyhudi reads the
records themselves and warns. Source: `SparkMetadataTableRecordIndex` (Hudi 0.15.0, 1.2.0), and for
the partitioned one `SparkMetadataTablePartitionedRecordIndex` (1.1 and later).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.config.index_options import (
    INDEX_TYPE,
    PARTITIONED_RECORD_INDEX,
    UPDATE_PATH_RECORD,
    IndexOptions,
)
from pyhudi.config.index_options import RECORD_INDEX as RECORD_INDEX_TYPE
from pyhudi.config.log import warn
from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.config.metadata_names import FOLDER, RECORD_INDEX
from pyhudi.engine.local import choose_engine
from pyhudi.engine.protocol import Attempt
from pyhudi.errors import (
    ConfigError,
    CorruptTable,
    MetadataTableWarning,
    MissingFile,
    retryable_conflict,
    without_hint,
)
from pyhudi.index.detection import IndexDetector
from pyhudi.index.live_records import tag_from_records
from pyhudi.index.protocol import Index, IndexedTable, TagResult, group_numbers
from pyhudi.index.simple import tag_from_files
from pyhudi.metadata.file_group_handle import FileGroupHandle
from pyhudi.metadata.reader import MetadataTable
from pyhudi.slices.tagged_rows import Tagged, group_values, row_numbers
from pyhudi.timeline.staleness import newer_timeline


class RecordIndex(Index):
    """The record index over the whole table."""

    index_type = RECORD_INDEX_TYPE
    is_global = True
    is_record_index = True
    update_path_option = UPDATE_PATH_RECORD
    by_partition: ClassVar[bool] = False

    @classmethod
    def detect(cls, detector: IndexDetector) -> bool:
        return detector.record_index_by_partition is cls.by_partition

    @classmethod
    def of(cls, detector: IndexDetector, options: IndexOptions) -> Index:
        if not cls.detect(detector):
            msg = f"{INDEX_TYPE} is {cls.index_type}, but the metadata table has no such index"
            raise ConfigError(msg, hint="Leave the option out.")
        return super().of(detector, options)

    @property
    def keeps_locations(self) -> bool:
        return not self.updates_partition_path

    def finds_by_key(self, *, any_partition: bool) -> bool:
        return not (self.by_partition and any_partition)

    def find(self, table: IndexedTable, keys: pa.Table, *, any_partition: bool) -> TagResult:
        """Return the one location of each key that is not deleted."""
        if not self.finds_by_key(any_partition=any_partition):
            return tag_from_files(table, keys, any_partition=any_partition)
        return tag(table, keys, partitioned=self.by_partition)


class PartitionedRecordIndex(RecordIndex):
    """The record index by data partition: a key is unique in its partition."""

    index_type = PARTITIONED_RECORD_INDEX
    is_global = False
    update_path_option = ""
    by_partition = True


@dataclass(frozen=True)
class LookupTask:
    """Look up keys in one file group of the index."""

    group: FileGroupHandle
    rows: pa.Array[Any]
    """Numbers of the incoming rows."""
    keys: pa.Array[Any]
    """Their record keys, which hash to this group."""


@dataclass(frozen=True)
class LookupResult:
    """The locations that one file group of the index has for the rows of a task."""

    rows: pa.Array[Any]
    """Numbers of the rows whose keys it has."""
    location_numbers: pa.Array[Any]
    """For each of them the number of its location in `locations`."""
    locations: tuple[tuple[str, str], ...]
    """Partition path and file id, each pair once."""


def look_up(task: LookupTask, _attempt: Attempt) -> LookupResult:
    """Return the locations of the keys of the task's rows."""
    numbers, locations = task.group.open().key_locations(task.keys)
    return LookupResult(
        task.rows.filter(pc.is_valid(numbers)), numbers.drop_null(), tuple(locations)
    )


def tag(table: IndexedTable, rows: pa.Table, *, partitioned: bool) -> TagResult:
    """Return the locations of the incoming rows in the index, in any partition.

    rows: columns record key and partition path. partitioned: look up each row in its own
    partition's index. Keys of deleted records have no location. Raises `CommitConflict` if the
    index cannot be used and other writers have committed since the timeline was loaded.
    """
    try:
        return _tag_by_index(table, rows, partitioned=partitioned)
    except CorruptTable as error:
        if isinstance(error, MissingFile) and f"{FOLDER}/" not in (error.file or ""):
            raise  # It is a file of the data table.
        cause = without_hint(error)
    # Its base files also contain commits that are later than the timeline of the write.
    if newer_timeline(table.storage, table.config, table.timeline) is not None:
        raise retryable_conflict(f"the record index changed concurrently: {cause}")
    warn(
        f"{table.storage.uri}: the record index is not used (rows are read instead): {cause}",
        MetadataTableWarning,
    )
    return tag_from_records(table, rows, partitioned=partitioned)


def _tag_by_index(table: IndexedTable, rows: pa.Table, *, partitioned: bool) -> TagResult:
    """Raise `CorruptTable` also if the index names a file group that does not exist."""
    partitions = set(rows.column(PARTITION_PATH).unique().to_pylist())
    storage = table.storage
    with (
        storage.below(FOLDER).prefetch(folders=[RECORD_INDEX]),
        storage.prefetch(folders=partitions),
    ):
        index = MetadataTable(
            storage,
            table.config,
            table.timeline,
            for_write=True,
            partitioned_index=partitioned,
        )
        tasks = list(_partition_tasks(index, rows) if partitioned else _table_tasks(index, rows))
        engine = choose_engine(table.engine, storage, size=rows.nbytes)
        results = list(engine.run(look_up, tasks, label="look up record keys"))
        partitions.update(path for result in results for path, _ in result.locations)
        groups, _ = table.groups(sorted(partitions))
    return TagResult(_to_tags(results, group_numbers(groups), rows.num_rows), groups)


def _table_tasks(index: MetadataTable, rows: pa.Table) -> Iterator[LookupTask]:
    return _tasks(index.file_groups(RECORD_INDEX), rows, row_numbers(rows.num_rows))


def _partition_tasks(index: MetadataTable, rows: pa.Table) -> Iterator[LookupTask]:
    paths = rows.column(PARTITION_PATH).combine_chunks()
    for path, numbers in group_values(paths, row_numbers(rows.num_rows)):
        yield from _tasks(index.file_groups(RECORD_INDEX, path), rows, numbers)


def _tasks(
    groups: Sequence[FileGroupHandle], rows: pa.Table, numbers: pa.Array[Any]
) -> Iterator[LookupTask]:
    """Return one task for each group of the index that contains any of the keys."""
    if not groups:
        return
    keys = rows.column(RECORD_KEY).combine_chunks().take(numbers)
    index_groups = _native.metadata_groups(keys, len(groups))
    for group, positions in group_values(index_groups, row_numbers(len(keys))):
        yield LookupTask(groups[group], numbers.take(positions), keys.take(positions))


def _to_tags(
    results: Sequence[LookupResult], numbers: Mapping[tuple[str, str], int], row_count: int
) -> Tagged:
    """Return the locations as numbers of file groups, in the order of rows."""
    empty: pa.Array[Any] = pa.array([], pa.int64())
    rows = pa.concat_arrays([empty, *(result.rows for result in results)])
    groups = (
        pa.array([_number(numbers, location) for location in result.locations], empty.type).take(
            result.location_numbers
        )
        for result in results
    )
    # A key has one location.
    group_by_row = _native.scatter(rows, pa.concat_arrays([empty, *groups]), row_count)
    return Tagged(
        pc.indices_nonzero(pc.is_valid(group_by_row)).cast(empty.type), group_by_row.drop_null()
    )


def _number(numbers: Mapping[tuple[str, str], int], location: tuple[str, str]) -> int:
    if location not in numbers:
        msg = (
            f"the record index names the file group {location[1]} in partition {location[0]!r}, "
            "which does not exist"
        )
        raise CorruptTable(msg)
    return numbers[location]
