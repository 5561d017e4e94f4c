"""Tasks of one file group of a compaction and of a log compaction: write statistics out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyhudi import _native
from pyhudi.config.file_names import base_file_name, file_name_of, log_file_name
from pyhudi.engine.protocol import Attempt
from pyhudi.slices import markers, write_base
from pyhudi.slices.compaction_plan import CompactTask
from pyhudi.slices.file_size_checks import check_slice_sizes
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.markers import Marker
from pyhudi.slices.read import slice_spec, spec_of_matches
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.slices.write_tokens import token_of_write
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
        total_log_size_compacted=merged.log_size,
        runtime_stats=RuntimeStats(),
    )
    return replace(stat, **counts)


# --- log compaction -------------------------------------------------------------------------------


def compact_logs(task: CompactTask, attempt: Attempt) -> list[WriteStat]:
    """Merge a slice's log files into a new one; none if no block of them is committed."""
    target, merged = task.target, task.read.slice
    check_slice_sizes(target.storage, merged)
    by_base = target.version.logs_named_by_base_instant
    instant = merged.base_instant if by_base else target.instant
    version = FileGroup(merged).next_log_version if by_base else 1
    token = token_of_write(attempt, target.instant) if by_base else attempt.write_token
    name = log_file_name(merged.file_id, instant, version, token)
    marker = Marker(merged.partition, name, target.version.log_marker_type)
    markers.create(target.storage, target.instant, marker)
    logs_alone = replace(task.read, slice=replace(merged, base=None), memory_limit=None)
    written = store_compacted(task, marker.path, slice_spec(logs_alone))
    if written is None:
        return []
    return [_log_stat(merged, written, version)]


def store_compacted(
    task: CompactTask, path: str, slice_: _native.SliceSpec
) -> _native.LogFile | None:
    """Write a compacted log file. All compacted log files are created here."""
    target = task.target
    return _native.compact_logs(
        target.storage.native,
        path,
        slice_,
        partition=task.read.slice.partition,
        instant=target.instant,
        avro_schema=target.avro_schema,
        block_bytes=target.options.log_block_bytes,
        blocks=target.options.log_blocks,
        codec=target.options.codec,
        old_lists=target.options.old_lists,
    )


def _log_stat(merged: FileSlice, written: _native.LogFile, version: int) -> WriteStat:
    """Return the stat as Hudi's append handle writes it, without the slice (1.2.0)."""
    return WriteStat(
        file_id=merged.file_id,
        path=written.path,
        prev_commit=merged.base_instant,
        num_writes=written.records,
        num_update_writes=written.records,
        num_deletes=written.deletes,
        total_write_bytes=written.size,
        file_size_in_bytes=written.size,
        partition_path=merged.partition,
        runtime_stats=RuntimeStats(),
        total_log_files_compacted=len(merged.logs),
        total_log_size_compacted=merged.log_size,
        log_version=version,
        log_offset=0,
        base_file="",
        log_files=(file_name_of(written.path),),
    )
