"""The complete check of a table: its parts and their order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa

from pyhudi.admin import check_files, check_metadata
from pyhudi.admin.check_contents import (
    FilesReport,
    FilesTask,
    MetadataFileTask,
    StatsCheckTask,
    check_file_stats,
    check_metadata_file,
    find_damaged_files,
)
from pyhudi.admin.check_files import RecordedFiles, StoredTable
from pyhudi.admin.check_findings import CheckResult, Finding, damage_finding, in_order
from pyhudi.admin.check_keys import IndexKeys, KeyRules, SliceKeys, check_keys
from pyhudi.admin.check_small_files import check_small_files
from pyhudi.cached_property import cached_property
from pyhudi.config.index_options import IndexOptions
from pyhudi.config.meta_columns import RECORD_KEY
from pyhudi.config.metadata_names import BLOOM_FILTERS, COLUMN_STATS, PARTITION_STATS, RECORD_INDEX
from pyhudi.engine.protocol import Engine
from pyhudi.errors import CorruptTable
from pyhudi.index.selection import index_from_options
from pyhudi.metadata.reader import MetadataTable
from pyhudi.metadata.statistics_columns import has_partition_statistics, statistics_columns
from pyhudi.slices.bootstrap import skeletons, sources_of
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.read_tasks import ScanRequest, merge_rule, slice_tasks
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.key_uniqueness import keys_are_unique

_UNREADABLE = ("damaged_file", "missing_source")
"""Types of findings for files whose slices are not checked further."""


@dataclass(frozen=True)
class _DeepCheck:
    """The state that all parts of a deep check share."""

    table: TableSnapshot
    engine: Engine
    memory: int
    """Bytes that all tasks together may use."""
    view: FileSystemView
    """View by the listing of storage."""
    metadata: MetadataTable | None

    @cached_property
    def slices(self) -> list[FileSlice]:
        """File slices that a snapshot query reads."""
        return list(self.view.slices())

    def has(self, partition: str) -> bool:
        """Return whether the metadata table can be read for a partition."""
        return self.metadata is not None and self.metadata.has(partition)


def check(table: TableSnapshot, engine: Engine, *, deep: bool, memory: int) -> CheckResult:
    """Compare timeline, storage and metadata table. See `HudiTable.check`.

    memory: bytes that log records and keys may use.
    """
    storage, config, timeline = table.storage, table.config, table.timeline
    timeline.check_whole()
    stored = check_files.list_table_files(storage, config)
    recorded = check_files.collect_recorded_files(timeline)
    findings = [
        *check_files.check_files(timeline, recorded, stored),
        *check_files.check_partitions(stored, recorded),
        *check_files.check_nested(stored),
        *check_files.check_root(config, stored),
        *check_files.find_stale_staged_files(stored, table.clock),
        *check_files.check_plans(timeline),
        *check_metadata.check_folders(storage, config),
    ]
    metadata = None
    if config.metadata_partitions:
        metadata, metadata_findings = _check_metadata(table, recorded, stored)
        findings += metadata_findings
    state = _DeepCheck(table, engine, memory, FileSystemView(storage, config, timeline), metadata)
    unverified: list[str] = []
    if deep:
        findings += check_files.check_archived(timeline, stored)
        report = _check_contents(state, stored)
        findings += report.findings
        unverified = sorted(report.unverified)
    elif state.has(RECORD_INDEX) and not keys_are_unique(timeline):
        # The index has one location for a key, so it does not show duplicates.
        findings += _find_duplicate_keys(state)
    return CheckResult(
        in_order(findings),
        deep,
        len(stored.partitions),
        len(stored.files),
        unverified=tuple(unverified),
    )


def _check_metadata(
    table: TableSnapshot, recorded: RecordedFiles, stored: StoredTable
) -> tuple[MetadataTable | None, list[Finding]]:
    try:
        findings = list(check_metadata.check_timelines(table.storage, table.timeline))
    except CorruptTable:
        findings = []
    metadata, metadata_findings = check_metadata.open_metadata(
        table.storage, table.config, table.timeline
    )
    findings += metadata_findings
    if metadata is not None:
        findings += check_metadata.check_listing(metadata, table.timeline, recorded, stored)
    return metadata, findings


# --- the deep part --------------------------------------------------------------------------------


def _check_contents(state: _DeepCheck, stored: StoredTable) -> FilesReport:
    reports = state.engine.run(
        find_damaged_files, _files_tasks(state, stored), label="compare checksums"
    )
    findings = [finding for report in reports for finding in report.findings]
    unverified = [path for report in reports for path in report.unverified]
    table = state.table
    findings += check_small_files(
        state.engine, table.storage, table.config, sorted(stored.partitions)
    )
    damaged = {(bad.partition, bad.item) for bad in findings if bad.kind in _UNREADABLE}
    undamaged = [
        slice_
        for slice_ in state.slices
        if damaged.isdisjoint((slice_.partition, file.name) for file in slice_.files)
    ]
    statistics_results = state.engine.run(
        check_file_stats, list(_stats_tasks(state, undamaged)), label="compare statistics"
    )
    findings += [finding for result in statistics_results for finding in result]
    metadata_report = _check_metadata_files(state)
    findings += metadata_report.findings
    unverified += metadata_report.unverified
    if state.table.config.populate_meta_fields and RECORD_KEY in state.table.columns.names:
        tasks, rules = _key_tasks(state, undamaged)
        findings += check_keys(state.engine, tasks, rules, state.memory)
    return FilesReport(findings, unverified)


def _files_tasks(state: _DeepCheck, stored: StoredTable) -> list[FilesTask]:
    committed = state.table.timeline.is_committed
    paths: dict[str, list[tuple[str, bool]]] = {}
    for path, file in stored.files.items():
        if committed(file.instant):
            paths.setdefault(file.partition, []).append((path, file.is_log))
    storage = state.table.storage
    sources = sources_of(storage, state.table.config, stored.files)
    return [
        FilesTask(
            storage,
            at,
            tuple(paths[at]),
            {path: sources[path] for path, _ in paths[at] if path in sources},
        )
        for at in sorted(paths)
    ]


def _stats_tasks(state: _DeepCheck, slices: list[FileSlice]) -> Iterator[StatsCheckTask]:
    metadata = state.metadata
    if metadata is None:
        return
    columns = pa.schema([])
    if state.has(COLUMN_STATS):
        columns = statistics_columns(metadata.definitions, state.table.columns)
    if state.has(PARTITION_STATS):
        columns = pa.schema(
            [
                field
                for field in columns
                if has_partition_statistics(field.name, metadata.definitions)
            ]
        )
    groups = {
        name: tuple(metadata.file_groups(name)) if state.has(name) else ()
        for name in (COLUMN_STATS, PARTITION_STATS, BLOOM_FILTERS)
    }
    if not any(groups.values()):
        return
    sources = skeletons(slices)
    paths: dict[str, list[tuple[str, bool]]] = {}
    for slice_ in slices:
        group = paths.setdefault(slice_.partition, [])
        group += [(slice_.base.path, False)] if slice_.base else []
        group += [(log.path, True) for log in slice_.logs]
    for partition in sorted(paths):
        yield StatsCheckTask(
            state.table.storage,
            partition,
            tuple(paths[partition]),
            columns,
            statistics=groups[COLUMN_STATS],
            of_partitions=groups[PARTITION_STATS],
            filters=groups[BLOOM_FILTERS],
            sources=sources,
        )


def _check_metadata_files(state: _DeepCheck) -> FilesReport:
    """Check the files of the metadata table."""
    metadata = state.metadata
    if metadata is None:
        return FilesReport()
    listed = [_metadata_tasks(metadata, name) for name in state.table.config.metadata_partitions]
    tasks = [task for task in chain.from_iterable(listed) if isinstance(task, MetadataFileTask)]
    reports = state.engine.run(check_metadata_file, tasks, label="check the metadata table")
    damage = [item for item in chain.from_iterable(listed) if isinstance(item, Finding)]
    return FilesReport(
        [*damage, *chain.from_iterable(report.findings for report in reports)],
        [path for report in reports for path in report.unverified],
    )


def _metadata_tasks(metadata: MetadataTable, name: str) -> list[MetadataFileTask | Finding]:
    """Return the files of a metadata partition, or why they cannot be listed."""
    try:
        return [MetadataFileTask(*file) for file in metadata.files(name)]
    except CorruptTable as error:
        return [damage_finding("", name, error)]


def _find_duplicate_keys(state: _DeepCheck) -> list[Finding]:
    """Return duplicate keys that the rows alone show."""
    rules = KeyRules(one_table=not _is_partitioned(state), index=False)
    return check_keys(state.engine, _slice_tasks(state, state.slices), rules, state.memory)


def _is_partitioned(state: _DeepCheck) -> bool:
    definition = None if state.metadata is None else state.metadata.definitions.get(RECORD_INDEX)
    return definition is not None and definition.is_partitioned


def _slice_tasks(
    state: _DeepCheck, slices: list[FileSlice], *columns: str
) -> list[SliceKeys | IndexKeys]:
    share = state.memory // (2 * state.engine.tasks_per_process)
    request = ScanRequest(output=(RECORD_KEY, *columns), memory_limit=share)
    reads = slice_tasks(state.table, request, slices, merge_rule(state.table))
    return [SliceKeys(read) for read in reads]


def _key_tasks(
    state: _DeepCheck, slices: list[FileSlice]
) -> tuple[list[SliceKeys | IndexKeys], KeyRules]:
    fields = state.table.config.record_key_fields
    has_column = len(fields) == 1 and fields[0] in state.table.columns.names
    tasks = _slice_tasks(state, slices, *(fields if has_column else ()))
    metadata = state.metadata
    index = index_from_options(IndexOptions.of(state.table.options))
    one_table = index is not None and index.is_global and not index.is_record_index
    if metadata is None or not state.has(RECORD_INDEX):
        return tasks, KeyRules(one_table, index=False)
    partitioned = _is_partitioned(state)
    paths = sorted({slice_.partition for slice_ in slices}) if partitioned else [None]
    for path in paths:
        groups = metadata.file_groups(RECORD_INDEX, path)
        tasks += [IndexKeys(group, number, len(groups)) for number, group in enumerate(groups)]
    return tasks, KeyRules(not partitioned, index=True)
