"""Arrow types in Spark's Arrow exchange, and the Spark types that they become.

Spark accepts one Arrow type for each of its types: timestamps in microseconds, strings and binary
with 32-bit offsets, no dictionaries. This module converts types; rows are only cast.

A VARIANT column is a `VariantType` on Spark 4. Its Arrow encoding is a marked struct
(`pyspark.sql.pandas.types.to_arrow_type`). Spark 3.5 has no such type and gets a struct.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at
from pyspark.sql import types as st

from pyhudi.errors import SchemaMismatch, UnsupportedTableFeature
from pyhudi.input.semi_structured import is_variant
from pyhudi.input.type_tests import is_list

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
"""Types that Spark accepts unchanged; the nested ones are built of them."""

HAS_VARIANT = hasattr(st, "VariantType")
WIRE_VARIANT = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
    ]
)
"""Spark's Arrow encoding of a VARIANT; its executors read the fields by position."""


def wire_schema(schema: pa.Schema) -> pa.Schema:
    """Return the Arrow schema in which rows of `schema` go to or come from Spark.

    All columns are nullable, as in Spark's own file sources: Spark omits null checks of
    non-nullable columns, and a file with nulls would give wrong rows.

    Raises:
        UnsupportedTableFeature: Spark has no type for a column; the message names it.
    """
    return pa.schema([_wire_column(f) for f in schema])


def _wire_column(field: pa.Field) -> pa.Field:
    if HAS_VARIANT and (is_variant(field) or is_wire_variant(field.type)):
        return pa.field(field.name, WIRE_VARIANT)
    return pa.field(field.name, _wire_type(field.type, field.name))


def is_wire_variant(data_type: pa.DataType) -> bool:
    """Return whether a type is Spark's Arrow encoding of a VARIANT."""
    if not at.is_struct(data_type) or {field.name for field in data_type} != {"metadata", "value"}:
        return False
    return (data_type.field("metadata").metadata or {}).get(b"variant") == b"true"


def spark_schema(wire: pa.Schema) -> st.StructType:
    """Return the schema of a DataFrame with rows of a `wire_schema`."""
    return st.StructType([st.StructField(f.name, _spark_type(f.type), True) for f in wire])


def row_bytes(schema: pa.Schema) -> int:
    """Return the row size that Spark estimates from the default widths of the types.

    Source: `EstimationUtils.getSizePerRow` and `DataType.defaultSize`, Spark 3.5 to 4.1.
    """
    return _ROW_HEAD + sum(_width(field.type) for field in schema)


_ROW_HEAD = 8
_TEXT_WIDTH = 20
_BYTES_WIDTH = 100
_LONG_DIGITS = 18
"""Maximum digits of a decimal that Spark stores as a long."""


def _width(data_type: pa.DataType) -> int:
    if at.is_struct(data_type):
        return sum(_width(field.type) for field in data_type)
    if at.is_map(data_type):
        return _width(data_type.key_type) + _width(data_type.item_type)
    if is_list(data_type):
        return _width(data_type.value_type)
    if at.is_string(data_type) or at.is_large_string(data_type):
        return _TEXT_WIDTH
    if at.is_decimal(data_type):
        return 8 if data_type.precision <= _LONG_DIGITS else 16
    if at.is_primitive(data_type):
        return max(int(data_type.bit_width) // 8, 1)
    return 1 if at.is_null(data_type) else _BYTES_WIDTH


def to_wire(batch: pa.RecordBatch, wire: pa.Schema) -> pa.RecordBatch:
    """Convert a batch to its wire schema.

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
    if is_wire_variant(field.type):
        parts = dict(zip((f.name for f in column.type), column.flatten(), strict=True))
        parts = {name: pc.fill_null(part, b"") for name, part in parts.items()}
        return pa.StructArray.from_arrays(
            [parts[f.name] for f in field.type], fields=list(field.type), mask=column.is_null()
        )
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid as error:
        raise SchemaMismatch(f"column {field.name!r} does not fit Spark: {error}") from error


def _wire_type(data_type: pa.DataType, column: str) -> pa.DataType:
    if at.is_timestamp(data_type):
        return pa.timestamp("us", None if data_type.tz is None else "UTC")
    if at.is_decimal(data_type) and data_type.precision <= 38:
        return pa.decimal128(data_type.precision, data_type.scale)
    if at.is_dictionary(data_type):
        return _wire_type(data_type.value_type, column)
    if at.is_struct(data_type):
        return pa.struct([_wire_field(f, f"{column}.{f.name}") for f in data_type])
    if at.is_map(data_type):
        key = _wire_type(data_type.key_type, f"{column}.key")
        return pa.map_(key, _wire_field(data_type.item_field, f"{column}.value"))
    if is_list(data_type):
        return pa.list_(_wire_field(data_type.value_field, f"{column}.element"))
    return _wire_plain(data_type, column)


def _wire_field(field: pa.Field, column: str) -> pa.Field:
    return pa.field(field.name, _wire_type(field.type, column))


def _wire_plain(data_type: pa.DataType, column: str) -> pa.DataType:
    if data_type in _PLAIN:
        return data_type
    if at.is_large_string(data_type):
        return pa.string()
    if at.is_large_binary(data_type) or at.is_fixed_size_binary(data_type):
        return pa.binary()
    if at.is_date64(data_type):
        return pa.date32()
    # Spark has a TIME type from 4.1 on, and up to 4.3 does not enable it.
    raise UnsupportedTableFeature(
        f"column {column!r} has the type {data_type}, and Spark has no type for it",
        hint="Select the other columns with `columns`.",
    )


def _spark_type(data_type: pa.DataType) -> st.DataType:
    if HAS_VARIANT and is_wire_variant(data_type):
        return st.VariantType()
    if data_type in _PLAIN:
        return _PLAIN[data_type]()
    if at.is_decimal(data_type):
        return st.DecimalType(data_type.precision, data_type.scale)
    if at.is_struct(data_type):
        fields = [st.StructField(f.name, _spark_type(f.type), True) for f in data_type]
        return st.StructType(fields)
    if at.is_map(data_type):
        return st.MapType(_spark_type(data_type.key_type), _spark_type(data_type.item_type), True)
    if at.is_list(data_type):
        return st.ArrayType(_spark_type(data_type.value_type), True)
    raise TypeError(f"not a type of a wire schema: {data_type}")
