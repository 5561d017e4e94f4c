"""BLOB and VARIANT columns of Hudi 1.2: structs whose field has the metadata `hudi_type`.

Scans give a VARIANT as Arrow's extension `arrow.parquet.variant`, by the field's metadata: Arrow
registers no type of that name, and its Parquet writer dies of one that Python registers (pyarrow
26). Bytes and the Avro schema are the Rust core's part.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from pyhudi.errors import UnsupportedTableFeature
from pyhudi.input.vectors import HUDI_TYPE, with_vector_metadata

BLOB = "hudi.blob"
VARIANT = "hudi.variant"
"""Extension names of the types that `blob` and `variant` give."""
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
    """The type that `blob` and `variant` give, to be used in schemas."""

    def __init__(self, storage: pa.DataType, name: str) -> None:
        super().__init__(storage, name)

    def __arrow_ext_serialize__(self) -> bytes:
        """The name: which of the two it is."""
        return str(self.extension_name).encode()

    @classmethod
    def __arrow_ext_deserialize__(
        cls, storage_type: pa.DataType, serialized: bytes
    ) -> SemiStructuredType:
        """The type over a storage."""
        return cls(storage_type, serialized.decode())


def blob() -> SemiStructuredType:
    """The type of a BLOB column, for a schema of `create_table` or a new column of `alter`.

    Returns:
        A type for `pyarrow.schema`. Rows take, and scans give, a struct of `type` ("INLINE" or
        "OUT_OF_LINE"), `data`, and `reference` with `external_path`, `offset`, `length` and
        `managed`. `Scan.read_blob` reads the bytes.
    """
    return SemiStructuredType(_BLOB, BLOB)


def variant() -> SemiStructuredType:
    """The type of a VARIANT column, for a schema of `create_table` or a new column of `alter`.

    Returns:
        A type for `pyarrow.schema`. Rows take, and scans give, a struct of `metadata` and `value`,
        which `variant_from_json` and `variant_to_json` make and read.
    """
    return SemiStructuredType(PLAIN_VARIANT, VARIANT)


def with_hudi_type(field: pa.Field[Any], plain: pa.DataType) -> pa.Field[Any]:
    """The field with its type without extensions; what it was stands in its metadata.

    Raises `UnsupportedTableFeature` for a VARIANT with shredded values.
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
    """Name of the extension type of a column, also one that pyarrow does not know; "" for none."""
    if isinstance(field.type, pa.BaseExtensionType):
        return str(field.type.extension_name)
    name: bytes = (field.metadata or {}).get(_NAME, b"")
    return name.decode(errors="replace")


def as_arrow_extension(field: pa.Field[Any]) -> pa.Field[Any]:
    """The column as scans give it: a VARIANT is Arrow's extension type."""
    if not is_variant(field):
        return field
    return field.with_metadata(
        {**field.metadata, _NAME: ARROW_VARIANT.encode(), _PARAMETERS: b""},
    )


def in_schema(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterable[pa.RecordBatch]:
    """Batches of a scan with the metadata of its VARIANT columns, which those of files lack."""
    if not any(map(is_variant, schema)):
        return batches
    return (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in batches)


def is_variant(field: pa.Field[Any]) -> bool:
    """Whether a column of a plain schema is a VARIANT."""
    return _is_named(field, b"VARIANT") and _is_plain_variant(field.type)


def is_blob(field: pa.Field[Any]) -> bool:
    """Whether a column of a plain schema is a BLOB."""
    names = {"type", "data", "reference"}
    return _is_named(field, b"BLOB") and {each.name for each in field.type} == names


def _is_named(field: pa.Field[Any], name: bytes) -> bool:
    told = (field.metadata or {}).get(HUDI_TYPE, b"").upper()
    return bool(told == name and pa.types.is_struct(field.type))


def _is_plain_variant(kind: pa.DataType) -> bool:
    return pa.types.is_struct(kind) and {each.name for each in kind} == {*_VARIANT_FIELDS}


def _check_plain(name: str, kind: pa.DataType) -> None:
    if not _is_plain_variant(kind):
        msg = f"column {name!r} is a VARIANT of type {kind}"
        hint = "Give a struct of metadata and value: pyhudi does not write shredded values."
        raise UnsupportedTableFeature(msg, hint=hint)
