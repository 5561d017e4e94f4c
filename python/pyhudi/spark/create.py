"""Creates an empty table with columns in Spark's types."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from pyhudi.api import create
from pyhudi.api.table import HudiTable
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.executor_steps import struct_schema

_SIZED_STRING = re.compile(r"\b(var)?char(acter)?\s*\(\s*\d+\s*\)", re.IGNORECASE)


def create_table(
    spark: SparkSession,
    uri: str | os.PathLike[str],
    schema: StructType | str,
    *,
    key: str | Sequence[str] | None,
    **kwargs: Any,
) -> HudiTable:
    """Create an empty table: `pyhudi.create_table` with Spark's types.

    Args:
        spark: a classic or Spark Connect session, which the handle's methods run on.
        uri: location of the table.
        schema: a `StructType`, or its DDL: "id string, fare double, ts timestamp". All
            columns become nullable, and strings have no maximum length.
        key: as in `pyhudi.create_table`.
        kwargs: its other arguments, such as `partition_by`, `order_by`, `type` and `options`.

    Returns:
        A handle of the new table.

    Raises:
        UnsupportedTableFeature: a column has an unsupported type, or pyhudi could not write to such
            a table.
        ConfigError: a table exists already, or arguments do not fit together.
    """
    columns = ddl_schema(spark, schema) if isinstance(schema, str) else struct_schema(schema)
    return create.create_table(uri, columns, key=key, engine=SparkEngine(spark), **kwargs)


def ddl_schema(spark: SparkSession, ddl: str) -> pa.Schema:
    """Return the Arrow schema of columns in Spark's DDL, such as "id string, fare double"."""
    # Spark cannot create rows with strings of a fixed length.
    return struct_schema(spark.createDataFrame([], _SIZED_STRING.sub("string", ddl)).schema)
