"""Services after a commit, in Hudi's order, and the sync of catalogs after them.

Only the timeline decides what is due. Nothing here fails the commit: an error is a warning, and the
service is due again after a later commit; a conflict with a faster writer is only logged. Source:
`BaseHoodieWriteClient.commitStats`, `BaseHoodieTableServiceClient` (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial

from pyhudi import events
from pyhudi.admin import run_service
from pyhudi.clock import Clock, SystemClock
from pyhudi.config.catalog_sync_options import SyncOptions
from pyhudi.config.clustering_options import ClusteringOptions
from pyhudi.config.compaction_options import (
    LOG_FILE_NUMBER,
    CompactionOptions,
    LogCompactionOptions,
)
from pyhudi.config.log import logger
from pyhudi.config.options import ServiceOptions
from pyhudi.config.retention_options import ArchiveOptions, CleanOptions, TtlOptions
from pyhudi.errors import CommitConflict, UnsupportedTableFeature
from pyhudi.services import archiving, cleaning, clustering, log_compaction
from pyhudi.services.archiving import since_compaction
from pyhudi.services.clustering import ClusteringRequest
from pyhudi.services.compaction_strategy import is_due
from pyhudi.services.log_compaction import LogCompactionRequest
from pyhudi.services.result import ServiceResult
from pyhudi.services.table_compaction import CompactionRequest, is_last_for_overgrown
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.txn.post_commit import warn_on_failure
from pyhudi.write.conflict_retries import retry_on_conflict
from pyhudi.write.partition_ttl import expire_partitions
from pyhudi.write.table_opening import Handle, WritableTable

Service = Callable[[], object]
OnError = Callable[[Exception], None]

_SEARCH_INTERVAL = 8
"""Number of delta commits between two searches for file groups with far too many log files, if it
is unknown whether commits appended to any; and number of commits whose partitions are searched."""
_IO_MIB = 16
"""I/O of compacting some of them, exceeded by one file group, so that no commit waits for long."""


def after_commit(
    table: WritableTable,
    load_snapshot: Callable[[], TableSnapshot],
    instant: str,
    clock: Clock | None = None,
    *,
    has_overgrown: bool | None = None,
    is_stopped: Callable[[], bool] = lambda: False,
    on_error: OnError = lambda _: None,
) -> bool:
    """Run the services that are due; return whether there were any.

    load_snapshot: returns the table after the commit of an instant. has_overgrown: whether the
    commit appended to a file group with far too many log files; None if unknown. is_stopped:
    whether to begin no further service. on_error: gets errors, which become warnings. Raises
    `InterruptedAfterCommit` if the user interrupts a service, which leaves the table whole.
    """
    clock = clock or SystemClock()
    handle = Handle.of(table, clock)
    with handle.lock_manager.release_later():
        return _after_commit(
            handle, load_snapshot, instant, clock, has_overgrown, is_stopped, on_error
        )


def _after_commit(
    handle: Handle,
    load_snapshot: Callable[[], TableSnapshot],
    instant: str,
    clock: Clock,
    has_overgrown: bool | None,
    is_stopped: Callable[[], bool],
    on_error: OnError,
) -> bool:
    services: list[tuple[str, Service]] = []
    with warn_on_failure(handle.storage.uri, instant, "table services", on_error=on_error):
        if ServiceOptions.of(handle.options).enabled:
            table = load_snapshot()
            handle = replace(handle, previous_config=table.config)
            services.extend(_due(handle, table, clock, has_overgrown))
    for name, service in services:
        if is_stopped():
            return True
        _execute(name, service, handle, instant, on_error)
    with warn_on_failure(handle.storage.uri, instant, "sync of catalogs", on_error=on_error):
        options = SyncOptions.of(handle.options)
        if options.enabled:
            from pyhudi.catalog.configured import sync_by_options  # noqa: PLC0415 - few have them

            snapshot = load_snapshot().reload() if services else load_snapshot()
            sync = partial(sync_by_options, snapshot, options)
            _execute("sync of catalogs", sync, handle, instant, on_error)
    return bool(services)


def _execute(
    name: str, service: Service, handle: WritableTable, instant: str, on_error: OnError
) -> None:
    uri = handle.storage.uri
    with (
        warn_on_failure(uri, instant, name, on_error=on_error),
        events.observe(events.Service, uri, name, instant) as event,
    ):
        done = service()
        if event is not None:
            event.add_figures(done)
        logger.info("%s: %s after %s: %r", uri, name, instant, done)


def _due(
    handle: WritableTable, table: TableSnapshot, clock: Clock, has_overgrown: bool | None
) -> Iterator[tuple[str, Service]]:
    clean_options = CleanOptions.of(handle.options)
    if clean_options.automatic and cleaning.is_due(table, clean_options):
        yield "cleaning", partial(run_service.clean, handle, clean_options, clock=clock)
    archive_options = ArchiveOptions.of(handle.options)
    if archive_options.automatic and archiving.is_due(table, archive_options):
        yield "archiving", partial(run_service.archive, handle, archive_options, clock=clock)
    options = CompactionOptions.of(handle.options)
    if _compaction_is_due(table, options):
        request = CompactionRequest(execute=options.inline, due_only=True)
        yield "compaction", partial(run_service.compact, handle, request, options, clock=clock)
    elif _is_time_to_search(table, options, archive_options, has_overgrown):
        yield "compaction", partial(_compact_overgrown, handle, table, clock)
    log_options = LogCompactionOptions.of(handle.options)
    may_compact_logs = log_options.inline and table.config.is_merge_on_read
    if may_compact_logs and log_compaction.is_due(table.timeline, log_options):
        compact_logs = partial(run_service.log_compact, clock=clock)
        yield "log compaction", partial(compact_logs, handle, LogCompactionRequest(), log_options)
    clustering_options = ClusteringOptions.of(handle.options)
    if _clustering_is_due(table, clustering_options):
        cluster = partial(run_service.cluster, clock=clock)
        clustering_request = ClusteringRequest(execute=clustering_options.inline, due_only=True)
        yield "clustering", partial(cluster, handle, clustering_request, clustering_options)
    ttl = TtlOptions.of(handle.options)
    if ttl.inline and ttl.days > 0 and table.config.partition_fields:
        expire = lambda again, _: expire_partitions(again, ttl, clock=clock)  # noqa: E731
        yield "removal of old partitions", partial(retry_on_conflict, handle, None, expire, clock)


def _compaction_is_due(table: TableSnapshot, options: CompactionOptions) -> bool:
    if not table.config.is_merge_on_read or not (options.inline or options.schedule_inline):
        return False
    if table.timeline.pending_compactions:
        # Pending plans are executed first; no new plan is made while one exists.
        return options.inline
    return is_due(table.timeline, options, table.generator.next())


def _is_time_to_search(
    table: TableSnapshot,
    options: CompactionOptions,
    archive_options: ArchiveOptions,
    has_overgrown: bool | None,
) -> bool:
    """Return whether to search for overgrown file groups, which costs a listing."""
    if not (options.automatic and table.config.is_merge_on_read):
        return False
    since = len(since_compaction(table.timeline))
    if since == 1 and is_last_for_overgrown(table.timeline):
        # The last search may have left some of them to the next commit.
        return True
    if has_overgrown is not None:
        return has_overgrown
    # Before the first compaction, archiving keeps the number of delta commits within two bounds.
    max_interval = archive_options.max_commits - archive_options.min_commits
    return since > 0 and since % min(_SEARCH_INTERVAL, max_interval) == 0


def _compact_overgrown(
    handle: WritableTable, table: TableSnapshot, clock: Clock
) -> ServiceResult | None:
    """Compact overgrown file groups; a conflict is ignored, because the caller did not request it.

    Plans of other writers are left to them, and no plan is made while one exists. A plan of this
    type whose writer failed is executed: otherwise it would block cleaning and archiving.
    """
    few = CompactionOptions(strategies=(LOG_FILE_NUMBER,), target_io_mib=_IO_MIB)
    alone = not table.timeline.pending_compactions
    request = CompactionRequest(many_logs_in_commits=_SEARCH_INTERVAL, schedule=alone)
    with suppress(CommitConflict, UnsupportedTableFeature):
        return run_service.compact(handle, request, few, clock=clock)
    return None


def _clustering_is_due(table: TableSnapshot, options: ClusteringOptions) -> bool:
    if not (options.inline or options.schedule_inline):
        return False
    if clustering.pending(table.timeline):
        return options.inline
    return clustering.is_due(table.timeline, options)
