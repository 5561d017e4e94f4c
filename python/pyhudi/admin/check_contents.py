"""Checks of file contents, as tasks: damaged files, wrong statistics and bloom filters.

A task returns the findings for the files of one partition, and no rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from pyhudi import _native
from pyhudi.admin.check_findings import Finding, Severity, damage_finding
from pyhudi.config.file_names import file_name_of
from pyhudi.config.formatting import count_text
from pyhudi.config.metadata_names import FOLDER
from pyhudi.engine.protocol import Attempt
from pyhudi.errors import CorruptTable
from pyhudi.metadata.file_group_handle import FileGroupHandle, open_groups
from pyhudi.slices.bootstrap import files_with_sources
from pyhudi.slices.file_slice import BootstrapFile
from pyhudi.storage.storage import Storage


@dataclass(frozen=True)
class FilesTask:
    """Compare files with their checksums; check footers of base files and frames of log blocks."""

    storage: Storage
    partition: str
    paths: tuple[tuple[str, bool], ...]
    """Paths, and whether each is a log file."""
    sources: Mapping[str, BootstrapFile] = field(default_factory=dict)
    """The file with the rows of a skeleton, by the skeleton's path."""


@dataclass(frozen=True)
class StatsCheckTask:
    """Check whether statistics and filters cover the current files of a partition."""

    storage: Storage
    partition: str
    paths: tuple[tuple[str, bool], ...]
    columns: pa.Schema
    """Columns with statistics; may be empty."""
    statistics: tuple[FileGroupHandle, ...] = ()
    of_partitions: tuple[FileGroupHandle, ...] = ()
    filters: tuple[FileGroupHandle, ...] = ()
    sources: Mapping[str, BootstrapFile] = field(default_factory=dict)
    """The file with the rows of a skeleton, by the skeleton's path."""


@dataclass(frozen=True)
class MetadataFileTask:
    """Compare a file of the metadata table with its checksums, and check the order of its keys."""

    storage: Storage
    """Storage of the metadata table."""
    path: str
    is_log: bool


@dataclass
class FilesReport:
    """The findings for files, and which of them have no checksums of all their bytes."""

    findings: list[Finding] = field(default_factory=list)
    unverified: list[str] = field(default_factory=list)
    """Paths of files in which flipped bits may stay unnoticed."""

    def add_coverage(self, path: str, coverage: str) -> None:
        """Note what the checksums of a file cover."""
        if coverage != "whole":
            self.unverified.append(path)


def check_metadata_file(task: MetadataFileTask, _attempt: Attempt) -> FilesReport:
    """Return whether a file is damaged, and keys that Hudi may miss.

    Hudi misses keys because it sorts and looks up in different orders.
    """
    report = FilesReport()
    shown = f"{FOLDER}/{task.path}"
    try:
        if task.is_log:
            _check_log(task.storage, "", task.path, report, shown)
            return report
        report.add_coverage(shown, _native.verify_hfile(task.storage.native, task.path))
        order = _native.hfile_order(task.storage.native, task.path)
    except FileNotFoundError:
        return report
    except CorruptTable as error:
        report.findings.append(damage_finding("", task.path, error))
        return report
    if order is not None:
        expected = "keys that bytes and UTF-16 put in one order"
        message = f"the order of {order}"
        finding = Finding("metadata_key_order", "warning", "", task.path, expected, message)
        report.findings.append(finding)
    return report


def find_damaged_files(task: FilesTask, _attempt: Attempt) -> FilesReport:
    """Return the damaged files."""
    report = FilesReport()
    for path, is_log in task.paths:
        _check_data_file(task, path, report, is_log=is_log)
    return report


def _check_data_file(task: FilesTask, path: str, report: FilesReport, *, is_log: bool) -> None:
    try:
        if is_log:
            _check_log(task.storage, task.partition, path, report, path)
            return
        report.add_coverage(path, _native.verify_base_file(task.storage.native, path))
        if path in task.sources:
            report.findings += _find_source_damage(task, path, task.sources[path])
    except FileNotFoundError:
        return
    except CorruptTable as error:
        report.findings.append(damage_finding(task.partition, file_name_of(path), error))


def _check_log(
    storage: Storage, partition: str, path: str, report: FilesReport, shown: str
) -> None:
    """Compare a log file with its checksums. shown: its path in the table."""
    coverage, bad = _native.verify_log_file(storage.native, path)
    if bad is not None:
        item = file_name_of(path) if shown == path else path
        message = f"a damaged block at {bad}"
        report.findings.append(Finding("damaged_block", "warning", partition, item, "", message))
    report.add_coverage(shown, coverage)


def _find_source_damage(task: FilesTask, path: str, source: BootstrapFile) -> Iterator[Finding]:
    """Yield what is wrong with the file that has the rows of a skeleton."""
    name = file_name_of(path)
    try:
        source_storage = source.storage(task.storage).native
        _native.verify_base_file(source_storage, source.path)
        source_rows = _native.base_file_rows(source_storage, source.path)
    except FileNotFoundError:
        yield Finding("missing_source", "error", task.partition, name, source.uri, "nothing")
        return
    except CorruptTable as error:
        yield damage_finding(task.partition, name, error, source.uri)
        return
    own = _native.base_file_rows(task.storage.native, path)
    if source_rows != own:
        message = f"{count_text(source_rows, 'row')} in {source.uri}"
        yield Finding(
            "damaged_file", "error", task.partition, name, count_text(own, "row"), message
        )


def check_file_stats(task: StatsCheckTask, _attempt: Attempt) -> list[Finding]:
    """Return statistics and filters that are missing or too narrow."""
    findings: list[Finding] = []
    try:
        if task.columns.names and task.statistics:
            findings += _check_statistics(task)
        if task.filters:
            findings += _check_filters(task)
    except CorruptTable as error:
        findings.append(damage_finding(task.partition, "", error))
    return findings


def _check_statistics(task: StatsCheckTask) -> Iterator[Finding]:
    whole = open_groups(task.of_partitions) if task.of_partitions else None
    gaps = _native.statistics_gaps(
        task.storage.native,
        task.partition,
        files_with_sources(task.storage, task.columns, task.paths, task.sources),
        columns=task.columns,
        of_files=open_groups(task.statistics),
        whole=whole,
    )
    for row in gaps.to_pylist():
        item = f"{row['column']} of {row['file']}" if row["file"] else row["column"]
        finding_type = "partition_statistics" if not row["file"] else "statistics"
        missing = row["found"] is None
        finding_type += "_missing" if missing else "_too_narrow"
        # A file without statistics is read, so rows are not lost.
        severity: Severity = "warning" if missing else "error"
        actual = row["found"] or "none"
        yield Finding(finding_type, severity, task.partition, item, row["expected"], actual)


def _check_filters(task: StatsCheckTask) -> Iterator[Finding]:
    names = [file_name_of(path) for path, is_log in task.paths if not is_log]
    paths = pa.array([task.partition] * len(names), pa.string())
    entries = open_groups(task.filters).may_contain(paths, pa.array(names, pa.string()), [])
    for name, has in zip(names, entries.is_valid().to_pylist(), strict=True):
        if not has:
            yield Finding("bloom_filter_missing", "warning", task.partition, name, "a filter")
