"""Compares the metadata table with the timeline and files of its table. Keys: `check_keys.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyhudi.admin.check_files import RecordedFiles, StoredTable, logs_are_shared
from pyhudi.admin.check_findings import Finding, Severity
from pyhudi.config.actions import DELTA_COMMIT, RESTORE
from pyhudi.config.file_names import check_own
from pyhudi.config.metadata_names import FILES, FOLDER
from pyhudi.config.property_names import METADATA_PARTITIONS_INFLIGHT
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CorruptTable
from pyhudi.metadata.consistency import has_data_instant, missing_commits
from pyhudi.metadata.reader import MetadataTable, open_config
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline


def check_folders(storage: Storage, config: TableConfig) -> Iterator[Finding]:
    """Compare its partitions in the table's properties with its directories."""
    directories = storage.list_dir(FOLDER)[0]
    existing = {path.rstrip("/").rsplit("/", 1)[-1] for path in directories} - {".hoodie"}
    listed = set(config.metadata_partitions)
    building = set(config.properties.get(METADATA_PARTITIONS_INFLIGHT, "").split(","))
    for name in sorted(listed - existing):
        yield Finding("metadata_partition_missing", "error", "", name, f"{FOLDER}/{name}", "none")
    for name in sorted(existing - listed - building):
        # A local directory stays after its last file is deleted.
        if not storage.list(f"{FOLDER}/{name}"):
            continue
        expected = "its name in hoodie.table.metadata.partitions"
        yield Finding("metadata_partition_unlisted", "warning", "", name, expected, "none")


def check_timelines(storage: Storage, timeline: Timeline) -> Iterator[Finding]:
    """Compare its delta commits with the data table's instants.

    Raises `CorruptTable` if the metadata table is missing.
    """
    below = storage.below(FOLDER)
    metadata = Timeline.load(below, open_config(below))
    pending = {instant.requested for instant in timeline.pending()}
    for time in missing_commits(timeline, metadata):
        yield Finding("metadata_commit_missing", "error", "", time, "a delta commit", "none")
    times = {instant.requested for instant in timeline.instants}
    unknown = []
    for instant in metadata.filter_completed(DELTA_COMMIT):
        time = instant.requested
        if time in pending:
            expected = "a completed instant of the table"
            yield Finding("metadata_commit_ahead", "warning", "", time, expected, "a pending one")
        elif has_data_instant(time) and time not in times and not _in_restore(timeline, time):
            unknown.append(time)
    if unknown:
        times = {instant.requested for instant in timeline.archive.instants()}
        start = min((*times, timeline.blocks_start or ""))
        for time in unknown:
            if time not in times and time > start:
                expected = "an instant of the table"
                yield Finding("metadata_commit_ahead", "error", "", time, expected, "none")


def _in_restore(timeline: Timeline, time: str) -> bool:
    """Return whether a time is inside a restore, which syncs the metadata table by its own commit.

    Up to table version 6, the end of a restore is not recorded reliably.
    """
    return any(
        restore.requested < time
        and (not timeline.completes_in_names or time <= (restore.completed or ""))
        for restore in timeline.filter_completed(RESTORE)
    )


def open_metadata(
    storage: Storage, config: TableConfig, timeline: Timeline
) -> tuple[MetadataTable | None, list[Finding]]:
    """Return the metadata table as readers open it; None with the reason if they cannot use it."""
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
    table: MetadataTable, timeline: Timeline, recorded: RecordedFiles, stored: StoredTable
) -> list[Finding]:
    """Compare the files that it lists with storage.

    Raises `UnsupportedTableFeature` for a file that Hudi did not write.
    """
    try:
        listed = table.data_files(table.data_partitions())
    except CorruptTable as error:
        return [_unreadable(error)]
    being_cleaned = recorded.being_cleaned - stored.files.keys()
    listed = {
        path: [entry for entry in entries if entry.path not in being_cleaned]
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
    findings += _compare_sizes(sizes, recorded, stored)
    findings += _find_unlisted_files(sizes, timeline, recorded, stored)
    return findings


def _compare_sizes(
    sizes: Mapping[str, tuple[str, int]], recorded: RecordedFiles, stored: StoredTable
) -> Iterator[Finding]:
    for path, (partition, size) in sizes.items():
        name = path.rsplit("/", 1)[-1]
        file = stored.files.get(path)
        if file is None:
            yield Finding("metadata_extra_file", "error", partition, name, "no file", "an entry")
        elif file.entry.size != size:
            # Hudi lists log files with rolled-back blocks with a size of 1.
            severity: Severity = "warning" if path in recorded.retained else "error"
            both = (f"{file.entry.size} bytes", f"{size} bytes")
            yield Finding("metadata_size_differs", severity, partition, name, *both)


def _find_unlisted_files(
    sizes: Mapping[str, tuple[str, int]],
    timeline: Timeline,
    recorded: RecordedFiles,
    stored: StoredTable,
) -> Iterator[Finding]:
    """Yield files of commits that it does not list; it need not list others."""
    for path, file in stored.files.items():
        if path in sizes or not timeline.is_committed(file.instant):
            continue
        if path in recorded.written or not (file.is_log and logs_are_shared(timeline)):
            yield Finding(
                "metadata_missing_file", "error", file.partition, file.name, "an entry", "none"
            )
