"""Creates an empty table with columns in Spark's types."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

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
    if isinstance(schema, str):
        # Spark cannot create rows with strings of a fixed length.
        schema = spark.createDataFrame([], _SIZED_STRING.sub("string", schema)).schema
    return create.create_table(
        uri, struct_schema(schema), key=key, engine=SparkEngine(spark), **kwargs
    )
