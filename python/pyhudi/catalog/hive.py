"""A Hive metastore as a catalog, through Thrift.

Source: `HMSDDLExecutor` and `HoodieHiveSyncClient` (Hudi 1.2.0).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from typing import Any

from pyhudi.catalog.protocol import CatalogPartition, CatalogTable, Column
from pyhudi.clock import SystemClock
from pyhudi.config.metastore_options import MetastoreOptions
from pyhudi.storage.options import mask_credentials
from pyhudi.txn.locks.hive_client import HiveClient, hive_types

_ALL = -1
_TABLES_PER_CALL = 300


class HiveCatalog:
    """Tables of a Hive metastore. Needs `pip install pyhudi[hive]`."""

    def __init__(
        self,
        uris: str = "thrift://localhost:9083",
        *,
        tls: bool = False,
        ca_file: str | None = None,
        client_certificate: str | None = None,
        client_key: str | None = None,
        check_hostname: bool = True,
        kerberos: bool = False,
        kerberos_principal: str = "hive",
    ) -> None:
        """Prepare a catalog; it connects on the first call.

        Args:
            uris: `thrift://host:port` of the servers of one metastore, separated by commas.
            tls: whether the connection uses TLS. The four arguments that follow need it.
            ca_file: PEM file of the authorities whose certificates are accepted; by default those
                of the system.
            client_certificate: PEM file with the certificate of the client, if the server asks for
                one, and with its key, unless `client_key` has it.
            client_key: PEM file with the key, which must not be encrypted.
            check_hostname: whether the certificate must have the host in `uris`.
            kerberos: whether the connection uses Kerberos, with the ticket of the process. Needs
                `pip install pyhudi[kerberos]`.
            kerberos_principal: principal of the metastore, such as `hive/_HOST@REALM`; `_HOST` is
                the host in `uris`. A name without host is a service on that host.

        Raises:
            ConfigError: an argument is wrong, or a file cannot be used.
        """
        self.uris = uris
        options = MetastoreOptions(
            tls=tls,
            ca_file=ca_file or "",
            client_certificate=client_certificate or "",
            client_key=client_key or "",
            check_hostname=check_hostname,
            kerberos=kerberos,
            kerberos_principal=kerberos_principal,
        )
        self._client = HiveClient(uris, "the metastore's uris", options)

    def __repr__(self) -> str:
        return f"HiveCatalog({mask_credentials(self.uris)!r})"

    def close(self) -> None:
        """Close the connection; the next call opens a new one."""
        self._client.disconnect()

    def location_of(self, uri: str) -> str:
        """Return a table's location; for a local table its absolute path."""
        return _normalize_location(uri)

    def base_parameters(self) -> Mapping[str, str]:
        """Return no parameters: the metastore has none of its own."""
        return {}

    def has_database(self, database: str) -> bool:
        """Return whether a database of this name exists."""
        return self._or_none("get_database", database) is not None

    def list_databases(self) -> list[str]:
        """Return the names of all databases."""
        return sorted(self._call("get_all_databases"))

    def database_location(self, database: str) -> str | None:
        """Return the location of a database, None if it does not exist."""
        stored = self._or_none("get_database", database)
        return None if stored is None else stored.locationUri or ""

    def create_database(self, database: str, location: str = "") -> None:
        """Create a database, in the metastore's warehouse if you pass no location."""
        types = hive_types()
        new_database = types.Database(
            name=database,
            description="automatically created by hoodie",
            locationUri=location or None,
            parameters={},
        )
        self._call("create_database", new_database)

    def list_tables(self, database: str) -> list[CatalogTable]:
        """Return all tables of a database, also those that are not Hudi tables."""
        names = self._call("get_all_tables", database)
        tables: list[CatalogTable] = []
        for start in range(0, len(names), _TABLES_PER_CALL):
            chunk = names[start : start + _TABLES_PER_CALL]
            tables += map(_table, self._call("get_table_objects_by_name", database, chunk))
        return tables

    def get_table(self, database: str, name: str) -> CatalogTable | None:
        """Return a table, None if it does not exist."""
        stored = self._or_none("get_table", database, name)
        return None if stored is None else _table(stored)

    def drop_table(self, database: str, name: str) -> None:
        """Remove a table from the metastore, if it exists; its files stay."""
        self._or_none("drop_table", database, name, False)  # noqa: FBT003 - as Thrift has it

    def rename_table(self, database: str, name: str, new_name: str) -> None:
        """Rename a table within its database; its files stay where they are."""
        stored = self._call("get_table", database, name)
        stored.tableName = new_name
        self._call("alter_table", database, name, stored)

    def create_table(self, database: str, table: CatalogTable) -> None:
        """Register a new table, whose files the metastore does not own."""
        types = hive_types()
        new_table = types.Table(
            dbName=database,
            tableName=table.name,
            owner=self._owner(),
            createTime=SystemClock().now_ms() // 1000,
            sd=types.StorageDescriptor(serdeInfo=types.SerDeInfo()),
            tableType="EXTERNAL_TABLE",
        )
        _fill(new_table, table)
        self._call("create_table", new_table)

    def alter_table(self, database: str, table: CatalogTable, *, cascade: bool) -> None:
        """Change the table of this name to the given definition."""
        types = hive_types()
        stored = self._call("get_table", database, table.name)
        _fill(stored, table)
        context = types.EnvironmentContext(properties={"CASCADE": "true"} if cascade else {})
        arguments = (database, table.name, stored, context)
        self._call("alter_table_with_environment_context", *arguments)

    def get_partitions(self, database: str, name: str) -> list[CatalogPartition]:
        """Return all partitions of a table."""
        return [
            CatalogPartition(tuple(partition.values), partition.sd.location)
            for partition in self._call("get_partitions", database, name, _ALL)
        ]

    def add_partitions(
        self, database: str, name: str, partitions: Sequence[CatalogPartition], batch: int
    ) -> None:
        """Register partitions, except those that exist already."""
        types = hive_types()
        for chunk in self._as_partitions(database, name, partitions, batch):
            request = types.AddPartitionsRequest(
                dbName=database, tblName=name, parts=chunk, ifNotExists=True, needResult=False
            )
            self._call("add_partitions_req", request)

    def move_partitions(
        self, database: str, name: str, partitions: Sequence[CatalogPartition], batch: int
    ) -> None:
        """Set another location for partitions."""
        for chunk in self._as_partitions(database, name, partitions, batch):
            self._call("alter_partitions", database, name, chunk)

    def drop_partitions(
        self, database: str, name: str, partitions: Sequence[CatalogPartition]
    ) -> None:
        """Remove partitions from the catalog; their files stay."""
        for partition in partitions:
            self._or_none("drop_partition", database, name, list(partition.values), False)  # noqa: FBT003 - as Thrift has it

    def _as_partitions(
        self, database: str, name: str, partitions: Sequence[CatalogPartition], batch: int
    ) -> list[list[Any]]:
        """Return batches of partitions, with the columns and classes of the table."""
        types = hive_types()
        descriptor = self._call("get_table", database, name).sd
        result = []
        for partition in partitions:
            own = copy(descriptor)
            own.location = partition.location
            result.append(
                types.Partition(
                    values=list(partition.values),
                    dbName=database,
                    tableName=name,
                    createTime=0,
                    lastAccessTime=0,
                    sd=own,
                )
            )
        return [result[start : start + batch] for start in range(0, len(result), batch)]

    def _owner(self) -> str:
        with self._storage_errors():
            return self._client.user_name()

    def _call(self, name: str, *arguments: Any) -> Any:
        with self._storage_errors():
            return self._client.call(name, *arguments, retry=name.startswith("get_"))

    def _or_none(self, name: str, *arguments: Any) -> Any:
        missing = hive_types().NoSuchObjectException
        with self._storage_errors(), suppress(missing):
            return self._client.call(name, *arguments, retry=name.startswith("get_"))
        return None

    @contextmanager
    def _storage_errors(self) -> Iterator[None]:
        """Raise errors of the connection and of the metastore as `StorageError`."""
        try:
            yield
        except self._client.errors as error:
            raise self._client.storage_error(error) from error


def _fill(target: Any, table: CatalogTable) -> None:
    types = hive_types()
    target.partitionKeys = [_field(types, column) for column in table.partition_keys]
    target.parameters = dict(table.parameters)
    target.sd.cols = [_field(types, column) for column in table.columns]
    target.sd.location = table.location
    target.sd.inputFormat = table.input_format
    target.sd.outputFormat = table.output_format
    target.sd.serdeInfo.serializationLib = table.serde
    target.sd.serdeInfo.parameters = dict(table.serde_parameters)


def _table(stored: Any) -> CatalogTable:
    descriptor = stored.sd
    serde = descriptor.serdeInfo
    return CatalogTable(
        name=stored.tableName,
        location=descriptor.location or "",
        columns=_columns(descriptor.cols),
        partition_keys=_columns(stored.partitionKeys),
        input_format=descriptor.inputFormat or "",
        output_format=descriptor.outputFormat or "",
        serde=serde.serializationLib or "",
        serde_parameters=dict(serde.parameters or {}),
        parameters=dict(stored.parameters or {}),
    )


def _field(types: Any, column: Column) -> Any:
    return types.FieldSchema(name=column.name, type=column.type, comment=column.comment)


def _columns(fields: Sequence[Any] | None) -> tuple[Column, ...]:
    return tuple(Column(field.name, field.type, field.comment or "") for field in fields or ())


def _normalize_location(uri: str) -> str:
    if "://" in uri and not uri.startswith("file://"):
        return uri.rstrip("/")
    return f"file:{os.path.abspath(uri.removeprefix('file://'))}"  # noqa: PTH100 - text stays text
