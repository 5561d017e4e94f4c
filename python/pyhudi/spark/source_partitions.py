"""The part of a query that one Spark task of a data source reads: a pack of read tasks."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from pyhudi.api.changes import Changes
from pyhudi.api.scan import Scan
from pyhudi.errors import SchemaMismatch
from pyhudi.slices.task_packing import PackSizes, read_pack
from pyhudi.spark.task_errors import wrap_exceptions
from pyhudi.spark.to_dataframe import packs_of
from pyhudi.spark.types import spark_schema, to_wire, wire_schema
from pyhudi.spark.worker_process import trim_worker


def partitions_of(
    rows: Scan | Changes, schema: StructType, sizes: PackSizes
) -> list[InputPartition]:
    """Return a partition for each pack of a query; none if there is nothing to read."""
    check_schema(rows.schema, schema)
    wire = wire_schema(rows.schema)
    return [Slices((pack, rows.schema, wire)) for pack in packs_of(rows, sizes)]


def read_partition(partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one pack, in Spark's types."""
    trim_worker()
    if not isinstance(partition, Slices):
        return
    pack, schema, wire = pickle.loads(partition.packed)  # noqa: S301  our own planning made it
    with wrap_exceptions():
        for batch in read_pack(pack):
            if not batch.schema.equals(schema):
                raise SchemaMismatch(f"a read returned\n{batch.schema}\ninstead of\n{schema}")
            if batch.num_rows:
                yield to_wire(batch, wire)


class Slices(InputPartition):  # type: ignore[misc]
    """A pack of read tasks, pickled, which Spark's driver passes on."""

    def __init__(self, pack: Any) -> None:
        super().__init__(None)
        self.packed = pickle.dumps(pack)


def check_schema(actual: pa.Schema, schema: StructType) -> None:
    """Raise `SchemaMismatch` if rows differ from what Spark expects."""
    for column, expected in zip(spark_schema(wire_schema(actual)), schema, strict=True):
        if (column.name, column.dataType) != (
            expected.name,
            expected.dataType,
        ):
            raise SchemaMismatch(
                f"Spark expects column {expected.name!r} as {expected.dataType.simpleString()}, "
                f"the table has {column.name!r} as {column.dataType.simpleString()}",
                hint="Create a new DataFrame, or restart the stream.",
            )
