"""Creates an empty table with columns in Spark's types."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from pyhudi.api import create
from pyhudi.api.table import HudiTable
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.new_columns import ddl_schema, new_columns


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
        schema: a `StructType`, or its DDL: "id string, fare double, ts timestamp". All columns
            become nullable. A `ColumnTypeWarning` names the columns of types that Hudi does not
            have: TINYINT and SMALLINT are stored as INT, CHAR(n) and VARCHAR(n) as STRING.
        key: as in `pyhudi.create_table`.
        kwargs: its other arguments, such as `partition_by`, `order_by`, `type` and `options`.

    Returns:
        A handle of the new table.

    Raises:
        UnsupportedTableFeature: a column has an unsupported type, or pyhudi could not write to such
            a table.
        ConfigError: a table exists already, or arguments do not fit together.
    """
    columns = ddl_schema(spark, schema) if isinstance(schema, str) else new_columns(schema)
    return create.create_table(uri, columns, key=key, engine=SparkEngine(spark), **kwargs)
