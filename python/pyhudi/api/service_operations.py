"""Methods of a table handle that run table services."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pyhudi.api.operation_events import as_operation
from pyhudi.api.table_handle import TableHandle
from pyhudi.config import argument_checks as arg

if TYPE_CHECKING:  # Opening and reading a table needs none of it.
    from pyhudi.admin.maintain import MaintenanceResult
    from pyhudi.api.progress import Progress
    from pyhudi.config.memory_size import MemorySize
    from pyhudi.services.result import ServiceResult


class ServiceOperations(TableHandle):
    """Table services of `HudiTable`. They never change rows."""

    def finish_services(self) -> None:
        """Wait until the services after the commits of this handle have run in the background.

        Without `pyhudi.table.services.mode=background` there is nothing to wait for.

        Raises:
            HudiError: the error of a service that failed, which also was a warning. A later commit
                runs it again.
        """
        from pyhudi.api.background_services import BackgroundServices  # noqa: PLC0415 - few need it

        BackgroundServices.finish_of(self)

    @arg.check_arguments()
    @as_operation
    def maintain(
        self,
        budget: float | str | None = None,
        *,
        every: float | str | None = None,
        memory_limit: MemorySize | None = None,
        dry_run: bool = False,
        progress: Progress = False,
    ) -> MaintenanceResult:
        """Check the table's health and run the services that are worth most. No row changes.

        It follows the advice of `inspect.health()`. Other writers may go on; a service that another
        writer is running is left to it. The work is divided into parts that each end with a commit:
        after an interruption the table is whole, and the next call continues.

        Args:
            budget: when to stop: seconds as a number, text such as "90s", "10m" or "1h", or bytes
                to read, such as "2 GiB". No part begins after that. None runs everything.
            every: repeat forever, with this pause between two runs (in the format of a budget of
                time); for a process of its own. A failure is then a warning, and the next run tries
                again.
            memory_limit: bytes, as in `compact`.
            dry_run: return what is worth doing, and change nothing.
            progress: as in `upsert`.

        Returns:
            What was done, with the table's figures before and after, and what was skipped.

        Raises:
            LockTimeout: the table's lock was not free in time.
            UnsupportedTableFeature: pyhudi does not write to the table.
            CorruptTable: files are missing or damaged.
            ConfigError: an argument is wrong, or the handle was opened as of an earlier time.
        """
        from pyhudi.admin.maintain import Budget, maintain, maintain_for_ever  # noqa: PLC0415 - not needed for reading

        bound, memory = Budget.of(budget), _bytes_of(memory_limit)
        with self._watch("maintenance", progress) as (table, _):
            if every is not None:
                maintain_for_ever(table, bound, Budget.of(every), memory_limit=memory)
            result = maintain(table, bound, memory_limit=memory, dry_run=dry_run)
        self._reload()
        return result

    @arg.check_arguments()
    @as_operation
    def expire_partitions(
        self, days: int | None = None, *, by_creation: bool | None = None, dry_run: bool = False
    ) -> ServiceResult:
        """Drop partitions that are too old, in one commit; a later clean removes their files.

        Arguments that you leave out come from `hoodie.partition.ttl.*` of the handle's options.
        With `hoodie.partition.ttl.inline=true`, this runs after each commit.

        Args:
            days: drop partitions without a write for longer than this; at least 1.
            by_creation: use the time at which a partition was created instead.
            dry_run: return what would be dropped, and change nothing.

        Returns:
            What was dropped. `left` lists partitions that are too old and stay, because a service
            is pending in them, or because there are more than
            `hoodie.partition.ttl.strategy.max.delete.partitions` (1000).

        Raises:
            ConfigError: the number of days is not set, or less than 1; the table has no partitions;
                an argument is wrong; or the handle was opened as of an earlier time.
            UnsupportedTableFeature: pyhudi does not support the strategy, partitions do not record
                when they were created, or pyhudi does not write to the table.
            CommitConflict: other writers repeatedly write to one of the partitions.
            LockTimeout: the table's lock was not free in time.
        """
        from pyhudi.config.retention_options import TtlOptions  # noqa: PLC0415 - as above
        from pyhudi.write.conflict_retries import retry_on_conflict  # noqa: PLC0415 - as above
        from pyhudi.write.partition_ttl import expire_partitions  # noqa: PLC0415 - not needed for reading

        handle = self._writable()
        options = TtlOptions.of(handle.options)
        if days is not None:
            options = replace(options, days=days)
        if by_creation is not None:
            options = replace(options, by_creation=by_creation)
        result = retry_on_conflict(
            handle, None, lambda table, _: expire_partitions(table, options, dry_run=dry_run)
        )
        self._reload()
        return result

    @arg.check_arguments()
    @as_operation
    def compact(
        self,
        *,
        partitions: Any = None,
        strategy: str | None = None,
        schedule: bool = True,
        execute: bool = True,
        instant: str | None = None,
        dry_run: bool = False,
        memory_limit: MemorySize | None = None,
        progress: Progress = False,
    ) -> ServiceResult:
        """Merge the log files of a merge-on-read table into new base files. No row changes.

        Pending compactions of any writer come first; then pyhudi plans and executes a new one for
        slices with log files. Other writers may go on. A failed or interrupted compaction leaves
        its plan, which the next call or Apache Hudi executes.

        Args:
            partitions: as in `delete_partitions`: a new plan has slices of these partitions only.
            strategy: which slices to compact and in which order: one of Hudi's classes, with or
                without its package, or several separated by commas. By default
                `hoodie.compaction.strategy` of the handle's options, else
                LogFileSizeBasedCompactionStrategy: the largest log files first, up to
                `hoodie.compaction.target.io` MiB.
            schedule: plan what can be compacted.
            execute: execute the plans; otherwise the new plan stays pending.
            instant: execute only this pending compaction. One that Apache Hudi started without a
                heartbeat is taken over immediately: use it only if no writer is running it.
            dry_run: return what would be read, and change nothing.
            memory_limit: bytes for log records of all tasks, a quarter of the machine's memory by
                default; records above the limit are spilled to local files.
            progress: as in `upsert`.

        Returns:
            What was done. `left` says why no plan was made if a plan has to wait.

        Raises:
            UnsupportedTableFeature: the table is copy-on-write, pyhudi does not support its merge
                rule, or pyhudi does not write to it.
            CommitConflict: another writer is running a pending compaction, or changed the table's
                columns concurrently.
            CorruptTable: files of a plan are missing or damaged.
            LockTimeout: the table's lock was not free in time.
            ConfigError: an argument is wrong, no such compaction is pending, or the handle was
                opened as of an earlier time.
        """
        from pyhudi.admin.run_service import compact  # noqa: PLC0415 - not needed for reading
        from pyhudi.config.compaction_options import (  # noqa: PLC0415 - as above
            CompactionOptions,
            strategies_of,
        )
        from pyhudi.services.table_compaction import CompactionRequest  # noqa: PLC0415 - as above

        handle = self._writable()
        options = CompactionOptions.of(handle.options)
        if strategy is not None:
            options = replace(options, strategies=strategies_of(strategy))
        request = CompactionRequest(
            schedule=schedule,
            execute=execute,
            instant=instant,
            memory_limit=_bytes_of(memory_limit),
        )
        with self._watch("compaction", progress, handle) as (table, watcher):
            result = compact(table, request, options, partitions=partitions, dry_run=dry_run)
        self._reload()
        return replace(result, metrics=watcher.metrics)

    @arg.check_arguments()
    @as_operation
    def log_compact(
        self,
        *,
        partitions: Any = None,
        min_log_files: int | None = None,
        schedule: bool = True,
        execute: bool = True,
        dry_run: bool = False,
        progress: Progress = False,
    ) -> ServiceResult:
        """Merge many log files of a file group of a merge-on-read table into one. No row changes.

        This is cheaper than `compact()` for large base files, which are not rewritten; readers
        still merge the one log file. The merged files stay until a compaction and a clean. Pending
        log compactions of any writer come first; plans that a compaction has made obsolete are
        removed from the timeline. Records keep their commit times, while Apache Hudi (1.2.0) sets
        them to that of the log compaction.

        Args:
            partitions: as in `delete_partitions`: a new plan has slices of these partitions only.
            min_log_files: minimum number of log files of a file group, at least 2; a file that was
                itself merged counts as its original files. By default
                `hoodie.log.compaction.blocks.threshold` of the handle's options (5).
            schedule: plan what can be merged.
            execute: execute the plans; otherwise the new plan stays pending.
            dry_run: return what would be read, and change nothing.
            progress: as in `upsert`.

        Returns:
            What was done.

        Raises:
            UnsupportedTableFeature: the table is copy-on-write, or its records are merged column by
                column: partial updates, legacy payloads that do so, custom mergers.
            CommitConflict: another writer is running a pending log compaction, or a compaction was
                scheduled concurrently.
            CorruptTable: files of a plan are missing or damaged.
            LockTimeout: the table's lock was not free in time.
            ConfigError: an argument is wrong, or the handle was opened as of an earlier time.
        """
        from pyhudi.admin.run_service import log_compact  # noqa: PLC0415 - not needed for reading
        from pyhudi.config.compaction_options import (  # noqa: PLC0415 - as above
            LogCompactionOptions,
        )
        from pyhudi.services.log_compaction import (  # noqa: PLC0415 - as above
            LogCompactionRequest,
        )

        handle = self._writable()
        options = LogCompactionOptions.of(handle.options)
        if min_log_files is not None:
            options = replace(options, min_log_files=min_log_files)
        request = LogCompactionRequest(schedule=schedule, execute=execute)
        with self._watch("log compaction", progress, handle) as (table, watcher):
            result = log_compact(table, request, options, partitions=partitions, dry_run=dry_run)
        self._reload()
        return replace(result, metrics=watcher.metrics)

    @arg.check_arguments()
    @as_operation
    def cluster(
        self,
        *,
        sort_by: str | Sequence[str] | None = None,
        layout: Literal["linear", "zorder", "hilbert"] | None = None,
        partitions: Any = None,
        schedule: bool = True,
        execute: bool = True,
        dry_run: bool = False,
        memory_limit: MemorySize | None = None,
        progress: Progress = False,
    ) -> ServiceResult:
        """Rewrite small files into new file groups, and sort their rows. No row changes.

        Pending clusterings of any writer come first; then pyhudi plans small files and rewrites
        them with their log files. Other writers may go on, but an update or delete of rows in a
        file group with a pending clustering raises `CommitConflict`. A call that fails or is
        interrupted cancels the plan that it made. A killed process leaves its plan: the next call
        or Apache Hudi executes it, and `rollback(instant)` removes it.

        With consistent hashing (`hoodie.index.bucket.engine` CONSISTENT_HASHING), large buckets are
        split and small ones merged instead.

        Args:
            sort_by: one or more columns to sort the rows of a new plan by, so that scans with
                filters on them read fewer files. By default
                `hoodie.clustering.plan.strategy.sort.columns`.
            layout: order of several columns: "linear", by the first and then by the second;
                "zorder" or "hilbert", along a curve through all of them, for filters on any one. By
                default as in the plan, else `hoodie.layout.optimize.strategy`, else linear. If none
                of them sets it, rows already sorted by these columns keep their layout.
            partitions: as in `delete_partitions`: a new plan has files of these partitions only.
            schedule: plan what can be clustered.
            execute: execute the plans; otherwise the new plan stays pending.
            dry_run: return what would be read, and change nothing.
            memory_limit: bytes for rows and log records of all tasks, a quarter of the machine's
                memory by default; rows above the limit are spilled to local files.
            progress: as in `upsert`.

        Returns:
            What was done. `left` says why no plan was made if a plan has to wait, and which plans
            were cancelled because other writers had changed their file groups.

        Raises:
            UnsupportedTableFeature: the table's file groups are simple buckets, pyhudi does not
                support a plan or the merge rule of log files, or pyhudi does not write to the
                table.
            CommitConflict: another writer is running a pending clustering, or changed its file
                groups or the table's columns concurrently.
            CorruptTable: files of a plan are missing or damaged.
            LockTimeout: the table's lock was not free in time.
            ConfigError: an argument is wrong, or the handle was opened as of an earlier time.
        """
        from pyhudi.admin.run_service import cluster  # noqa: PLC0415 - not needed for reading
        from pyhudi.config.clustering_options import (  # noqa: PLC0415 - as above
            ClusteringOptions,
            layout_of,
        )
        from pyhudi.services.clustering import ClusteringRequest  # noqa: PLC0415 - as above

        handle = self._writable()
        options = ClusteringOptions.of(handle.options)
        if sort_by is not None:
            columns = (sort_by,) if isinstance(sort_by, str) else tuple(sort_by)
            options = replace(options, sort_columns=columns)
        request = ClusteringRequest(schedule, execute, layout=layout_of(layout))
        with self._watch("clustering", progress, handle) as (table, watcher):
            result = cluster(
                table,
                request,
                options,
                partitions=partitions,
                memory=_bytes_of(memory_limit),
                dry_run=dry_run,
            )
        self._reload()
        return replace(result, metrics=watcher.metrics)

    @arg.check_arguments()
    @as_operation
    def clean(
        self,
        *,
        policy: str | None = None,
        retain: int | None = None,
        dry_run: bool = False,
        progress: Progress = False,
    ) -> ServiceResult:
        """Remove files that newer ones replaced long enough ago. No row changes.

        Pending cleans of any writer come first. Files of a savepoint and of a pending plan stay.
        Time travel and incremental queries reach back only as far as files are retained.

        Args:
            policy: KEEP_LATEST_COMMITS, KEEP_LATEST_BY_HOURS or KEEP_LATEST_FILE_VERSIONS. By
                default `hoodie.clean.policy` of the handle's options, else KEEP_LATEST_COMMITS.
            retain: number of commits, hours or file versions to retain. By default
                `hoodie.clean.commits.retained` (10), `hoodie.clean.hours.retained` (24) or
                `hoodie.clean.fileversions.retained` (3) of the handle's options.
            dry_run: return what would be removed, and change nothing.
            progress: as in `upsert`.

        Returns:
            What was removed. If there is nothing to remove, there is no instant.

        Raises:
            CommitConflict: a restore has started, or another writer took the clean over.
            CorruptTable: a pending plan is damaged.
            LockTimeout: the table's lock was not free in time.
            ConfigError: an argument is wrong, or the handle was opened as of an earlier time.
            UnsupportedTableFeature: pyhudi does not write to the table.
        """
        from pyhudi.admin.run_service import clean  # noqa: PLC0415 - not needed for reading
        from pyhudi.config.retention_options import CleanOptions  # noqa: PLC0415 - as above

        handle = self._writable()
        options = CleanOptions.of(handle.options).keeping(policy, retain)
        with self._watch("cleaning", progress, handle) as (table, watcher):
            result = clean(table, options, dry_run=dry_run)
        self._reload()
        return replace(result, metrics=watcher.metrics)

    @arg.check_arguments()
    @as_operation
    def archive(
        self,
        *,
        min_commits: int | None = None,
        max_commits: int | None = None,
        dry_run: bool = False,
    ) -> ServiceResult:
        """Move the oldest instants from the active timeline to the archive. No row changes.

        Every reader and writer lists the active timeline, so its length is a cost of every
        operation. These instants stay on it:

        - what cleaning retains;
        - what pending writes and savepoints need;
        - what the next compaction counts;
        - what the metadata table has not compacted yet;
        - overwrites whose old files still exist.

        Args:
            min_commits: number of commits that stay. By default `hoodie.keep.min.commits` (20).
            max_commits: number of commits above which archiving begins. By default
                `hoodie.keep.max.commits` (30). If you set only one of the two, the other keeps its
                default distance to it.
            dry_run: return what would be archived, and change nothing.

        Returns:
            What was archived: `instants` are requested times. `left` says why more commits than
                `min_commits` stay.

        Raises:
            CommitConflict: a restore has started.
            CorruptTable: the archive, or an instant to be archived, is damaged.
            LockTimeout: the table's lock was not free in time.
            ConfigError: an argument is wrong, or the handle was opened as of an earlier time.
            UnsupportedTableFeature: pyhudi does not write to the table.
        """
        from pyhudi.admin.run_service import archive  # noqa: PLC0415 - not needed for reading
        from pyhudi.config.retention_options import ArchiveOptions  # noqa: PLC0415 - as above

        handle = self._writable()
        options = ArchiveOptions.of(handle.options).keeping(min_commits, max_commits)
        result = archive(handle, options, dry_run=dry_run)
        self._reload()
        return result


def _bytes_of(memory_limit: MemorySize | None) -> int | None:
    from pyhudi.config.memory_size import parse_memory_size  # noqa: PLC0415 - not needed for reading

    return None if memory_limit is None else parse_memory_size(memory_limit)
