"""Locations of the tables of a SQL statement: registered names, Spark's catalog, the warehouse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pyhudi.api.table_exists import has_table
from pyhudi.sql.statements import HUDI_FORMATS, TableName
from pyhudi.storage.storage import Storage


@dataclass(frozen=True)
class TableLocation:
    """A location, with the options to open its table."""

    uri: str
    storage_options: Mapping[str, str] | None = None
    options: Mapping[str, object] | None = None


_REGISTERED: WeakKeyDictionary[Any, dict[str, TableLocation]] = WeakKeyDictionary()
"""The tables of each session by their names in lower case."""


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
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
    except PySparkException:
        uri = warehouse_location(spark, table)
        storage = Storage(uri, default.storage_options)
        return replace(default, uri=uri) if has_table(storage) else None
    described = {row[0]: row[1] for row in rows}
    is_hudi = (described.get("Provider") or "").lower() in HUDI_FORMATS
    if not is_hudi or "Location" not in described:
        return None
    return replace(default, uri=described["Location"])


def warehouse_location(spark: SparkSession, table: TableName) -> str:
    """Return where Spark puts a table without a location: `warehouse/[database.db/]table`."""
    warehouse = str(spark.conf.get("spark.sql.warehouse.dir")).rstrip("/")
    *first, name = table.parts
    database = first[-1] if first else str(spark.catalog.currentDatabase())
    below = name if database == "default" else f"{database}.db/{name}"
    return f"{warehouse}/{below.lower()}"
