"""Writing the next base file of one file group of the metadata table. Runs on an engine's workers.

Which groups are compacted, and when, is `compaction.py`'s part.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi import _native
from pyhudi.engine.protocol import Attempt
from pyhudi.metadata.group import MetadataGroup
from pyhudi.slices.file_slice import FileSlice
from pyhudi.storage.storage import Storage
from pyhudi.timeline.commit_metadata import NO_PREVIOUS_COMMIT, RuntimeStats, WriteStat

EXTENSION = "hfile"


@dataclass(frozen=True)
class CompactGroupTask:
    """Merge one slice into its file group's next base file."""

    group: MetadataGroup
    slice: FileSlice
    instant: str
    """Of the compaction."""
    avro_schema: str
    """Of the records, with meta fields."""
    names_previous: bool
    """Statistics name the base file that is replaced."""

    @property
    def storage(self) -> Storage:
        """The metadata table's."""
        return self.group.storage


def compact_group(task: CompactGroupTask, attempt: Attempt) -> WriteStat:
    """Writes the slice's merged records. A group without records gets a file without any."""
    one = task.slice
    name = f"{one.file_id}_{attempt.write_token}_{task.instant}.{EXTENSION}"
    written = store_group_base(task, f"{one.partition}/{name}")
    return WriteStat(
        file_id=one.file_id,
        path=written.path,
        prev_commit=one.base.instant if one.base else NO_PREVIOUS_COMMIT,
        prev_base_file=one.base.name if one.base and task.names_previous else None,
        num_writes=written.rows,
        num_update_writes=written.rows,
        total_write_bytes=written.size,
        file_size_in_bytes=written.size,
        partition_path=one.partition,
        total_log_files_compacted=len(one.logs),
        total_log_size_compacted=sum(log.size for log in one.logs),
        runtime_stats=RuntimeStats(),
    )


def store_group_base(task: CompactGroupTask, path: str) -> _native.BaseFile:
    """The one place where compactions of the metadata table write."""
    return _native.compact_metadata_group(task.group.open(), path, avro_schema=task.avro_schema)
