"""Writes the log file of one file group of the metadata table, on an engine's workers.

A file group exists since its partition was initialized, and a write only appends to it. Only
a new data partition of a partitioned record index gets its file groups with the write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from pyhudi import _native
from pyhudi.config.file_names import log_file_name
from pyhudi.config.table_version import TableVersion
from pyhudi.engine.protocol import Attempt
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.slices.write_tokens import token_of_write
from pyhudi.storage.storage import Storage
from pyhudi.timeline.commit_metadata import RuntimeStats, WriteStat


@dataclass(frozen=True)
class GroupTarget:
    """The arguments that the writers of all file groups share."""

    storage: Storage
    """The metadata table's storage."""
    version: TableVersion
    instant: str
    avro_schema: str
    groups: Mapping[str, list[FileGroup]]
    """File groups of each partition, in the order of their numbers."""


def write_group(
    target: GroupTarget, route: str, rows: pa.Table, attempt: Attempt
) -> list[WriteStat]:
    """Append one log file with the record rows of the file group that `route` names."""
    partition, number = route.rsplit("/", 1)
    group = target.groups[partition][int(number)]
    by_base = target.version.logs_named_by_base_instant
    version = group.next_log_version if by_base else 1
    instant = group.slice.base_instant if by_base else target.instant
    token = token_of_write(attempt, target.instant) if by_base else attempt.write_token
    name = log_file_name(group.slice.file_id, instant, version, token)
    written = store_group_log(target, f"{partition}/{name}", rows)
    before = [log.name for log in group.slice.logs] if by_base else []
    base = group.slice.base
    return [
        WriteStat(
            file_id=group.slice.file_id,
            path=written.path,
            prev_commit=instant,
            num_writes=written.records,
            num_update_writes=written.records,
            num_deletes=written.deletes,
            total_write_bytes=written.size,
            file_size_in_bytes=written.size,
            partition_path=partition,
            runtime_stats=RuntimeStats(),
            log_version=version,
            log_offset=0,
            base_file=base.name if by_base and base else "",
            log_files=(*before, name),
        )
    ]


def store_group_log(target: GroupTarget, path: str, rows: pa.Table) -> _native.LogFile:
    """Store a log file: the one place where log files of the metadata table are created."""
    return _native.write_metadata_log(
        target.storage.native,
        path,
        rows,
        instant=target.instant,
        avro_schema=target.avro_schema,
        partition=path.split("/", 1)[0],
    )
