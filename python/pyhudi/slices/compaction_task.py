"""Task of one file of a compaction: task in, write statistics out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyhudi import _native
from pyhudi.config.file_names import base_file_name
from pyhudi.engine.protocol import Attempt
from pyhudi.slices import markers, write_base
from pyhudi.slices.compaction_plan import CompactTask
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.markers import Marker
from pyhudi.slices.read import spec_of_matches
from pyhudi.timeline.commit_metadata import NO_PREVIOUS_COMMIT, RuntimeStats, WriteStat


def compact_file(task: CompactTask, attempt: Attempt) -> WriteStat:
    """Write the slice's merged rows as a new base file, and keep their commit times."""
    target, merged = task.target, task.read.slice
    name = base_file_name(
        merged.file_id, attempt.write_token, target.instant, target.options.extension
    )
    marker = Marker(merged.partition, name, "MERGE" if merged.base else "CREATE")
    markers.create(target.storage, target.instant, marker)
    written, stats = write_base.rewrite_base_file(target, marker.path, spec_of_matches(task.read))
    return compaction_stat(
        merged,
        written,
        names_previous=not target.version.commit_metadata_as_json,
        num_inserts=stats.inserted,
        num_update_writes=stats.updated,
        num_deletes=stats.deleted,
        total_log_records=stats.log_records,
        total_updated_records_compacted=stats.updated,
        total_log_blocks=stats.log_blocks,
    )


def compaction_stat(
    merged: FileSlice, written: _native.BaseFile, *, names_previous: bool, **counts: Any
) -> WriteStat:
    """Return the statistics of the base file of one slice for a compaction's commit.

    names_previous: the replaced base file is named. counts: fields of the stat about the merge.
    """
    base = merged.base
    stat = WriteStat(
        file_id=merged.file_id,
        path=written.path,
        prev_commit=base.instant if base else NO_PREVIOUS_COMMIT,
        prev_base_file=base.name if base and names_previous else None,
        num_writes=written.rows,
        total_write_bytes=written.size,
        file_size_in_bytes=written.size,
        partition_path=merged.partition,
        total_log_files_compacted=len(merged.logs),
        total_log_size_compacted=sum(log.size for log in merged.logs),
        runtime_stats=RuntimeStats(),
    )
    return replace(stat, **counts)
