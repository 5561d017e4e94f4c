"""The metadata table against the data table's timeline and files. Keys: `check_keys.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyhudi.admin.check_files import Named, StoredTable, logs_are_shared
from pyhudi.admin.check_findings import Finding, Severity
from pyhudi.config.actions import DELTA_COMMIT, RESTORE
from pyhudi.config.file_names import check_own
from pyhudi.config.metadata_names import FILES, FOLDER
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CorruptTable
from pyhudi.metadata.consistency import is_ordinary, missing_commits
from pyhudi.metadata.reader import MetadataTable, open_config
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline

_INFLIGHT = "hoodie.table.metadata.partitions.inflight"


def check_folders(storage: Storage, config: TableConfig) -> Iterator[Finding]:
    """Its partitions by the table's properties against its folders."""
    folders = storage.list_dir(FOLDER)[0]
    found = {path.rstrip("/").rsplit("/", 1)[-1] for path in folders} - {".hoodie"}
    listed = set(config.metadata_partitions)
    building = set(config.properties.get(_INFLIGHT, "").split(","))
    for name in sorted(listed - found):
        yield Finding("metadata_partition_missing", "error", "", name, f"{FOLDER}/{name}", "none")
    for name in sorted(found - listed - building):
        # A local folder stays when its last file goes.
        if not storage.list(f"{FOLDER}/{name}"):
            continue
        wanted = "its name in hoodie.table.metadata.partitions"
        yield Finding("metadata_partition_unlisted", "warning", "", name, wanted, "none")


def check_timelines(storage: Storage, timeline: Timeline) -> Iterator[Finding]:
    """Its delta commits against the data table's instants.

    Raises `CorruptTable` when it is missing.
    """
    below = storage.below(FOLDER)
    metadata = Timeline.load(below, open_config(below))
    pending = {instant.requested for instant in timeline.pending()}
    for time in missing_commits(timeline, metadata):
        yield Finding("metadata_commit_missing", "error", "", time, "a delta commit", "none")
    known = {instant.requested for instant in timeline.instants}
    unknown = []
    for instant in metadata.filter_completed(DELTA_COMMIT):
        time = instant.requested
        if time in pending:
            wanted = "a completed instant of the table"
            yield Finding("metadata_commit_ahead", "warning", "", time, wanted, "a pending one")
        elif is_ordinary(time) and time not in known and not _in_restore(timeline, time):
            unknown.append(time)
    if unknown:
        known = {instant.requested for instant in timeline.archive.instants()}
        start = min((*known, timeline.blocks_start or ""))
        for time in unknown:
            if time not in known and time > start:
                wanted = "an instant of the table"
                yield Finding("metadata_commit_ahead", "error", "", time, wanted, "none")


def _in_restore(timeline: Timeline, time: str) -> bool:
    """Whether a time lies within a restore, which brings the metadata table up by its own commit.

    Up to table version 6 nothing tells for certain when it ended.
    """
    return any(
        restore.requested < time
        and (not timeline.completes_in_names or time <= (restore.completed or ""))
        for restore in timeline.filter_completed(RESTORE)
    )


def open_metadata(
    storage: Storage, config: TableConfig, timeline: Timeline
) -> tuple[MetadataTable | None, list[Finding]]:
    """The metadata table as readers open it; None with the reason where they do not."""
    try:
        table = MetadataTable(storage, config, timeline)
        for name in config.metadata_partitions:
            table.check_groups(name)
    except CorruptTable as error:
        return None, [_unreadable(error)]
    return table, []


def _unreadable(error: Exception) -> Finding:
    return Finding("metadata_unreadable", "error", "", FOLDER, "", str(error).split("\n")[0])


def check_listing(
    table: MetadataTable, timeline: Timeline, named: Named, stored: StoredTable
) -> list[Finding]:
    """What it lists against what is there.

    Raises `UnsupportedTableFeature` for a file that Hudi did not write.
    """
    try:
        listed = table.data_files(table.data_partitions())
    except CorruptTable as error:
        return [_unreadable(error)]
    going = named.going - stored.files.keys()
    listed = {
        path: [entry for entry in entries if entry.path not in going]
        for path, entries in listed.items()
    }
    findings = [
        Finding("metadata_extra_partition", "error", path, FILES, "no partition", "a partition")
        for path in listed
        if path not in stored.partitions and listed[path]
    ]
    sizes = {
        entry.path: (path, entry.size) for path, entries in listed.items() for entry in entries
    }
    for path in sizes:
        check_own(path)
    findings += _differing(sizes, named, stored)
    findings += _find_unlisted_files(sizes, timeline, named, stored)
    return findings


def _differing(
    sizes: Mapping[str, tuple[str, int]], named: Named, stored: StoredTable
) -> Iterator[Finding]:
    for path, (partition, size) in sizes.items():
        name = path.rsplit("/", 1)[-1]
        file = stored.files.get(path)
        if file is None:
            yield Finding("metadata_extra_file", "error", partition, name, "no file", "an entry")
        elif file.entry.size != size:
            # Hudi lists log files with called-off blocks with a size of 1.
            severity: Severity = "warning" if path in named.kept else "error"
            both = (f"{file.entry.size} bytes", f"{size} bytes")
            yield Finding("metadata_size_differs", severity, partition, name, *both)


def _find_unlisted_files(
    sizes: Mapping[str, tuple[str, int]], timeline: Timeline, named: Named, stored: StoredTable
) -> Iterator[Finding]:
    """Files of commits that it lacks; others are not for it to list."""
    for path, file in stored.files.items():
        if path in sizes or not timeline.is_committed(file.instant):
            continue
        if path in named.written or not (file.is_log and logs_are_shared(timeline)):
            yield Finding(
                "metadata_missing_file", "error", file.partition, file.name, "an entry", "none"
            )
