"""Arrow types as Spark's Arrow channel takes them, and the Spark types they become.

Spark takes one Arrow form for each of its types: timestamps in microseconds, strings and binary
with 32-bit offsets, no dictionaries. Everything here is about types; rows are only cast.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as at
from pyspark.sql import types as st

from pyhudi.errors import SchemaMismatch, UnsupportedTableFeature

_PLAIN = {
    pa.null(): st.NullType,
    pa.bool_(): st.BooleanType,
    pa.int8(): st.ByteType,
    pa.int16(): st.ShortType,
    pa.int32(): st.IntegerType,
    pa.int64(): st.LongType,
    pa.float32(): st.FloatType,
    pa.float64(): st.DoubleType,
    pa.string(): st.StringType,
    pa.binary(): st.BinaryType,
    pa.date32(): st.DateType,
    pa.timestamp("us"): st.TimestampNTZType,
    pa.timestamp("us", "UTC"): st.TimestampType,
}
"""Types that Spark takes as they are; the composite ones are built of them."""


def wire_schema(schema: pa.Schema) -> pa.Schema:
    """The Arrow schema in which rows of `schema` go to or come from Spark.

    All columns are nullable, as Spark's own file sources have it: Spark leaves out null checks of
    columns that are not, and a file that breaks the promise would give wrong rows.

    Raises:
        UnsupportedTableFeature: a column has a type that Spark has none for; its name is told.
    """
    return pa.schema([pa.field(f.name, _wire_type(f.type, f.name)) for f in schema])


def spark_schema(wire: pa.Schema) -> st.StructType:
    """The schema of a DataFrame with rows of a `wire_schema`."""
    return st.StructType([st.StructField(f.name, _spark_type(f.type), True) for f in wire])


def row_bytes(schema: pa.Schema) -> int:
    """What Spark takes a row for: as wide as its types are by default.

    `EstimationUtils.getSizePerRow` and `DataType.defaultSize`, Spark 3.5 to 4.1.
    """
    return _ROW_HEAD + sum(_width(field.type) for field in schema)


_ROW_HEAD = 8
_TEXT_WIDTH = 20
_BYTES_WIDTH = 100
_LONG_DIGITS = 18
"""Decimals of more digits are no longs."""


def _width(kind: pa.DataType) -> int:
    if at.is_struct(kind):
        return sum(_width(field.type) for field in kind)
    if at.is_map(kind):
        return _width(kind.key_type) + _width(kind.item_type)
    if at.is_list(kind) or at.is_large_list(kind) or at.is_fixed_size_list(kind):
        return _width(kind.value_type)
    if at.is_string(kind) or at.is_large_string(kind):
        return _TEXT_WIDTH
    if at.is_decimal(kind):
        return 8 if kind.precision <= _LONG_DIGITS else 16
    if at.is_primitive(kind):
        return max(int(kind.bit_width) // 8, 1)
    return 1 if at.is_null(kind) else _BYTES_WIDTH


def to_wire(batch: pa.RecordBatch, wire: pa.Schema) -> pa.RecordBatch:
    """A batch in its wire schema.

    Raises:
        SchemaMismatch: its columns are not those of the schema, or a value does not fit.
    """
    if batch.schema.equals(wire):
        return batch
    if batch.schema.names != wire.names:
        raise SchemaMismatch(f"rows with the columns {batch.schema.names}, not {wire.names}")
    columns = [
        column if column.type.equals(field.type) else _cast(column, field)
        for column, field in zip(batch.columns, wire, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=wire)


def _cast(column: pa.Array, field: pa.Field) -> pa.Array:
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid as error:
        raise SchemaMismatch(f"column {field.name!r} does not fit Spark: {error}") from error


def _wire_type(kind: pa.DataType, column: str) -> pa.DataType:
    if at.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if at.is_decimal(kind) and kind.precision <= 38:
        return pa.decimal128(kind.precision, kind.scale)
    if at.is_dictionary(kind):
        return _wire_type(kind.value_type, column)
    if at.is_struct(kind):
        return pa.struct([_wire_field(f, f"{column}.{f.name}") for f in kind])
    if at.is_map(kind):
        key = _wire_type(kind.key_type, f"{column}.key")
        return pa.map_(key, _wire_field(kind.item_field, f"{column}.value"))
    if at.is_list(kind) or at.is_large_list(kind) or at.is_fixed_size_list(kind):
        return pa.list_(_wire_field(kind.value_field, f"{column}.element"))
    return _wire_plain(kind, column)


def _wire_field(field: pa.Field, column: str) -> pa.Field:
    return pa.field(field.name, _wire_type(field.type, column))


def _wire_plain(kind: pa.DataType, column: str) -> pa.DataType:
    if kind in _PLAIN:
        return kind
    if at.is_large_string(kind):
        return pa.string()
    if at.is_large_binary(kind) or at.is_fixed_size_binary(kind):
        return pa.binary()
    if at.is_date64(kind):
        return pa.date32()
    raise UnsupportedTableFeature(
        f"column {column!r} has the type {kind}, and Spark has no type for it",
        hint="name the other columns in `columns`",
    )


def _spark_type(kind: pa.DataType) -> st.DataType:
    if kind in _PLAIN:
        return _PLAIN[kind]()
    if at.is_decimal(kind):
        return st.DecimalType(kind.precision, kind.scale)
    if at.is_struct(kind):
        fields = [st.StructField(f.name, _spark_type(f.type), True) for f in kind]
        return st.StructType(fields)
    if at.is_map(kind):
        return st.MapType(_spark_type(kind.key_type), _spark_type(kind.item_type), True)
    if at.is_list(kind):
        return st.ArrayType(_spark_type(kind.value_type), True)
    raise TypeError(f"not a type of a wire schema: {kind}")
