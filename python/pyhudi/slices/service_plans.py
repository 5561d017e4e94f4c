"""The content of a table service's plan: its file slices, and the columns of its files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyhudi.config.actions import CLUSTERING, COMPACTION, LOG_COMPACTION, REPLACE_COMMIT
from pyhudi.config.file_names import file_name_of, parse_base_name, parse_log_name
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CorruptTable, MissingFile
from pyhudi.schema.table_schema import table_schema
from pyhudi.slices.bootstrap import add_sources
from pyhudi.slices.file_slice import LOG_ORDER, BaseFile, FileSlice, LogFile
from pyhudi.slices.missing_files import GO_ON
from pyhudi.slices.slice_builder import records_of_plan
from pyhudi.storage.storage import Storage
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline


def resolve_planned_slices(
    storage: Storage, config: TableConfig, operations: Iterable[Mapping[str, Any]]
) -> list[FileSlice]:
    """Return the slices of `HoodieCompactionOperation` records, as they were at the plan.

    Version 1 of the plan has paths where version 2 has names. The bootstrap index determines the
    source of a skeleton, not the plan, since table and source may have been moved. Raises
    `MissingFile` naming a missing file.
    """
    operations = list(operations)
    with storage.prefetch(heads={path for operation in operations for path in _paths(operation)}):
        slices = [_slice(storage, operation, config.base_extension) for operation in operations]
    return add_sources(storage, config, slices)


def as_planned(table: TableSnapshot, instant: str, slices: Sequence[FileSlice]) -> TableSnapshot:
    """Return the table with the columns that it had when a plan of slices was created.

    Its files are named by the plan's instant: readers expect the columns of that instant. As in
    `InternalSchemaCache.getInternalSchemaAndAvroSchemaForClusteringAndCompaction` (Hudi 1.2.0).
    """
    until = max([instant, *_commits_after_plan(table, instant, slices)])
    timeline = table.timeline.until(until)
    return table.with_schema(table_schema(table.storage, table.config, timeline))


def files_of_plans(timeline: Timeline) -> set[str]:
    """Return the paths of the files that planned services read, and which they need."""
    services = timeline.pending(COMPACTION, LOG_COMPACTION, CLUSTERING, REPLACE_COMMIT)
    plans = map(timeline.plan, services)
    return {path for plan in plans for slice_ in records_of_plan(plan) for path in _paths(slice_)}


def _commits_after_plan(
    table: TableSnapshot, instant: str, slices: Sequence[FileSlice]
) -> Iterator[str]:
    """Yield commits after a plan that wrote to its log files: possible up to version 6."""
    if not table.config.version.logs_named_by_base_instant:
        return
    paths = {log.path for slice_ in slices for log in slice_.logs}
    for commit in table.timeline.commits:
        if commit.requested > instant:
            stats = table.timeline.commit_metadata(commit).write_stats
            if any(stat.path in paths for stat in stats):
                yield commit.requested


def _paths(operation: Mapping[str, Any]) -> Iterator[str]:
    partition = operation["partitionPath"] or ""
    for path in (operation.get("dataFilePath"), *(operation.get("deltaFilePaths") or ())):
        if path:
            yield _path(partition, path)


def _slice(storage: Storage, operation: Mapping[str, Any], extension: str | None) -> FileSlice:
    partition = operation["partitionPath"] or ""
    data = operation.get("dataFilePath")
    logs = [_log(storage, partition, path) for path in operation.get("deltaFilePaths") or ()]
    return FileSlice(
        partition,
        operation["fileId"],
        operation["baseInstantTime"],
        _base(storage, partition, data, extension) if data else None,
        tuple(sorted((log for log in logs if not log.suffix), key=LOG_ORDER)),
    )


def _base(storage: Storage, partition: str, path: str, extension: str | None) -> BaseFile:
    name, size = _find_file(storage, partition, path)
    parts = parse_base_name(name, extension)
    if parts is None:
        raise _corrupt_error(path)
    return BaseFile(partition, name, parts.file_id, parts.instant, parts.write_token, size)


def _log(storage: Storage, partition: str, path: str) -> LogFile:
    name, size = _find_file(storage, partition, path)
    parts = parse_log_name(name)
    if parts is None:
        raise _corrupt_error(path)
    return LogFile(
        partition,
        name,
        parts.file_id,
        parts.instant,
        parts.version,
        parts.write_token,
        parts.suffix,
        size,
    )


def _find_file(storage: Storage, partition: str, path: str) -> tuple[str, int]:
    file_path = _path(partition, path)
    if any(part in ("", ".", "..") for part in file_path.split("/")):
        raise _corrupt_error(f"{partition}/{path}")
    entry = storage.head(file_path)
    if entry is None:
        msg = f"{file_path} is missing, but the plan of a table service needs it"
        hint = f"rollback() cancels a plan with lost files. {GO_ON}"
        raise MissingFile(msg, file=file_path, hint=hint)
    return file_name_of(file_path), entry.size


def _path(partition: str, path: str) -> str:
    return f"{partition}/{path.rsplit('/', 1)[-1]}".lstrip("/")


def _corrupt_error(path: str) -> CorruptTable:
    return CorruptTable(f"the plan of a table service names {path}, which is not a file", file=path)
