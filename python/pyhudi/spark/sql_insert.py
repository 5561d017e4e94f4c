"""INSERT INTO and INSERT OVERWRITE: the rows of a query in the columns and types of the table."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from pyhudi.api.table import HudiTable
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.spark.clause_types import to_types_of
from pyhudi.spark.column_compatibility import case_counts, resolve_name
from pyhudi.spark.sql_ddl import partition_values
from pyhudi.spark.types import spark_schema, wire_schema
from pyhudi.sql_statements.insert_columns import columns_to_fill
from pyhudi.sql_statements.statements import Insert
from pyhudi.txn.result import WriteResult

OPERATION = "hoodie.spark.sql.insert.into.operation"
"""The operation of INSERT INTO: insert, bulk_insert or upsert (`SPARK_SQL_INSERT_INTO_OPERATION`,
1.2.0)."""
OVERWRITE_MODE = "hoodie.datasource.overwrite.mode"
"""STATIC or DYNAMIC: whether INSERT OVERWRITE without a partition value replaces all rows, or the
partitions of its rows (`OVERWRITE_MODE`, 1.2.0)."""
_SPARK_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"


def insert_rows(table: HudiTable, statement: Insert, rows: DataFrame) -> WriteResult:
    """Insert the rows of a query in one commit.

    Raises `SchemaMismatch` if the columns or types of the query do not match, `ConfigError` for a
    PARTITION clause that does not name the partition columns.
    """
    frame = _in_columns_of(table, statement, rows)
    spark = rows.sparkSession
    if not statement.overwrite:
        operation = (_setting(spark, OPERATION) or "insert").lower()
        writers = {
            "insert": table.insert,
            "bulk_insert": table.bulk_insert,
            "upsert": table.upsert,
        }
        if operation not in writers:
            raise ConfigError(f"{OPERATION} is {operation!r}", hint=f"One of {', '.join(writers)}.")
        return writers[operation](frame)
    static = [value for value in statement.partition.values() if value is not None]
    if static and len(static) == len(statement.partition) and frame.isEmpty():
        return table.delete_partitions([partition_values(spark, table, statement.partition)])
    mode = _setting(spark, OVERWRITE_MODE) or _setting(spark, _SPARK_OVERWRITE_MODE) or "STATIC"
    if static or (mode.upper() == "DYNAMIC" and table.config.partition_fields):
        return table.overwrite_partitions(frame)
    return table.overwrite(frame)


def _in_columns_of(table: HudiTable, statement: Insert, rows: DataFrame) -> DataFrame:
    case = case_counts(rows.sparkSession)
    names = table.schema.names

    def own(name: str) -> str:
        match = resolve_name(name, names, case=case)
        if match is None:
            raise SchemaMismatch(
                f"the table has no column {name!r}", hint=f"It has {', '.join(names)}."
            )
        return match

    columns, static = columns_to_fill(
        statement, rows.columns, names, table.config.partition_fields, own
    )
    frame = rows.toDF(*columns)
    frame = frame.select("*", *(sf.expr(value).alias(name) for name, value in static.items()))
    absent = set(table.generated_columns) - {*columns, *static}
    filled = pa.schema([field for field in table.schema if field.name not in absent])
    return to_types_of(frame, spark_schema(wire_schema(filled)))


def _setting(spark: SparkSession, name: str) -> str | None:
    value: str | None = spark.conf.get(name, None)
    return value
