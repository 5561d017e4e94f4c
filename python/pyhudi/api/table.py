"""The table handle: opens a table, and has its methods, each a call to another module."""

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
    """Open a table at its current snapshot, or at an earlier one.

    Args:
        uri: location of the table: a path, a `file://` URI, `s3://bucket/prefix` (or `s3a://`),
            `gs://bucket/prefix`, `abfss://container@account.dfs.core.windows.net/prefix`, or
            `hdfs://namenode:port/path`.
        storage_options: credentials and settings of an object store, with deltalake's names; see
            docs/reference/storage-options.md. Missing ones come from the environment.
        options: `hoodie.…` options by name.
        engine: what runs the work; by default threads of this process, one for each processor.
        as_of: time of the snapshot that every read of the handle uses, as in `HudiTable.scan`; None
            for the current snapshot. With `as_of` the handle is read-only.
        catalog: a catalog in which `uri` is the table's name, `database.table`, or `table` of the
            database "default": see `pyhudi.catalog`.

    Returns:
        The handle. It reads the current snapshot until you refresh it or write to it.

    Raises:
        TableNotFound: there is no table, or the catalog has no Hudi table of that name.
        UnsupportedTableFeature: pyhudi cannot read the table; the message names the feature.
        CorruptTable: the properties or timeline files are damaged.
        ConfigError: an option is unknown or has an invalid value, `as_of` is not a time, or the
            catalog's table is a read-optimized view, which a handle cannot be.
        HistoryUnavailable: the table cannot be read at `as_of`, see `HudiTable.scan`.
        StorageError: the storage or the catalog fails.
    """
    if catalog is not None:
        from pyhudi.catalog.registration import location_in  # noqa: PLC0415 - most tables have a location

        uri = location_in(catalog, os.fspath(uri))
    storage = Storage(os.fspath(uri), storage_options)
    return HudiTable(storage, engine or LocalEngine(), check_options(options), as_of)


class HudiTable(WritingVerbs, IndexVerbs, HistoryVerbs, ServiceVerbs, LookingVerbs, PropertyVerbs):
    """A Hudi table at one snapshot: that of its opening, last refresh or last own write.

    Get a handle with `open_table` or `create_table`.
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
        """The time of the handle's snapshot; None for the current one."""
        self._acts = 0
        """Number of the handle's own operations, which its snapshot must include."""
        # One attribute, since threads may share the handle: a reload that begins first may end
        # last.
        self._shown = (0, _load(storage, options, as_of))

    @property
    def uri(self) -> str:
        """Location of the table, as the caller passed it."""
        return self.storage.uri

    @property
    def state(self) -> TableSnapshot:
        """The snapshot that reads of the handle use."""
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
        """The table type: "cow" for copy-on-write, "mor" for merge-on-read."""
        return "mor" if self.config.is_merge_on_read else "cow"

    @property
    def version(self) -> int:
        """The table version: 4 to 6, 8 or 9."""
        return self.config.version.code

    @property
    def schema(self) -> pa.Schema:
        """The table's columns in order, without Hudi's meta columns."""
        shown = scan_schema(self.state)
        return pa.schema([field for field in shown if not is_meta(field.name)], shown.metadata)

    @property
    def inspect(self) -> Inspect:
        """Timeline, commits, files and log blocks as Arrow tables."""
        return Inspect(self.state)

    def refresh(self) -> HudiTable:
        """Reload the table, so that reads see later commits.

        Returns:
            This handle.

        Raises:
            TableNotFound: the table does not exist any more.
            CorruptTable: the properties or timeline files are damaged.
            HistoryUnavailable: the snapshot of the handle's `as_of` can no longer be read.
            StorageError: the storage fails.
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
            self.uri, instant, "reloading the table", until="the handle's next use"
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
        """Return a scan of the table's merged rows; nothing is read before you ask for an output.

        Args:
            columns: names in the order of the result; all columns by default.
            where: a SQL expression ("age > 30 AND city = 'osaka'"), a pyarrow expression, or filter
                tuples as in pyarrow; None for all rows.
            limit: maximum number of rows; None for all.
            read_optimized: read base files only, without the newer records in log files.
            meta_fields: include Hudi's meta columns, in front; you can also name single ones in
                `columns`.
            as_of: read the table and its schema as of an earlier time: everything that was
                requested up to that instant. The text of an instant, `yyyy-MM-dd`, `yyyy-MM-dd
                HH:mm:ss[.SSS]`, ISO-8601, seconds or milliseconds since 1970 (10 or 13 digits), a
                date or a datetime. A completion time means its instant. Text without an offset is a
                time in the table's own zone (`hoodie.table.timeline.timezone`); a datetime without
                an offset, and a date, are local time of this machine, as everywhere in Python.
            memory_limit: bytes that log records may take in memory at any time, at least a
                megabyte; pyhudi spills more of them to local files. A quarter of the machine's
                memory by default.

        Returns:
            The scan, of the handle's snapshot.

        Raises:
            SchemaMismatch: columns or values do not match the schema.
            ConfigError: an argument is not a valid filter, time or number.
            HistoryUnavailable: files of that snapshot have been cleaned, a write requested before
                it is incomplete, or the time is before the first commit.
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
        """Return rows that commits after `start` and up to `end` wrote, in their state at the end.

        Deletes are not included. To read each commit once, start at the `next_start` of the
        previous range.

        Args:
            start: exclusive. The requested or completion time of an instant of the timeline, active
                or archived, means that instant. Any other time, in a format of `scan`'s `as_of`, is
                compared with requested times below table version 8, and with completion times from
                8 on. If two instants have the time, the one that has it in this comparison is
                meant. None, "earliest" or zeros: from the beginning.
            end: inclusive, in the same formats; None: up to the last commit.
            columns: names in the order of the result; all columns by default.
            where: a filter, as in `scan`.
            limit: maximum number of rows; None for all.
            meta_fields: include Hudi's meta columns, in front.
            hollow_commits: what to do below version 8 if a pending write is older than completed
                ones: "fail", "block" (read only what is before it) or "transition_time" (the range
                is of completion times).
            fallback_full_scan: if files of the range have been cleaned, return those of its rows
                that are still current. None, as in Hudi 1.2.0: from version 8 on, and then with a
                warning.
            memory_limit: bytes, as in `scan`.

        Returns:
            The scan. Its outputs raise `HistoryUnavailable` for a hollow commit under "fail", and
            if files of the range have been cleaned and a full scan may not replace them.

        Raises:
            SchemaMismatch: columns or values do not match the schema.
            ConfigError: an argument is not a valid filter, time or number, or the range ends before
                it begins.
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
        """Return what commits changed, record by record, in a table with change data capture.

        Columns: `op` (i, u or d), `ts_ms` (the commit's instant, as in Hudi), `before` and `after`:
        the record's data columns as a struct, or null.

        Args:
            start: exclusive, as in `incremental`; for example the `next_start` of the previous
                changes.
            end: inclusive, in the same formats; None: up to the last commit.
            where: a filter on the four columns, as in `scan` ("op = 'd' AND before.city =
                'osaka'").
            limit: maximum number of rows; None for all.
            images: "struct", or "json" for Hudi's JSON text.
            memory_limit: bytes that log records, and rows that wait for their other image, may take
                at any time, at least a megabyte. A quarter of the machine's memory by default.

        Returns:
            The changes; nothing is read before you ask for an output.

        Raises:
            UnsupportedTableFeature: the table does not have `hoodie.table.cdc.enabled`.
            HistoryUnavailable: commits of the range were archived, or files of it were cleaned; a
                writer rewrote a file without a change log; the end is before the first commit; a
                bound is an instant that is not complete; or, below version 8, a pending write in
                the range is older than completed ones.
            SchemaMismatch: the filter does not match the columns.
            ConfigError: arguments are wrong, or the range ends before it begins.
        """
        from pyhudi.api.changes import new_changes  # noqa: PLC0415 - not needed for scans

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
        """Return what differs between two snapshots of the table, by record key.

        Columns: `op` (i, u or d), `before` and `after` (the record's data columns as a struct, or
        null), `changed` (of updates, the names of the columns that differ). Only file groups that
        differ are read; change logs are not needed. A record that moved to another partition or
        file group does not count as a delete and an insert. Both sides have the table's current
        columns.

        Args:
            a: time of the earlier snapshot, in a format of `scan`'s `as_of`.
            b: time of the later snapshot, in the same formats.
            memory_limit: bytes that log records and rows of the older side may take at any time, at
                least a megabyte; if they do not fit, files are read once for each part of the keys.
                About 256 MiB for each file group by default.

        Returns:
            The differences; nothing is read before you ask for an output.

        Raises:
            HistoryUnavailable: a snapshot can no longer be read, or is before the first commit.
            ConfigError: `a` or `b` is not a time, or the limit is too small.
            UnsupportedTableFeature: rows have no key, or pyhudi does not support their merge rule.
        """
        from pyhudi.api.changes import new_diff  # noqa: PLC0415 - not needed for scans

        return new_diff(self.state, self.engine, a, b, memory_limit)

    @arg.check_arguments(deep=arg.flag, repair=arg.flag, memory_limit=arg.optional(arg.whole))
    def check(
        self, *, deep: bool = False, repair: bool = False, memory_limit: int | None = None
    ) -> CheckResult:
        """Compare the timeline, the files on storage and the metadata table.

        The check uses the current table, not the handle's snapshot. It changes nothing unless you
        pass `repair`.

        Args:
            deep: also read files: footers and log blocks, statistics and bloom filters, duplicate
                keys, and the record index key by key. This reads the keys of all rows.
            repair: first roll back failed writes and remove orphaned files: data files that no
                commit lists, staged copies, directories of the metadata table that the table's
                properties do not list. Files that may belong to an active writer stay.
            memory_limit: bytes that log records and compared keys may take, at least a megabyte. A
                quarter of the machine's memory by default.

        Returns:
            A finding for each difference; the result is false as a condition if there is none.
            `repaired` lists the findings whose cause was removed.

        Raises:
            CommitConflict: with `repair`, a restore is pending.
            LockTimeout: with `repair`, the table's lock was not free in time.
            ConfigError: the handle was opened as of an earlier time.
            UnsupportedTableFeature: with `deep`, pyhudi does not support a merge rule; or a version
                change by Apache Hudi is incomplete.
            CorruptTable: the properties or timeline files are damaged.
            StorageError: the storage fails.
        """
        from pyhudi.admin.check import check  # noqa: PLC0415 - not needed for reading
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
        """Register the table in a catalog, or update it there, as Hudi's sync does.

        The catalog gets the schema, properties and partitions of the current table; the table
        itself is only read. The `hoodie.datasource.hive_sync.…` options of the handle apply.

        Args:
            catalog: the catalog, such as `pyhudi.catalog.HiveCatalog`; None for those that the
                handle's options name.
            database: the database there; by default that of the options, or "default".
            name: the table's name there; by default that of the options, or the table's own.

        Returns:
            What was registered or changed.

        Raises:
            ConfigError: the name belongs to another table, the database does not exist and may not
                be created, an extra is not installed, or the handle was opened as of an earlier
                time.
            UnsupportedTableFeature: the catalog cannot register the table, for example because of a
                column type.
            StorageError: the storage or the catalog fails.
        """
        from pyhudi.catalog.configured import sync_all, sync_by_options  # noqa: PLC0415 - not needed for reading
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
        """Upgrade the table to a later version; no other operation does that.

        pyhudi compacts log files first, removes the metadata table and rebuilds it in the new
        version. If the writer fails, the next write completes the upgrade. A table that has the
        version already does not change.

        Args:
            to: the table version: 5, 6, 8 or 9.
            dry_run: return what would change, and change nothing; raises what the upgrade would
                raise.

        Returns:
            What changed, or would change.

        Raises:
            UnsupportedTableFeature: the table cannot have that version, or pyhudi does not write to
                it; the message names the property. Nothing is changed.
            CommitConflict: a clustering or another operation is pending, or another writer is
                active.
            ConfigError: there is no such version, it is an earlier one, or the handle was opened as
                of an earlier time.
        """
        return self._at_version(to, up=True, dry_run=dry_run)

    @arg.check_arguments(to=arg.whole, dry_run=arg.flag)
    def downgrade(self, to: int, *, dry_run: bool = False) -> VersionChange:
        """Downgrade the table to an earlier version; otherwise as `upgrade`.

        Args:
            to: the table version: 8, 6, 5 or 4.
            dry_run: return what would change, and change nothing; raises what the downgrade would
                raise.

        Returns:
            What changed, or would change.

        Raises:
            UnsupportedTableFeature: the table cannot have that version, or pyhudi does not write to
                it; the message names the property. Nothing is changed.
            CommitConflict: a clustering or another operation is pending, or another writer is
                active.
            ConfigError: there is no such version, it is a later one, or the handle was opened as of
                an earlier time.
        """
        return self._at_version(to, up=False, dry_run=dry_run)

    def _at_version(self, to: int, *, up: bool, dry_run: bool) -> VersionChange:
        from pyhudi.admin.upgrade import change_version  # noqa: PLC0415 - not needed for reading

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
"""How often a table is loaded while a concurrent version change or archiving interferes."""


def _load(
    storage: Storage,
    options: Mapping[str, str],
    as_of: Moment | None,
    known: TableConfig | None = None,
) -> TableSnapshot:
    """Load a snapshot of the table. known: the table's properties, possibly out of date."""
    for _ in range(_LOOKS - 1):
        with suppress(TimelineMoved), _prefetch_table(storage, known):
            return _load_once(storage, options, as_of, known)
    return _load_once(storage, options, as_of)


def _prefetch_table(storage: Storage, known: TableConfig | None) -> AbstractContextManager[None]:
    """Prefetch what a load reads, assuming that the layout has not changed."""
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
        if revocable := find_commits_after_rollback(timeline):
            # Files of these commits were rolled back, and the next writer revokes the commits.
            timeline = timeline.without(revocable)
        then = timeline if as_of is None else _past(config, timeline, as_of)
        return _table_of(storage, config, then, options)


def _past(config: TableConfig, timeline: Timeline, as_of: Moment) -> Timeline:
    return timeline_at(timeline, as_of, config.timezone)


def _table_of(
    storage: Storage, config: TableConfig, timeline: Timeline, options: Mapping[str, str]
) -> TableSnapshot:
    stored_schema = table_schema(storage, config, timeline)
    schema = readable_schema(stored_schema.arrow, stored_schema.avro)
    as_text = text_columns(config, schema)
    clock = SystemClock()
    return TableSnapshot(
        storage,
        config,
        timeline,
        stored_schema,
        schema,
        InstantGenerator(clock, config.timezone),
        clock,
        options=options,
        as_text=as_text,
    )
