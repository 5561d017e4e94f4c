"""Looking into files, as tasks: damaged ones, statistics and bloom filters that do not hold.

A task names what is wrong with the files of one partition; no rows come back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from pyhudi import _native
from pyhudi.admin.check_findings import Finding, Severity
from pyhudi.engine.protocol import Attempt
from pyhudi.errors import CorruptTable
from pyhudi.metadata.file_group import MetadataGroup, open_together
from pyhudi.slices.bootstrap import files_with_sources
from pyhudi.slices.file_slice import BootstrapFile
from pyhudi.slices.log_blocks import find_corrupt_blocks
from pyhudi.storage.storage import Storage


@dataclass(frozen=True)
class FilesTask:
    """Look whether files can be read: footers of base files, frames of log blocks."""

    storage: Storage
    partition: str
    paths: tuple[tuple[str, bool], ...]
    """And whether each is a log file."""
    sources: Mapping[str, BootstrapFile] = field(default_factory=dict)
    """By path of a skeleton, where its rows are."""


@dataclass(frozen=True)
class FactsTask:
    """Look whether statistics and filters hold for the files that are read of a partition."""

    storage: Storage
    partition: str
    paths: tuple[tuple[str, bool], ...]
    columns: pa.Schema
    """With statistics; none where there are none."""
    statistics: tuple[MetadataGroup, ...] = ()
    of_partitions: tuple[MetadataGroup, ...] = ()
    filters: tuple[MetadataGroup, ...] = ()
    sources: Mapping[str, BootstrapFile] = field(default_factory=dict)
    """By path of a skeleton, where its rows are."""


@dataclass(frozen=True)
class OrderTask:
    """Look at the order of the keys of a base file of the metadata table."""

    storage: Storage
    """The metadata table's."""
    path: str


def look_at_order(task: OrderTask, _attempt: Attempt) -> list[Finding]:
    """Keys that Hudi may miss: it sorts them in one order and looks for them in another."""
    try:
        order = _native.hfile_order(task.storage.native, task.path)
    except FileNotFoundError:
        return []
    except CorruptTable as error:
        found = str(error).split("\n")[0]
        return [Finding("damaged_file", "error", "", task.path, "", found)]
    if order is None:
        return []
    wanted = "keys that bytes and UTF-16 put in one order"
    found = f"the order of {order}"
    return [Finding("metadata_key_order", "warning", "", task.path, wanted, found)]


def look_at_files(task: FilesTask, _attempt: Attempt) -> list[Finding]:
    """The damaged ones."""
    return [damage for path, is_log in task.paths for damage in _damage(task, path, is_log=is_log)]


def _damage(task: FilesTask, path: str, *, is_log: bool) -> Iterator[Finding]:
    name = path.rsplit("/", 1)[-1]
    try:
        if is_log:
            bad = find_corrupt_blocks(task.storage, path)
            if bad:
                found = f"a damaged block at {bad[0]}"
                yield Finding("damaged_block", "warning", task.partition, name, "", found)
        else:
            _native.base_file_schema(task.storage.native, path)
            if path in task.sources:
                yield from _source_damage(task, path, task.sources[path])
    except FileNotFoundError:
        return
    except CorruptTable as error:
        found = str(error).split("\n")[0]
        yield Finding("damaged_file", "error", task.partition, name, "", found)


def _source_damage(task: FilesTask, path: str, source: BootstrapFile) -> Iterator[Finding]:
    """What is wrong with the file that has the rows of a skeleton."""
    name = path.rsplit("/", 1)[-1]
    try:
        theirs = _native.base_file_rows(source.storage(task.storage).native, source.path)
    except FileNotFoundError:
        yield Finding("missing_source", "error", task.partition, name, source.uri, "nothing")
        return
    except CorruptTable as error:
        found = str(error).split("\n")[0]
        yield Finding("damaged_file", "error", task.partition, name, source.uri, found)
        return
    own = _native.base_file_rows(task.storage.native, path)
    if theirs != own:
        found = f"{theirs} rows in {source.uri}"
        yield Finding("damaged_file", "error", task.partition, name, f"{own} rows", found)


def look_at_facts(task: FactsTask, _attempt: Attempt) -> list[Finding]:
    """What the metadata table says too little of, or not at all."""
    findings: list[Finding] = []
    try:
        if task.columns.names and task.statistics:
            findings += _statistics(task)
        if task.filters:
            findings += _filters(task)
    except CorruptTable as error:
        found = str(error).split("\n")[0]
        findings.append(Finding("damaged_file", "error", task.partition, "", "", found))
    return findings


def _statistics(task: FactsTask) -> Iterator[Finding]:
    whole = open_together(task.of_partitions) if task.of_partitions else None
    gaps = _native.statistics_gaps(
        task.storage.native,
        task.partition,
        files_with_sources(task.storage, task.columns, task.paths, task.sources),
        columns=task.columns,
        of_files=open_together(task.statistics),
        whole=whole,
    )
    for row in gaps.to_pylist():
        item = f"{row['column']} of {row['file']}" if row["file"] else row["column"]
        kind = "partition_statistics" if not row["file"] else "statistics"
        missing = row["found"] is None
        kind += "_missing" if missing else "_too_narrow"
        # Without statistics a file is read.
        severity: Severity = "warning" if missing else "error"
        found = row["found"] or "none"
        yield Finding(kind, severity, task.partition, item, row["expected"], found)


def _filters(task: FactsTask) -> Iterator[Finding]:
    names = [path.rsplit("/", 1)[-1] for path, is_log in task.paths if not is_log]
    paths = pa.array([task.partition] * len(names), pa.string())
    known = open_together(task.filters).may_contain(paths, pa.array(names, pa.string()), [])
    for name, has in zip(names, known.is_valid().to_pylist(), strict=True):
        if not has:
            yield Finding("bloom_filter_missing", "warning", task.partition, name, "a filter")
