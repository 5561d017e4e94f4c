"""The plan of a rollback: files by markers, by commit metadata, or by listing.

Nothing is changed here. Up to table version 6 a command block in a new log file rolls back the
blocks that a failed delta commit appended; from 8 on its log files are deleted like its base files.
A log file without a whole block is deleted up to version 6 too: a command block rolls back what can
be read, and the rest would look like damage. Sources: `MarkerBasedRollbackStrategy`,
`ListingBasedRollbackStrategy` (1.2.0). A table that was upgraded from version 6 has log files to
which its earlier commits appended: they are deleted if all their rows go, else it raises.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from pyhudi.config.actions import COMMIT, COMPACTION, Instant, State
from pyhudi.config.file_names import parse_base_name, parse_log_name
from pyhudi.config.properties_file import FOLDER
from pyhudi.config.table_version import TableVersion
from pyhudi.errors import CorruptTable, UnsupportedTableFeature
from pyhudi.slices import markers
from pyhudi.slices.listing import walk_partitions
from pyhudi.slices.log_blocks import block_instants, is_torn
from pyhudi.slices.service_plans import files_of_plans
from pyhudi.slices.write_tokens import may_be_token_of
from pyhudi.storage.storage import Entry, Storage
from pyhudi.timeline import Timeline
from pyhudi.timeline.commit_metadata import NO_PREVIOUS_COMMIT, CommitMetadata


@dataclass(frozen=True)
class RollbackRequest:
    """One step of a rollback: delete files, or roll back blocks appended to a slice's logs."""

    partition: str
    file_id: str = ""
    base_instant: str = ""
    """Base instant of the slice whose log blocks are rolled back; else the failed instant."""
    files: tuple[str, ...] = ()
    """Names of the files to delete."""
    log_blocks: Mapping[str, int] = field(default_factory=dict)
    """Names and sizes of log files with blocks to roll back."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all its files. Hudi's plans have full paths of log files."""
        return (*self.files, *(name.rsplit("/", 1)[-1] for name in self.log_blocks))

    def path(self, name: str) -> str:
        """Return the path of a file of the request's partition, relative to the table.

        Raises `CorruptTable` if it cannot be a data file: other writers wrote markers and plans.
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
    with_others: Collection[str] = (),
) -> list[RollbackRequest]:
    """Return the requests that undo an instant.

    with_others: instants that are reverted together. Raises `UnsupportedTableFeature` for a log
    file from before an upgrade that contains rows of a commit which stays.

    A completed instant is undone by its commit metadata. A pending one is undone by its markers, or
    by listing if it has none; one that is only requested wrote nothing. But up to table version 6
    other writers write log files to the slices of a planned compaction. Without the compaction
    those files go too, which only a restore may request, since it has reverted all their rows.
    """
    if target.is_completed:
        requests = requests_of_commit(storage, version, timeline, target)
        if not version.rollback_appends_command:
            _check_all_goes(storage, timeline, target, requests, with_others)
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
    return without_torn_logs(storage, timeline, requests)


def requests_by_markers(
    storage: Storage, version: TableVersion, target: str, marked: Iterable[markers.Marker]
) -> list[RollbackRequest]:
    """One request per marked file; none for blocks of a log file that was never created."""
    requests: list[RollbackRequest] = []
    for marker in marked:
        if marker.kind == "APPEND":
            _check_appends(version, marker, target)
            log = parse_log_name(marker.name)
            if log is None:
                requests += _of_slice(storage, marker, target)
                continue
            if log.instant != target:
                appends = _call_off(
                    storage, marker.partition, log.file_id, log.instant, marker.name
                )
                # If no other write has it, it may be created later, and is deleted by its name
                # here.
                if appends or not may_be_token_of(log.write_token, target):
                    requests += appends
                    continue
        requests.append(
            RollbackRequest(marker.partition, _file_id(marker.name), target, files=(marker.name,))
        )
    return requests


def _check_appends(version: TableVersion, marker: markers.Marker, target: str) -> None:
    """From version 8 on no writer appends; the meaning of such a marker is unknown there."""
    if not version.rollback_appends_command:
        msg = f"in version {version.code} there is no APPEND marker as {target} has: {marker.path}"
        raise UnsupportedTableFeature(msg, hint="Roll this write back with Apache Hudi.")


def _of_slice(storage: Storage, marker: markers.Marker, target: str) -> list[RollbackRequest]:
    """Requests that undo an append whose marker names the slice's base file, not the log file.

    Releases before 0.15 write such markers. The base file belongs to a commit, and must stay.
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


def _call_off(
    storage: Storage, partition: str, file_id: str, base_instant: str, name: str
) -> list[RollbackRequest]:
    request = RollbackRequest(partition, file_id, base_instant, log_blocks={name: 1})
    return [request] if storage.exists(request.path(name)) else []


def requests_of_commit(
    storage: Storage, version: TableVersion, timeline: Timeline, target: Instant
) -> list[RollbackRequest]:
    """One request per file that bears a completed instant, and one per log file it appended to.

    For a compaction the whole slice is deleted, as in Hudi's restore: up to table version 6 the log
    files above it have its instant.
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
            name = (stat.path or "").rsplit("/", 1)[-1]
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


def _check_all_goes(
    storage: Storage,
    timeline: Timeline,
    target: Instant,
    requests: Iterable[RollbackRequest],
    with_others: Collection[str],
) -> None:
    """Raise `UnsupportedTableFeature` if a log file to delete has rows of a commit that stays.

    From version 8 on a log file belongs to one commit, except those from before an upgrade: they
    bear the instant of another commit, or of a compaction.
    """
    undone = {target.requested, *with_others}
    for request in requests:
        for name in request.files:
            log = parse_log_name(name)
            if log is None or (log.instant == target.requested and target.action != COMMIT):
                continue
            path = request.path(name)
            stays = [
                instant
                for instant in block_instants(storage, path)
                if instant not in undone and timeline.is_committed(instant)
            ]
            if stays:
                msg = (
                    f"hoodie.table.version was changed since {target}: its log file {path} holds "
                    f"rows of {stays[0]}, which stays"
                )
                hint = f"restore(to=...) a commit before {stays[0]}, or one after the upgrade."
                raise UnsupportedTableFeature(msg, hint=hint)


def requests_by_listing(
    storage: Storage, version: TableVersion, target: str, profile: CommitMetadata
) -> list[RollbackRequest]:
    """One request per file with the failed instant, and one per slice it may have appended to.

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
            requests += _call_off_listed(partition, names, target, appended)
    return requests


def _list_partitions(storage: Storage, more: Iterable[str]) -> Iterator[tuple[str, list[Entry]]]:
    """The table's partitions, and directories that may no longer be one: an index was dropped."""
    seen = set()
    for partition, files in walk_partitions(storage):
        seen.add(partition)
        yield partition, files
    for partition in sorted({*more} - seen):
        _ = RollbackRequest(partition).path("checked")
        yield partition, storage.list_dir(partition)[1]


def _call_off_listed(
    partition: str, names: list[str], target: str, appended: Mapping[tuple[str, str], str]
) -> list[RollbackRequest]:
    """A request for each slice with logs that the failed write may have appended to.

    That is the slice that the profile names, and the newest one from before the write: Hudi's
    profiles name the slice in which the index found the rows, while a pending compaction has moved
    new log files to a later one.
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
    storage: Storage, timeline: Timeline, requests: Iterable[RollbackRequest]
) -> list[RollbackRequest]:
    """Return the requests, with a slice's newest log file deleted if it contains no whole block.

    Its writer failed in the first block. A file that a completed commit names is damaged, and
    stays; so does a file that a plan names.
    """
    remaining = []
    for request in requests:
        newest = max(request.log_blocks, key=_log_version, default=None)
        path = "" if newest is None else request.path(newest)
        if newest is None or not is_torn(storage, path) or _is_named(timeline, path):
            remaining.append(request)
            continue
        remaining.append(replace(request, files=(newest,), log_blocks={}))
        if older := {name: n for name, n in request.log_blocks.items() if name != newest}:
            remaining.append(replace(request, log_blocks=older))
    return remaining


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
