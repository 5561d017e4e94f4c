"""The table handle: opening a table, and its verbs. Thin: every verb is one call to who does it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from pyhudi.api.history_operations import HistoryVerbs
from pyhudi.api.index_operations import IndexVerbs
from pyhudi.api.inspect import Inspect
from pyhudi.api.property_operations import PropertyVerbs
from pyhudi.api.read_operations import LookingVerbs
from pyhudi.api.scan import Scan, new_scan
from pyhudi.api.service_operations import ServiceVerbs
from pyhudi.api.write_operations import WritingVerbs
from pyhudi.clock import Moment, SystemClock
from pyhudi.config import argument_checks as arg
from pyhudi.config import properties_file
from pyhudi.config.options import check_options
from pyhudi.config.table_config import TableConfig
from pyhudi.engine.local import LocalEngine
from pyhudi.engine.memory_pool import low_memory_mode
from pyhudi.engine.protocol import Engine
from pyhudi.errors import ConfigError, TimelineMoved
from pyhudi.query.commit_range import (
    HollowCommits,
    IncrementalRange,
    by_completion_times,
    range_bounds,
)
from pyhudi.query.incremental import check_incremental
from pyhudi.schema.internal_schema import SCHEMA_FOLDER
from pyhudi.schema.table_schema import is_meta, readable_schema, table_schema
from pyhudi.slices.partition_values import text_columns
from pyhudi.slices.read_tasks import scan_schema
from pyhudi.storage.storage import Storage
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import InstantGenerator, Timeline
from pyhudi.timeline.named_instants import timeline_at
from pyhudi.txn.post_commit import warn_on_failure
from pyhudi.txn.rollback import find_commits_after_rollback

if TYPE_CHECKING:  # Opening and reading a table needs none of it.
    from pyhudi.admin.check_findings import CheckResult, Finding
    from pyhudi.admin.upgrade import VersionChange
    from pyhudi.api.changes import Changes, Diff
    from pyhudi.catalog.protocol import Catalog
    from pyhudi.catalog.sync import SyncResult


@arg.check_arguments(
    uri=arg.location,
    storage_options=arg.optional(arg.by_name),
    options=arg.optional(arg.by_name),
    engine=arg.optional(arg.engine),
    catalog=arg.optional(arg.catalog),
)
def open_table(
    uri: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, str] | None = None,
    options: Mapping[str, object] | None = None,
    engine: Engine | None = None,
    as_of: Moment | None = None,
    catalog: Catalog | None = None,
) -> HudiTable:
    """Opens a table as it is now, or as it was.

    Args:
        uri: the table's folder: a path, a `file://` URI, `s3://bucket/prefix`, also as `s3a://`,
            `gs://bucket/prefix`, `abfss://container@account.dfs.core.windows.net/prefix`, or
            `hdfs://namenode:port/path`.
        storage_options: credentials and settings of an object store, by deltalake's names; see
            docs/reference/storage-options.md. Missing ones come from the environment.
        options: `hoodie.…` options by name.
        engine: what runs the work; by default threads of this process, one a processor.
        as_of: the moment that every read of the handle shows, as in `HudiTable.scan`; None for the
            table as it is. Such a handle refuses writes.
        catalog: where `uri` is a table's name, `database.table`, or `table` of the database
            "default": see `pyhudi.catalog`.

    Returns:
        The handle. It shows the table as it is now until it is refreshed or written to.

    Raises:
        TableNotFound: there is no table, or the catalog has none of Hudi's by that name.
        UnsupportedTableFeature: pyhudi cannot read the table at all; the message names why.
        CorruptTable: the properties or timeline files are damaged.
        ConfigError: an option is unknown or has a value that it cannot have, `as_of` is no time, or
            the catalog's table is read-optimized, as handles are not.
        HistoryUnavailable: the table cannot be shown as of then, see `HudiTable.scan`.
        StorageError: storage fails, or the catalog.
    """
    if catalog is not None:
        from pyhudi.catalog.lookup import location_in  # noqa: PLC0415 - most tables have a location

        uri = location_in(catalog, os.fspath(uri))
    storage = Storage(os.fspath(uri), storage_options)
    return HudiTable(storage, engine or LocalEngine(), check_options(options), as_of)


class HudiTable(WritingVerbs, IndexVerbs, HistoryVerbs, ServiceVerbs, LookingVerbs, PropertyVerbs):
    """A Hudi table at one moment: what it was when opened, last refreshed or last written to.

    Get one by `open_table` or `create_table`.
    """

    def __init__(
        self,
        storage: Storage,
        engine: Engine,
        options: Mapping[str, str],
        as_of: Moment | None = None,
    ) -> None:
        self.storage = storage
        self.engine = engine
        self.options = options
        self.as_of = as_of
        """The time that the handle shows, None for the table as it is."""
        self._acts = 0
        """How many acts of its own there were, which it has to show."""
        # In one, since threads may share the handle: who began to look earlier may end later.
        self._shown = (0, _load(storage, options, as_of))

    @property
    def uri(self) -> str:
        """Where the table lies, as it was given."""
        return self.storage.uri

    @property
    def state(self) -> TableSnapshot:
        """What reads of the handle are planned from."""
        if self._shown[0] < self._acts:
            self.refresh()
        return self._shown[1]

    @property
    def config(self) -> TableConfig:
        """The table's properties."""
        return self.state.config

    @property
    def name(self) -> str:
        """The table's name."""
        return self.config.name

    @property
    def type(self) -> Literal["cow", "mor"]:
        """Copy-on-write or merge-on-read."""
        return "mor" if self.config.is_merge_on_read else "cow"

    @property
    def version(self) -> int:
        """The table version: 4 to 6, 8 or 9."""
        return self.config.version.code

    @property
    def schema(self) -> pa.Schema:
        """The table's columns in order, without Hudi's own."""
        shown = scan_schema(self.state)
        return pa.schema([field for field in shown if not is_meta(field.name)], shown.metadata)

    @property
    def inspect(self) -> Inspect:
        """Timeline, commits, files and log blocks as Arrow tables."""
        return Inspect(self.state)

    def refresh(self) -> HudiTable:
        """Looks at the table again, so that later commits are seen.

        Returns:
            This handle.

        Raises:
            TableNotFound: the table is gone.
            CorruptTable: the properties or timeline files are damaged.
            HistoryUnavailable: the handle's `as_of` cannot be shown any more.
            StorageError: storage fails.
        """
        acts = self._acts
        table = _load(self.storage, self.options, self.as_of, self._shown[1].config)
        if acts >= self._shown[0]:
            self._shown = acts, table
        return self

    @property
    def _known(self) -> TableConfig:
        return self._shown[1].config

    def _reload(self, instant: str = "") -> None:
        self._acts += 1
        with warn_on_failure(
            self.uri, instant, "a look at the table", until="the handle's next use"
        ):
            self.refresh()

    @arg.check_arguments(
        columns=arg.optional(arg.names),
        read_optimized=arg.flag,
        meta_fields=arg.flag,
        memory_limit=arg.optional(arg.whole),
    )
    def scan(
        self,
        columns: Sequence[str] | None = None,
        where: Any = None,
        *,
        limit: int | None = None,
        read_optimized: bool = False,
        meta_fields: bool = False,
        as_of: Moment | None = None,
        memory_limit: int | None = None,
    ) -> Scan:
        """The table's rows, merged; nothing is read before the scan's output is asked for.

        Args:
            columns: names in the wanted order, all by default.
            where: a SQL expression ("age > 30 AND city = 'osaka'"), a pyarrow expression, or filter
                tuples as pyarrow takes them; None for all rows.
            limit: at most so many rows; None for all.
            read_optimized: the base files alone, without the newer records in log files.
            meta_fields: Hudi's own columns too, in front; single ones can be named in `columns`.
            as_of: the table as it was, with the schema of then: what was requested up to that
                instant. An instant's text, `yyyy-MM-dd`, `yyyy-MM-dd HH:mm:ss[.SSS]`, ISO-8601,
                seconds or milliseconds since 1970 (10 or 13 digits), a date or datetime. A
                completion time means the instant that has it. Text without an offset is a time in
                the table's own zone (`hoodie.table.timeline.timezone`), a datetime without one, and
                a date, this machine's local time, as everywhere in Python.
            memory_limit: bytes that log records may take in memory at any time, at least a
                megabyte; more of them go to local files. A quarter of the machine's memory by
                default.

        Returns:
            The scan, of the table as the handle shows it.

        Raises:
            SchemaMismatch: columns or values do not fit the schema.
            ConfigError: an argument is no filter, no time or no number that it can be.
            HistoryUnavailable: files of that time have been cleaned, a write requested by then is
                incomplete, or the time is before the first commit.
        """
        table = self.state
        if as_of is not None:
            then = _past(self.config, table.timeline, as_of)
            table = _table_of(self.storage, self.config, then, self.options)
        return new_scan(
            table,
            self.engine,
            columns=columns,
            where=where,
            limit=limit,
            read_optimized=read_optimized,
            meta_fields=meta_fields,
            memory_limit=memory_limit,
        )

    @arg.check_arguments(
        columns=arg.optional(arg.names),
        meta_fields=arg.flag,
        hollow_commits=arg.text,
        fallback_full_scan=arg.optional(arg.flag),
        memory_limit=arg.optional(arg.whole),
    )
    def incremental(
        self,
        start: Moment | None = None,
        end: Moment | None = None,
        *,
        columns: Sequence[str] | None = None,
        where: Any = None,
        limit: int | None = None,
        meta_fields: bool = False,
        hollow_commits: HollowCommits = "fail",
        fallback_full_scan: bool | None = None,
        memory_limit: int | None = None,
    ) -> Scan:
        """Rows that commits after `start` and up to `end` wrote, as they stand at the end.

        Deletes do not show. To read each commit once, begin with the `next_start` of the range
        before.

        Args:
            start: exclusive. The requested or the completion time of an instant of the timeline,
                active or archived, means that instant; any other time, as `scan` takes it for
                `as_of`, is compared with requested times below table version 8, with completion
                times from 8 on. Of two instants that have the time, the one that has it in this
                order is meant. None, "earliest" or zeros: from the beginning.
            end: inclusive, likewise; None: up to the last commit.
            columns: names in the wanted order, all by default.
            where: a filter, as in `scan`.
            limit: at most so many rows; None for all.
            meta_fields: Hudi's own columns too, in front.
            hollow_commits: below version 8, when a write is pending that is older than completed
                ones: "fail", "block" (read what was before it) or "transition_time" (the range is
                of completion times).
            fallback_full_scan: where files of the range have been cleaned, take its rows that are
                still current. None, as in Hudi 1.2.0: from version 8 on, then with a warning.
            memory_limit: bytes, as in `scan`.

        Returns:
            The scan. Its outputs raise `HistoryUnavailable` for a hollow commit under "fail", and
            where files of the range have been cleaned and no full scan may stand in for them.

        Raises:
            SchemaMismatch: columns or values do not fit the schema.
            ConfigError: an argument is no filter, no time or no number that it can be, or the range
                ends before it begins.
            HistoryUnavailable: the end is before the first commit, or a bound is an instant that is
                not complete.
            UnsupportedTableFeature: the table has no meta columns.
        """
        table = self.state
        by_completion = by_completion_times(table, hollow_commits)
        bounds = range_bounds(table, start, end, by_completion=by_completion)
        span = IncrementalRange(*bounds, hollow_commits, fallback_full_scan)
        check_incremental(table, span)
        return new_scan(
            table,
            self.engine,
            columns=columns,
            where=where,
            limit=limit,
            meta_fields=meta_fields,
            span=span,
            memory_limit=memory_limit,
        )

    @arg.check_arguments(images=arg.text, memory_limit=arg.optional(arg.whole))
    def changes(
        self,
        start: Moment | None = None,
        end: Moment | None = None,
        *,
        where: Any = None,
        limit: int | None = None,
        images: Literal["struct", "json"] = "struct",
        memory_limit: int | None = None,
    ) -> Changes:
        """What commits changed, record by record, in a table with change data capture.

        Columns: `op` (i, u or d), `ts_ms` (the commit's instant, as Hudi has it), `before` and
        `after`: the record's data columns as a struct, or null.

        Args:
            start: exclusive, as `incremental` takes it; the `next_start` of the changes before.
            end: inclusive, likewise; None: up to the last commit.
            where: a filter on the four columns, as `scan` takes it ("op = 'd' AND before.city =
                'osaka'").
            limit: at most so many rows; None for all.
            images: "struct", or "json" for Hudi's JSON text.
            memory_limit: bytes that log records and rows that wait for their other image may take
                at any time, at least a megabyte. A quarter of the machine's memory by default.

        Returns:
            The changes; nothing is read before an output is asked for.

        Raises:
            UnsupportedTableFeature: the table is without `hoodie.table.cdc.enabled`.
            HistoryUnavailable: commits of the range were archived or files of it cleaned, a writer
                rewrote a file without a change log, the end is before the first commit, a bound is
                an instant that is not complete, or below version 8 a write is pending in the range
                that is older than completed ones.
            SchemaMismatch: the filter does not fit the columns.
            ConfigError: arguments are wrong, or the range ends before it begins.
        """
        from pyhudi.api.changes import new_changes  # noqa: PLC0415 - scans need none of it

        return new_changes(
            self.state,
            self.engine,
            start=start,
            end=end,
            where=where,
            limit=limit,
            images=images,
            memory_limit=memory_limit,
        )

    @arg.check_arguments(memory_limit=arg.optional(arg.whole))
    def diff(self, a: Moment, b: Moment, *, memory_limit: int | None = None) -> Diff:
        """What differs between the table at one moment and at another, by record key.

        Columns: `op` (i, u or d), `before` and `after` (the record's data columns as a struct, or
        null), `changed` (of updates the names of the columns that differ). Only file groups that
        differ are read; no change logs are needed. A record that moved to another partition or file
        group is no delete and insert. Both sides come with the columns that the table has now.

        Args:
            a: the moment before, a time as `scan` takes it for `as_of`.
            b: the moment after, likewise.
            memory_limit: bytes that log records and rows of the older side may take at any time,
                at least a megabyte: below it files are read once for each part of the keys. About
                256 MiB for each file group by default.

        Returns:
            The differences; nothing is read before an output is asked for.

        Raises:
            HistoryUnavailable: a moment is no longer known, or before the first commit.
            ConfigError: a moment is no time, or the limit too small.
            UnsupportedTableFeature: rows are without key or of a merge rule that pyhudi lacks.
        """
        from pyhudi.api.changes import new_diff  # noqa: PLC0415 - scans need none of it

        return new_diff(self.state, self.engine, a, b, memory_limit)

    @arg.check_arguments(deep=arg.flag, repair=arg.flag, memory_limit=arg.optional(arg.whole))
    def check(
        self, *, deep: bool = False, repair: bool = False, memory_limit: int | None = None
    ) -> CheckResult:
        """Compares the timeline, the files on storage and the metadata table.

        The table is looked at as it is now, not as the handle shows it. Without `repair` nothing
        changes.

        Args:
            deep: look into files too: footers and log blocks, statistics and bloom filters, keys
                that are there twice, and the record index key by key. It reads the keys of all
                rows.
            repair: before that, roll failed writes back, and remove what is nobody's: data files
                that no commit names, staged copies, folders of the metadata table that the table's
                properties do not name. What may be a living writer's stays.
            memory_limit: bytes that log records and keys that are compared may take, at least a
                megabyte. A quarter of the machine's memory by default.

        Returns:
            A finding for each difference; false as a condition when there is none. `repaired` are
            those of which the cause was removed.

        Raises:
            CommitConflict: repair, while a restore is pending.
            LockTimeout: repair, and the table's lock could not be had in time.
            ConfigError: the handle was opened as of an earlier time.
            UnsupportedTableFeature: deep, for a merge rule that pyhudi lacks; a version change by
                Apache Hudi is half done.
            CorruptTable: the properties or timeline files are damaged.
            StorageError: storage fails.
        """
        from pyhudi.admin.check import check  # noqa: PLC0415 - reading needs none of it
        from pyhudi.write.input_rows import memory_limit as bound  # noqa: PLC0415 - as above

        limit, table = bound(memory_limit), self._writable()
        repaired: tuple[Finding, ...] = ()
        if repair:
            from pyhudi.admin import repair as repairs  # noqa: PLC0415 - as above

            repaired = repairs.repair(table)
        with low_memory_mode(memory_limit):
            now = _load(table.storage, table.options, None)
            found = check(now, table.engine, deep=deep, memory=limit)
        return replace(found, repaired=repaired)

    @arg.check_arguments(
        catalog=arg.optional(arg.catalog),
        name=arg.optional(arg.name),
        database=arg.optional(arg.name),
    )
    def sync(
        self,
        catalog: Catalog | None = None,
        *,
        database: str | None = None,
        name: str | None = None,
    ) -> SyncResult:
        """Registers the table in a catalog, or brings it up to date there, as Hudi's sync does.

        Schema, properties and partitions are made those of the table as it is now; the table itself
        is only read. The `hoodie.datasource.hive_sync.…` options of the handle say how.

        Args:
            catalog: the catalog, such as `pyhudi.catalog.HiveCatalog`; None for those that the
                handle's options name.
            database: the database there; by default what the options say, or "default".
            name: the table's name there; by default what the options say, or the table's own.

        Returns:
            What was registered or changed.

        Raises:
            ConfigError: the name belongs to another table, there is no such database and none may
                be made, an extra is not installed, or the handle was opened as of an earlier time.
            UnsupportedTableFeature: the catalog cannot hold the table, as of a type of column.
            StorageError: storage fails, or the catalog.
        """
        from pyhudi.catalog.configured import sync_all, sync_by_options  # noqa: PLC0415 - reading needs none of it
        from pyhudi.config.catalog_sync_options import SyncOptions  # noqa: PLC0415 - as above

        table = self._writable()
        options = SyncOptions.of(table.options)
        options = replace(
            options, database=database or options.database, table=name or options.table
        )
        now = _load(table.storage, table.options, None)
        if catalog is None:
            return sync_by_options(now, options)
        return sync_all(now, [catalog], options)

    @arg.check_arguments(to=arg.whole, dry_run=arg.flag)
    def upgrade(self, to: int = 9, *, dry_run: bool = False) -> VersionChange:
        """Makes the table one of a later version; nothing else ever does.

        Log files are compacted first, the metadata table is removed, and made again in the new
        version. What a writer that dies leaves undone, the next write does. A table that has the
        version already stays as it is.

        Args:
            to: the table version: 5, 6, 8 or 9.
            dry_run: say what would change, and change nothing; raises what the change would.

        Returns:
            What changed, or would.

        Raises:
            UnsupportedTableFeature: the table cannot become one of that version, or pyhudi does not
                write to it; names the property. Nothing is changed then.
            CommitConflict: a clustering or the like is pending, or another writer is at work.
            ConfigError: there is no such version, it is an earlier one, or the handle was opened
                as of an earlier time.
        """
        return self._at_version(to, up=True, dry_run=dry_run)

    @arg.check_arguments(to=arg.whole, dry_run=arg.flag)
    def downgrade(self, to: int, *, dry_run: bool = False) -> VersionChange:
        """Makes the table one of an earlier version. As `upgrade` otherwise.

        Args:
            to: the table version: 8, 6, 5 or 4.
            dry_run: say what would change, and change nothing; raises what the change would.

        Returns:
            What changed, or would.

        Raises:
            UnsupportedTableFeature: the table cannot become one of that version, or pyhudi does not
                write to it; names the property. Nothing is changed then.
            CommitConflict: a clustering or the like is pending, or another writer is at work.
            ConfigError: there is no such version, it is a later one, or the handle was opened
                as of an earlier time.
        """
        return self._at_version(to, up=False, dry_run=dry_run)

    def _at_version(self, to: int, *, up: bool, dry_run: bool) -> VersionChange:
        from pyhudi.admin.upgrade import change_version  # noqa: PLC0415 - reading needs none of it

        change = change_version(self._writable(), to, up=up, dry_run=dry_run)
        self._reload()
        return change

    def _writable(self) -> HudiTable:
        if self.as_of is not None:
            raise ConfigError(
                f"the table was opened as of {self.as_of}: it is read-only",
                hint="Open it without as_of to write.",
            )
        return self


_LOOKS = 3
"""How often a table is looked at that changes its version, or archives, meanwhile."""


def _load(
    storage: Storage,
    options: Mapping[str, str],
    as_of: Moment | None,
    known: TableConfig | None = None,
) -> TableSnapshot:
    """known: the configuration that it had a while ago."""
    for _ in range(_LOOKS - 1):
        with suppress(TimelineMoved), _prefetch_table(storage, known):
            return _load_once(storage, options, as_of, known)
    return _load_once(storage, options, as_of)


def _prefetch_table(storage: Storage, known: TableConfig | None) -> AbstractContextManager[None]:
    """What is read of a table whose layout is, most likely, what it was."""
    if known is None:
        return nullcontext()
    return storage.prefetch(
        files=[properties_file.FILE], folders=[known.layout.folder, SCHEMA_FOLDER]
    )


def _load_once(
    storage: Storage,
    options: Mapping[str, str],
    as_of: Moment | None,
    known: TableConfig | None = None,
) -> TableSnapshot:
    config = TableConfig.load(storage, known=known).with_delete_marks(options)
    with storage.prefetch(folders=[config.layout.folder, SCHEMA_FOLDER]):
        timeline = Timeline.load(storage, config)
        if late := find_commits_after_rollback(timeline):
            # Their files are gone, and the next writer takes them back.
            timeline = timeline.without(late)
        then = timeline if as_of is None else _past(config, timeline, as_of)
        return _table_of(storage, config, then, options)


def _past(config: TableConfig, timeline: Timeline, as_of: Moment) -> Timeline:
    return timeline_at(timeline, as_of, config.timezone)


def _table_of(
    storage: Storage, config: TableConfig, timeline: Timeline, options: Mapping[str, str]
) -> TableSnapshot:
    found = table_schema(storage, config, timeline)
    schema = readable_schema(found.arrow, found.avro)
    as_text = text_columns(config, schema)
    clock = SystemClock()
    return TableSnapshot(
        storage,
        config,
        timeline,
        found,
        schema,
        InstantGenerator(clock, config.timezone),
        clock,
        options=options,
        as_text=as_text,
    )
