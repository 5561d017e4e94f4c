"""What new indexes over keys and rows hold at their start, as tasks over the slices of a snapshot.

A record index, for all of the table or by data partition, secondary indexes and expression
indexes (`HoodieBackedTableMetadataWriter`, 1.0.2 and 1.2.0). What tells about files is made in
`initial.py`. A further kind of index adds its maker here.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate

from pyhudi.clock import parse_instant
from pyhudi.config.metadata_names import RECORD_INDEX
from pyhudi.engine.protocol import Attempt
from pyhudi.metadata import expression, secondary
from pyhudi.metadata.changed_slices import read_columns
from pyhudi.metadata.initial import (
    FILE_MAKERS,
    NO_INSTANT,
    InitialPartition,
    LocationsTask,
    Source,
)
from pyhudi.metadata.partitioned import GroupRange, file_id
from pyhudi.schema.record_keys import RECORD_KEY
from pyhudi.slices.read import open_slice
from pyhudi.slices.read_tasks import ReadTask, ScanRequest, merge_rule, slice_tasks

_RECORD_BYTES = 512
"""Of a key with its location or value, on its way through an exchange, which holds some copies."""


def initial_partition(source: Source, name: str) -> InitialPartition:
    """Size and content of a partition, one that pyhudi keeps up to date."""
    if name.startswith(secondary.PREFIX):
        return _secondary(source, name)
    if name.startswith(expression.PREFIX):
        return _expression(source, name)
    if name != RECORD_INDEX:
        return FILE_MAKERS[name](source)
    known = source.definitions.get(name)
    by_partition = known is not None and known.is_partitioned
    return _partitioned_record_index(source) if by_partition else _record_index(source)


def _record_index(source: Source) -> InitialPartition:
    records = sum(_counts(source))
    groups = source.options.record_groups(records)
    portions = _portions(source, records, groups)
    return InitialPartition(RECORD_INDEX, groups, _locations(source, groups), portions, records)


def _partitioned_record_index(source: Source) -> InitialPartition:
    """Each data partition has file groups of its own (`initializeRecordIndexPartition`, 1.2.0)."""
    records: dict[str, int] = {}
    for one, count in zip(source.slices, _counts(source), strict=True):
        records[one.partition] = records.get(one.partition, 0) + count
    sizes = {path: source.options.partitioned_groups(count) for path, count in records.items()}
    # File groups are counted in the order of their ids.
    ordered = sorted(sizes, key=lambda path: file_id(path, 0))
    starts = accumulate((sizes[path] for path in ordered), initial=0)
    ranges = {path: (start, sizes[path]) for path, start in zip(ordered, starts, strict=False)}
    ids = tuple(file_id(path, number) for path in ordered for number in range(sizes[path]))
    tasks = _locations(source, len(ids), ranges)
    rows = sum(records.values())
    portions = _portions(source, rows, len(ids))
    return InitialPartition(RECORD_INDEX, len(ids), tasks, portions, rows, ids)


def _locations(
    source: Source, groups: int, ranges: Mapping[str, GroupRange] | None = None
) -> list[LocationsTask]:
    recording = source.recording({RECORD_INDEX: groups}, ranges)
    zone = source.state.config.timezone
    return [
        LocationsTask(recording, read, parse_instant(read.slice.base_instant, zone))
        for read in _reads(source, (RECORD_KEY,))
    ]


def _secondary(source: Source, name: str) -> InitialPartition:
    """As many file groups as a record index gets (`initializeSecondaryIndexPartition`)."""
    definition = source.definitions[name]
    records = sum(_counts(source))
    groups = source.options.record_groups(records)
    columns = secondary.columns_read(definition)
    reads = [read_columns(source.state, one, columns) for one in source.slices]
    tasks = list(secondary.initial_tasks(source.recording({name: groups}), definition, reads))
    return InitialPartition(name, groups, tasks, _portions(source, records, groups))


def _expression(source: Source, name: str) -> InitialPartition:
    """Files of the newest slices alone (`initializeExpressionIndexPartition`)."""
    groups = source.options.expression_groups
    tasks = expression.initial_tasks(
        source.recording({name: groups}),
        source.definitions[name],
        source.state,
        source.slices,
        source.last_instant or NO_INSTANT,
    )
    return InitialPartition(name, groups, list(tasks))


def _counts(source: Source) -> list[int]:
    """Numbers of records, in the order of the slices."""
    return source.engine.run(count_rows, _reads(source, ()), label="count records")


def count_rows(task: ReadTask, _attempt: Attempt) -> int:
    """How many records a slice has."""
    reader = open_slice(task)
    try:
        return sum(batch.num_rows for batch in reader)
    finally:
        reader.close()


def _portions(source: Source, records: int, groups: int) -> int:
    portions = -(-records * _RECORD_BYTES // source.memory)
    return min(max(portions, 1), max(groups, 1))


def _reads(source: Source, columns: tuple[str, ...]) -> list[ReadTask]:
    request = ScanRequest(output=columns)
    return slice_tasks(source.state, request, source.slices, merge_rule(source.state))
