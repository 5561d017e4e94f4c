"""Carrying out one file's part of a compaction: task in, write statistics out."""

from __future__ import annotations

from pyhudi.config.file_names import base_file_name
from pyhudi.engine.protocol import Attempt
from pyhudi.slices import markers, write_base
from pyhudi.slices.compaction_plan import CompactTask
from pyhudi.slices.markers import Marker
from pyhudi.slices.read import open_counted
from pyhudi.timeline.commit_metadata import NO_PREVIOUS_COMMIT, RuntimeStats, WriteStat


def compact_file(task: CompactTask, attempt: Attempt) -> WriteStat:
    """Writes the slice's merged rows, with the commit times they have, as a new base file."""
    target, one = task.target, task.read.slice
    name = base_file_name(one.file_id, attempt.write_token, target.instant)
    marker = Marker(one.partition, name, "MERGE" if one.base else "CREATE")
    markers.create(target.storage, target.instant, marker)
    reader, stats = open_counted(task.read)
    written = write_base.store_base_file(target, marker.path, reader)
    names_previous = not target.version.commit_metadata_as_json
    return WriteStat(
        file_id=one.file_id,
        path=written.path,
        prev_commit=one.base.instant if one.base else NO_PREVIOUS_COMMIT,
        prev_base_file=one.base.name if one.base and names_previous else None,
        num_writes=written.rows,
        num_inserts=stats.inserted,
        num_update_writes=stats.updated,
        num_deletes=stats.deleted,
        total_write_bytes=written.size,
        file_size_in_bytes=written.size,
        partition_path=one.partition,
        total_log_records=stats.log_records,
        total_log_files_compacted=len(one.logs),
        total_log_size_compacted=sum(log.size for log in one.logs),
        total_updated_records_compacted=stats.updated,
        total_log_blocks=stats.log_blocks,
        runtime_stats=RuntimeStats(),
    )
