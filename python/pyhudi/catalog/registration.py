"""A Hudi table's entry in a catalog: classes, properties and schema, under each of its names.

The table's schema has been read before. Sources: `HiveSyncTool`, `HMSDDLExecutor`,
`SparkDataSourceTableUtils`, `HoodieInputFormatUtils` (Hudi 1.2.0). The table's Avro schema becomes
the columns of a Hive table and the schema that Spark reads, as in `HiveSchemaUtil` and
`SparkSchemaUtils`, whose JSON text is reproduced exactly, including spaces.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyhudi.catalog.protocol import Catalog, CatalogTable, Column
from pyhudi.config.catalog_sync_options import SyncOptions
from pyhudi.config.formatting import count_text
from pyhudi.config.property_names import PARTITION_FIELDS
from pyhudi.errors import ConfigError, TableNotFound, UnsupportedTableFeature
from pyhudi.storage.options import mask_credentials
from pyhudi.table.table_snapshot import TableSnapshot

INPUT_FORMAT = "org.apache.hudi.hadoop.HoodieParquetInputFormat"
REALTIME_INPUT_FORMAT = "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"
OUTPUT_FORMAT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
SERDE = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
READ_OPTIMIZED = "hoodie.query.as.ro.table"
PROVIDER = "spark.sql.sources.provider"
LAST_COMMIT = "last_commit_time_sync"
LAST_COMPLETION = "last_commit_completion_time_sync"
_SPARK = "spark.sql.sources.schema."
_SPARK_VERSION = "spark.sql.create.version"


@dataclass(frozen=True)
class Registration:
    """One name of a table in a catalog, and the query type of its readers."""

    name: str
    realtime: bool
    """Whether log files are merged when it is read through Hive's input format."""
    read_optimized: bool


def registrations(table: TableSnapshot, options: SyncOptions) -> list[Registration]:
    """Return the names of a table in a catalog, in the order in which Hudi registers them."""
    name = options.table or table.config.name
    if table.config.not_parquet:
        msg = f"{table.config.not_parquet}: catalogs expect Parquet"
        raise UnsupportedTableFeature(msg, hint="Register the table with Apache Hudi.")
    if not table.config.is_merge_on_read:
        return [Registration(name, realtime=False, read_optimized=False)]
    if options.strategy == "RO":
        return [Registration(name, realtime=False, read_optimized=True)]
    if options.strategy == "RT":
        return [Registration(name, realtime=True, read_optimized=False)]
    base_files_name = name if options.skip_ro_suffix else f"{name}_ro"
    result = [
        Registration(base_files_name, realtime=False, read_optimized=True),
        Registration(f"{name}_rt", realtime=True, read_optimized=False),
    ]
    if options.snapshot_by_name and base_files_name != name:
        result.append(Registration(name, realtime=True, read_optimized=False))
    return result


def partition_fields(table: TableSnapshot, options: SyncOptions) -> tuple[str, ...]:
    """Return the columns that partition the table in a catalog."""
    own = table.config.partition_fields
    fields = own if options.partition_fields is None else options.partition_fields
    if options.extractor == "NonPartitionedExtractor":
        return ()
    if len(fields) != len(own) and fields:
        raise ConfigError(
            "hoodie.datasource.hive_sync.partition_fields names "
            f"{count_text(len(fields), 'column')}, the table {table.config.name} is "
            f"partitioned by {len(own)}"
        )
    nested = [name for name in fields if "." in name]
    if nested:
        raise UnsupportedTableFeature(
            f"the partition column {nested[0]!r} is inside a struct, which catalogs cannot name",
            hint="Name another by hoodie.datasource.hive_sync.partition_fields.",
        )
    return fields


def describe_table(
    table: TableSnapshot,
    registration: Registration,
    options: SyncOptions,
    location: str,
    base_parameters: Mapping[str, str],
) -> CatalogTable:
    """Return a table's entry under one of its names, without the commit of the last sync.

    location: location for the catalog's readers.
    """
    meta = table.schema.meta_columns if options.meta_columns else []
    fields = fields_of(table.schema.avro, meta, timestamps=options.timestamps)
    _check_apart(fields)
    keys = partition_fields(table, options)
    by_name = {field.name: field for field in fields}
    _check_times(table, [by_name[name] for name in keys if name in by_name])
    serde = dict(options.serde_properties)
    parameters = {"EXTERNAL": "TRUE", **base_parameters, **options.table_properties}
    if options.as_spark_table and not _loses_log_files_in_spark(table, registration):
        serde |= {
            "path": location,
            READ_OPTIMIZED: "true" if registration.read_optimized else "false",
        }
        parameters |= _spark_properties(fields, keys, options)
    return CatalogTable(
        name=registration.name,
        location=location,
        columns=tuple(field.column for field in fields if field.name not in keys),
        partition_keys=tuple(
            by_name[name].column if name in by_name else Column(name, "string") for name in keys
        ),
        input_format=REALTIME_INPUT_FORMAT if registration.realtime else INPUT_FORMAT,
        output_format=OUTPUT_FORMAT,
        serde=SERDE,
        serde_parameters={**serde, "serialization.format": "1"},
        parameters=parameters,
    )


def add_comments(table: TableSnapshot, columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """Return the columns with the comments of the table's schema; other columns are unchanged."""
    fields = fields_of(table.schema.avro, (), timestamps=True)
    comments = {field.name.lower(): field.comment for field in fields}
    return tuple(
        replace(column, comment=comments.get(column.name.lower(), column.comment))
        for column in columns
    )


def _spark_properties(
    fields: Sequence[Field], keys: Sequence[str], options: SyncOptions
) -> dict[str, str]:
    text = spark_schema(fields, keys)
    length = options.part_length
    parts = [text[start : start + length] for start in range(0, len(text), length)]
    properties = {PROVIDER: "hudi", f"{_SPARK}numParts": str(len(parts))}
    if options.spark_version:
        properties[_SPARK_VERSION] = options.spark_version
    properties |= {f"{_SPARK}part.{number}": part for number, part in enumerate(parts)}
    if keys:
        properties[f"{_SPARK}numPartCols"] = str(len(keys))
        properties |= {f"{_SPARK}partCol.{number}": name for number, name in enumerate(keys)}
    return properties


def _loses_log_files_in_spark(table: TableSnapshot, registration: Registration) -> bool:
    """Return whether Hudi's Spark source cannot read the entry: bootstrapped, with log files."""
    config = table.config
    bootstrapped = bool(config.properties.get("hoodie.bootstrap.base.path"))
    return bootstrapped and config.is_merge_on_read and not registration.read_optimized


def _check_times(table: TableSnapshot, keys: Sequence[Field]) -> None:
    """Raise if directories are named by rendered times, but the column is not a string."""
    generator = table.config.key_generator
    levels = [
        level.strip().partition(":")[::2]
        for level in table.config.properties.get(PARTITION_FIELDS, "").split(",")
    ]
    # Up to version 6, a custom generator's table does not record which levels are times.
    timed = {
        name
        for name, level_type in levels
        if generator.startswith("TIMESTAMP")
        or (generator.startswith("CUSTOM") and level_type.upper() != "SIMPLE")
    }
    typed = [field.name for field in keys if field.hive != "string" and field.name in timed]
    if typed:
        raise UnsupportedTableFeature(
            f"hoodie.table.keygenerator.type is {generator}: partition paths are not values of "
            f"the column {typed[0]!r}",
            hint="Name another string column in hoodie.datasource.hive_sync.partition_fields.",
        )


def _check_apart(fields: Sequence[Field]) -> None:
    """Raise for columns that differ only in case: Hive has no upper case."""
    seen: dict[str, str] = {}
    for field in fields:
        other = seen.setdefault(field.name.lower(), field.name)
        if other != field.name:
            raise UnsupportedTableFeature(
                f"the columns {other!r} and {field.name!r}, which a catalog cannot tell apart"
            )


# --- columns --------------------------------------------------------------------------------------


_HIVE = {
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "boolean": "boolean",
    "string": "string",
    "enum": "string",
    "bytes": "binary",
    "fixed": "binary",
}
_SPARK_SCHEMA = {**_HIVE, "int": "integer", "long": "long"}
_TIMESTAMPS = ("timestamp-millis", "timestamp-micros")
_LOCAL_TIMESTAMPS = ("local-timestamp-millis", "local-timestamp-micros")
_NAMED = ("record", "enum", "fixed")


@dataclass(frozen=True)
class Field:
    """A field of the table's schema."""

    name: str
    hive: str
    spark: str
    """JSON text of its type."""
    is_nullable: bool
    comment: str = ""

    @property
    def spark_field(self) -> str:
        """JSON text of the field."""
        return (
            f'{{"name":"{self.name}","type":{self.spark},'
            f'"nullable":{_flag(self.is_nullable)},"metadata":{{}}}}'
        )

    @property
    def column(self) -> Column:
        """Column of a Hive table."""
        return Column(self.name, self.hive)


def fields_of(avro: str, meta_columns: Sequence[str], *, timestamps: bool) -> tuple[Field, ...]:
    """Return the fields of a table: its meta columns, then those of its schema.

    Raises `UnsupportedTableFeature` for a type that Hive does not have.

    timestamps: convert timestamps to Hive's timestamps, else to integers.
    """
    types = _Types(timestamps)
    meta = (Field(name, "string", '"string"', is_nullable=True) for name in meta_columns)
    return (*meta, *types.fields(json.loads(avro)))


def spark_schema(fields: Sequence[Field], partition_keys: Sequence[str]) -> str:
    """Return JSON text of the schema as Spark stores it: partition columns last."""
    by_name = {field.name: field for field in fields}
    first = [field for field in fields if field.name not in partition_keys]
    last = [
        by_name.get(name, Field(name, "string", '"string"', is_nullable=False))
        for name in partition_keys
    ]
    return _struct([*first, *last])


def _struct(fields: Sequence[Field]) -> str:
    return f'{{"type":"struct","fields":[{",".join(field.spark_field for field in fields)}]}}'


def _flag(value: bool) -> str:
    return "true" if value else "false"


class _Types:
    """Converts one schema, in which later fields may refer to named types."""

    def __init__(self, timestamps: bool) -> None:
        self._timestamps = timestamps
        self._named: dict[str, Any] = {}

    def fields(self, record: Any) -> list[Field]:
        """Return the fields of a record."""
        result = []
        for entry in record["fields"]:
            hive, spark, nullable = self._type(entry["type"])
            comment = entry.get("doc") or ""
            result.append(Field(entry["name"], hive, spark, nullable, comment))
        return result

    def _type(self, schema: Any) -> tuple[str, str, bool]:
        """Return the type in Hive, as Spark's JSON text, and whether it is nullable."""
        if isinstance(schema, list):
            types = [avro_type for avro_type in schema if avro_type != "null"]
            if len(types) != 1:
                raise UnsupportedTableFeature(
                    f"a union of {len(types)} types, which catalogs cannot represent"
                )
            return (*self._plain(types[0]), len(types) < len(schema))
        return (*self._plain(schema), False)

    def _plain(self, schema: Any) -> tuple[str, str]:
        if isinstance(schema, str):
            if schema in self._named:
                return self._plain(self._named[schema])
            schema = {"type": schema}
        avro_type = schema["type"]
        if not isinstance(avro_type, str):
            return self._plain(avro_type)
        if avro_type in _NAMED and "name" in schema:
            self._remember(schema)
        logical = self._logical(schema)
        if logical is not None:
            return logical
        if avro_type == "array":
            hive, spark, nullable = self._type(schema["items"])
            json_text = f'"elementType":{spark},"containsNull":{_flag(nullable)}'
            return f"array<{hive}>", f'{{"type":"array", {json_text}}}'
        if avro_type == "map":
            hive, spark, nullable = self._type(schema["values"])
            json_text = f'"valueType":{spark},"valueContainsNull":{_flag(nullable)}'
            return f"map<string,{hive}>", f'{{"type":"map", "keyType":"string",{json_text}}}'
        if avro_type == "record":
            fields = self.fields(schema)
            # As in Hudi: field names of a struct cannot contain a hyphen or a dollar sign in Hive.
            text = ",".join(f"{_to_hive_field_name(field.name)}:{field.hive}" for field in fields)
            return f"struct<{text}>".replace("-", "_"), _struct(fields)
        if avro_type not in _HIVE:
            raise UnsupportedTableFeature(f"a column of the Avro type {avro_type!r} in a catalog")
        return _HIVE[avro_type], f'"{_SPARK_SCHEMA[avro_type]}"'

    def _logical(self, schema: Any) -> tuple[str, str] | None:
        logical = schema.get("logicalType")
        if logical == "date":
            return "date", '"date"'
        if logical == "decimal":
            digits = f"decimal({schema['precision']},{schema.get('scale', 0)})"
            return digits, f'"{digits}"'
        if logical in _TIMESTAMPS or logical in _LOCAL_TIMESTAMPS:
            spark = '"timestamp"' if logical in _TIMESTAMPS else '"timestamp_ntz"'
            return "timestamp" if self._timestamps else "bigint", spark
        if logical == "uuid":
            return "binary", '"string"'
        return None

    def _remember(self, schema: Any) -> None:
        name = schema["name"]
        self._named[name] = schema
        if "." not in name and schema.get("namespace"):
            self._named[f"{schema['namespace']}.{name}"] = schema
        self._named[name.rsplit(".", 1)[-1]] = schema


def _to_hive_field_name(name: str) -> str:
    """Return the name of a struct's field in Hive, as in Hudi (`ColumnNameXLator`)."""
    return name.replace("$", "_dollar_").lower()


# --- lookup by name -------------------------------------------------------------------------------


_SUFFIX = "_ro"


def location_in(catalog: Catalog, name: str) -> str:
    """Return the location of `database.table`, or of `table` in the database "default".

    Raises what `hudi_entry` raises.
    """
    database, _, table = name.rpartition(".")
    return local_path(hudi_entry(catalog, database or "default", table, name).location)


def hudi_entry(catalog: Catalog, database: str, table: str, name: str) -> CatalogTable:
    """Return the entry of a Hudi table.

    Raises `TableNotFound` if the catalog has no Hudi table of this name, and `ConfigError` for a
    table whose readers see base files only: a handle would read other rows.

    name: the name in errors.
    """
    entry = catalog.get_table(database, table)
    if entry is None:
        raise TableNotFound(f"{catalog!r} has no table {name!r}")
    if not is_hudi(entry):
        raise TableNotFound(f"{name!r} in {catalog!r} is not a Hudi table")
    if is_read_optimized(entry):
        raise ConfigError(
            f"{name!r} is a read-optimized view, without the records in log files",
            hint=f"Open {name.removesuffix(_SUFFIX)!r} and read by scan(read_optimized=True), or "
            f"open {mask_credentials(entry.location)}.",
        )
    return entry


def is_hudi(entry: CatalogTable) -> bool:
    """Return whether an entry is that of a Hudi table."""
    has_format = entry.input_format in (INPUT_FORMAT, REALTIME_INPUT_FORMAT)
    is_hudi_source = entry.parameters.get(PROVIDER, "").lower() == "hudi"
    return (has_format or is_hudi_source) and bool(entry.location)


def is_read_optimized(entry: CatalogTable) -> bool:
    """Return whether the entry's readers see base files only."""
    return entry.serde_parameters.get(READ_OPTIMIZED, "").lower() == "true"


def local_path(location: str) -> str:
    """Return a location of a catalog, of a local file as its path.

    Hadoop writes a local file's URI with one slash.
    """
    if location.startswith("file:") and not location.startswith("file://"):
        return location.removeprefix("file:")
    return location
