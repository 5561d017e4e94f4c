"""A Hudi table's entry in a catalog: classes, properties and schema, under each of its names.

There is no I/O; the table's schema has been read before. Sources: `HiveSyncTool`, `HMSDDLExecutor`,
`SparkDataSourceTableUtils`, `HoodieInputFormatUtils` (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyhudi.catalog.columns import Field, fields_of, spark_schema
from pyhudi.catalog.protocol import CatalogTable, Column
from pyhudi.config.catalog_sync_options import SyncOptions
from pyhudi.config.property_names import PARTITION_FIELDS
from pyhudi.errors import ConfigError, UnsupportedTableFeature
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
            f"hoodie.datasource.hive_sync.partition_fields names {len(fields)} columns, the table "
            f"{table.config.name} is partitioned by {len(own)}"
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
    if options.as_spark_table and not _is_half_read(table, registration):
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


def _is_half_read(table: TableSnapshot, registration: Registration) -> bool:
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
