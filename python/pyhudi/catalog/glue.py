"""AWS Glue's data catalog, through boto3, which finds credentials and region itself.

Source: `AWSGlueCatalogSyncClient` (Hudi 1.2.0). Partition indexes and tags are not set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyhudi.catalog.protocol import CatalogPartition, CatalogTable, Column
from pyhudi.errors import StorageError
from pyhudi.txn.locks.optional_imports import extra

_MAX_ADDED = 100
_MAX_DROPPED = 25
_KEPT = ("Description", "Owner", "Retention", "TableType")
"""Parts of a table's input that must be repeated when the table changes."""


class GlueCatalog:
    """Tables of AWS Glue. Needs `pip install pyhudi[glue]`."""

    def __init__(
        self,
        region: str | None = None,
        *,
        endpoint_url: str | None = None,
        metadata_listing: bool = False,
        skip_archive: bool = True,
    ) -> None:
        """Prepare a catalog; it connects on the first call.

        Args:
            region: name of the region; None for boto3's default.
            endpoint_url: another server with the API of Glue.
            metadata_listing: whether Athena lists files from the table's metadata table.
            skip_archive: do not keep the old version of a table in Glue when it changes.
        """
        self._region = region
        self._endpoint = endpoint_url
        self._listing = metadata_listing
        self._skip_archive = skip_archive
        self._connection: Any = None

    def __repr__(self) -> str:
        return f"GlueCatalog({self._region!r})"

    def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        client, self._connection = self._connection, None
        if client is not None:
            client.close()

    def location_of(self, uri: str) -> str:
        """Return a table's location for Glue's readers, which do not accept `s3a://`."""
        text = uri.rstrip("/")
        return f"s3://{text[6:]}" if text.lower().startswith("s3a://") else text

    def base_parameters(self) -> Mapping[str, str]:
        """Return the parameters that Athena uses."""
        return {"hudi.metadata-listing-enabled": "TRUE" if self._listing else "FALSE"}

    def has_database(self, database: str) -> bool:
        """Return whether a database of this name exists."""
        return self._or_none("get_database", Name=database) is not None

    def list_databases(self) -> list[str]:
        """Return the names of all databases."""
        pages = self._pages("get_databases")
        return sorted(each["Name"] for page in pages for each in page["DatabaseList"])

    def database_location(self, database: str) -> str | None:
        """Return the location of a database, "" if it has none, None if it does not exist."""
        response = self._or_none("get_database", Name=database)
        return None if response is None else response["Database"].get("LocationUri", "")

    def create_database(self, database: str, location: str = "") -> None:
        """Create a database. location: where its new tables are created."""
        description = "Automatically created by org.apache.hudi.aws.sync.AWSGlueCatalogSyncClient"
        database_input = {"Name": database, "Description": description}
        if location:
            database_input["LocationUri"] = location
        self._call("create_database", DatabaseInput=database_input)

    def list_tables(self, database: str) -> list[CatalogTable]:
        """Return all tables of a database, also those that are not Hudi tables."""
        pages = self._pages("get_tables", DatabaseName=database)
        return [_table(each) for page in pages for each in page["TableList"]]

    def get_table(self, database: str, name: str) -> CatalogTable | None:
        """Return a table, None if it does not exist."""
        response = self._or_none("get_table", DatabaseName=database, Name=name)
        return None if response is None else _table(response["Table"])

    def drop_table(self, database: str, name: str) -> None:
        """Remove a table from Glue, if it exists; its files stay."""
        self._or_none("delete_table", DatabaseName=database, Name=name)

    def rename_table(self, database: str, name: str, new_name: str) -> None:
        """Rename a table within its database; its files stay where they are.

        Glue has no such call: the entry and its partitions are copied, then the old one is removed.
        """
        stored = self._call("get_table", DatabaseName=database, Name=name)["Table"]
        entry = _table(stored)
        table_input = {part: stored[part] for part in _KEPT if part in stored}
        table_input |= _table_input(entry, stored.get("StorageDescriptor", {}))
        table_input["Name"] = new_name
        self._call("create_table", DatabaseName=database, TableInput=table_input)
        partitions = self.get_partitions(database, name)
        if partitions:
            self.add_partitions(database, new_name, partitions, _MAX_ADDED)
        self.drop_table(database, name)

    def create_table(self, database: str, table: CatalogTable) -> None:
        """Register a new table, whose files Glue does not own."""
        table_input = {"Name": table.name, "TableType": "EXTERNAL_TABLE", **_table_input(table, {})}
        self._call("create_table", DatabaseName=database, TableInput=table_input)

    def alter_table(self, database: str, table: CatalogTable, *, cascade: bool) -> None:
        """Change the table of this name to the given definition.

        As in Hudi, `cascade` also changes partitions if a column has another type than before;
        partitions without a column are read as they are.
        """
        stored = self._call("get_table", DatabaseName=database, Name=table.name)["Table"]
        repeated = {name: stored[name] for name in _KEPT if name in stored}
        table_input = _table_input(table, stored.get("StorageDescriptor", {}))
        if cascade and _has_other_types(stored, table):
            # Before the table: if it failed in between, the next sync would find nothing to do.
            partitions = self.get_partitions(database, table.name)
            inputs = _inputs(table_input["StorageDescriptor"], partitions)
            self._update_partitions(database, table.name, inputs, _MAX_ADDED)
        self._call(
            "update_table",
            DatabaseName=database,
            TableInput={"Name": table.name, **repeated, **table_input},
            SkipArchive=self._skip_archive,
        )

    def get_partitions(self, database: str, name: str) -> list[CatalogPartition]:
        """Return all partitions of a table."""
        return [
            CatalogPartition(tuple(each["Values"]), each["StorageDescriptor"]["Location"])
            for page in self._pages("get_partitions", DatabaseName=database, TableName=name)
            for each in page["Partitions"]
        ]

    def add_partitions(
        self, database: str, name: str, partitions: Sequence[CatalogPartition], batch: int
    ) -> None:
        """Register partitions, except those that exist already."""
        inputs = _inputs(self._descriptor(database, name), partitions)
        for chunk in _batches(inputs, min(batch, _MAX_ADDED)):
            response = self._call(
                "batch_create_partition",
                DatabaseName=database,
                TableName=name,
                PartitionInputList=chunk,
            )
            _check(response, ignored_code="AlreadyExistsException")

    def move_partitions(
        self, database: str, name: str, partitions: Sequence[CatalogPartition], batch: int
    ) -> None:
        """Set another location for partitions."""
        inputs = _inputs(self._descriptor(database, name), partitions)
        self._update_partitions(database, name, inputs, batch)

    def drop_partitions(
        self, database: str, name: str, partitions: Sequence[CatalogPartition]
    ) -> None:
        """Remove partitions from the catalog; their files stay."""
        for chunk in _batches([{"Values": list(each.values)} for each in partitions], _MAX_DROPPED):
            response = self._call(
                "batch_delete_partition",
                DatabaseName=database,
                TableName=name,
                PartitionsToDelete=chunk,
            )
            _check(response, ignored_code="EntityNotFoundException")

    def _update_partitions(
        self, database: str, name: str, inputs: Sequence[Mapping[str, Any]], batch: int
    ) -> None:
        for chunk in _batches(inputs, min(batch, _MAX_ADDED)):
            entries = [
                {"PartitionValueList": each["Values"], "PartitionInput": each} for each in chunk
            ]
            response = self._call(
                "batch_update_partition", DatabaseName=database, TableName=name, Entries=entries
            )
            _check(response)

    def _descriptor(self, database: str, name: str) -> Mapping[str, Any]:
        stored = self._call("get_table", DatabaseName=database, Name=name)["Table"]
        descriptor: Mapping[str, Any] = stored["StorageDescriptor"]
        return descriptor

    @property
    def _client(self) -> Any:
        if self._connection is None:
            self._connection = extra("boto3", "glue").client(
                "glue", region_name=self._region, endpoint_url=self._endpoint
            )
        return self._connection

    def _call(self, name: str, **arguments: Any) -> Any:
        errors = extra("botocore.exceptions", "glue")
        try:
            return getattr(self._client, name)(**arguments)
        except (errors.ClientError, errors.BotoCoreError) as error:
            raise StorageError(f"AWS Glue: {error}") from error

    def _pages(self, name: str, **arguments: str) -> Iterator[Any]:
        more: dict[str, str] = {}
        while True:
            response = self._call(name, **arguments, **more)
            yield response
            if not response.get("NextToken"):
                return
            more = {"NextToken": response["NextToken"]}

    def _or_none(self, name: str, **arguments: Any) -> Any:
        try:
            return self._call(name, **arguments)
        except StorageError as error:
            response = getattr(error.__cause__, "response", {})
            if response.get("Error", {}).get("Code") == "EntityNotFoundException":
                return None
            raise


def _table(stored: Mapping[str, Any]) -> CatalogTable:
    descriptor = stored.get("StorageDescriptor", {})
    serde = descriptor.get("SerdeInfo", {})
    return CatalogTable(
        name=stored["Name"],
        location=descriptor.get("Location", ""),
        columns=_columns(descriptor.get("Columns", ())),
        partition_keys=_columns(stored.get("PartitionKeys", ())),
        input_format=descriptor.get("InputFormat", ""),
        output_format=descriptor.get("OutputFormat", ""),
        serde=serde.get("SerializationLibrary", ""),
        serde_parameters=dict(serde.get("Parameters", {})),
        parameters=dict(stored.get("Parameters", {})),
    )


def _table_input(table: CatalogTable, before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a table's input that pyhudi sets."""
    return {
        "Parameters": dict(table.parameters),
        "PartitionKeys": [_column(column) for column in table.partition_keys],
        "StorageDescriptor": {
            **before,
            "Columns": [_column(column) for column in table.columns],
            "Location": table.location,
            "InputFormat": table.input_format,
            "OutputFormat": table.output_format,
            "SerdeInfo": {
                **before.get("SerdeInfo", {}),
                "SerializationLibrary": table.serde,
                "Parameters": dict(table.serde_parameters),
            },
        },
    }


def _inputs(
    descriptor: Mapping[str, Any], partitions: Iterable[CatalogPartition]
) -> list[dict[str, Any]]:
    """Return partitions with the columns and classes of their table."""
    return [
        {
            "Values": list(each.values),
            "StorageDescriptor": {**descriptor, "Location": each.location},
        }
        for each in partitions
    ]


def _has_other_types(stored: Mapping[str, Any], table: CatalogTable) -> bool:
    """Return whether an existing column has another type now."""
    columns = _columns(stored.get("StorageDescriptor", {}).get("Columns", ()))
    before = {column.name.lower(): column.type.lower() for column in columns}
    return any(
        before.get(column.name.lower(), column.type.lower()) != column.type.lower()
        for column in table.columns
    )


def _column(column: Column) -> dict[str, str]:
    return {"Name": column.name, "Type": column.type, "Comment": column.comment}


def _columns(entries: Iterable[Mapping[str, str]]) -> tuple[Column, ...]:
    return tuple(Column(each["Name"], each["Type"], each.get("Comment", "")) for each in entries)


def _batches(items: Sequence[Any], size: int) -> list[list[Any]]:
    return [list(items[start : start + size]) for start in range(0, len(items), size)]


def _check(response: Mapping[str, Any], ignored_code: str = "") -> None:
    errors = [
        error
        for error in response.get("Errors") or ()
        if error.get("ErrorDetail", {}).get("ErrorCode") != ignored_code
    ]
    if errors:
        raise StorageError(f"AWS Glue: {errors}")
