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
from pyhudi.engine.protocol import Attempt
from pyhudi.errors import CorruptTable
from pyhudi.metadata.file_group_handle import FileGroupHandle, open_groups
from pyhudi.slices.bootstrap import files_with_sources
from pyhudi.slices.file_slice import BootstrapFile
from pyhudi.slices.log_blocks import find_corrupt_blocks
from pyhudi.storage.storage import Storage


@dataclass(frozen=True)
class FilesTask:
    """Check whether files can be read: footers of base files, frames of log blocks."""

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
class OrderTask:
    """Check the key order of a base file of the metadata table."""

    storage: Storage
    """Storage of the metadata table."""
    path: str


def check_key_order(task: OrderTask, _attempt: Attempt) -> list[Finding]:
    """Return keys that Hudi may miss, because it sorts and looks up in different orders."""
    try:
        order = _native.hfile_order(task.storage.native, task.path)
    except FileNotFoundError:
        return []
    except CorruptTable as error:
        return [damage_finding("", task.path, error)]
    if order is None:
        return []
    expected = "keys that bytes and UTF-16 put in one order"
    message = f"the order of {order}"
    return [Finding("metadata_key_order", "warning", "", task.path, expected, message)]


def find_damaged_files(task: FilesTask, _attempt: Attempt) -> list[Finding]:
    """Return the damaged files."""
    return [
        damage for path, is_log in task.paths for damage in _find_damage(task, path, is_log=is_log)
    ]


def _find_damage(task: FilesTask, path: str, *, is_log: bool) -> Iterator[Finding]:
    name = file_name_of(path)
    try:
        if is_log:
            bad = find_corrupt_blocks(task.storage, path)
            if bad:
                message = f"a damaged block at {bad[0]}"
                yield Finding("damaged_block", "warning", task.partition, name, "", message)
        else:
            _native.base_file_schema(task.storage.native, path)
            if path in task.sources:
                yield from _find_source_damage(task, path, task.sources[path])
    except FileNotFoundError:
        return
    except CorruptTable as error:
        yield damage_finding(task.partition, name, error)


def _find_source_damage(task: FilesTask, path: str, source: BootstrapFile) -> Iterator[Finding]:
    """Yield what is wrong with the file that has the rows of a skeleton."""
    name = file_name_of(path)
    try:
        source_rows = _native.base_file_rows(source.storage(task.storage).native, source.path)
    except FileNotFoundError:
        yield Finding("missing_source", "error", task.partition, name, source.uri, "nothing")
        return
    except CorruptTable as error:
        yield damage_finding(task.partition, name, error, source.uri)
        return
    own = _native.base_file_rows(task.storage.native, path)
    if source_rows != own:
        message = f"{source_rows} rows in {source.uri}"
        yield Finding("damaged_file", "error", task.partition, name, f"{own} rows", message)


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
