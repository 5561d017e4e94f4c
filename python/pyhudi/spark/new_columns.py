"""The columns of a new table from Spark's types: what is stored otherwise, and VECTOR columns."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as st

from pyhudi.config.log import warn
from pyhudi.errors import ColumnTypeWarning, SchemaMismatch
from pyhudi.input.vectors import HUDI_TYPE, vector, with_vector_metadata
from pyhudi.spark.executor_steps import struct_schema

_SIZED_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
"""Key of a field's metadata with the type of a CHAR or VARCHAR column, which Spark has as string
(`CharVarcharUtils`)."""
_SIZED_STRING = re.compile(
    r"(?:(?P<name>`[^`]+`|\w+)(?P<between>\s*:\s*|\s+)|\b)"
    r"(?P<type>(?:var)?char(?:acter)?\s*\(\s*\d+\s*\))",
    re.IGNORECASE,
)
_VECTOR = re.compile(r"VECTOR\s*\(\s*(\d+)\s*(?:,\s*(\w+)\s*)?\)", re.IGNORECASE)
_VECTOR_COLUMN = re.compile(rf"(?P<name>`[^`]+`|\w+)\s+{_VECTOR.pattern}", re.IGNORECASE)
_ELEMENTS = {"float": "float", "double": "double", "int8": "tinyint"}


def new_columns(schema: st.StructType) -> pa.Schema:
    """Return the Arrow schema of a table's new columns.

    A field with the metadata `hudi_type` VECTOR(...), as in Hudi 1.2, is a VECTOR. Warns of types
    that are stored as wider ones. Raises `UnsupportedTableFeature` for a type that no table can
    have, `SchemaMismatch` for a VECTOR that is no array of its elements.
    """
    _warn_of_stored_types([f"{path!r} {name}" for path, name in _find_wider_types(schema, "")])
    columns = zip(struct_schema(schema), schema, strict=True)
    return pa.schema([_with_vector(column, field) for column, field in columns])


def ddl_schema(spark: SparkSession, ddl: str) -> pa.Schema:
    """Return the Arrow schema of columns in Spark's DDL, such as "id string, fare double".

    As in Hudi 1.2, a column may be a VECTOR(dimension) or VECTOR(dimension, element). Warns and
    raises as `new_columns` does.
    """
    vectors: dict[str, str] = {}
    sized: list[str] = []

    def array(match: re.Match[str]) -> str:
        name, _, element = match.groups()
        vectors[name.strip("`").lower()] = match[0][len(name) :].strip()
        return f"{name} array<{_ELEMENTS.get((element or 'float').lower(), 'float')}>"

    def string(match: re.Match[str]) -> str:
        name = match["name"]
        sized.append(f"{name.strip('`')!r} {match['type']}" if name else match["type"])
        return f"{name}{match['between']}string" if name else "string"

    # Spark has no VECTOR, and cannot create rows with strings of a fixed length.
    text = _SIZED_STRING.sub(string, _VECTOR_COLUMN.sub(array, ddl))
    schema = spark.createDataFrame([], text).schema
    fields = []
    for field in schema:
        name = vectors.get(field.name.lower())
        metadata = {HUDI_TYPE.decode(): name} if name else None
        fields.append(st.StructField(field.name, field.dataType, True, metadata))
    _warn_of_stored_types(sized)
    return new_columns(st.StructType(fields))


def _with_vector(column: pa.Field, field: st.StructField) -> pa.Field:
    hudi_type = (field.metadata or {}).get(HUDI_TYPE.decode(), "")
    if not str(hudi_type).upper().startswith("VECTOR"):
        return column
    match = _VECTOR.fullmatch(str(hudi_type))
    element = (match[2] or "float").lower() if match else ""
    expected = _ELEMENTS.get(element)
    if match is None or expected is None or field.dataType.simpleString() != f"array<{expected}>":
        raise SchemaMismatch(
            f"column {field.name!r} is {field.dataType.simpleString()}, and its hudi_type is "
            f"{hudi_type!r}",
            hint="VECTOR(4) is an array<float>, VECTOR(4, DOUBLE) an array<double>, "
            "VECTOR(4, INT8) an array<tinyint>.",
        )
    vector_type = vector(int(match[1]), element)  # type: ignore[arg-type] # checked above
    return with_vector_metadata(column.with_type(vector_type), vector_type.storage_type)


def _find_wider_types(data_type: st.DataType, path: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the name of each type that is stored as a wider one."""
    match data_type:
        case st.StructType():
            for field in data_type:
                where = f"{path}.{field.name}" if path else field.name
                hudi_type = str((field.metadata or {}).get(HUDI_TYPE.decode(), ""))
                sized = (field.metadata or {}).get(_SIZED_TYPE)
                if sized is not None:
                    yield where, str(sized)
                elif not hudi_type.upper().startswith("VECTOR"):
                    yield from _find_wider_types(field.dataType, where)
        case st.ArrayType():
            yield from _find_wider_types(data_type.elementType, f"{path}.element")
        case st.MapType():
            yield from _find_wider_types(data_type.valueType, f"{path}.value")
        case st.ByteType() | st.ShortType() | st.CharType() | st.VarcharType():
            yield path, data_type.simpleString()


def _warn_of_stored_types(columns: list[str]) -> None:
    if columns:
        warn(
            f"Hudi has no such types: {', '.join(columns)}. TINYINT and SMALLINT are stored as "
            "INT, CHAR(n) and VARCHAR(n) as STRING, and writes do not check their range and length",
            ColumnTypeWarning,
        )
