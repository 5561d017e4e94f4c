"""DataFrames from and to Arrow, without pandas and its own idea of types in between."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from pyhudi.spark.types import spark_schema, to_wire, wire_schema


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Arrow rows as a DataFrame of one partition."""

    def body(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield from table.to_batches()

    return spark.range(0, 1, 1, 1).mapInArrow(body, spark_schema(table.schema))


def arrow_table(frame: DataFrame) -> pa.Table:
    """A DataFrame's rows as Arrow, in the order of its partitions, instants in UTC."""
    sent = frame.mapInArrow(_as_bytes, "partition long, number long, batch binary").collect()
    received = [
        batch
        for row in sorted(sent, key=lambda row: (row["partition"], row["number"]))
        for batch in pa.ipc.open_stream(bytes(row["batch"]))
    ]
    schema = received[0].schema if received else to_arrow_schema(frame.schema)
    wire = wire_schema(schema)
    return pa.Table.from_batches([to_wire(batch, wire) for batch in received], wire)


def _as_bytes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    partition = TaskContext.get().partitionId()
    for number, batch in enumerate(batches):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        content = sink.getvalue().to_pybytes()
        yield pa.record_batch(
            {"partition": [partition], "number": [number], "batch": pa.array([content])}
        )
