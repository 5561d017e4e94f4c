"""What has to go when a write is rolled back: by its markers, by what it said, or by listing.

Nothing is changed here. Up to table version 6 the blocks that a failed delta commit appended are
called off by a command block in a new log file, from 8 on its log files are deleted like its base
files. A log file in which nothing is whole is deleted up to version 6 too: a command block calls
off what can be read, and the rest would look like damage. Sources: `MarkerBasedRollbackStrategy`,
`ListingBasedRollbackStrategy` (1.2.0). A table that was upgraded from version 6 has log files that
its commits of then appended to: they are deleted where all in them goes, else it is refused.
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
    """One thing a rollback does: delete files, or call off what was appended to a slice's logs."""

    partition: str
    file_id: str = ""
    base_instant: str = ""
    """Base instant of the slice whose log blocks are called off; else the failed instant."""
    files: tuple[str, ...] = ()
    """Names of the files to delete."""
    log_blocks: Mapping[str, int] = field(default_factory=dict)
    """Log file names with blocks to call off, and their sizes."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of all files that it is about. Hudi's plans tell whole paths of log files."""
        return (*self.files, *(name.rsplit("/", 1)[-1] for name in self.log_blocks))

    def path(self, name: str) -> str:
        """A file of the request's partition, relative to the table.

        Raises `CorruptTable` for one that cannot be a data file: others wrote markers and plans.
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
    """What has to be undone of an instant.

    with_others: instants that are taken back with it. Raises `UnsupportedTableFeature` for a log
    file from before an upgrade that holds rows of a commit which stays.

    Of a completed one by its commit metadata. Of a pending one by its markers, or by listing where
    it has none; one that never got beyond requested wrote nothing. But up to table version 6 others
    write log files to the slices that a compaction has planned: without it those files go too,
    which a restore alone may ask for, since it has taken back all that is in them.
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
    """One request a marked file; none for blocks of a log file that was never made."""
    requests: list[RollbackRequest] = []
    for marker in marked:
        if marker.kind == "APPEND":
            _check_appends(version, marker, target)
            log = parse_log_name(marker.name)
            if log is None:
                requests += _of_slice(storage, marker, target)
                continue
            if log.instant != target:
                called_off = _call_off(
                    storage, marker.partition, log.file_id, log.instant, marker.name
                )
                # One that nobody else has may come later, and is looked for by what goes here.
                if called_off or not may_be_token_of(log.write_token, target):
                    requests += called_off
                    continue
        requests.append(
            RollbackRequest(marker.partition, _file_id(marker.name), target, files=(marker.name,))
        )
    return requests


def _check_appends(version: TableVersion, marker: markers.Marker, target: str) -> None:
    """From version 8 on nothing is appended; what such a marker would mean there is not known."""
    if not version.rollback_appends_command:
        msg = f"in version {version.code} there is no APPEND marker as {target} has: {marker.path}"
        raise UnsupportedTableFeature(msg, hint="Roll this write back with Apache Hudi.")


def _of_slice(storage: Storage, marker: markers.Marker, target: str) -> list[RollbackRequest]:
    """What undoes an append whose marker names the slice's base file, not the log file.

    Releases before 0.15 mark so. The base file belongs to a commit, and must stay.
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
    """One request a file that bears a completed instant, and one a log file it appended to.

    Of a compaction the whole slice goes, as Hudi's restore has it: up to table version 6 the log
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
    """Raises `UnsupportedTableFeature` where a log file would go with rows of a commit that stays.

    From version 8 on a log file is its commit's own, but for those from before an upgrade: they
    bear the instant of another commit, or of a compaction.
    """
    gone = {target.requested, *with_others}
    for request in requests:
        for name in request.files:
            log = parse_log_name(name)
            if log is None or (log.instant == target.requested and target.action != COMMIT):
                continue
            path = request.path(name)
            stays = [
                instant
                for instant in block_instants(storage, path)
                if instant not in gone and timeline.is_committed(instant)
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
    """One request a file that bears the failed instant, and one a slice it may have appended to.

    profile: what the failed write said it would do, from its inflight file.
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
    """The table's partitions, and folders that may be none any more: an index was dropped."""
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

    That is the one the profile tells, and the newest one from before the write: Hudi's profiles
    tell where the index found the rows, while a pending compaction has moved the log files on.
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
    """The requests, but that a slice's newest log file is deleted where nothing in it is whole.

    Its writer died in the first block. One that a completed commit names is damaged, and stays; so
    does one that a plan names.
    """
    found = []
    for request in requests:
        newest = max(request.log_blocks, key=_log_version, default=None)
        path = "" if newest is None else request.path(newest)
        if newest is None or not is_torn(storage, path) or _is_named(timeline, path):
            found.append(request)
            continue
        found.append(replace(request, files=(newest,), log_blocks={}))
        if others := {name: n for name, n in request.log_blocks.items() if name != newest}:
            found.append(replace(request, log_blocks=others))
    return found


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
