"""Rows of every type go to Spark and come back unchanged, and other types are refused by name."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as st

from pyhudi.engine.protocol import Attempt
from pyhudi.errors import SchemaMismatch, UnsupportedTableFeature
from pyhudi.spark import SparkEngine
from pyhudi.spark.types import spark_schema, to_wire, wire_schema
from tests.engine import jobs

pytestmark = [
    pytest.mark.spark35,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own warnings are not ours to mend
]

UTC = dt.timezone.utc
INSTANT = dt.datetime(2024, 3, 31, 1, 30, 0, 123456, tzinfo=UTC)
LOCAL = dt.datetime(2024, 3, 31, 2, 30, 0, 123456)  # noqa: DTZ001  an hour that some zones skip

COLUMNS: dict[str, tuple[pa.DataType, list[Any], st.DataType]] = {
    "bool": (pa.bool_(), [True, None], st.BooleanType()),
    "int8": (pa.int8(), [-128, None], st.ByteType()),
    "int16": (pa.int16(), [-32768, None], st.ShortType()),
    "int32": (pa.int32(), [-(2**31), None], st.IntegerType()),
    "int64": (pa.int64(), [2**63 - 1, None], st.LongType()),
    "float32": (pa.float32(), [1.5, None], st.FloatType()),
    "float64": (pa.float64(), [-0.1, None], st.DoubleType()),
    "string": (pa.string(), ["grün", None], st.StringType()),
    "binary": (pa.binary(), [b"\x00\xff", None], st.BinaryType()),
    "date": (pa.date32(), [dt.date(1969, 12, 31), None], st.DateType()),
    "instant": (pa.timestamp("us", "UTC"), [INSTANT, None], st.TimestampType()),
    "local": (pa.timestamp("us"), [LOCAL, None], st.TimestampNTZType()),
    "decimal": (pa.decimal128(38, 10), [Decimal("-1.0000000001"), None], st.DecimalType(38, 10)),
    "list": (pa.list_(pa.int32()), [[1, None], None], st.ArrayType(st.IntegerType())),
    "map": (
        pa.map_(pa.string(), pa.timestamp("us", "UTC")),
        [[("a", INSTANT)], None],
        st.MapType(st.StringType(), st.TimestampType()),
    ),
    "struct": (
        pa.struct({"x": pa.int64(), "y": pa.list_(pa.struct({"z": pa.string()}))}),
        [{"x": 1, "y": [{"z": "q"}, None]}, None],
        st.StructType(
            [
                st.StructField("x", st.LongType()),
                st.StructField(
                    "y",
                    st.ArrayType(st.StructType([st.StructField("z", st.StringType())])),
                ),
            ]
        ),
    ),
}

CHANGED: dict[str, tuple[pa.DataType, list[Any], pa.DataType]] = {
    "millis": (pa.timestamp("ms", "Europe/Paris"), [7, None], pa.timestamp("us", "UTC")),
    "local millis": (pa.timestamp("ms"), [7, None], pa.timestamp("us")),
    "large string": (pa.large_string(), ["x", None], pa.string()),
    "large binary": (pa.large_binary(), [b"x", None], pa.binary()),
    "fixed": (pa.binary(2), [b"xy", None], pa.binary()),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), ["x", None], pa.string()),
    "large list": (
        pa.large_list(pa.timestamp("ms", "UTC")),
        [[7], None],
        pa.list_(pa.timestamp("us", "UTC")),
    ),
    "fixed list": (pa.list_(pa.int32(), 2), [[7, 8], None], pa.list_(pa.int32())),
    "struct": (
        pa.struct({"a": pa.timestamp("ms"), "b": pa.large_string()}),
        [{"a": None, "b": "x"}, None],
        pa.struct({"a": pa.timestamp("us"), "b": pa.string()}),
    ),
    "map": (
        pa.map_(pa.string(), pa.timestamp("ms", "UTC")),
        [[("k", dt.datetime(2024, 1, 1, tzinfo=UTC))], None],
        pa.map_(pa.string(), pa.timestamp("us", "UTC")),
    ),
}


def rows() -> pa.RecordBatch:
    arrays = {name: pa.array(values, kind) for name, (kind, values, _) in COLUMNS.items()}
    return pa.RecordBatch.from_pydict(arrays)


def whole(_value: str, table: pa.Table, _attempt: Attempt) -> list[pa.Table]:
    return [table]


def test_arrow_types_become_spark_types() -> None:
    fields = spark_schema(wire_schema(rows().schema)).fields
    assert [(f.name, f.dataType) for f in fields] == [
        (name, kind) for name, (_, _, kind) in COLUMNS.items()
    ]


def test_rows_of_every_type_pass_through_spark(spark: SparkSession) -> None:
    engine = SparkEngine(spark)
    batch = rows()
    routed = batch.append_column("to", pa.array(["a", "a"]))
    frame = engine.scan(jobs.given, [routed], routed.schema)
    (back,) = engine.exchange(frame, "to", whole)
    assert back.schema.names == routed.schema.names
    for name in batch.schema.names:
        assert back.column(name).type == batch.column(name).type, name
        assert back.column(name).to_pylist() == batch.column(name).to_pylist(), name


def test_instants_mean_the_same_in_every_session_time_zone(spark: SparkSession) -> None:
    frame = SparkEngine(spark).scan(jobs.given, [rows()], rows().schema)
    found = frame.where("instant = timestamp'2024-03-31T01:30:00.123456Z'").count()
    assert found == 1
    assert frame.where("local = timestamp_ntz'2024-03-31T02:30:00.123456'").count() == 1


@pytest.mark.parametrize("name", CHANGED)
def test_types_of_another_form_are_cast(name: str) -> None:
    kind, values, wanted = CHANGED[name]
    batch = pa.RecordBatch.from_arrays([pa.array(values, kind)], ["c"])
    wire = wire_schema(batch.schema)
    assert wire.field("c").type == wanted
    assert to_wire(batch, wire).column(0).cast(kind).to_pylist() == batch.column(0).to_pylist()


@pytest.mark.parametrize("kind", [*CHANGED])
def test_cast_types_pass_through_spark(spark: SparkSession, kind: str) -> None:
    given, values, wanted = CHANGED[kind]
    batch = pa.RecordBatch.from_arrays([pa.array(values, given), pa.array(["a", "a"])], ["c", "to"])
    frame = SparkEngine(spark).scan(jobs.given, [batch], batch.schema)
    (back,) = SparkEngine(spark).exchange(frame, "to", whole)
    assert back.column("c").type == wanted


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        (pa.time64("us"), "c"),
        (pa.time32("ms"), "c"),
        (pa.uint32(), "c"),
        (pa.string_view(), "c"),
        (pa.float16(), "c"),
        (pa.duration("us"), "c"),
        (pa.decimal256(60, 3), "c"),
        (pa.list_(pa.time64("us")), "c.element"),
        (pa.struct({"inner": pa.time64("us")}), "c.inner"),
        (pa.map_(pa.string(), pa.time64("us")), "c.value"),
    ],
    ids=str,
)
def test_types_that_spark_lacks_are_refused_with_the_columns_name(
    kind: pa.DataType, column: str
) -> None:
    with pytest.raises(UnsupportedTableFeature, match=f"'{column}'"):
        wire_schema(pa.schema([("fine", pa.int64()), ("c", kind)]))


def test_values_spark_cannot_hold_are_refused() -> None:
    batch = pa.record_batch({"c": pa.array([1], pa.timestamp("ns"))})
    with pytest.raises(SchemaMismatch, match="'c'"):
        to_wire(batch, wire_schema(batch.schema))


def test_columns_in_another_order_are_refused() -> None:
    batch = pa.record_batch({"a": [1], "b": [2]})
    with pytest.raises(SchemaMismatch, match="columns"):
        to_wire(batch, pa.schema([("b", pa.int64()), ("a", pa.int64())]))
