"""Statements that create, describe and drop tables, and change columns, partitions and indexes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from pyhudi.api.create import create_and_fill
from pyhudi.api.drop import drop_table
from pyhudi.api.table import HudiTable, open_table
from pyhudi.api.table_exists import has_table
from pyhudi.config.new_table_properties import NewTable
from pyhudi.errors import ConfigError
from pyhudi.input.semi_structured import is_variant, variant
from pyhudi.input.vectors import VectorType, is_vector
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
    register_name,
    spark_sql,
    uses_catalog,
    warehouse_location,
)
from pyhudi.spark.to_dataframe import frame_of_rows
from pyhudi.spark.types import spark_schema, wire_schema
from pyhudi.sql_statements.statements import (
    ColumnChange,
    CreateTable,
    DropTable,
    Show,
)
from pyhudi.sql_statements.table_changes import ChangeRules, TableChange, change_table
from pyhudi.sql_statements.table_definitions import (
    check_partition_spec,
    describe,
    name_option,
    options_of_properties,
    order_partitions_last,
)
from pyhudi.storage.storage import Storage
from pyhudi.txn.result import WriteResult


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
    options = options_of_properties(statement)
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
        data: Any = order_partitions_last(columns, partition_by)
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
        options={**name_option(statement), **request.table_options, **request.handle},
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
    rules = ChangeRules(
        partial(match_case, spark),
        partial(partition_values, spark, table),
        partial(_type_of, spark),
    )
    return change_table(statement, table, rules)


def show(spark: SparkSession, statement: Show, table: ChangingTable) -> DataFrame:
    """Return the rows of a statement that describes a table."""
    match statement.what:
        case "history":
            return frame_of_rows(spark, table.history(statement.limit))
        case "detail":
            return SparkHudiTable(table, spark).detail()
        case _:
            schema = spark_schema(wire_schema(table.schema))
            columns = [(field.name, field.dataType.simpleString()) for field in schema]
            return frame_of_rows(spark, describe(statement, table, columns))


def partition_values(
    spark: SparkSession, table: HudiTable, spec: Mapping[str, str | None]
) -> dict[str, Any]:
    """Return the values of a PARTITION clause."""
    fields = table.config.partition_fields
    spec = dict(zip(match_case(spark, spec, fields), spec.values(), strict=True))
    check_partition_spec(spec, table, spec.values())
    types = spark_schema(wire_schema(table.schema))
    row = spark.range(1).select(
        *(sf.expr(spec[name] or "").cast(types[name].dataType).alias(name) for name in fields)
    )
    values: dict[str, Any] = row.collect()[0].asDict()
    return values


def _type_of(spark: SparkSession, change: ColumnChange) -> pa.DataType:
    """Return the type of a changed column, as `HudiTable.alter` takes it."""
    name = change.column.rpartition(".")[2].replace("`", "``")
    (field,) = ddl_schema(spark, f"`{name}` {change.value}")
    if is_vector(field):
        return VectorType(field.type)
    return variant() if is_variant(field) else field.type
