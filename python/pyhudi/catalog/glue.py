"""AWS Glue's data catalog, by boto3; credentials and region come from where boto3 finds them.

Source: `AWSGlueCatalogSyncClient` (Hudi 1.2.0). Partition indexes and tags are not set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyhudi.catalog.protocol import CatalogPartition, CatalogTable, Column
from pyhudi.errors import StorageError
from pyhudi.txn.locks.optional_imports import extra

_MOST_ADDED = 100
_MOST_DROPPED = 25
_KEPT = ("Description", "Owner", "Retention", "TableType")
"""What of a table's input is told again where it is changed."""


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
        """Connects when it is first asked.

        Args:
            region: the region's name; None for what boto3 finds.
            endpoint_url: another server that speaks Glue.
            metadata_listing: whether Athena lists files by the table's metadata table.
            skip_archive: Glue keeps no version of what a table was before it is changed.
        """
        self._region = region
        self._endpoint = endpoint_url
        self._listing = metadata_listing
        self._skip_archive = skip_archive
        self._made: Any = None

    def __repr__(self) -> str:
        return f"GlueCatalog({self._region!r})"

    def close(self) -> None:
        """Ends the connections; the next call makes others."""
        made, self._made = self._made, None
        if made is not None:
            made.close()

    def location_of(self, uri: str) -> str:
        """A table's location; Glue's readers take no `s3a://`."""
        text = uri.rstrip("/")
        return f"s3://{text[6:]}" if text.lower().startswith("s3a://") else text

    def base_parameters(self) -> Mapping[str, str]:
        """What Athena goes by."""
        return {"hudi.metadata-listing-enabled": "TRUE" if self._listing else "FALSE"}

    def has_database(self, database: str) -> bool:
        """Whether there is a database of this name."""
        return self._or_none("get_database", Name=database) is not None

    def create_database(self, database: str) -> None:
        """Makes a database."""
        described = "Automatically created by org.apache.hudi.aws.sync.AWSGlueCatalogSyncClient"
        self._call("create_database", DatabaseInput={"Name": database, "Description": described})

    def get_table(self, database: str, name: str) -> CatalogTable | None:
        """A table, None where there is none of the name."""
        answer = self._or_none("get_table", DatabaseName=database, Name=name)
        if answer is None:
            return None
        found = answer["Table"]
        descriptor = found.get("StorageDescriptor", {})
        serde = descriptor.get("SerdeInfo", {})
        return CatalogTable(
            name=found["Name"],
            location=descriptor.get("Location", ""),
            columns=_columns(descriptor.get("Columns", ())),
            partition_keys=_columns(found.get("PartitionKeys", ())),
            input_format=descriptor.get("InputFormat", ""),
            output_format=descriptor.get("OutputFormat", ""),
            serde=serde.get("SerializationLibrary", ""),
            serde_parameters=dict(serde.get("Parameters", {})),
            parameters=dict(found.get("Parameters", {})),
        )

    def create_table(self, database: str, table: CatalogTable) -> None:
        """Registers a new table, whose files Glue does not own."""
        made = {"Name": table.name, "TableType": "EXTERNAL_TABLE", **_table_input(table, {})}
        self._call("create_table", DatabaseName=database, TableInput=made)

    def alter_table(self, database: str, table: CatalogTable, *, cascade: bool) -> None:
        """Makes the table of that name what is given.

        cascade: as in Hudi, partitions follow where a column has another type than before; those
        without a column are read as they are.
        """
        found = self._call("get_table", DatabaseName=database, Name=table.name)["Table"]
        kept = {name: found[name] for name in _KEPT if name in found}
        told = _table_input(table, found.get("StorageDescriptor", {}))
        if cascade and _has_other_types(found, table):
            # Before the table, where a sync that failed in between would find nothing to do.
            partitions = self.get_partitions(database, table.name)
            inputs = _inputs(told["StorageDescriptor"], partitions)
            self._update_partitions(database, table.name, inputs, _MOST_ADDED)
        self._call(
            "update_table",
            DatabaseName=database,
            TableInput={"Name": table.name, **kept, **told},
            SkipArchive=self._skip_archive,
        )

    def get_partitions(self, database: str, name: str) -> list[CatalogPartition]:
        """Every partition of a table."""
        found: list[CatalogPartition] = []
        more: dict[str, str] = {}
        while True:
            answer = self._call("get_partitions", DatabaseName=database, TableName=name, **more)
            found += [
                CatalogPartition(tuple(each["Values"]), each["StorageDescriptor"]["Location"])
                for each in answer["Partitions"]
            ]
            if not answer.get("NextToken"):
                return found
            more = {"NextToken": answer["NextToken"]}

    def add_partitions(
        self, database: str, name: str, partitions: Sequence[CatalogPartition], batch: int
    ) -> None:
        """Registers partitions, those that are there already excepted."""
        inputs = _inputs(self._descriptor(database, name), partitions)
        for some in _batches(inputs, min(batch, _MOST_ADDED)):
            answer = self._call(
                "batch_create_partition",
                DatabaseName=database,
                TableName=name,
                PartitionInputList=some,
            )
            _check(answer, besides="AlreadyExistsException")

    def move_partitions(
        self, database: str, name: str, partitions: Sequence[CatalogPartition], batch: int
    ) -> None:
        """Gives partitions another location."""
        inputs = _inputs(self._descriptor(database, name), partitions)
        self._update_partitions(database, name, inputs, batch)

    def drop_partitions(
        self, database: str, name: str, partitions: Sequence[CatalogPartition]
    ) -> None:
        """Takes partitions out of the catalog; their files stay."""
        for some in _batches([{"Values": list(each.values)} for each in partitions], _MOST_DROPPED):
            answer = self._call(
                "batch_delete_partition",
                DatabaseName=database,
                TableName=name,
                PartitionsToDelete=some,
            )
            _check(answer, besides="EntityNotFoundException")

    def _update_partitions(
        self, database: str, name: str, inputs: Sequence[Mapping[str, Any]], batch: int
    ) -> None:
        for some in _batches(inputs, min(batch, _MOST_ADDED)):
            entries = [
                {"PartitionValueList": each["Values"], "PartitionInput": each} for each in some
            ]
            answer = self._call(
                "batch_update_partition", DatabaseName=database, TableName=name, Entries=entries
            )
            _check(answer)

    def _descriptor(self, database: str, name: str) -> Mapping[str, Any]:
        found = self._call("get_table", DatabaseName=database, Name=name)["Table"]
        descriptor: Mapping[str, Any] = found["StorageDescriptor"]
        return descriptor

    @property
    def _client(self) -> Any:
        if self._made is None:
            self._made = extra("boto3", "glue").client(
                "glue", region_name=self._region, endpoint_url=self._endpoint
            )
        return self._made

    def _call(self, name: str, **arguments: Any) -> Any:
        errors = extra("botocore.exceptions", "glue")
        try:
            return getattr(self._client, name)(**arguments)
        except (errors.ClientError, errors.BotoCoreError) as error:
            raise StorageError(f"AWS Glue: {error}") from error

    def _or_none(self, name: str, **arguments: Any) -> Any:
        try:
            return self._call(name, **arguments)
        except StorageError as error:
            answer = getattr(error.__cause__, "response", {})
            if answer.get("Error", {}).get("Code") == "EntityNotFoundException":
                return None
            raise


def _table_input(table: CatalogTable, before: Mapping[str, Any]) -> dict[str, Any]:
    """What a table's input says of what pyhudi knows."""
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
    """Partitions with the columns and classes of their table."""
    return [
        {
            "Values": list(each.values),
            "StorageDescriptor": {**descriptor, "Location": each.location},
        }
        for each in partitions
    ]


def _has_other_types(found: Mapping[str, Any], table: CatalogTable) -> bool:
    """Whether a column that is there has another type now."""
    known = _columns(found.get("StorageDescriptor", {}).get("Columns", ()))
    before = {column.name.lower(): column.type.lower() for column in known}
    return any(
        before.get(column.name.lower(), column.type.lower()) != column.type.lower()
        for column in table.columns
    )


def _column(column: Column) -> dict[str, str]:
    return {"Name": column.name, "Type": column.type, "Comment": column.comment}


def _columns(found: Iterable[Mapping[str, str]]) -> tuple[Column, ...]:
    return tuple(Column(each["Name"], each["Type"], each.get("Comment", "")) for each in found)


def _batches(items: Sequence[Any], size: int) -> list[list[Any]]:
    return [list(items[start : start + size]) for start in range(0, len(items), size)]


def _check(answer: Mapping[str, Any], besides: str = "") -> None:
    wrong = [
        error
        for error in answer.get("Errors") or ()
        if error.get("ErrorDetail", {}).get("ErrorCode") != besides
    ]
    if wrong:
        raise StorageError(f"AWS Glue: {wrong}")
