"""The plan of a rollback: files by markers, by commit metadata, or by listing. Changes nothing.

From table version 8 on, log files of a failed delta commit are deleted like its base files. Up to
version 6 a command block in a new log file rolls back the blocks that it appended. A log file
without a complete block is deleted in any version, since it would look damaged. In a table that was
upgraded from version 6, several commits may have appended to a log file. It is deleted if all of
these are rolled back; otherwise an error is raised. Sources: `MarkerBasedRollbackStrategy`,
`ListingBasedRollbackStrategy` (1.2.0).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from pyhudi.config.actions import COMMIT, COMPACTION, DELTA_COMMIT, LOG_COMPACTION, Instant, State
from pyhudi.config.file_names import file_name_of, parse_base_name, parse_log_name
from pyhudi.config.table_version import TableVersion
from pyhudi.errors import CorruptTable, UnsupportedTableFeature
from pyhudi.slices import markers
from pyhudi.slices.listing import walk_partitions
from pyhudi.slices.log_blocks import block_instants, is_torn
from pyhudi.slices.service_plans import files_of_plans
from pyhudi.slices.write_tokens import may_be_token_of
from pyhudi.storage.properties_file import FOLDER
from pyhudi.storage.storage import Entry, Storage
from pyhudi.timeline import Timeline
from pyhudi.timeline.commit_metadata import NO_PREVIOUS_COMMIT, CommitMetadata


@dataclass(frozen=True)
class RollbackRequest:
    """One step of a rollback: delete files, or roll back blocks appended to a slice's logs."""

    partition: str
    file_id: str = ""
    base_instant: str = ""
    """Base instant of the slice whose log blocks are rolled back, otherwise the failed instant."""
    files: tuple[str, ...] = ()
    """Names of the files to delete."""
    log_blocks: Mapping[str, int] = field(default_factory=dict)
    """Names and sizes of log files with blocks to roll back."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all files. Hudi's plans contain full paths of log files."""
        return (*self.files, *(file_name_of(name) for name in self.log_blocks))

    def path(self, name: str) -> str:
        """Return the path of a file of the partition, relative to the table.

        Raises `CorruptTable` for a path that cannot be a data file, from a damaged marker or plan.
        """
        path = f"{self.partition}/{name}" if self.partition else name
        parts = path.split("/")
        if parts[0] == FOLDER or not {"", ".", ".."}.isdisjoint(parts):
            msg = (
                f"leftovers of a failed write name {path!r}, which is not a data file of a "
                "partition"
            )
            raise CorruptTable(msg, file=path)
        return path


def plan_rollback(
    storage: Storage,
    version: TableVersion,
    timeline: Timeline,
    target: Instant,
    reverted_together: Collection[str] = (),
) -> list[RollbackRequest]:
    """Return the requests that undo an instant.

    reverted_together: instants of the same restore. Raises `UnsupportedTableFeature` for a log file
    from before an upgrade that contains rows of a remaining commit.

    The files come from the commit metadata of a completed instant, and from the markers of an
    inflight one, or a listing if it has none. A requested one wrote nothing. Up to table version 6
    other writers write log files to the slices of a planned compaction. These are deleted with the
    compaction, which only a restore may request, since it has reverted all their rows.
    """
    if target.is_completed:
        requests = requests_of_commit(storage, version, timeline, target)
        if not version.rollback_appends_command:
            _check_no_rows_lost(storage, timeline, target, requests, reverted_together)
        return requests
    if target.action == COMPACTION and version.logs_named_by_base_instant:
        return requests_by_listing(storage, version, target.requested, CommitMetadata())
    marked = markers.read_all(storage, target.requested)
    if marked is not None:
        requests = requests_by_markers(storage, version, target.requested, marked)
    elif target.state is State.REQUESTED:
        return []
    else:
        profile = timeline.workload(target)
        requests = requests_by_listing(storage, version, target.requested, profile)
    return without_torn_logs(storage, timeline, target.requested, requests)


def requests_by_markers(
    storage: Storage, version: TableVersion, target: str, marked: Iterable[markers.Marker]
) -> list[RollbackRequest]:
    """Return one request per marked file, none for blocks of a log file that does not exist."""
    requests: list[RollbackRequest] = []
    for marker in marked:
        if marker.kind == "APPEND":
            if not version.rollback_appends_command:
                msg = (
                    f"version {version.code} has no APPEND markers, but {target} has {marker.path}"
                )
                raise UnsupportedTableFeature(msg, hint="Roll this write back with Apache Hudi.")
            log = parse_log_name(marker.name)
            if log is None:
                requests += _requests_of_slice(storage, marker, target)
                continue
            if log.instant != target:
                blocks = {marker.name: 1}
                append = RollbackRequest(
                    marker.partition, log.file_id, log.instant, log_blocks=blocks
                )
                exists = storage.exists(append.path(marker.name))
                # A log file of this write alone may be created later, and is deleted by name below.
                if exists or not may_be_token_of(log.write_token, target):
                    requests += [append] if exists else []
                    continue
        requests.append(
            RollbackRequest(marker.partition, _file_id(marker.name), target, files=(marker.name,))
        )
    return requests


def _requests_of_slice(
    storage: Storage, marker: markers.Marker, target: str
) -> list[RollbackRequest]:
    """Return requests that undo an append whose marker names the slice's base file.

    Releases before 0.15 write such markers. The base file belongs to a commit and is kept.
    """
    base = parse_base_name(marker.name)
    if base is None:
        msg = f"a marker of instant {target} names {marker.path}, which is not a data file"
        raise UnsupportedTableFeature(msg, hint="Roll this write back with Apache Hudi.")
    logs = [
        file.name
        for file in storage.list_dir(marker.partition)[1]
        if (log := parse_log_name(file.name)) is not None
        and (log.file_id, log.instant) == (base.file_id, base.instant)
    ]
    if not logs:
        return []
    if base.instant == target:
        return [RollbackRequest(marker.partition, base.file_id, target, files=tuple(logs))]
    blocks = dict.fromkeys(logs, 1)
    return [RollbackRequest(marker.partition, base.file_id, base.instant, log_blocks=blocks)]


def requests_of_commit(
    storage: Storage, version: TableVersion, timeline: Timeline, target: Instant
) -> list[RollbackRequest]:
    """Return one request per file with a completed instant, and per log file that it appended to.

    For a compaction the whole slice is deleted, as in Hudi's restore: up to table version 6, later
    log files have its instant.
    """
    requests = []
    metadata = timeline.commit_metadata(target)
    for partition, stats in metadata.partition_to_write_stats.items():
        _ = RollbackRequest(partition).path("checked")
        names = [file.name for file in storage.list_dir(partition)[1]]
        requests += [
            RollbackRequest(partition, files=(name,))
            for name in names
            if _instant(name) == target.requested
        ]
        for stat in stats:
            name = file_name_of(stat.path)
            log = parse_log_name(name)
            if log is None or log.instant == target.requested or name not in names:
                continue
            if version.rollback_appends_command:
                blocks = {name: stat.total_write_bytes}
                requests.append(
                    RollbackRequest(partition, log.file_id, log.instant, log_blocks=blocks)
                )
            else:
                requests.append(RollbackRequest(partition, files=(name,)))
    return requests


def _check_no_rows_lost(
    storage: Storage,
    timeline: Timeline,
    target: Instant,
    requests: Iterable[RollbackRequest],
    reverted_together: Collection[str],
) -> None:
    """Raise `UnsupportedTableFeature` if a log file to delete has rows of a remaining commit.

    From version 8 on a log file belongs to one commit. One from before an upgrade may have the
    instant of another commit, or of a compaction.
    """
    reverted = {target.requested, *reverted_together}
    for request in requests:
        for name in request.files:
            log = parse_log_name(name)
            if log is None or (log.instant == target.requested and target.action != COMMIT):
                continue
            path = request.path(name)
            remaining = [
                instant
                for instant in block_instants(storage, path)
                if instant not in reverted and timeline.is_committed(instant)
            ]
            if remaining:
                msg = (
                    f"hoodie.table.version was changed since {target}: its log file {path} holds "
                    f"rows of {remaining[0]}, which stays"
                )
                hint = f"restore(to=...) a commit before {remaining[0]}, or one after the upgrade."
                raise UnsupportedTableFeature(msg, hint=hint)


def requests_by_listing(
    storage: Storage, version: TableVersion, target: str, profile: CommitMetadata
) -> list[RollbackRequest]:
    """Return one request per file with the failed instant, and per slice it may have appended to.

    profile: the plan of the failed write, from its inflight file.
    """
    appended = {
        (partition, stat.file_id): stat.prev_commit
        for partition, stats in profile.partition_to_write_stats.items()
        for stat in stats
        if stat.file_id and stat.prev_commit != NO_PREVIOUS_COMMIT
    }
    requests = []
    for partition, files in _list_partitions(storage, profile.partition_to_write_stats):
        names = [file.name for file in files]
        requests += [
            RollbackRequest(partition, files=(name,)) for name in names if _instant(name) == target
        ]
        if version.rollback_appends_command:
            requests += _requests_of_appended_slices(partition, names, target, appended)
    return requests


def _list_partitions(
    storage: Storage, additional: Iterable[str]
) -> Iterator[tuple[str, list[Entry]]]:
    """Yield the table's partitions and additional directories, as of a dropped index."""
    listed = set()
    for partition, files in walk_partitions(storage):
        listed.add(partition)
        yield partition, files
    for partition in sorted({*additional} - listed):
        _ = RollbackRequest(partition).path("checked")
        yield partition, storage.list_dir(partition)[1]


def _requests_of_appended_slices(
    partition: str, names: list[str], target: str, appended: Mapping[tuple[str, str], str]
) -> list[RollbackRequest]:
    """Return a request for each slice to whose logs the failed write may have appended.

    These are the slice of the profile and the newest one before the write. Hudi's profile has the
    slice in which the index found the rows, but new log files go to the slice of a pending
    compaction.
    """
    logs: dict[str, dict[str, dict[str, int]]] = {}
    for name in names:
        log = parse_log_name(name)
        if log is not None and log.instant != target and (partition, log.file_id) in appended:
            logs.setdefault(log.file_id, {}).setdefault(log.instant, {})[name] = 1
    requests = []
    for file_id, slices in logs.items():
        newest = max((instant for instant in slices if instant < target), default="")
        requests += [
            RollbackRequest(partition, file_id, instant, log_blocks=slices[instant])
            for instant in sorted({newest, appended[partition, file_id]} & slices.keys())
        ]
    return requests


def without_torn_logs(
    storage: Storage, timeline: Timeline, target: str, requests: Iterable[RollbackRequest]
) -> list[RollbackRequest]:
    """Return the requests, with deletes of newest log files that contain no complete block.

    Their writer failed in the first block. A file that a completed commit names is damaged and is
    kept, and so is a file that a plan names, or that another pending write may be writing.
    """
    pending = timeline.pending(COMMIT, DELTA_COMMIT, LOG_COMPACTION)
    others = {write.requested for write in pending} - {target}
    remaining = []
    for request in requests:
        newest = max(request.log_blocks, key=_log_version, default=None)
        path = "" if newest is None else request.path(newest)
        if (
            newest is None
            or _may_be_of_others(newest, target, others)
            or not is_torn(storage, path)
            or _is_named(timeline, path)
        ):
            remaining.append(request)
            continue
        remaining.append(replace(request, files=(newest,), log_blocks={}))
        if older := {name: n for name, n in request.log_blocks.items() if name != newest}:
            remaining.append(replace(request, log_blocks=older))
    return remaining


def _may_be_of_others(name: str, target: str, others: Collection[str]) -> bool:
    """Return whether another write than the target may have written a log file of a slice."""
    log = parse_log_name(name)
    if log is None or any(may_be_token_of(log.write_token, other) for other in others):
        return True
    return bool(others) and not may_be_token_of(log.write_token, target)


def _log_version(name: str) -> int:
    log = parse_log_name(name)
    return 0 if log is None else log.version


def _is_named(timeline: Timeline, path: str) -> bool:
    committed = (path in timeline.commit_metadata(commit).paths for commit in timeline.commits)
    return any(committed) or path in files_of_plans(timeline)


def _file_id(name: str) -> str:
    return name.removeprefix(".").split("_", 1)[0]


def _instant(name: str) -> str | None:
    # The metadata table's base files are HFiles.
    extension = "hfile" if name.endswith(".hfile") else None
    parsed = parse_log_name(name) or parse_base_name(name, extension)
    return None if parsed is None else parsed.instant
