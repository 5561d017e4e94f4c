"""Compares the timeline with storage: recorded files, and existing files.

A completed commit's statistics list every file that it wrote. Cleans and restores list the files
removed since; rollbacks list the log files with rolled-back blocks (up to table version 6) and
those with the command blocks. The active timeline does not have what older commits wrote: it is
archived.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyhudi.admin.check_findings import Finding, Severity
from pyhudi.clock import Clock
from pyhudi.config.actions import (
    CLEAN,
    CLUSTERING,
    COMPACTION,
    LOG_COMPACTION,
    REPLACE_COMMIT,
    RESTORE,
    ROLLBACK,
)
from pyhudi.config.file_names import file_name_of, parse_base_name, parse_log_name
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CorruptTable, without_hint
from pyhudi.slices.cleaned_files import files_of_plan
from pyhudi.slices.listing import METAFOLDER, is_another_table, is_marked
from pyhudi.slices.nested_partitions import find_nested
from pyhudi.storage.storage import Entry, Storage
from pyhudi.timeline import Timeline
from pyhudi.timeline.instant_range import InstantRange
from pyhudi.txn.orphan_files import is_old, is_staged


@dataclass(frozen=True)
class StoredFile:
    """A base file or log file (also a CDC file) on storage."""

    entry: Entry
    partition: str
    instant: str
    """Instant in the file's name."""
    is_log: bool

    @property
    def name(self) -> str:
        """Name without its directory."""
        return self.entry.name


@dataclass(frozen=True)
class StoredTable:
    """All data files of a table, by path."""

    files: Mapping[str, StoredFile]
    partitions: frozenset[str]
    """Directories that have a partition metadata file."""
    staged: tuple[tuple[str, Entry], ...] = ()
    """Temporary copies that writers make before they rename them, with their directories."""


@dataclass
class RecordedFiles:
    """The files that the active timeline records, by path."""

    written: dict[str, int] = field(default_factory=dict)
    """Files of completed commits, with their sizes."""
    removed: set[str] = field(default_factory=set)
    being_cleaned: set[str] = field(default_factory=set)
    """Files that pending cleans remove; some may still exist, and the metadata table lists them."""
    retained: set[str] = field(default_factory=set)
    """Log files that a rollback retained or wrote."""
    rolled_back: set[str] = field(default_factory=set)
    """Rolled-back instants; without compactions and clusterings that Hudi completed after an
    attempt was rolled back, if that is archived (`HoodieTable.rollbackInflightInstant`, 1.2.0)."""
    deleted_partitions: set[str] = field(default_factory=set)


def list_table_files(storage: Storage, config: TableConfig) -> StoredTable:
    """List all directories except Hudi's own, and those of other tables inside this one.

    Raises `UnsupportedTableFeature` for base files in another format than the table's.
    """
    files: dict[str, StoredFile] = {}
    partitions: set[str] = set()
    staged: list[tuple[str, Entry]] = []
    pending = [""]
    extension = config.base_extension
    while pending:
        directory = pending.pop()
        directories, entries = storage.list_dir(directory)
        if is_another_table(storage, directory, directories):
            continue
        pending += [path for path in directories if path != METAFOLDER]
        if is_marked(entries):
            partitions.add(directory)
        for entry in entries:
            file = _to_stored_file(entry, directory, extension)
            if file is not None:
                files[entry.path] = file
            elif is_staged(entry.name):
                staged.append((directory, entry))
    return StoredTable(files, frozenset(partitions), tuple(staged))


def _to_stored_file(entry: Entry, directory: str, extension: str | None) -> StoredFile | None:
    base = parse_base_name(entry.name, extension)
    if base is not None:
        return StoredFile(entry, directory, base.instant, is_log=False)
    log = parse_log_name(entry.name)
    return None if log is None else StoredFile(entry, directory, log.instant, is_log=True)


def collect_recorded_files(timeline: Timeline) -> RecordedFiles:
    """Collect what completed instants record about files, and what pending cleans remove."""
    recorded = RecordedFiles()
    for _, files in timeline.files_of_commits():
        for file in files:
            if file.path:
                recorded.written[file.path] = max(recorded.written.get(file.path, 0), file.size)
            recorded.written.update(file.change_logs)
    for instant in timeline.filter_completed(CLEAN):
        _add_clean(recorded, timeline.read(instant) or {})
    for instant in timeline.pending(CLEAN):
        for partition, names in files_of_plan(timeline.plan(instant) or {}).items():
            recorded.being_cleaned |= set(_paths(partition, names))
    recorded.removed |= recorded.being_cleaned
    for instant in timeline.filter_completed(ROLLBACK):
        _add_rollback(recorded, timeline.read(instant) or {})
    for instant in timeline.filter_completed(RESTORE):
        restored = (timeline.read(instant) or {}).get("hoodieRestoreMetadata") or {}
        for rollbacks in restored.values():
            for record in rollbacks:
                _add_rollback(recorded, record)
    recorded.rolled_back -= _find_completed_while_archiving(timeline, recorded.rolled_back)
    return recorded


def _find_completed_while_archiving(timeline: Timeline, rolled_back: Iterable[str]) -> set[str]:
    """Return the rolled-back instants that are archived as commits."""
    old = sorted(filter(timeline.is_before_start, rolled_back))
    if not old:
        return set()
    archived = timeline.archive.commits(InstantRange.between(old[0], old[-1]))
    return {commit.requested for commit in archived}


def _add_clean(recorded: RecordedFiles, record: Mapping[str, Any]) -> None:
    for metadata in ("partitionMetadata", "bootstrapPartitionMetadata"):
        for path, part in (record.get(metadata) or {}).items():
            recorded.removed |= set(_paths(path, part.get("successDeleteFiles") or ()))
            recorded.removed |= set(_paths(path, part.get("deletePathPatterns") or ()))
            if part.get("isPartitionDeleted"):
                recorded.deleted_partitions.add(path)


def _add_rollback(recorded: RecordedFiles, record: Mapping[str, Any]) -> None:
    recorded.rolled_back |= set(record.get("commitsRollback") or ())
    for path, part in (record.get("partitionMetadata") or {}).items():
        recorded.removed |= set(_paths(path, part.get("successDeleteFiles") or ()))
        for logs in ("rollbackLogFiles", "logFilesFromFailedCommit"):
            recorded.retained |= set(_paths(path, part.get(logs) or ()))


def _paths(partition: str, files: Iterable[str]) -> Iterator[str]:
    """Yield paths relative to the table, from file names or from paths of any table location."""
    for file in files:
        name = file_name_of(file)
        yield f"{partition}/{name}" if partition else name


# --- findings -------------------------------------------------------------------------------------


def check_files(
    timeline: Timeline, recorded: RecordedFiles, stored: StoredTable
) -> Iterator[Finding]:
    """Yield files that are missing, have another size, or are not recorded by any write."""
    yield from _find_missing_files(timeline, recorded, stored)
    unnamed = []
    for path, file in stored.files.items():
        if path in recorded.written:
            yield from _compare_size(timeline, file, recorded.written[path])
        else:
            unnamed += [
                (path, finding) for finding in _find_unrecorded_file(timeline, recorded, path, file)
            ]
    retained = (
        _read_archived_rollbacks(timeline).retained
        if unnamed and logs_are_shared(timeline)
        else set()
    )
    yield from (finding for path, finding in unnamed if path not in retained)


def find_stale_staged_files(stored: StoredTable, clock: Clock) -> Iterator[Finding]:
    """Yield staged copies that are too old to belong to an active writer."""
    for folder, entry in stored.staged:
        if is_old(entry, clock):
            expected = "a temporary copy"
            yield Finding("staged_file", "warning", folder, entry.name, expected, "one that stayed")


def logs_are_shared(timeline: Timeline) -> bool:
    """Return whether log files are named by their slice's instant, and their blocks by the write's.

    Up to table version 6 they are: later writes and rollbacks may append to a log file, and a log
    file that no commit lists has no valid block.
    """
    return not timeline.completes_in_names


def _find_missing_files(
    timeline: Timeline, recorded: RecordedFiles, stored: StoredTable
) -> Iterator[Finding]:
    lost = [
        path
        for path in recorded.written
        if path not in stored.files and path not in recorded.removed
    ]
    if not lost:
        return
    cleaned = _removals_of_archived_cleans(timeline)
    for path in lost:
        partition, _, name = path.rpartition("/")
        if path not in cleaned.removed and partition not in cleaned.deleted_partitions:
            size = f"{recorded.written[path]} bytes"
            yield Finding("missing_file", "error", partition, name, size, "no file")


def was_committed(timeline: Timeline, instant: str) -> bool:
    """Return whether an instant is a commit of either timeline, as far as the archive reaches."""
    if not timeline.is_committed(instant) or not timeline.is_before_start(instant):
        return timeline.is_committed(instant)
    archived = [commit.requested for commit in timeline.archive.commits()]
    return not archived or instant < archived[0] or instant in archived


def _removals_of_archived_cleans(timeline: Timeline) -> RecordedFiles:
    """Return what archived cleans removed, and partitions that any clean emptied."""
    removed = RecordedFiles()
    for instant in timeline.filter_completed(CLEAN):
        _add_clean(removed, timeline.read(instant) or {})
    for instant in timeline.archive.instants():
        if instant.action == CLEAN:
            _add_clean(removed, timeline.archive.read(instant) or {})
    return removed


def _read_archived_rollbacks(timeline: Timeline) -> RecordedFiles:
    """Return what archived rollbacks retained: a slice with their log files may still exist."""
    recorded = RecordedFiles()
    for instant in timeline.archive.instants():
        if instant.action == ROLLBACK:
            _add_rollback(recorded, timeline.archive.read(instant) or {})
    return recorded


def _compare_size(timeline: Timeline, file: StoredFile, size: int) -> Iterator[Finding]:
    actual = file.entry.size
    if size == actual or not size:
        return
    if file.is_log and logs_are_shared(timeline) and actual > size:
        return
    sizes = (f"{size} bytes", f"{actual} bytes")
    yield Finding("size_differs", "error", file.partition, file.name, *sizes)


def _find_unrecorded_file(
    timeline: Timeline, recorded: RecordedFiles, path: str, file: StoredFile
) -> Iterator[Finding]:
    instant = file.instant
    if path in recorded.retained or _is_pending(timeline, instant):
        return
    committed = timeline.is_committed(instant)
    if instant in recorded.rolled_back:
        severity: Severity = "error" if committed else "warning"
        yield _file_finding("rolled_back_file", severity, file, "no file of a rolled back write")
        return
    if timeline.is_before_start(instant):
        return
    if not committed:
        yield _file_finding("unnamed_file", "warning", file, "a file of a write on the timeline")
    elif file.is_log and logs_are_shared(timeline):
        if not timeline.pending():
            yield _file_finding("unnamed_file", "warning", file, "a file that a commit names")
    else:
        # Readers treat it as a file of that commit.
        yield _file_finding(
            "unnamed_file", "error", file, f"a file that the commit {instant} names"
        )


def _file_finding(
    finding_type: str, severity: Severity, file: StoredFile, expected: str
) -> Finding:
    found = f"a file of instant {file.instant}"
    return Finding(finding_type, severity, file.partition, file.name, expected, found)


def _is_pending(timeline: Timeline, instant: str) -> bool:
    return any(pending.requested == instant for pending in timeline.pending())


def check_plans(timeline: Timeline) -> Iterator[Finding]:
    """Yield pending services whose plan cannot be executed: damaged, empty or missing."""
    services = (COMPACTION, LOG_COMPACTION, CLUSTERING)
    for instant in timeline.pending(*services, REPLACE_COMMIT):
        try:
            plan = timeline.plan(instant)
        except CorruptTable as error:
            found = without_hint(error)
            yield Finding("damaged_plan", "error", "", str(instant), "a plan", found)
            continue
        is_clustering = instant.action == CLUSTERING
        if is_clustering and (plan is None or plan.get("clusteringPlan") is None):
            yield Finding("empty_plan", "warning", "", str(instant), "a plan", "none")
        elif instant.action in services and plan is None:
            yield Finding("empty_plan", "error", "", str(instant), "a plan", "none")


def check_partitions(stored: StoredTable, recorded: RecordedFiles) -> Iterator[Finding]:
    """Yield directories with files of commits that no listing would recognize as partitions."""
    folders = {file.partition for path, file in stored.files.items() if path in recorded.written}
    for folder in sorted(folders - stored.partitions):
        expected = ".hoodie_partition_metadata"
        yield Finding("no_partition_metadata", "error", folder, "", expected, "no such file")


def check_nested(stored: StoredTable) -> Iterator[Finding]:
    """Yield partitions with files that lie inside another one, where no listing finds them."""
    filled = {file.partition for file in stored.files.values()}
    for outer, inner in find_nested(stored.partitions):
        if inner in filled:
            expected = "a partition outside every other partition"
            found = f"a partition inside {outer!r}"
            yield Finding("nested_partition", "error", inner, "", expected, found)


def check_root(config: TableConfig, stored: StoredTable) -> Iterator[Finding]:
    """Yield files outside the partitions of a partitioned table, where no writer looks up keys."""
    for file in stored.files.values() if config.partition_fields else ():
        if file.partition == "":
            yield _file_finding("outside_partitions", "error", file, "all files in partitions")


def check_archived(timeline: Timeline, stored: StoredTable) -> Iterator[Finding]:
    """Yield files older than the active timeline that readers use and no archived commit wrote.

    This reads the whole archive. A table without an archive has no such findings.
    """
    old = [file for file in stored.files.values() if timeline.is_before_start(file.instant)]
    if not old:
        return
    archived = timeline.archive.commits()
    if not archived:
        return
    archived_times = {instant.requested for instant in archived}
    for file in old:
        if file.instant in archived_times or _is_pending(timeline, file.instant):
            continue
        # Logs of a planned compaction have its instant, and so do the first instants of a
        # bootstrap.
        if archived[0].requested <= file.instant:
            yield _file_finding("unnamed_file", "error", file, "a file of an archived commit")
