"""VECTOR columns of Hudi 1.2: lists of one fixed length, of `float`, `double` or `int8`.

In Arrow a VECTOR is a `fixed_size_list` whose field has the metadata `hudi_type`, as in Spark.
The Rust core encodes values as fixed bytes and writes the Avro schema.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import pyarrow as pa

from pyhudi.errors import ConfigError, SchemaMismatch

Element: TypeAlias = Literal["float", "double", "int8"]

HUDI_TYPE = b"hudi_type"
"""Key of a field's metadata."""
EXTENSION = "hudi.vector"
_ELEMENTS = {"float": pa.float32(), "double": pa.float64(), "int8": pa.int8()}
_NAMES = {data_type: name.upper() for name, data_type in _ELEMENTS.items()}
_MAX_BYTES = 1 << 20
"""Maximum bytes of a value, as in the Rust core."""


class VectorType(pa.ExtensionType):  # type: ignore[misc]  # pyarrow ships no types
    """The type that `vector` returns, for schemas."""

    def __init__(self, storage: pa.DataType) -> None:
        super().__init__(storage, EXTENSION)

    def __arrow_ext_serialize__(self) -> bytes:
        """Return nothing: the storage type is enough."""
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, _: bytes) -> VectorType:
        """Return the type with a storage type."""
        return cls(storage_type)


def vector(dimension: int, element: Element = "float") -> VectorType:
    """Return the type of a VECTOR column, for `create_table` or a column added by `alter`.

    Args:
        dimension: the number of elements of each value.
        element: "float" (32 bits), "double" or "int8".

    Returns:
        A type for `pyarrow.schema`. Scans return the column as a `fixed_size_list`.

    Raises:
        ConfigError: another element, a dimension below 1, or values of more than 1 MiB.
    """
    data_type = _ELEMENTS.get(element)
    if data_type is None:
        raise ConfigError(f"element is {element!r}", hint='Pass "float", "double" or "int8".')
    max_dimension = _MAX_BYTES * 8 // data_type.bit_width
    if type(dimension) is not int or not 0 < dimension <= max_dimension:
        msg = f"dimension is {dimension!r}"
        raise ConfigError(msg, hint=f"Pass an integer from 1 to {max_dimension}.")
    return VectorType(pa.list_(data_type, dimension))


def vector_name(data_type: pa.DataType) -> str:
    """Return Hudi's name of the VECTOR type with a fixed-size list as storage type."""
    element = _NAMES[data_type.value_type]
    return f"VECTOR({data_type.list_size}{'' if element == 'FLOAT' else f', {element}'})"


def with_vector_metadata(field: pa.Field[Any], plain: pa.DataType) -> pa.Field[Any]:
    """Return a field with its storage type; the metadata of a VECTOR name the Hudi type.

    plain: the type without extensions.
    """
    stored = field.with_type(plain)
    if is_vector_type(field.type):
        return stored.with_metadata(
            {**(field.metadata or {}), HUDI_TYPE: vector_name(plain).encode()}
        )
    return stored


def is_vector_type(data_type: pa.DataType) -> bool:
    """Return whether a type is a result of `vector`."""
    return isinstance(data_type, pa.BaseExtensionType) and data_type.extension_name == EXTENSION


def is_vector(field: pa.Field[Any]) -> bool:
    """Return whether a column of a schema without extension types is a VECTOR."""
    hudi_type = (field.metadata or {}).get(HUDI_TYPE, b"").upper()
    return bool(
        pa.types.is_fixed_size_list(field.type)
        and field.type.value_type in _NAMES
        and hudi_type.startswith(b"VECTOR")
    )


def check_vector(column: pa.ChunkedArray[Any], name: str) -> None:
    """Raise `SchemaMismatch` for a VECTOR with a null element."""
    if not pa.types.is_nested(column.type):
        return
    if any(chunk.flatten().null_count for chunk in column.chunks):
        msg = f"column {name!r}: a VECTOR has a null element"
        raise SchemaMismatch(msg, hint="Give every number, or null for the whole VECTOR.")
