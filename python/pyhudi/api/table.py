"""The table handle: opens a table. Each of its methods is a call to another module."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyhudi.api.ddl_operations import DdlOperations
from pyhudi.api.dml_operations import DmlOperations
from pyhudi.api.history_operations import HistoryOperations
from pyhudi.api.index_operations import IndexOperations
from pyhudi.api.operation_events import as_operation
from pyhudi.api.read_operations import ReadOperations
from pyhudi.api.service_operations import ServiceOperations
from pyhudi.api.stream_operations import StreamOperations
from pyhudi.api.table_handle import load_snapshot
from pyhudi.api.write_operations import WriteOperations
from pyhudi.clock import Moment
from pyhudi.config import argument_checks as arg
from pyhudi.engine.local import LocalEngine
from pyhudi.engine.memory_pool import low_memory_mode
from pyhudi.engine.protocol import Engine
from pyhudi.storage.options import is_table_name
from pyhudi.storage.storage import Storage

if TYPE_CHECKING:  # Opening and reading a table needs none of it.
    from pyhudi.admin.check_findings import CheckResult
    from pyhudi.api.inspect import Inspect
    from pyhudi.catalog.protocol import Catalog
    from pyhudi.catalog.table_sync import SyncResult
    from pyhudi.config.memory_size import MemorySize


@arg.check_arguments()
def open_table(
    uri: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, str] | None = None,
    options: Mapping[str, object] | None = None,
    engine: Engine | None = None,
    as_of: Moment | None = None,
    catalog: Catalog | None = None,
    filesystem: Any = None,
) -> HudiTable:
    """Open a table at its current snapshot, or at an earlier one.

    Args:
        uri: location of the table: a path, a `file://` URI, `s3://bucket/prefix` (or `s3a://`),
            `gs://bucket/prefix`, `abfss://container@account.dfs.core.windows.net/prefix`, or
            `hdfs://namenode:port/path`; or a name such as `prod.sales.trips`: a configured
            catalog, a database and a table, see docs/how-to/catalogs.md.
        storage_options: credentials and settings of an object store, with deltalake's names; see
            docs/reference/storage-options.md. Missing ones come from the environment.
        options: `hoodie.…` options by name.
        engine: what runs the work; by default threads of this process, one for each processor.
        as_of: time of the snapshot that every read of the handle uses, as in `HudiTable.scan`; None
            for the current snapshot. With `as_of` the handle is read-only.
        catalog: a catalog in which `uri` is the table's name, `database.table`, or `table` of the
            database "default": see `pyhudi.catalog`.
        filesystem: in place of `storage_options`, a filesystem object of pyarrow or fsspec for a
            local directory, S3, Google Cloud Storage or Azure. pyhudi takes its credentials,
            region and endpoint, and does not call it; `uri` may be one of its paths. See
            docs/how-to/s3.md.

    Returns:
        The handle. It reads the current snapshot until you refresh it or write to it.

    Raises:
        TableNotFound: there is no table, or the catalog has no Hudi table of that name.
        UnsupportedTableFeature: pyhudi cannot read the table; the message names the feature.
        CorruptTable: the properties or timeline files are damaged.
        ConfigError: an option is unknown or has an invalid value, `as_of` is not a time, or the
            catalog's table is a read-optimized view, which a handle cannot be; or no catalog of the
            name's first part is configured; or pyhudi cannot take the settings of `filesystem`.
        HistoryUnavailable: the table cannot be read at `as_of`, see `HudiTable.scan`.
        StorageError: the storage or the catalog fails.
    """
    if filesystem is not None:
        from pyhudi.storage.filesystems import with_filesystem  # noqa: PLC0415 - few calls pass one

        uri, storage_options = with_filesystem(uri, storage_options, filesystem)
    if catalog is not None:
        from pyhudi.catalog.registration import location_in  # noqa: PLC0415 - most tables have a location

        uri = location_in(catalog, os.fspath(uri))
    elif is_table_name(uri):
        from pyhudi.catalog.named_table import find_table  # noqa: PLC0415 - most tables have a location

        access = find_table(uri).access(storage_options, options)
        storage = Storage(access.uri, access.storage_options)
        return HudiTable(storage, engine or LocalEngine(), access.options, as_of)
    checked: dict[str, str] = {}
    if options:
        from pyhudi.config.options import check_options  # noqa: PLC0415 - the defaults are valid

        checked = check_options(options)
    storage = Storage(os.fspath(uri), storage_options)
    return HudiTable(storage, engine or LocalEngine(), checked, as_of)


class HudiTable(
    ReadOperations,
    WriteOperations,
    DmlOperations,
    DdlOperations,
    IndexOperations,
    HistoryOperations,
    ServiceOperations,
    StreamOperations,
):
    """A Hudi table at one snapshot: that of its opening, last refresh or last own write.

    Get a handle with `open_table` or `create_table`.
    """

    @property
    def inspect(self) -> Inspect:
        """Timeline, commits, files and log blocks as Arrow tables."""
        from pyhudi.api.inspect import Inspect  # noqa: PLC0415 - not needed for reading

        return Inspect(self.state)

    @arg.check_arguments()
    @as_operation
    def check(
        self, *, deep: bool = False, repair: bool = False, memory_limit: MemorySize | None = None
    ) -> CheckResult:
        """Compare the timeline, the files on storage and the metadata table.

        The check uses the current table, not the handle's snapshot. It changes nothing unless you
        pass `repair`.

        Args:
            deep: also read files: all bytes against their checksums, statistics and bloom filters,
                duplicate keys, and the record index key by key. This reads the keys of all rows.
            repair: first roll back failed writes and remove orphaned files: data files that no
                commit lists, staged copies, directories of the metadata table that the table's
                properties do not list. Files that may belong to an active writer stay.
            memory_limit: bytes that log records and compared keys may take, at least a megabyte. A
                quarter of the machine's memory by default.

        Returns:
            A finding for each difference; the result is false as a condition if it has none.
            `repaired` lists the findings whose cause was removed, `unverified` the files without
            checksums of all their bytes.

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
        from pyhudi.admin.repair import repair as repair_table  # noqa: PLC0415 - as above
        from pyhudi.write.input_rows import memory_limit as memory_bytes  # noqa: PLC0415 - as above

        memory, table = memory_bytes(memory_limit), self._writable()
        repaired = repair_table(table) if repair else ()
        with low_memory_mode(memory_limit):
            current = load_snapshot(table.storage, table.options, None)
            result = check(current, table.engine, deep=deep, memory=memory)
        return replace(result, repaired=repaired)

    @arg.check_arguments(name=arg.name, database=arg.name)
    @as_operation
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
        current = load_snapshot(table.storage, table.options, None)
        if catalog is None:
            return sync_by_options(current, options)
        return sync_all(current, [catalog], options)
