"""The first files of a file group of the metadata table.

Every group begins with a log file without records, so that it exists even if it gets no record; a
base file follows if there are records. The number of groups is decided elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from pyhudi import _native
from pyhudi.config.file_names import log_file_name
from pyhudi.engine.protocol import Attempt
from pyhudi.storage.storage import Storage
from pyhudi.timeline.commit_metadata import RuntimeStats, WriteStat

FIRST_LOG_TOKEN = "0-0-0"  # noqa: S105 - Hudi's write token of the log file that opens a file group

_PREFIXES = {"column_stats": "col-stats"}
"""Prefixes of file ids that are not the partition's name with hyphens (`MetadataPartitionType`)."""


@dataclass(frozen=True)
class FirstFilesTarget:
    """The arguments that the writers of a partition's first files share."""

    storage: Storage
    """The metadata table's storage."""
    partition: str
    instant: str
    avro_schema: str
    """The schema of the records, with meta fields."""
    file_ids: tuple[str, ...]
    """The ids of the partition's file groups, in the order of their numbers."""


def group_id(partition: str, number: int) -> str:
    """Return the id of one file group (`HoodieTableMetadataUtil.getFileIDForFileGroup`, 1.2.0)."""
    prefix = _PREFIXES.get(partition) or partition.replace("_", "-")
    return f"{prefix}-{number:04d}-0"


def first_log_path(target: FirstFilesTarget, number: int) -> str:
    """Return the path of the log file with which a file group begins."""
    file_id = target.file_ids[number]
    return f"{target.partition}/{log_file_name(file_id, target.instant, 1, FIRST_LOG_TOKEN)}"


def write_base(
    target: FirstFilesTarget, route: str, rows: pa.Table, attempt: Attempt
) -> list[WriteStat]:
    """Write the base file of the file group that `route` names."""
    file_id = target.file_ids[int(route.rsplit("/", 1)[1])]
    name = f"{file_id}_{attempt.write_token}_{target.instant}.hfile"
    written = store_base(target, f"{target.partition}/{name}", rows)
    return [
        WriteStat(
            file_id=file_id,
            path=written.path,
            num_writes=written.rows,
            num_inserts=written.rows,
            total_write_bytes=written.size,
            file_size_in_bytes=written.size,
            partition_path=target.partition,
            runtime_stats=RuntimeStats(),
        )
    ]


class LogTarget(Protocol):
    """The arguments of the writer of a log file without records."""

    @property
    def storage(self) -> Storage:
        """The metadata table's storage."""

    @property
    def instant(self) -> str:
        """The instant of the delta commit."""

    @property
    def avro_schema(self) -> str:
        """The schema of the records, with meta fields."""


def store_first_log(target: LogTarget, path: str) -> _native.LogFile:
    """Store the log file with which a file group begins: the one place that creates such files."""
    return _native.write_metadata_log(
        target.storage.native,
        path,
        instant=target.instant,
        avro_schema=target.avro_schema,
        partition=path.split("/", 1)[0],
    )


def store_base(target: FirstFilesTarget, path: str, rows: pa.Table) -> _native.BaseFile:
    """Store the first base file of a file group: the one place that creates such files."""
    return _native.write_metadata_base(
        target.storage.native, path, rows, avro_schema=target.avro_schema
    )
