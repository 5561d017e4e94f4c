"""The files of a failed attempt at an instant: how to find them, which to keep, and their removal.

Task results, markers and names show the files of an attempt. Only its writer has the results, and
other writers may have removed its markers. A file name contains the instant, except that of a log
file up to table version 6: its write token may contain the instant, and its blocks do.

A file is kept if a completed commit, the record of a rollback or a plan of a table service names
it. The callers decide when a writer removes files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from pyhudi.config.actions import ROLLBACK, Instant
from pyhudi.config.file_names import file_name_of, parse_base_name, parse_log_name
from pyhudi.slices import markers
from pyhudi.slices.listing import walk_partitions
from pyhudi.slices.log_blocks import block_instants, is_torn
from pyhudi.slices.service_plans import files_of_plans
from pyhudi.slices.slice_builder import groups_of_plan
from pyhudi.slices.write_tokens import may_be_token_of
from pyhudi.storage.storage import Entry, Storage
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline
from pyhudi.timeline.rollbacks import rollbacks_of
from pyhudi.txn import heartbeat, rollback
from pyhudi.txn.pending_instant import PendingInstant


def remove_files_after_rollback(
    table: TableSnapshot, timeline: Timeline, instant: str, written: Iterable[str] = ()
) -> None:
    """Remove the files of an attempt that was rolled back.

    In a critical section, or a concurrent plan might name them. written: paths of its task results.
    """
    storage, paths_to_keep, paths = table.storage, log_files_to_keep(timeline, instant), {*written}
    marked = {marker.path for marker in markers.read_all(storage, instant) or ()}
    # Before table version 8, other writers may have appended to log files with another instant.
    own_paths = {path for path in marked if f"_{instant}." in file_name_of(path)}
    own_paths |= {
        path
        for path in marked - own_paths - paths_to_keep
        if _has_only_blocks_of(storage, path, instant)
    }
    if all(pending.requested != instant for pending in timeline.pending()):
        paths |= files_after_rollback(table, timeline, instant)
    storage.delete_all(own_paths | (paths - paths_to_keep))


def remove_attempt(
    pending_instant: PendingInstant, timeline: Timeline, written: Iterable[str]
) -> None:
    """Remove this writer's leftovers of an instant that another writer has rolled back."""
    table = pending_instant.table
    for participant in table.participants:
        participant.on_revoke(table, pending_instant.time)
    remove_files_after_rollback(table, timeline, pending_instant.time, written)
    pending_instant.delete_markers()
    table.storage.delete(heartbeat.path_of(pending_instant.time))


def remove_unless_kept(
    storage: Storage, timeline: Timeline, instant: str, paths: Collection[str]
) -> None:
    """Remove files of an attempt, except those that must be kept."""
    if paths:
        storage.delete_all({*paths} - log_files_to_keep(timeline, instant))


def remove_unnamed_base_files(storage: Storage, timeline: Timeline, commit: Instant) -> None:
    """Remove marked base files that their completed commit does not name: of retried tasks."""
    named_paths = timeline.commit_metadata(commit).paths
    marked = markers.read_all(storage, commit.requested) or ()
    bases = (marker for marker in marked if parse_base_name(marker.name) is not None)
    storage.delete_all(
        marker.path
        for marker in bases
        if marker.path not in named_paths and f"_{commit.requested}." in marker.name
    )


def files_after_rollback(
    table: TableSnapshot,
    timeline: Timeline,
    instant: str,
    records: Collection[rollback.Record] | None = None,
) -> set[str]:
    """Return files of a write that its tasks wrote after its rollback.

    A task may still write a large file after its driver has failed. The rollback's record has the
    partitions of such files, since their markers existed before. records: all completed rollbacks
    of the write, if the caller has read them.
    """
    if timeline.is_committed(instant):
        return set()
    if records is None:
        records = list(rollbacks_of(timeline, instant))
    rolled_back = _find_rolled_back_log_files(records)
    partitions = {partition for record in records for partition in record["partitionMetadata"]}
    paths = {file.path for partition in partitions for file in table.storage.list_dir(partition)[1]}
    return {path for path in paths - rolled_back if _may_belong_to(table, path, instant)}


def _may_belong_to(table: TableSnapshot, path: str, instant: str) -> bool:
    name = file_name_of(path)
    if _write_token(table, name, instant) is None:
        return False
    # Other writers append to log files whose names contain the instant of their slice.
    may_be_shared = table.config.version.logs_named_by_base_instant and parse_log_name(name)
    return not may_be_shared or _has_only_blocks_of(table.storage, path, instant)


def files_of_stage(
    table: TableSnapshot, partitions: Iterable[str], instant: str, stage: int
) -> Iterator[str]:
    """Yield the paths of files of one attempt at a plan. stage: that of their write tokens."""
    for partition in partitions:
        for file in table.storage.list_dir(partition)[1]:
            if f"-{stage}-" in (_write_token(table, file.name, instant) or ""):
                yield file.path


def _write_token(table: TableSnapshot, name: str, instant: str) -> str | None:
    """Return the write token of a file that may belong to an instant, None for other files."""
    base, log = parse_base_name(name, table.config.base_extension), parse_log_name(name)
    if base is not None:
        return base.write_token if base.instant == instant else None
    if log is None:
        return None
    by_token = table.config.version.logs_named_by_base_instant
    is_of = log.instant == instant or (by_token and may_be_token_of(log.write_token, instant))
    return log.write_token if is_of else None


def base_files_of_plan(
    table: TableSnapshot, timeline: Timeline, pending: Instant
) -> Iterator[Entry]:
    """Yield base files with the instant of a planned service, in the partitions of its plan.

    It searches all partitions if the plan cannot be read.
    """
    if timeline.has_damaged_plan(pending) or timeline.plan(pending) is None:
        files = (file for _, files in walk_partitions(table.storage) for file in files)
    else:
        partitions = partitions_of_plan(timeline, pending)
        files = (file for path in partitions for file in table.storage.list_dir(path)[1])
    for file in files:
        base = parse_base_name(file.name)
        if base is not None and base.instant == pending.requested:
            yield file


def partitions_of_plan(timeline: Timeline, pending: Instant) -> list[str]:
    """Return the partition paths of a planned service, sorted."""
    return sorted({partition for partition, _ in groups_of_plan(timeline.plan(pending))})


def log_files_to_keep(timeline: Timeline, instant: str) -> set[str]:
    """Return log files of a failed write that a rollback or a plan names.

    Up to table version 6 a plan includes files that were written after the rollback, since their
    names do not contain the instant. A pending rollback will report its files to the metadata
    table.
    """
    to_roll_back = {
        request.path(file_name_of(name))
        for pending in timeline.pending(ROLLBACK)
        if (rollback.target_of(timeline, pending) or ("",))[0] == instant
        for request in rollback.read_plan(timeline, pending)
        for name in request.log_blocks
    }
    rolled_back = _find_rolled_back_log_files(rollbacks_of(timeline, instant))
    return rolled_back | to_roll_back | files_of_plans(timeline)


def _find_rolled_back_log_files(records: Iterable[rollback.Record]) -> set[str]:
    """Return the log files in which completed rollbacks have rolled back blocks."""
    paths: set[str] = set()
    for record in records:
        for path, part in record["partitionMetadata"].items():
            names = (file_name_of(name) for name in part.get("logFilesFromFailedCommit") or ())
            paths |= {f"{path}/{name}" if path else name for name in names}
    return paths


def _has_only_blocks_of(storage: Storage, path: str, instant: str) -> bool:
    is_log = parse_log_name(file_name_of(path)) is not None
    if not is_log or not storage.exists(path) or is_torn(storage, path):
        return False
    return block_instants(storage, path) == [instant]
