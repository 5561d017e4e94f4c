"""VECTOR columns of Hudi 1.2: lists of one fixed length, of `float`, `double` or `int8`.

In Arrow a VECTOR is a `fixed_size_list` whose field has the metadata `hudi_type`, as in Spark.
Fixed bytes in files and the Avro schema are the Rust core's part.
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
_NAMES = {kind: name.upper() for name, kind in _ELEMENTS.items()}
_MAX_BYTES = 1 << 20
"""The core reads no longer fixed values."""


class VectorType(pa.ExtensionType):  # type: ignore[misc]  # pyarrow ships no types
    """The type that `vector` gives, to be used in schemas."""

    def __init__(self, storage: pa.DataType) -> None:
        super().__init__(storage, EXTENSION)

    def __arrow_ext_serialize__(self) -> bytes:
        """Nothing: the storage says all."""
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, _: bytes) -> VectorType:
        """The type over a storage."""
        return cls(storage_type)


def vector(dimension: int, element: Element = "float") -> VectorType:
    """The type of a VECTOR column, for a schema of `create_table` or a new column of `alter`.

    Args:
        dimension: how many numbers each value has.
        element: "float" (32 bits), "double" or "int8".

    Returns:
        A type for `pyarrow.schema`. Scans give the column as a `fixed_size_list`.

    Raises:
        ConfigError: no such element, or a dimension below 1 or with more than 1 MiB a value.
    """
    kind = _ELEMENTS.get(element)
    if kind is None:
        msg = f"element is {element!r}"
        raise ConfigError(msg, hint='Give "float", "double" or "int8".')
    most = _MAX_BYTES * 8 // kind.bit_width
    if type(dimension) is not int or not 0 < dimension <= most:
        msg = f"dimension is {dimension!r}"
        raise ConfigError(msg, hint=f"Give an integer from 1 to {most}.")
    return VectorType(pa.list_(kind, dimension))


def vector_name(kind: pa.DataType) -> str:
    """Hudi's name for the VECTOR type that is stored as a list of a fixed size."""
    element = _NAMES[kind.value_type]
    return f"VECTOR({kind.list_size}{'' if element == 'FLOAT' else f', {element}'})"


def with_vector_metadata(field: pa.Field[Any], plain: pa.DataType) -> pa.Field[Any]:
    """The field with its type without extensions; one that was a VECTOR says so in its metadata."""
    made = field.with_type(plain)
    if is_vector_type(field.type):
        return made.with_metadata(
            {**(field.metadata or {}), HUDI_TYPE: vector_name(plain).encode()}
        )
    return made


def is_vector_type(kind: pa.DataType) -> bool:
    """Whether a type is one that `vector` gave."""
    return isinstance(kind, pa.BaseExtensionType) and kind.extension_name == EXTENSION


def is_vector(field: pa.Field[Any]) -> bool:
    """Whether a column of a plain schema is a VECTOR."""
    told = (field.metadata or {}).get(HUDI_TYPE, b"").upper()
    return bool(
        pa.types.is_fixed_size_list(field.type)
        and field.type.value_type in _NAMES
        and told.startswith(b"VECTOR")
    )


def check_vector(column: pa.ChunkedArray[Any], name: str) -> None:
    """Raises `SchemaMismatch` for a VECTOR with a null among its numbers."""
    if not pa.types.is_nested(column.type):
        return
    if any(chunk.flatten().null_count for chunk in column.chunks):
        msg = f"column {name!r}: a VECTOR has a null element"
        raise SchemaMismatch(msg, hint="Give every number, or null for the whole VECTOR.")
