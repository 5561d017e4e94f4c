"""A Hive metastore as a catalog, by Thrift. Neither Kerberos nor TLS is spoken.

Source: `HMSDDLExecutor` and `HoodieHiveSyncClient` (Hudi 1.2.0).
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from typing import Any

from pyhudi.catalog.protocol import CatalogPartition, CatalogTable, Column
from pyhudi.clock import SystemClock
from pyhudi.errors import StorageError
from pyhudi.storage.credentials import mask_credentials
from pyhudi.txn.locks.hive_client import HiveClient, hive_types, said

_ALL = -1


class HiveCatalog:
    """Tables of a Hive metastore. Needs `pip install pyhudi[hive]`."""

    def __init__(self, uris: str = "thrift://localhost:9083") -> None:
        """Connects when it is first asked.

        Args:
            uris: `thrift://host:port` of the servers of one metastore, with commas between.
        """
        self.uris = uris
        self._client = HiveClient(uris, "the metastore's uris")

    def __repr__(self) -> str:
        return f"HiveCatalog({mask_credentials(self.uris)!r})"

    def close(self) -> None:
        """Ends the connection; the next call makes another."""
        self._client.disconnect()

    def location_of(self, uri: str) -> str:
        """A table's location; of a local one the absolute path."""
        return _normalize_location(uri)

    def base_parameters(self) -> Mapping[str, str]:
        """Nothing of its own."""
        return {}

    def has_database(self, database: str) -> bool:
        """Whether there is a database of this name."""
        return self._or_none("get_database", database) is not None

    def create_database(self, database: str) -> None:
        """Makes a database where the metastore's warehouse is."""
        types = hive_types()
        made = types.Database(
            name=database, description="automatically created by hoodie", parameters={}
        )
        self._call("create_database", made)

    def get_table(self, database: str, name: str) -> CatalogTable | None:
        """A table, None where there is none of the name."""
        found = self._or_none("get_table", database, name)
        if found is None:
            return None
        descriptor = found.sd
        return CatalogTable(
            name=found.tableName,
            location=descriptor.location or "",
            columns=_columns(descriptor.cols),
            partition_keys=_columns(found.partitionKeys),
            input_format=descriptor.inputFormat or "",
            output_format=descriptor.outputFormat or "",
            serde=descriptor.serdeInfo.serializationLib or "",
            serde_parameters=dict(descriptor.serdeInfo.parameters or {}),
            parameters=dict(found.parameters or {}),
        )

    def create_table(self, database: str, table: CatalogTable) -> None:
        """Registers a new table, whose files the metastore does not own."""
        types = hive_types()
        made = types.Table(
            dbName=database,
            tableName=table.name,
            owner=_user(),
            createTime=SystemClock().now_ms() // 1000,
            sd=types.StorageDescriptor(serdeInfo=types.SerDeInfo()),
            tableType="EXTERNAL_TABLE",
        )
        _fill(made, table)
        self._call("create_table", made)

    def alter_table(self, database: str, table: CatalogTable, *, cascade: bool) -> None:
        """Makes the table of that name what is given."""
        types = hive_types()
        found = self._call("get_table", database, table.name)
        _fill(found, table)
        context = types.EnvironmentContext(properties={"CASCADE": "true"} if cascade else {})
        arguments = (database, table.name, found, context)
        self._call("alter_table_with_environment_context", *arguments)

    def get_partitions(self, database: str, name: str) -> list[CatalogPartition]:
        """Every partition of a table."""
        return [
            CatalogPartition(tuple(found.values), found.sd.location)
            for found in self._call("get_partitions", database, name, _ALL)
        ]

    def add_partitions(
        self, database: str, name: str, partitions: Sequence[CatalogPartition], batch: int
    ) -> None:
        """Registers partitions, those that are there already excepted."""
        types = hive_types()
        for some in self._as_partitions(database, name, partitions, batch):
            request = types.AddPartitionsRequest(
                dbName=database, tblName=name, parts=some, ifNotExists=True, needResult=False
            )
            self._call("add_partitions_req", request)

    def move_partitions(
        self, database: str, name: str, partitions: Sequence[CatalogPartition], batch: int
    ) -> None:
        """Gives partitions another location."""
        for some in self._as_partitions(database, name, partitions, batch):
            self._call("alter_partitions", database, name, some)

    def drop_partitions(
        self, database: str, name: str, partitions: Sequence[CatalogPartition]
    ) -> None:
        """Takes partitions out of the catalog; their files stay."""
        for partition in partitions:
            self._or_none("drop_partition", database, name, list(partition.values), False)  # noqa: FBT003 - as Thrift has it

    def _as_partitions(
        self, database: str, name: str, partitions: Sequence[CatalogPartition], batch: int
    ) -> list[list[Any]]:
        """In lists of a batch each, with the columns and classes of the table."""
        types = hive_types()
        descriptor = self._call("get_table", database, name).sd
        made = []
        for partition in partitions:
            own = copy(descriptor)
            own.location = partition.location
            made.append(
                types.Partition(
                    values=list(partition.values),
                    dbName=database,
                    tableName=name,
                    createTime=0,
                    lastAccessTime=0,
                    sd=own,
                )
            )
        return [made[start : start + batch] for start in range(0, len(made), batch)]

    def _call(self, name: str, *arguments: Any) -> Any:
        try:
            return self._client.call(name, *arguments, again=name.startswith("get_"))
        except self._client.errors as error:
            raise self._storage_error(error) from error

    def _or_none(self, name: str, *arguments: Any) -> Any:
        missing = hive_types().NoSuchObjectException
        try:
            return self._client.call(name, *arguments, again=name.startswith("get_"))
        except missing:
            return None
        except self._client.errors as error:
            raise self._storage_error(error) from error

    def _storage_error(self, error: Exception) -> StorageError:
        return StorageError(f"Hive metastore at {mask_credentials(self.uris)}: {said(error)}")


def _fill(made: Any, table: CatalogTable) -> None:
    types = hive_types()
    made.partitionKeys = [_field(types, column) for column in table.partition_keys]
    made.parameters = dict(table.parameters)
    made.sd.cols = [_field(types, column) for column in table.columns]
    made.sd.location = table.location
    made.sd.inputFormat = table.input_format
    made.sd.outputFormat = table.output_format
    made.sd.serdeInfo.serializationLib = table.serde
    made.sd.serdeInfo.parameters = dict(table.serde_parameters)


def _field(types: Any, column: Column) -> Any:
    return types.FieldSchema(name=column.name, type=column.type, comment=column.comment)


def _columns(fields: Sequence[Any] | None) -> tuple[Column, ...]:
    return tuple(Column(field.name, field.type, field.comment or "") for field in fields or ())


def _normalize_location(uri: str) -> str:
    if "://" in uri and not uri.startswith("file://"):
        return uri.rstrip("/")
    return f"file:{os.path.abspath(uri.removeprefix('file://'))}"  # noqa: PTH100 - text stays text


def _user() -> str:
    with suppress(KeyError, OSError):
        return getpass.getuser()
    return "pyhudi"
