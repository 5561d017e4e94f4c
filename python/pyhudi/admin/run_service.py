"""Runs table services for a caller: opens the table, recovers it, then runs one service."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from pyhudi.clock import Clock, SystemClock
from pyhudi.config.clustering_options import ClusteringOptions
from pyhudi.config.compaction_options import (
    MIN_LOG_FILES,
    CompactionOptions,
    LogCompactionOptions,
)
from pyhudi.config.lock_options import LockOptions
from pyhudi.config.retention_options import ArchiveOptions, CleanOptions
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.metadata.index_definitions import index_definitions
from pyhudi.metadata.statistics_columns import UndefinedStatistics, check_defined
from pyhudi.schema.supported_types import check_written
from pyhudi.services import archiving, cleaning, clustering, log_compaction, table_compaction
from pyhudi.services.clustering import ClusteringRequest
from pyhudi.services.log_compaction import LogCompactionRequest
from pyhudi.services.result import ServiceResult
from pyhudi.services.service_runner import ServiceRequest
from pyhudi.services.table_compaction import CompactionRequest
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.txn.locks.foreign_locks import check_no_other_lock
from pyhudi.txn.recovery import open_recovered, recover
from pyhudi.txn.write_target import write_options
from pyhudi.write import metadata_lifecycle
from pyhudi.write.checks import check_writable
from pyhudi.write.input_rows import memory_limit
from pyhudi.write.partition_selection import select_partitions
from pyhudi.write.table_opening import (
    Handle,
    WritableTable,
    list_definition_files,
    list_opening_directories,
    open_for_change,
)
from pyhudi.write.write_context import WriteContext

RequestT = TypeVar("RequestT", CompactionRequest, LogCompactionRequest)


def compact(
    table: WritableTable,
    request: CompactionRequest,
    options: CompactionOptions,
    *,
    partitions: Any = None,
    dry_run: bool = False,
    clock: Clock | None = None,
) -> ServiceResult:
    """Run `HudiTable.compact`."""
    opened, request = _open_merge_on_read(table, request, partitions, clock, changes=not dry_run)
    pending = [instant.requested for instant in opened.timeline.pending_compactions]
    if request.instant is not None and request.instant not in pending:
        msg = f"no compaction {request.instant!r} is pending"
        raise ConfigError(msg, hint=f"Pending: {', '.join(pending) or 'none'}.")
    _check_request(request)
    if dry_run:
        return table_compaction.preview_compaction(opened, options, request)
    limited = replace(request, memory_limit=memory_limit(request.memory_limit))
    return table_compaction.compact_table(opened, options, limited)


def log_compact(
    table: WritableTable,
    request: LogCompactionRequest,
    options: LogCompactionOptions,
    *,
    partitions: Any = None,
    dry_run: bool = False,
    clock: Clock | None = None,
) -> ServiceResult:
    """Run `HudiTable.log_compact`."""
    opened, request = _open_merge_on_read(table, request, partitions, clock, changes=not dry_run)
    _check_request(request)
    if options.min_log_files < MIN_LOG_FILES:
        raise ConfigError(
            f"min_log_files must be at least {MIN_LOG_FILES}, not {options.min_log_files}"
        )
    run = log_compaction.preview_log_compaction if dry_run else log_compaction.compact_log_files
    return run(opened, options, request)


def _open_merge_on_read(
    table: WritableTable,
    request: RequestT,
    partitions: Any,
    clock: Clock | None,
    *,
    changes: bool,
) -> tuple[TableSnapshot, RequestT]:
    """Return the table, and the request for the selected partitions.

    Raises `UnsupportedTableFeature` for a copy-on-write table.
    """
    clock = clock or SystemClock()
    handle = Handle.of(table, clock)
    opened = _open_to_rewrite(handle, clock, changes=changes)
    if not opened.config.is_merge_on_read:
        msg = "hoodie.table.type is COPY_ON_WRITE: there are no log files to compact"
        raise UnsupportedTableFeature(msg, hint="Use cluster() to join small files.")
    if partitions is not None:
        paths = tuple(select_partitions(WriteContext.open(handle, clock), partitions))
        request = replace(request, partitions=paths)
    return opened, request


def cluster(
    table: WritableTable,
    request: ClusteringRequest,
    options: ClusteringOptions,
    *,
    partitions: Any = None,
    memory: int | None = None,
    dry_run: bool = False,
    clock: Clock | None = None,
) -> ServiceResult:
    """Run `HudiTable.cluster`, whose `memory_limit` is `memory`."""
    clock = clock or SystemClock()
    handle = Handle.of(table, clock)
    opened = _open_to_rewrite(handle, clock, changes=not dry_run)
    if partitions is not None:
        paths = tuple(select_partitions(WriteContext.open(handle, clock), partitions))
        options = replace(options, selected=paths, filter_mode="NONE")
    _check_request(request)
    if dry_run:
        return clustering.preview_clustering(opened, options, request)
    limited = replace(request, memory_limit=memory_limit(memory))
    return clustering.cluster_table(opened, options, limited)


def clean(
    table: WritableTable,
    options: CleanOptions,
    *,
    dry_run: bool = False,
    clock: Clock | None = None,
) -> ServiceResult:
    """Run `HudiTable.clean`."""
    clock = clock or SystemClock()
    opened = open_for_service(Handle.of(table, clock), clock, changes=not dry_run)
    run = cleaning.preview_clean if dry_run else cleaning.clean_table
    return run(opened, options)


def archive(
    table: WritableTable,
    options: ArchiveOptions,
    *,
    dry_run: bool = False,
    clock: Clock | None = None,
) -> ServiceResult:
    """Run `HudiTable.archive`."""
    clock = clock or SystemClock()
    opened = open_for_service(Handle.of(table, clock), clock, changes=not dry_run)
    run = archiving.preview_archive if dry_run else archiving.archive_table
    return run(opened, options)


def _check_request(request: ServiceRequest) -> None:
    if not request.schedule and not request.execute:
        raise ConfigError("schedule and execute are both false", hint="Leave one of them true.")


def open_for_service(handle: Handle, clock: Clock, *, changes: bool) -> TableSnapshot:
    """Return the table with its commit participants, recovered from failed writers if `changes`.

    Column statistics without a definition are rebuilt first, as before a write.
    """
    open_once = partial(_open, handle, clock, changes=changes)
    try:
        return open_recovered(open_once)
    except UndefinedStatistics:
        if not changes:
            raise
    metadata_lifecycle.define_statistics(handle, clock)
    return open_recovered(open_once)


def _open(handle: Handle, clock: Clock, *, changes: bool) -> TableSnapshot:
    storage, options = handle.storage, LockOptions.of(handle.options)
    with handle.prefetch_open():
        config = TableConfig.load(storage, clock)
        files = list_definition_files(config) if changes else []
        with storage.prefetch(files=files, folders=list_opening_directories(config)):
            if files:
                check_defined(config, index_definitions(storage, config))
            table = open_for_change(handle, clock, config)
            check = partial(check_writable, storage, config)
            check(table.timeline)
            check_no_other_lock(storage, config, table.timeline, options, clock)
    return table.with_timeline(recover(table, check, table.timeline)) if changes else table


def _open_to_rewrite(handle: Handle, clock: Clock, *, changes: bool) -> TableSnapshot:
    """Open the table for a service that rewrites rows, as `open_for_service` does.

    Raises `UnsupportedTableFeature` for columns that cannot be written.
    """
    table = open_for_service(handle, clock, changes=changes)
    check_written(table.schema.arrow, write_options(table))
    return table
