"""Plans change queries: from a range to its commits, and to tasks. No data is read here.

`cdc_files.py` determines the changes of one written file. Commits are selected as in
`HoodieCDCExtractor` (Hudi 1.2.0). Its ranges are of requested times in every table version: a
commit that is requested before a range begins, and completes after it, is in no range.
"""

from __future__ import annotations

from pyhudi.config.actions import COMMIT
from pyhudi.errors import HistoryUnavailable, UnsupportedTableFeature
from pyhudi.query.cdc_files import ChangeFiles, ChangeRequest, ChangeTask
from pyhudi.query.commit_range import by_completion_times, check_no_hollow
from pyhudi.query.file_pruning import scan_slices
from pyhudi.slices.file_size_checks import check_listed
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.read_tasks import ScanRequest
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import CommitMetadata, Instant
from pyhudi.timeline.instant_range import InstantRange

_WITHOUT_CHANGES = frozenset(
    {"COMPACT", "LOG_COMPACT", "CLUSTER", "INDEX", "BUCKET_RESCALE", "ALTER_SCHEMA"}
)
"""Operations that write files but do not change rows (`WriteOperationType`)."""
_UNKNOWN = "UNKNOWN"


def check_changes(table: TableSnapshot) -> None:
    """Raise `UnsupportedTableFeature` for a table whose changes cannot be read."""
    config = table.config
    hint = "Use diff(a, b), which compares two snapshots of any table with record keys."
    if not config.cdc_enabled:
        raise UnsupportedTableFeature("hoodie.table.cdc.enabled is not true", hint=hint)
    if not config.populate_meta_fields:
        raise UnsupportedTableFeature(
            "hoodie.populate.meta.fields=false: change logs name records by their stored key",
            hint=hint,
        )
    if config.drop_partition_columns:
        raise UnsupportedTableFeature(
            "hoodie.datasource.write.drop.partition.columns=true: images would miss columns",
            hint=hint,
        )


def plan_changes(table: TableSnapshot, request: ChangeRequest) -> list[ChangeTask]:
    """Return one task for every file by which a commit of the range changed rows, in commit order.

    Raises `HistoryUnavailable` for a range that begins before the end of the archive, for a hollow
    commit in it, for missing files, and for a rewritten base file without change log;
    `UnsupportedTableFeature` for slices with an unsupported merge rule; `CorruptTable` for a
    truncated log file.
    """
    if request.is_initial:
        return _plan_inserts(table, request)
    commits = select_commits(table, request)
    partitions = {path for _, metadata in commits for path in _partitions(metadata)}
    view = FileSystemView(table.storage, table.config, table.timeline, partitions)
    files = ChangeFiles(table, request, view)
    tasks = [task for instant, metadata in commits for task in files.of_commit(instant, metadata)]
    if request.shard is not None:
        tasks = [task for task in tasks if request.shard.has(task.file_id)]
    sides = (side for task in tasks for side in (task.match.before, task.match.after))
    slices = [side.slice for side in sides if side is not None]
    check_listed(table.storage, table.options, table.timeline, slices)
    return tasks


def _plan_inserts(table: TableSnapshot, request: ChangeRequest) -> list[ChangeTask]:
    """Return tasks that give the rows of the snapshot as inserts of its newest commit."""
    newest = max(table.timeline.commits, key=lambda commit: commit.completed or commit.requested)
    slices = scan_slices(table, ScanRequest(output=()))
    files = ChangeFiles(
        table, request, FileSystemView(table.storage, table.config, table.timeline, ())
    )
    return [files.inserts_of(newest, slice_) for slice_ in slices]


def select_commits(
    table: TableSnapshot, request: ChangeRequest
) -> list[tuple[Instant, CommitMetadata]]:
    """Return the commits of the range that changed rows, in the order of the range.

    A range is over requested times below table version 8 and over completion times from 8 on.
    """
    _check_archived(table, request.start)
    by_completion = by_completion_times(table)
    if not by_completion:
        check_no_hollow(table, request.end)

    def time(instant: Instant) -> str:
        return (instant.completed or "") if by_completion else instant.requested

    selected = [
        instant
        for instant in sorted(table.timeline.commits, key=time)
        if (request.start is None or time(instant) > request.start)
        and (request.end is None or time(instant) <= request.end)
    ]
    with_metadata = ((instant, table.timeline.commit_metadata(instant)) for instant in selected)
    return [
        (instant, metadata)
        for instant, metadata in with_metadata
        if changes_rows(table, instant, metadata)
    ]


def _check_archived(table: TableSnapshot, start: str | None) -> None:
    by_completion = by_completion_times(table)
    # An interrupted archiver leaves some commits on both timelines.
    active = {commit.requested for commit in table.timeline.commits}
    archived = [
        commit
        for commit in table.timeline.archive.commits(
            InstantRange(start, by_completion=by_completion)
        )
        if commit.requested not in active
    ]
    if archived:
        end = archived[-1].requested
        raise HistoryUnavailable(
            f"commits of the range up to {end} were archived",
            hint="Start the range later, or compare two snapshots with diff(a, b).",
        )


def changes_rows(table: TableSnapshot, instant: Instant, metadata: CommitMetadata) -> bool:
    """Return whether a commit may change rows: it is not a service's, and no new schema alone."""
    operation = (metadata.operation_type or _UNKNOWN).upper()
    if operation == _UNKNOWN:
        # A table that was copy-on-write has commits of writes, and records their operation.
        return not (table.config.is_merge_on_read and instant.action == COMMIT)
    return operation not in _WITHOUT_CHANGES


def _partitions(metadata: CommitMetadata) -> set[str]:
    return {*metadata.partition_to_write_stats, *(metadata.partition_to_replace_file_ids or ())}
