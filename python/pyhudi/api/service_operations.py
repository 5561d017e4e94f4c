"""The verbs of a table handle that keep its table in shape. Thin: every verb is one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pyhudi.config import argument_checks as arg

if TYPE_CHECKING:  # Opening and reading a table needs none of it.
    from pyhudi.admin.maintain import MaintenanceResult
    from pyhudi.api.write_operations import Progress
    from pyhudi.services.result import ServiceResult
    from pyhudi.write.write_context import WritableTable


class ServiceVerbs:
    """What `HudiTable` can do for its table's health. Rows never change by it."""

    def _reload(self, instant: str = "") -> None:
        """Has the handle look at the table after an act, which stands if that fails."""
        raise NotImplementedError

    def _writable(self) -> WritableTable:
        """The handle, if it may write."""
        raise NotImplementedError

    @arg.check_arguments(
        memory_limit=arg.optional(arg.whole), dry_run=arg.flag, progress=arg.progress
    )
    def maintain(
        self,
        budget: float | str | None = None,
        *,
        every: float | str | None = None,
        memory_limit: int | None = None,
        dry_run: bool = False,
        progress: Progress = False,
    ) -> MaintenanceResult:
        """Keeps the table good: looks at it and does what is worth most. No row changes.

        What it goes by is what `inspect.health()` shows. Writers may go on; what another writer is
        at is left to it. Work is done in parts that each end with a commit: interrupted between
        them or within one, the table is whole, and the next call goes on.

        Args:
            budget: when to stop: seconds as a number, or text such as "90s", "10m", "1h"; or bytes
                to be read, such as "2 GiB". No part begins beyond it. None does all.
            every: goes on for ever, with such a pause (as a budget of time) between two looks, for
                a process of its own. What fails is a warning then, and tried again.
            memory_limit: bytes, as in `compact`.
            dry_run: say what is worth doing, and change nothing.
            progress: as in `upsert`.

        Returns:
            What was done, with the table's figures before and after, and what is left.

        Raises:
            LockTimeout: the table's lock could not be had in time.
            UnsupportedTableFeature: pyhudi does not write to the table.
            CorruptTable: files are gone or damaged.
            ConfigError: an argument is wrong, or the handle was opened as of an earlier time.
        """
        from pyhudi.admin.maintain import Budget, maintain, maintain_for_ever  # noqa: PLC0415 - reading needs none
        from pyhudi.api.progress import with_progress  # noqa: PLC0415 - reading needs none of it

        bound = Budget.of(budget)
        with with_progress(self._writable(), progress) as table:
            if every is not None:
                maintain_for_ever(table, bound, Budget.of(every), memory_limit=memory_limit)
            result = maintain(table, bound, memory_limit=memory_limit, dry_run=dry_run)
        self._reload()
        return result

    @arg.check_arguments(
        days=arg.optional(arg.whole), by_creation=arg.optional(arg.flag), dry_run=arg.flag
    )
    def expire_partitions(
        self, days: int | None = None, *, by_creation: bool | None = None, dry_run: bool = False
    ) -> ServiceResult:
        """Removes the partitions that are too old, in one commit; a later clean takes their files.

        What the arguments do not say, `hoodie.partition.ttl.*` of the handle's options do. With
        `hoodie.partition.ttl.inline=true` each commit is followed by this.

        Args:
            days: partitions to which nothing was written for longer go; at least 1.
            by_creation: go by when a partition was made instead.
            dry_run: say what would go, and change nothing.

        Returns:
            What went. `left` names partitions that are too old and stay, since a service of theirs
            is pending, or as there are more than
            `hoodie.partition.ttl.strategy.max.delete.partitions` (1000).

        Raises:
            ConfigError: nobody says how many days, or fewer than 1, the table has no partitions, an
                argument is wrong, or the handle was opened as of an earlier time.
            UnsupportedTableFeature: a strategy that pyhudi does not have, partitions that do not
                tell when they were made, or a table that it does not write to.
            CommitConflict: others write to such a partition again and again.
            LockTimeout: the table's lock could not be had in time.
        """
        from pyhudi.config.ttl_options import TtlOptions  # noqa: PLC0415 - as above
        from pyhudi.write.conflict_retries import retry_on_conflict  # noqa: PLC0415 - likewise
        from pyhudi.write.expire import expire_partitions  # noqa: PLC0415 - reading needs none

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

    @arg.check_arguments(
        strategy=arg.optional(arg.text),
        schedule=arg.flag,
        execute=arg.flag,
        instant=arg.optional(arg.text),
        dry_run=arg.flag,
        memory_limit=arg.optional(arg.whole),
        progress=arg.progress,
    )
    def compact(
        self,
        *,
        partitions: Any = None,
        strategy: str | None = None,
        schedule: bool = True,
        execute: bool = True,
        instant: str | None = None,
        dry_run: bool = False,
        memory_limit: int | None = None,
        progress: Progress = False,
    ) -> ServiceResult:
        """Merges the log files of a merge-on-read table into new base files. No row changes.

        Compactions that are pending come first, whoever planned them; then what has log files is
        planned and carried out. Writers may go on meanwhile. What fails or is interrupted leaves
        the plan, which the next call carries out, or Apache Hudi.

        Args:
            partitions: as `delete_partitions` takes them: a new plan has slices of these alone.
            strategy: which slices are taken and in which order: one of Hudi's classes, with or
                without its package, or several with commas between them. By default
                `hoodie.compaction.strategy` of the handle's options, else
                LogFileSizeBasedCompactionStrategy: the largest log files first, up to
                `hoodie.compaction.target.io` MiB.
            schedule: plan what can be compacted.
            execute: carry out the plans; without it the new one stays pending.
            instant: of a pending compaction that is to be carried out alone. One that Apache Hudi
                has begun without a heartbeat is taken over at once: only where nobody is at it.
            dry_run: say what would be read, and change nothing.
            memory_limit: bytes for log records of all tasks, a quarter of the machine's by default;
                what is over it waits in local files.
            progress: as in `upsert`.

        Returns:
            What was done. `left` says why no plan was made where one has to wait.

        Raises:
            UnsupportedTableFeature: the table is copy-on-write, its rows are merged by a rule that
                pyhudi lacks, or pyhudi does not write to it.
            CommitConflict: another writer is at a pending compaction, or changed the table's
                columns meanwhile.
            CorruptTable: files of a plan are gone or damaged.
            LockTimeout: the table's lock could not be had in time.
            ConfigError: an argument is wrong, no such compaction is pending, or the handle was
                opened as of an earlier time.
        """
        from pyhudi.admin.run_service import compact  # noqa: PLC0415 - reading needs none of it
        from pyhudi.api.progress import with_progress  # noqa: PLC0415 - likewise
        from pyhudi.config.compaction_options import (  # noqa: PLC0415 - likewise
            CompactionOptions,
            strategies_of,
        )
        from pyhudi.services.table_compaction import CompactionRequest  # noqa: PLC0415 - likewise

        handle = self._writable()
        options = CompactionOptions.of(handle.options)
        if strategy is not None:
            options = replace(options, strategies=strategies_of(strategy))
        asked = CompactionRequest(
            schedule=schedule, execute=execute, instant=instant, memory_limit=memory_limit
        )
        with with_progress(handle, progress) as table:
            result = compact(table, asked, options, partitions=partitions, dry_run=dry_run)
        self._reload()
        return result

    @arg.check_arguments(
        min_log_files=arg.optional(arg.whole),
        schedule=arg.flag,
        execute=arg.flag,
        dry_run=arg.flag,
        progress=arg.progress,
    )
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
        """Merges many log files of a file group of a merge-on-read table into one. No row changes.

        Cheaper than `compact()` where base files are large, since those are not touched; reads
        merge what the one log file holds. The others stay until a compaction and a clean. Log
        compactions that are pending come first, whoever planned them; those that a compaction has
        overtaken are taken off the timeline. Records keep their commit times, which Apache Hudi
        (1.2.0) sets to that of the log compaction.

        Args:
            partitions: as `delete_partitions` takes them: a new plan has slices of these alone.
            min_log_files: log files from which a file group is taken, at least 2; one that others
                came to counts for those. By default `hoodie.log.compaction.blocks.threshold` of the
                handle's options (5).
            schedule: plan what can be merged.
            execute: carry out the plans; without it the new one stays pending.
            dry_run: say what would be read, and change nothing.
            progress: as in `upsert`.

        Returns:
            What was done.

        Raises:
            UnsupportedTableFeature: the table is copy-on-write, or its records are merged column by
                column: partial updates, legacy payloads that do so, mergers of one's own.
            CommitConflict: another writer is at a pending log compaction, or a compaction came
                between.
            CorruptTable: files of a plan are gone or damaged.
            LockTimeout: the table's lock could not be had in time.
            ConfigError: an argument is wrong, or the handle was opened as of an earlier time.
        """
        from pyhudi.admin.run_service import log_compact  # noqa: PLC0415 - reading needs none of it
        from pyhudi.api.progress import with_progress  # noqa: PLC0415 - likewise
        from pyhudi.config.log_compaction_options import (  # noqa: PLC0415 - likewise
            LogCompactionOptions,
        )
        from pyhudi.services.log_compaction import (  # noqa: PLC0415 - likewise
            LogCompactionRequest,
        )

        handle = self._writable()
        options = LogCompactionOptions.of(handle.options)
        if min_log_files is not None:
            options = replace(options, least=min_log_files)
        asked = LogCompactionRequest(schedule=schedule, execute=execute)
        with with_progress(handle, progress) as table:
            result = log_compact(table, asked, options, partitions=partitions, dry_run=dry_run)
        self._reload()
        return result

    @arg.check_arguments(
        sort_by=arg.optional(arg.name_or_names),
        layout=arg.optional(arg.text),
        schedule=arg.flag,
        execute=arg.flag,
        dry_run=arg.flag,
        memory_limit=arg.optional(arg.whole),
        progress=arg.progress,
    )
    def cluster(
        self,
        *,
        sort_by: str | Sequence[str] | None = None,
        layout: Literal["linear", "zorder", "hilbert"] | None = None,
        partitions: Any = None,
        schedule: bool = True,
        execute: bool = True,
        dry_run: bool = False,
        memory_limit: int | None = None,
        progress: Progress = False,
    ) -> ServiceResult:
        """Joins small files into new file groups, and sorts their rows. No row changes.

        Clusterings that are pending come first, whoever planned them; then small files are planned
        and written anew, with their log files. Writers may go on meanwhile, but who updates or
        deletes rows of a file group that waits for a clustering gets `CommitConflict`. A call that
        fails or is interrupted cancels the plan that it made. A process that is killed leaves its
        plan: the next call executes it, or Apache Hudi, and `rollback(instant)` removes it.

        Buckets of hash rings (`hoodie.index.bucket.engine` CONSISTENT_HASHING) are split where they
        are large and merged where they are small, instead.

        Args:
            sort_by: columns, or one, to sort the rows of a new plan by, so that scans with filters
                on them leave more files out. By default
                `hoodie.clustering.plan.strategy.sort.columns`.
            layout: how several columns count: "linear", by the first and then by the second;
                "zorder" or "hilbert", along a curve through all of them, for filters on any one. By
                default as a plan says, else `hoodie.layout.optimize.strategy`, else linear. Where
                nobody says, rows that are sorted by these columns stay in whatever layout they are.
            partitions: as `delete_partitions` takes them: a new plan has files of these alone.
            schedule: plan what can be clustered.
            execute: carry out the plans; without it the new one stays pending.
            dry_run: say what would be read, and change nothing.
            memory_limit: bytes for rows and log records of all tasks, a quarter of the machine's by
                default; what is over it waits in local files.
            progress: as in `upsert`.

        Returns:
            What was done. `left` says why no plan was made where one has to wait, and which plans
            were taken off since others had changed their file groups.

        Raises:
            UnsupportedTableFeature: the table's file groups are simple buckets, a plan asks for
                what pyhudi does not do, log files are merged by a rule that pyhudi lacks, or pyhudi
                does not write to the table.
            CommitConflict: another writer is at a pending clustering, or changed its file groups or
                the table's columns meanwhile.
            CorruptTable: files of a plan are gone or damaged.
            LockTimeout: the table's lock could not be had in time.
            ConfigError: an argument is wrong, or the handle was opened as of an earlier time.
        """
        from pyhudi.admin.run_service import cluster  # noqa: PLC0415 - reading needs none of it
        from pyhudi.api.progress import with_progress  # noqa: PLC0415 - likewise
        from pyhudi.config.clustering_options import (  # noqa: PLC0415 - likewise
            ClusteringOptions,
            layout_of,
        )
        from pyhudi.services.clustering import ClusteringRequest  # noqa: PLC0415 - likewise

        handle = self._writable()
        options = ClusteringOptions.of(handle.options)
        if sort_by is not None:
            columns = (sort_by,) if isinstance(sort_by, str) else tuple(sort_by)
            options = replace(options, sort_columns=columns)
        asked = ClusteringRequest(schedule, execute, layout=layout_of(layout))
        with with_progress(handle, progress) as table:
            result = cluster(
                table,
                asked,
                options,
                partitions=partitions,
                memory=memory_limit,
                dry_run=dry_run,
            )
        self._reload()
        return result

    @arg.check_arguments(
        policy=arg.optional(arg.text),
        retain=arg.optional(arg.whole),
        dry_run=arg.flag,
        progress=arg.progress,
    )
    def clean(
        self,
        *,
        policy: str | None = None,
        retain: int | None = None,
        dry_run: bool = False,
        progress: Progress = False,
    ) -> ServiceResult:
        """Removes files that newer ones have replaced for long enough. No row changes.

        Cleans that are pending come first, whoever planned them. What a savepoint names stays, and
        what any pending plan names. Time travel and incremental queries reach no further back
        than what is kept.

        Args:
            policy: KEEP_LATEST_COMMITS, KEEP_LATEST_BY_HOURS or KEEP_LATEST_FILE_VERSIONS. By
                default `hoodie.clean.policy` of the handle's options, else KEEP_LATEST_COMMITS.
            retain: how many commits, hours or versions of files are kept. By default
                `hoodie.clean.commits.retained` (10), `hoodie.clean.hours.retained` (24) or
                `hoodie.clean.fileversions.retained` (3) of the handle's options.
            dry_run: say what would be removed, and change nothing.
            progress: as in `upsert`.

        Returns:
            What was removed. With nothing to remove there is no instant.

        Raises:
            CommitConflict: a restore has begun, or another writer took the clean over.
            CorruptTable: a pending plan is damaged.
            LockTimeout: the table's lock could not be had in time.
            ConfigError: an argument is wrong, or the handle was opened as of an earlier time.
            UnsupportedTableFeature: pyhudi does not write to the table.
        """
        from pyhudi.admin.run_service import clean  # noqa: PLC0415 - reading needs none of it
        from pyhudi.api.progress import with_progress  # noqa: PLC0415 - likewise
        from pyhudi.config.clean_options import CleanOptions  # noqa: PLC0415 - likewise

        handle = self._writable()
        options = CleanOptions.of(handle.options).keeping(policy, retain)
        with with_progress(handle, progress) as table:
            result = clean(table, options, dry_run=dry_run)
        self._reload()
        return result

    @arg.check_arguments(
        min_commits=arg.optional(arg.whole), max_commits=arg.optional(arg.whole), dry_run=arg.flag
    )
    def archive(
        self,
        *,
        min_commits: int | None = None,
        max_commits: int | None = None,
        dry_run: bool = False,
    ) -> ServiceResult:
        """Moves the oldest instants from the active timeline to the archive. No row changes.

        Every reader and writer lists the active timeline, so its length is a cost of all they do.
        What pyhudi, Apache Hudi or a service of either still needs there stays: what cleaning
        retains, what pending writes and savepoints need, what the next compaction counts, what
        the metadata table has not compacted yet, and overwrites whose old files are still there.

        Args:
            min_commits: commits that stay. By default `hoodie.keep.min.commits` (20).
            max_commits: commits beyond which archiving begins. By default `hoodie.keep.max.commits`
                (30). With one of the two the other is as far from it as by default.
            dry_run: say what would go, and change nothing.

        Returns:
            What has gone: `instants` are their requested times. `left` says what keeps more
            commits than the least number.

        Raises:
            CommitConflict: a restore has begun.
            CorruptTable: the archive, or what is to go there, is damaged.
            LockTimeout: the table's lock could not be had in time.
            ConfigError: an argument is wrong, or the handle was opened as of an earlier time.
            UnsupportedTableFeature: pyhudi does not write to the table.
        """
        from pyhudi.admin.run_service import archive  # noqa: PLC0415 - reading needs none of it
        from pyhudi.config.archive_options import ArchiveOptions  # noqa: PLC0415 - likewise

        handle = self._writable()
        options = ArchiveOptions.of(handle.options).keeping(min_commits, max_commits)
        result = archive(handle, options, dry_run=dry_run)
        self._reload()
        return result
