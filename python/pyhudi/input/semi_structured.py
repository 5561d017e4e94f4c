"""BLOB and VARIANT columns of Hudi 1.2: structs whose field has the metadata `hudi_type`.

Scans return a VARIANT as Arrow's extension type `arrow.parquet.variant`, which is in the
field's metadata only: Arrow registers no type of that name, and its Parquet writer crashes on one
that Python registers (pyarrow 26). The Rust core encodes values and writes the Avro schema.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from pyhudi import _native
from pyhudi.errors import SchemaMismatch, UnsupportedTableFeature
from pyhudi.input.type_tests import is_text
from pyhudi.input.vectors import HUDI_TYPE, with_vector_metadata

BLOB = "hudi.blob"
VARIANT = "hudi.variant"
"""Extension names of the types that `blob` and `variant` return."""
ARROW_VARIANT = "arrow.parquet.variant"
EXTENSIONS = (BLOB, VARIANT, ARROW_VARIANT)

_NAME = b"ARROW:extension:name"
_PARAMETERS = b"ARROW:extension:metadata"
_VARIANT_FIELDS = ("metadata", "value")
_REFERENCE = pa.struct(
    [
        pa.field("external_path", pa.string(), nullable=False),
        pa.field("offset", pa.int64()),
        pa.field("length", pa.int64()),
        pa.field("managed", pa.bool_(), nullable=False),
    ]
)
_BLOB = pa.struct(
    [
        pa.field("type", pa.string(), nullable=False),
        pa.field("data", pa.binary()),
        pa.field("reference", _REFERENCE),
    ]
)
PLAIN_VARIANT = pa.struct([pa.field(n, pa.binary(), nullable=False) for n in _VARIANT_FIELDS])


class SemiStructuredType(pa.ExtensionType):  # type: ignore[misc]  # pyarrow ships no types
    """The type that `blob` and `variant` return, for schemas."""

    def __init__(self, storage: pa.DataType, name: str) -> None:
        super().__init__(storage, name)

    def __arrow_ext_serialize__(self) -> bytes:
        """Return the name, which distinguishes BLOB and VARIANT."""
        return str(self.extension_name).encode()

    @classmethod
    def __arrow_ext_deserialize__(
        cls, storage_type: pa.DataType, serialized: bytes
    ) -> SemiStructuredType:
        """Return the type with a storage type."""
        return cls(storage_type, serialized.decode())


def blob() -> SemiStructuredType:
    """Return the type of a BLOB column, for `create_table` or a column added by `alter`.

    Returns:
        A type for `pyarrow.schema`. Input rows and scans have a struct of `type` ("INLINE" or
        "OUT_OF_LINE"), `data`, and `reference` with `external_path`, `offset`, `length` and
        `managed`. `Scan.read_blob` reads the bytes.
    """
    return SemiStructuredType(_BLOB, BLOB)


def variant() -> SemiStructuredType:
    """Return the type of a VARIANT column, for `create_table` or a column added by `alter`.

    Returns:
        A type for `pyarrow.schema`. Input rows and scans have a struct of `metadata` and `value`.
        `variant_from_json` creates such structs, `variant_to_json` reads them.
    """
    return SemiStructuredType(PLAIN_VARIANT, VARIANT)


def variant_from_json(values: Any) -> Any:
    """Convert JSON strings to VARIANT values, for a VARIANT column.

    Values have the same types and bytes as those of Spark's `parse_json`. Numbers become integers,
    decimals of at most 38 digits, or doubles.

    Args:
        values: JSON strings, as a `pyarrow.Array`, a `ChunkedArray`, or a list of `str`. A null
            stays null; the string "null" becomes a VARIANT with JSON's null.

    Returns:
        A struct array of `metadata` and `value`; a `ChunkedArray` for a `ChunkedArray`.

    Raises:
        SchemaMismatch: a value is not JSON; the error names its row.
        UnsupportedTableFeature: the values need more than 2 GiB in one array.
    """
    strings = _arrow_column(values, pa.string())
    if pa.types.is_dictionary(strings.type):
        strings = strings.cast(strings.type.value_type)
    if pa.types.is_null(strings.type):
        strings = strings.cast(pa.string())
    if not is_text(strings.type):
        msg = f"JSON is text, the values are {strings.type}"
        raise SchemaMismatch(msg, hint="Give strings, such as those of json.dumps.")
    return _convert(strings, _native.variants_from_json, PLAIN_VARIANT)


def variant_to_json(values: Any) -> Any:
    """Convert VARIANT values, such as those of a scan, to JSON strings.

    Dates, times, UUIDs, bytes (base64), and numbers that JSON does not have (`NaN`) become strings.

    Args:
        values: a struct array of `metadata` and `value`, as a `pyarrow.Array` or a `ChunkedArray`,
            or a list of such dicts.

    Returns:
        A string array; a `ChunkedArray` for a `ChunkedArray`. A null VARIANT becomes null.

    Raises:
        SchemaMismatch: the values are not structs of `metadata` and `value`.
        CorruptTable: the bytes of a VARIANT are damaged.
        UnsupportedTableFeature: the strings need more than 2 GiB in one array, or one string needs
            more than 128 MiB.
    """
    variants = _arrow_column(values, PLAIN_VARIANT)
    if isinstance(variants.type, pa.BaseExtensionType):
        variants = variants.cast(variants.type.storage_type)
    return _convert(variants, _native.variants_to_json, pa.string())


def with_hudi_type(field: pa.Field[Any], plain: pa.DataType) -> pa.Field[Any]:
    """Return a field with its storage type; its metadata name the Hudi type.

    plain: the type without extensions. Raises `UnsupportedTableFeature` for a VARIANT with shredded
    values.
    """
    metadata = dict(field.metadata or {})
    name = extension_name(field)
    if metadata.get(_NAME) == ARROW_VARIANT.encode():
        del metadata[_NAME]
        metadata.pop(_PARAMETERS, None)
    if name in (VARIANT, ARROW_VARIANT):
        _check_plain(field.name, plain)
        return field.with_type(plain).with_metadata({**metadata, HUDI_TYPE: b"VARIANT"})
    if name == BLOB:
        return field.with_type(plain).with_metadata({**metadata, HUDI_TYPE: b"BLOB"})
    return with_vector_metadata(field, plain)


def extension_name(field: pa.Field[Any]) -> str:
    """Return the name of a column's extension type, registered or not; "" for another type."""
    if isinstance(field.type, pa.BaseExtensionType):
        return str(field.type.extension_name)
    name: bytes = (field.metadata or {}).get(_NAME, b"")
    return name.decode(errors="replace")


def as_arrow_extension(field: pa.Field[Any]) -> pa.Field[Any]:
    """Return a column as scans return it: a VARIANT with Arrow's extension type."""
    if not is_variant(field):
        return field
    return field.with_metadata(
        {**field.metadata, _NAME: ARROW_VARIANT.encode(), _PARAMETERS: b""},
    )


def in_schema(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterable[pa.RecordBatch]:
    """Return batches with the metadata of VARIANT columns, which batches of files do not have."""
    if not any(map(is_variant, schema)):
        return batches
    return (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in batches)


def is_variant(field: pa.Field[Any]) -> bool:
    """Return whether a column of a schema without extension types is a VARIANT."""
    return _is_named(field, b"VARIANT") and _is_plain_variant(field.type)


def is_blob(field: pa.Field[Any]) -> bool:
    """Return whether a column of a schema without extension types is a BLOB."""
    names = {"type", "data", "reference"}
    return _is_named(field, b"BLOB") and {child.name for child in field.type} == names


def _is_named(field: pa.Field[Any], name: bytes) -> bool:
    hudi_type = (field.metadata or {}).get(HUDI_TYPE, b"").upper()
    return bool(hudi_type == name and pa.types.is_struct(field.type))


def _is_plain_variant(data_type: pa.DataType) -> bool:
    return pa.types.is_struct(data_type) and {child.name for child in data_type} == {
        *_VARIANT_FIELDS
    }


def _check_plain(name: str, data_type: pa.DataType) -> None:
    if not _is_plain_variant(data_type):
        msg = f"column {name!r} is a VARIANT of type {data_type}"
        hint = "Give a struct of metadata and value: pyhudi does not write shredded values."
        raise UnsupportedTableFeature(msg, hint=hint)


def _arrow_column(values: Any, data_type: pa.DataType) -> pa.Array[Any] | pa.ChunkedArray[Any]:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    try:
        if hasattr(values, "__arrow_c_array__"):
            return pa.array(values)
        if hasattr(values, "__arrow_c_stream__"):
            return pa.chunked_array(values)
        return pa.array(values, data_type)
    except (pa.ArrowException, TypeError, ValueError) as error:
        msg = f"the values are no column of {data_type}: {error}"
        raise SchemaMismatch(msg, hint="Pass a pyarrow.Array.") from error


def _convert(column: Any, convert: Any, data_type: pa.DataType) -> Any:
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([convert(chunk) for chunk in column.chunks], data_type)
    return convert(column)
