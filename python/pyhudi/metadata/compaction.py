"""Compacts the metadata table: merges the records of each slice by the payload's rules.

`services.py` decides when; `services/compaction.py` has the steps of a compaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyhudi import _native
from pyhudi.engine.protocol import Attempt
from pyhudi.metadata.file_group import MetadataGroup, groups_of
from pyhudi.metadata.record_tasks import record_schema
from pyhudi.services.compaction import CompactionWork
from pyhudi.slices.compaction_task import compaction_stat
from pyhudi.slices.file_slice import FileSlice
from pyhudi.storage.storage import Storage
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.commit_metadata import WriteStat

EXTENSION = "hfile"


@dataclass(frozen=True)
class CompactGroupTask:
    """Merge one slice into its file group's next base file."""

    group: MetadataGroup
    slice: FileSlice
    instant: str
    """The instant of the compaction."""
    avro_schema: str
    """The schema of the records, with meta fields."""
    names_previous: bool
    """Write stats name the base file that is replaced."""

    @property
    def storage(self) -> Storage:
        """The metadata table's storage."""
        return self.group.storage


def record_compaction() -> CompactionWork[CompactGroupTask]:
    """Return how to compact a metadata table's slices."""
    return CompactionWork(
        _tasks,
        compact_group,
        has_markers=False,
        label="compact the metadata table",
    )


def _tasks(
    table: TableSnapshot, instant: str, slices: Sequence[FileSlice]
) -> list[CompactGroupTask]:
    version = table.config.version
    schema = record_schema(version.metadata_schema)
    groups = groups_of(table.storage, table.config, table.timeline, slices)
    names_previous = not version.commit_metadata_as_json
    return [
        CompactGroupTask(group, newest, instant, schema, names_previous)
        for group, newest in zip(groups, slices, strict=True)
    ]


def compact_group(task: CompactGroupTask, attempt: Attempt) -> WriteStat:
    """Write the slice's merged records. A group without records gets an empty base file."""
    merged = task.slice
    name = f"{merged.file_id}_{attempt.write_token}_{task.instant}.{EXTENSION}"
    written = store_group_base(task, f"{merged.partition}/{name}")
    return compaction_stat(
        merged, written, names_previous=task.names_previous, num_update_writes=written.rows
    )


def store_group_base(task: CompactGroupTask, path: str) -> _native.BaseFile:
    """Store a base file: the one place where compactions of the metadata table write."""
    return _native.compact_metadata_group(task.group.open(), path, avro_schema=task.avro_schema)
