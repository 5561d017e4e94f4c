"""The partitioned record index: which file groups have the keys of which data partition.

Each data partition has its own file groups, numbered from 0, and a key is hashed to those of its
partition only. A partition's first commit creates them. Layout: `HoodieTableMetadataUtil`,
`HoodieBackedTableMetadataWriter` (Hudi 1.1 and later).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import count, groupby

from pyhudi.config.file_names import log_file_name
from pyhudi.config.metadata_names import RECORD_INDEX
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CorruptTable
from pyhudi.metadata.index_definitions import index_definitions
from pyhudi.metadata.new_file_groups import FIRST_LOG_TOKEN
from pyhudi.metadata.reader import check_group_number, escape_path
from pyhudi.slices.file_slice import FileSlice, LogFile
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.storage.storage import Storage

GroupRange = tuple[int, int]
"""The number of a data partition's first file group in the index, and how many it has."""

NEW_GROUPS = 1
"""File groups of a new data partition.

Hudi's default of `hoodie.metadata.record.level.index.min.filegroup.count`.
"""
_FILE_ID = re.compile(r"record-index-(.*)-\d{4,}(?:-0)?", re.DOTALL)
_NUMBER = re.compile(r"\d{4,}(?:-0)?$")
_ESCAPE = re.compile("%([0-9A-F]{2})")


def is_partitioned(storage: Storage, config: TableConfig) -> bool:
    """Return whether the table has a partitioned record index."""
    if RECORD_INDEX not in config.metadata_partitions:
        return False
    definition = index_definitions(storage, config).get(RECORD_INDEX)
    return definition is not None and definition.is_partitioned


def file_id(path: str, number: int) -> str:
    """Return the id of one of a data partition's file groups."""
    return f"record-index-{escape_path(path)}-{number:04d}-0"


def check_numbers(name: str, groups: Iterable[FileGroup]) -> None:
    """Raise `CorruptTable` if a file group is missing between others.

    groups: of one partition of the metadata table, by file id. Those of a partitioned record index
    are numbered from 0 in each data partition.
    """
    for _, ids in groupby(
        (group.slice.file_id for group in groups), lambda file_id: _NUMBER.sub("", file_id)
    ):
        for expected, file_id in zip(count(), ids, strict=False):
            check_group_number(name, file_id, expected)


def ranges(groups: Iterable[FileGroup]) -> dict[str, GroupRange]:
    """Return the file groups of each data partition. groups: of the record index, by file id."""
    ranges: dict[str, GroupRange] = {}
    for number, group in enumerate(groups):
        path = _data_partition_of(group.slice.file_id)
        first, group_count = ranges.get(path, (number, 0))
        ranges[path] = (first, group_count + 1)
    return ranges


def _data_partition_of(group_file_id: str) -> str:
    match = _FILE_ID.fullmatch(group_file_id)
    if match is None:
        msg = f"{group_file_id} is not a file group of a partitioned record index"
        raise CorruptTable(msg)
    return _ESCAPE.sub(lambda code: chr(int(code[1], 16)), match[1])


def new_groups(
    existing: Mapping[str, GroupRange], paths: Iterable[str], instant: str
) -> list[FileGroup]:
    """Return file groups to create for the data partitions that have none."""
    return [
        FileGroup(_first_slice(file_id(path, number), instant))
        for path in sorted(set(paths) - existing.keys())
        for number in range(NEW_GROUPS)
    ]


def _first_slice(new_id: str, instant: str) -> FileSlice:
    name = log_file_name(new_id, instant, 1, FIRST_LOG_TOKEN)
    log = LogFile(RECORD_INDEX, name, new_id, instant, 1, FIRST_LOG_TOKEN, "", 0)
    return FileSlice(RECORD_INDEX, new_id, instant, None, (log,))
