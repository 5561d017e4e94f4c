"""Statements that create, describe and drop tables, and change columns, partitions and indexes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from pyhudi.api.create import create_and_fill
from pyhudi.api.drop import drop_table
from pyhudi.api.table import HudiTable, open_table
from pyhudi.api.table_exists import has_table
from pyhudi.config.log import warn
from pyhudi.config.new_table_properties import NewTable
from pyhudi.config.property_names import HIVE_STYLE
from pyhudi.errors import ConfigError, MaintenanceWarning
from pyhudi.input.semi_structured import is_variant, variant
from pyhudi.input.vectors import VectorType, is_vector
from pyhudi.metadata.index_definitions import index_definitions
from pyhudi.spark.column_compatibility import match_case
from pyhudi.spark.delta_style_dml import ChangingTable
from pyhudi.spark.delta_style_table import SparkHudiTable
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.hudi_options import WriteRequest
from pyhudi.spark.new_columns import ddl_schema
from pyhudi.spark.sql_tables import (
    TableLocation,
    add_entry,
    check_new_entry,
    quote,
    register_name,
    spark_sql,
    uses_catalog,
    warehouse_location,
)
from pyhudi.spark.to_dataframe import frame_of_rows
from pyhudi.spark.types import spark_schema, wire_schema
from pyhudi.sql_statements.procedures import table_properties
from pyhudi.sql_statements.statements import (
    AlterColumns,
    ColumnChange,
    CreateIndex,
    CreateTable,
    DropIndex,
    DropPartitions,
    DropTable,
    SetProperties,
    Show,
    TableName,
    Truncate,
)
from pyhudi.storage.storage import Storage
from pyhudi.txn.result import WriteResult

TableChange: TypeAlias = (
    AlterColumns | SetProperties | DropPartitions | Truncate | CreateIndex | DropIndex
)

_SQL_NAMES = {
    "primarykey": "hoodie.datasource.write.recordkey.field",
    "precombinefield": "hoodie.table.ordering.fields",
    "orderingfields": "hoodie.table.ordering.fields",
    "type": "hoodie.datasource.write.table.type",
    "payloadclass": "hoodie.datasource.write.payload.class",
    "recordmergemode": "hoodie.write.record.merge.mode",
}
"""Hudi's options by the names that its SQL has for them (`HoodieOptionConfig`, 1.2.0)."""
_TYPES = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}


def create(
    spark: SparkSession, statement: CreateTable, query: str | None, default: TableLocation
) -> None:
    """Create a table, with the rows of a query if there is one, and make its name known.

    As in Hudi's SQL, partition columns come last, and directories are named `column=value`.
    """
    if not statement.if_not_exists and _enters_catalog(spark, statement):
        check_new_entry(spark, statement.table)
    uri = statement.location or statement.table.path or warehouse_location(spark, statement.table)
    storage = Storage(uri, default.storage_options)
    location = replace(default, uri=uri)
    if statement.if_not_exists and has_table(storage):
        _add_name(spark, statement, location)
        return
    options = _options_of(statement)
    request = WriteRequest.of({**(default.options or {}), **options})
    if query is None:
        declared = ", ".join(filter(None, (statement.columns, statement.partition_columns)))
        if not declared and has_table(storage):
            _add_name(spark, statement, location)
            return
        if not declared:
            raise ConfigError(
                f"{statement.table} has no columns", hint="Declare them, or AS SELECT."
            )
        columns = ddl_schema(spark, declared)
        partition_by = match_case(spark, statement.partition_by, columns.names)
        data: Any = _partitions_last(columns, partition_by)
    else:
        frame = spark_sql(spark, query)
        partition_by = match_case(spark, statement.partition_by, frame.columns)
        names = [n for n in frame.columns if n not in partition_by]
        data = frame.select(*(sf.col(f"`{n}`") for n in [*names, *partition_by]))

    def in_case(columns: tuple[str, ...] | None) -> tuple[str, ...] | None:
        names = data.names if isinstance(data, pa.Schema) else data.columns
        return None if columns is None else match_case(spark, columns, names)

    create_and_fill(
        uri,
        data,
        None,
        key=in_case(request.key),
        partition_by=partition_by or in_case(request.partition_by),
        order_by=in_case(request.order_by),
        type="mor" if request.type == "mor" else "cow",
        version=request.version or NewTable.version,
        index=None,
        mode="error",
        options={**request.table_options, **request.handle},
        storage_options=default.storage_options,
        engine=SparkEngine(spark),
    )
    handle_options = {**(default.options or {}), **request.handle}
    _add_name(spark, statement, replace(location, options=handle_options))


def _enters_catalog(spark: SparkSession, statement: CreateTable) -> bool:
    return uses_catalog(spark) and statement.table.path is None


def _add_name(spark: SparkSession, statement: CreateTable, location: TableLocation) -> None:
    """Make a table known by its name: in Spark's catalog if it enters it, else in the session.

    The catalog stores no options, so the session has the name of a table with options, too.
    """
    name = ".".join(statement.table.parts)
    enters_catalog = _enters_catalog(spark, statement)
    if not enters_catalog or location.options or location.storage_options:
        register_name(spark, name, location)
    if enters_catalog:
        storage = location.storage_options
        table = open_table(location.uri, storage_options=storage, options=location.options)
        add_entry(spark, statement.table, spark_schema(wire_schema(table.schema)), location.uri)


def drop(spark: SparkSession, statement: DropTable, location: TableLocation) -> None:
    """Drop a table, and what the session and Spark's catalog have under its name."""
    drop_table(location.uri, storage_options=location.storage_options, options=location.options)
    name = ".".join(statement.table.parts)
    if register_name(spark, name, None):
        spark.catalog.dropTempView(name)
    if statement.table.path is None and spark.catalog.tableExists(name):
        spark_sql(spark, f"DROP TABLE IF EXISTS {statement.table}")


def run(spark: SparkSession, statement: TableChange, table: HudiTable) -> WriteResult | None:
    """Run a statement that changes a table; the result of its commit, if it made one."""
    match statement:
        case Truncate(partition=partition) if not partition:
            return table.overwrite(table.schema.empty_table())
        case Truncate():
            return table.delete_partitions([partition_values(spark, table, statement.partition)])
        case DropPartitions():
            return table.delete_partitions(
                [partition_values(spark, table, spec) for spec in statement.partitions]
            )
        case AlterColumns():
            return _alter(spark, table, statement.changes)
        case SetProperties():
            table.set_properties(statement.properties)
        case CreateIndex():
            _create_index(spark, table, statement)
        case DropIndex():
            if not statement.if_exists or statement.name in _index_names(table):
                table.drop_index(statement.name)
    return None


def show(spark: SparkSession, statement: Show, table: ChangingTable) -> DataFrame:
    """Return the rows of a statement that describes a table."""
    match statement.what:
        case "columns":
            schema = spark_schema(wire_schema(table.schema))
            columns: list[tuple[str | None, ...]] = [
                (field.name, field.dataType.simpleString(), None) for field in schema
            ]
            columns += _details(statement.table, table) if statement.extended else []
            rows = _text_rows(("col_name", "data_type", "comment"), columns)
        case "history":
            return frame_of_rows(spark, table.history(statement.limit))
        case "detail":
            return SparkHudiTable(table, spark).detail()
        case "partitions":
            rows = table.inspect.partitions().select(["partition"])
        case "properties":
            rows = table_properties(table)
        case "indexes":
            rows = _text_rows(("index_name", "index_type", "columns"), _indexes(table))
        case _:
            rows = _text_rows(("createtab_stmt",), [(_create_statement(statement, table),)])
    return frame_of_rows(spark, rows)


def _details(name: TableName, table: HudiTable) -> list[tuple[str | None, ...]]:
    """Return the rows of DESCRIBE EXTENDED after the columns, by Spark's names."""
    schema = spark_schema(wire_schema(table.schema))
    rows = []
    if table.config.partition_fields:
        rows = [("# Partition Information", ""), ("# col_name", "data_type")]
        rows += [(n, schema[n].dataType.simpleString()) for n in table.config.partition_fields]
    properties = ",".join(f"{key}={value}" for key, value in _sql_properties(table).items())
    rows += [
        ("", ""),
        ("# Detailed Table Information", ""),
        ("Database", name.parts[-2] if len(name.parts) > 1 else ""),
        ("Table", name.parts[-1]),
        ("Type", "EXTERNAL"),
        ("Provider", "hudi"),
        ("Location", table.uri),
        ("Table Properties", f"[{properties}]"),
    ]
    return [(key, value, "comment" if key == "# col_name" else "") for key, value in rows]


def _options_of(statement: CreateTable) -> dict[str, str]:
    """Return Hudi's options of TBLPROPERTIES."""
    options: dict[str, str] = {HIVE_STYLE: "true"}
    for name, value in statement.properties.items():
        option = _SQL_NAMES.get(name.lower(), name)
        if name.lower() == "comment":
            warn(f"{statement.table}: the comment is not stored", MaintenanceWarning)
            continue
        if not option.startswith("hoodie."):
            raise ConfigError(
                f"TBLPROPERTIES has {name!r}",
                hint="Use primaryKey, orderingFields, type, or an option hoodie.…",
            )
        options[option] = _TYPES.get(value.lower(), value) if name.lower() == "type" else value
    return options


def _partitions_last(schema: pa.Schema, partition_by: tuple[str, ...]) -> pa.Schema:
    unknown = [name for name in partition_by if name not in schema.names]
    if unknown:
        raise ConfigError(
            f"PARTITIONED BY names {unknown[0]!r}, which is not a column",
            hint=f"The columns are {', '.join(schema.names)}.",
        )
    first = [field for field in schema if field.name not in partition_by]
    return pa.schema([*first, *(schema.field(name) for name in partition_by)])


def partition_values(
    spark: SparkSession, table: HudiTable, spec: Mapping[str, str | None]
) -> dict[str, Any]:
    """Return the values of a PARTITION clause."""
    fields = table.config.partition_fields
    spec = dict(zip(match_case(spark, spec, fields), spec.values(), strict=True))
    if set(spec) != set(fields) or None in spec.values():
        raise ConfigError(
            f"PARTITION names {', '.join(spec)}",
            hint=f"Give each of {', '.join(fields) or 'no columns'} a value.",
        )
    types = spark_schema(wire_schema(table.schema))
    row = spark.range(1).select(
        *(sf.expr(spec[name] or "").cast(types[name].dataType).alias(name) for name in fields)
    )
    values: dict[str, Any] = row.collect()[0].asDict()
    return values


def _alter(spark: SparkSession, table: HudiTable, changes: Iterable[ColumnChange]) -> WriteResult:
    builder = table.alter()
    for change in (_in_case_of(table, spark, change) for change in changes):
        match change.action:
            case "add":
                data_type = _type_of(spark, change)
                builder = builder.add_column(
                    change.column,
                    data_type,
                    first=change.first,
                    after=change.after,
                    doc=change.comment,
                )
            case "rename":
                builder = builder.rename_column(change.column, change.value or "")
            case "drop":
                builder = builder.drop_column(change.column)
            case "type":
                data_type = _type_of(spark, change)
                builder = builder.change_type(change.column, data_type)
            case "comment":
                builder = builder.set_doc(change.column, change.value)
            case "nullable":
                builder = builder.make_nullable(change.column)
            case "move":
                builder = builder.move_column(change.column, first=change.first, after=change.after)
    return builder.execute()


def _in_case_of(table: HudiTable, spark: SparkSession, change: ColumnChange) -> ColumnChange:
    """Return a change that names its column as the table does."""
    is_new = change.action == "add" and "." not in change.column
    names = table.schema.names
    (column,) = (change.column,) if is_new else match_case(spark, [change.column], names)
    (after,) = (None,) if change.after is None else match_case(spark, [change.after], names)
    return replace(change, column=column, after=after)


def _type_of(spark: SparkSession, change: ColumnChange) -> pa.DataType:
    """Return the type of a changed column, as `HudiTable.alter` takes it."""
    name = change.column.rpartition(".")[2].replace("`", "``")
    (field,) = ddl_schema(spark, f"`{name}` {change.value}")
    if is_vector(field):
        return VectorType(field.type)
    return variant() if is_variant(field) else field.type


def _create_index(spark: SparkSession, table: HudiTable, statement: CreateIndex) -> None:
    """Create an index. Without USING it is a secondary index, as in Hudi 1.1 and later."""
    if statement.if_not_exists and statement.name in _index_names(table):
        return
    columns = match_case(spark, statement.columns, table.schema.names)
    options = {name.lower(): value for name, value in statement.options.items()}
    function = options.pop("expr", None)
    kind = statement.index_type.lower() or "secondary_index"
    if statement.name == "record_index":
        kind = "record_index"
    if kind == "record_index":
        table.create_index(kind)
    elif kind == "secondary_index" or function is not None:
        table.create_index(
            kind,
            columns,
            name=statement.name,
            function=function,
            options=options or None,
        )
    else:
        table.create_index(kind, columns)


def _indexes(table: HudiTable) -> list[tuple[str, str, str]]:
    definitions = index_definitions(table.storage, table.config)
    result = []
    for partition in sorted(table.config.metadata_partitions):
        definition = definitions.get(partition)
        kind = partition if definition is None else definition.index_type
        columns = () if definition is None else definition.columns
        result.append((partition, kind, ",".join(columns)))
    return result


def _index_names(table: HudiTable) -> set[str]:
    """Return the partitions of the metadata table, and the names of indexes in SQL."""
    partitions = set(table.config.metadata_partitions)
    prefixes = ("secondary_index_", "expr_index_")
    return partitions | {name.removeprefix(prefix) for name in partitions for prefix in prefixes}


def _create_statement(statement: Show, table: HudiTable) -> str:
    config = table.config
    columns = ",\n  ".join(
        f"{quote(field.name)} {field.dataType.simpleString().upper()}"
        for field in spark_schema(wire_schema(table.schema))
    )
    properties = _sql_properties(table)
    lines = [f"CREATE TABLE {statement.table} (\n  {columns})", "USING hudi"]
    if config.partition_fields:
        lines.append(f"PARTITIONED BY ({', '.join(map(quote, config.partition_fields))})")
    lines.append(f"LOCATION '{table.uri}'")
    pairs = ",\n  ".join(f"'{name}' = '{value}'" for name, value in sorted(properties.items()))
    return "\n".join([*lines, f"TBLPROPERTIES (\n  {pairs})"])


def _sql_properties(table: HudiTable) -> dict[str, str]:
    """Return the TBLPROPERTIES that describe a table."""
    config = table.config
    properties = {"type": "mor" if config.is_merge_on_read else "cow"}
    if config.record_key_fields:
        properties["primaryKey"] = ",".join(config.record_key_fields)
    if config.ordering_fields:
        properties["orderingFields"] = ",".join(config.ordering_fields)
    return properties


def _text_rows(names: tuple[str, ...], rows: Iterable[tuple[str | None, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.table(
        {name: pa.array(values, pa.string()) for name, values in zip(names, columns, strict=True)}
    )
