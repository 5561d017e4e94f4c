"""The record index: the metadata table knows for each key the file group that has its record.

Each file group of the index that any key hashes to is asked by one task; base files of the data
are not read. Source: `SparkMetadataTableRecordIndex` (Hudi 0.15.0, 1.2.0), and for the partitioned
one `SparkMetadataTablePartitionedRecordIndex` (1.1 and later).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.errors import CorruptTable
from pyhudi.index.located import Located, group_numbers
from pyhudi.keys import PARTITION_PATH, RECORD_KEY
from pyhudi.metadata.table import RECORD_INDEX, MetadataTable
from pyhudi.plan.write import Tagged, row_numbers, split

if TYPE_CHECKING:
    from pyhudi.engine.protocol import Attempt
    from pyhudi.index.located import IndexedTable
    from pyhudi.metadata.group import MetadataGroup


@dataclass(frozen=True)
class LookupTask:
    """Look keys up in one file group of the index."""

    group: MetadataGroup
    rows: pa.Array[Any]
    """Numbers of the incoming rows."""
    keys: pa.Array[Any]
    """Their record keys, which hash to this group."""


def look_up(task: LookupTask, _attempt: Attempt) -> pa.Table:
    """Columns row, partition and file_id of the rows whose keys the index has."""
    found = pa.Table.from_batches([task.group.open().locations(task.keys.unique().to_pylist())])
    at = pc.index_in(task.keys, value_set=found.column("key").combine_chunks())
    known = pc.is_valid(at)
    places = found.select(["partition", "file_id"]).take(at.filter(known))
    return places.add_column(0, "row", task.rows.filter(known))


def tag(table: IndexedTable, rows: pa.Table, *, partitioned: bool) -> Located:
    """Where the index says that the incoming rows are, in whatever partition that is.

    rows: columns record key and partition path. partitioned: each row is looked for in its own
    partition's index. Raises `CorruptTable` when the index names a file group that is not there.
    """
    index = MetadataTable(table.storage, table.config, table.timeline)
    tasks = list(_by_partition(index, rows) if partitioned else _tasks_of_all(index, rows))
    found = table.engine.run(look_up, tasks, label="look record keys up")
    places = pa.concat_tables(found) if found else _NO_PLACES
    partitions = {
        *rows.column(PARTITION_PATH).unique().to_pylist(),
        *places.column("partition").unique().to_pylist(),
    }
    groups, _ = table.groups(sorted(partitions))
    return Located(_tagged(places, group_numbers(groups)), groups)


_NO_PLACES = pa.table(
    {
        "row": pa.array([], pa.int64()),
        "partition": pa.array([], pa.string()),
        "file_id": pa.array([], pa.string()),
    }
)


def _tasks_of_all(index: MetadataTable, rows: pa.Table) -> Iterator[LookupTask]:
    return _tasks(index.file_groups(RECORD_INDEX), rows, row_numbers(rows.num_rows))


def _by_partition(index: MetadataTable, rows: pa.Table) -> Iterator[LookupTask]:
    paths = rows.column(PARTITION_PATH).combine_chunks()
    for path, numbers in split(paths, row_numbers(rows.num_rows)):
        yield from _tasks(index.file_groups(RECORD_INDEX, path), rows, numbers)


def _tasks(
    groups: Sequence[MetadataGroup], rows: pa.Table, numbers: pa.Array[Any]
) -> Iterator[LookupTask]:
    """One task for each group of the index that holds any of the keys."""
    if not groups:
        return
    keys = rows.column(RECORD_KEY).combine_chunks().take(numbers)
    places = _native.metadata_groups(keys, len(groups))
    for group, at in split(places, row_numbers(len(keys))):
        yield LookupTask(groups[group], numbers.take(at), keys.take(at))


def _tagged(places: pa.Table, numbers: Mapping[tuple[str, str], int]) -> Tagged:
    """The places as numbers of file groups."""
    distinct = places.select(["partition", "file_id"]).group_by(["partition", "file_id"])
    homes = distinct.aggregate([]).to_pylist()
    for home in homes:
        if (home["partition"], home["file_id"]) not in numbers:
            msg = (
                f"the record index names the file group {home['file_id']} in partition "
                f"{home['partition']!r}, which is not there"
            )
            raise CorruptTable(msg)
    known = pa.table(
        {
            "partition": pa.array([home["partition"] for home in homes], pa.string()),
            "file_id": pa.array([home["file_id"] for home in homes], pa.string()),
            "group": pa.array(
                [numbers[home["partition"], home["file_id"]] for home in homes], pa.int64()
            ),
        }
    )
    found = places.join(known, ["partition", "file_id"]).sort_by("row").combine_chunks()
    return Tagged(_flat(found.column("row")), _flat(found.column("group")))


def _flat(column: pa.ChunkedArray[Any]) -> pa.Array[Any]:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
