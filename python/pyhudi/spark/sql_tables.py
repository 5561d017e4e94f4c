"""Locations of the tables of a SQL statement: registered names, Spark's catalog, the warehouse.

If `enable_sql` changed a session, new tables enter Spark's catalog. Spark 4 passes neither path nor
options of an entry to a Python source, so only pyhudi's statements read an entry by its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from pyhudi.api.table_exists import has_table
from pyhudi.errors import ConfigError
from pyhudi.sql_statements.statements import HUDI_FORMATS, TableName
from pyhudi.storage.storage import Storage


@dataclass(frozen=True)
class TableLocation:
    """A location, with the options to open its table."""

    uri: str
    storage_options: Mapping[str, str] | None = None
    options: Mapping[str, object] | None = None


_REGISTERED: WeakKeyDictionary[Any, dict[str, TableLocation]] = WeakKeyDictionary()
"""The tables of each session by their names in lower case."""


ENABLED: WeakKeyDictionary[Any, list[TableLocation]] = WeakKeyDictionary()
"""Storage options and options of each `enable_sql` of a session that is in force."""


def register_name(spark: SparkSession, name: str, location: TableLocation | None) -> bool:
    """Set where the table of a name is in a session, or forget the name.

    Returns whether the name was registered before.
    """
    names = _REGISTERED.setdefault(spark, {})
    before = names.pop(name.lower(), None)
    if location is not None:
        names[name.lower()] = location
    return before is not None


def find_table(
    spark: SparkSession, table: TableName, default: TableLocation
) -> TableLocation | None:
    """Return where a table is; None if the name is not a Hudi table's.

    A registered name goes first, then a table of Spark's catalog whose provider is Hudi, then a
    table in the warehouse directory.

    default: storage options and options of a table that was not registered.
    """
    if table.path is not None:
        return replace(default, uri=table.path)
    registered = _REGISTERED.get(spark, {}).get(".".join(table.parts).lower())
    if registered is not None:
        return registered
    try:
        uri = catalog_location(spark, table)
    except PySparkException:
        uri = warehouse_location(spark, table)
        storage = Storage(uri, default.storage_options)
        return replace(default, uri=uri) if has_table(storage) else None
    return None if uri is None else replace(default, uri=uri)


def catalog_location(spark: SparkSession, table: TableName) -> str | None:
    """Return where a table of Spark's catalog is; None if its provider is not Hudi.

    Raises `PySparkException` if the catalog does not have the name.
    """
    try:
        rows = spark_sql(spark, f"DESCRIBE TABLE EXTENDED {table}").collect()
    except Exception as error:
        # Of no class of PySpark in Spark 4, if the session does not have the format.
        if "DATA_SOURCE_NOT_FOUND" not in str(error):
            raise
        rows = []
    described = {row[0]: row[1] for row in rows}
    is_table = not rows or described.get("Type") in {"EXTERNAL", "MANAGED"}
    if is_table and "Provider" not in described:
        described = _entry(spark, table)
    is_hudi = (described.get("Provider") or "").lower() in HUDI_FORMATS
    return described.get("Location") if is_hudi else None


def catalog_has(spark: SparkSession, table: TableName) -> bool:
    """Return whether Spark's catalog has a Hudi table of this name."""
    try:
        return catalog_location(spark, table) is not None
    except PySparkException:
        return False


def _entry(spark: SparkSession, table: TableName) -> dict[str, str]:
    """Return the details of a table of a Python source, which DESCRIBE does not show."""
    *database, name = table.parts
    place = TableName(tuple(database) or (str(spark.catalog.currentDatabase()),))
    pattern = string_literal(name)
    for row in spark_sql(spark, f"SHOW TABLE EXTENDED IN {place} LIKE {pattern}").collect():
        if row[1].lower() == name.lower() and not row[2]:
            lines = (line.partition(": ") for line in row[3].splitlines())
            return {key: value for key, _, value in lines}
    return {}


def uses_catalog(spark: SparkSession) -> bool:
    """Return whether new tables enter Spark's catalog: PySpark 3.5 has no Python sources."""
    return bool(ENABLED.get(spark)) and hasattr(spark, "dataSource")


def add_entry(spark: SparkSession, table: TableName, columns: StructType, uri: str) -> None:
    """Add a table to Spark's catalog, if it is not there."""
    ddl = ", ".join(f"{quote(field.name)} {field.dataType.simpleString()}" for field in columns)
    location = string_literal(uri)
    spark_sql(spark, f"CREATE TABLE IF NOT EXISTS {table} ({ddl}) USING hudi LOCATION {location}")


def check_new_entry(spark: SparkSession, table: TableName) -> None:
    """Raise `ConfigError` if Spark's catalog has the name, or does not have its database."""
    *database, _ = table.parts
    if database and not spark.catalog.databaseExists(str(TableName(tuple(database)))):
        raise ConfigError(
            f"there is no database {database[-1]!r}", hint=f"CREATE DATABASE {database[-1]}"
        )
    if spark.catalog.tableExists(str(table)):
        raise ConfigError(
            f"there is a table or view {table} already",
            hint="Drop it, or choose another name.",
        )


def quote(name: str) -> str:
    """Return a column as a statement names it."""
    return name if name.isidentifier() else f"`{name.replace('`', '``')}`"


def string_literal(value: str) -> str:
    """Return a string as a statement of Spark has it."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def spark_sql(spark: SparkSession, text: str, *args: Any, **kwargs: Any) -> DataFrame:
    """Let Spark itself run a statement, also in a session that `enable_sql` changed."""
    return type(spark).sql(spark, text, *args, **kwargs)


def warehouse_location(spark: SparkSession, table: TableName) -> str:
    """Return where Spark puts a table without a location: below the location of its database.

    For a database that does not exist it is `warehouse/database.db/table`.
    """
    *first, name = table.parts
    database = first[-1] if first else str(spark.catalog.currentDatabase())
    try:
        directory = str(spark.catalog.getDatabase(database).locationUri)
    except PySparkException:
        warehouse = str(spark.conf.get("spark.sql.warehouse.dir")).rstrip("/")
        directory = f"{warehouse}/{database.lower()}.db"
    return f"{directory.rstrip('/')}/{name.lower()}"
