"""VARIANT values of JSON, and JSON of VARIANT values. The Rust core converts the rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pyhudi import _native
from pyhudi.errors import SchemaMismatch
from pyhudi.input.semi_structured import PLAIN_VARIANT


def variant_from_json(values: Any) -> Any:
    """VARIANT values of JSON texts, to be written to a VARIANT column.

    Values have the types and the bytes that Spark's `parse_json` gives them: integers, decimals of
    38 digits at most, else doubles.

    Args:
        values: texts, as a `pyarrow.Array`, a `ChunkedArray`, or a list of `str`. A null stays
            null; the text "null" is a VARIANT that holds JSON's null.

    Returns:
        A struct array of `metadata` and `value`, a `ChunkedArray` where one was given.

    Raises:
        SchemaMismatch: a value is no JSON text; its row is named.
        UnsupportedTableFeature: the values take more than 2 GiB in one array.
    """
    texts = _arrow_column(values, pa.string())
    if pa.types.is_dictionary(texts.type):
        texts = texts.cast(texts.type.value_type)
    if pa.types.is_null(texts.type):
        texts = texts.cast(pa.string())
    tests = (pa.types.is_string, pa.types.is_large_string, pa.string_view().equals)
    if not any(test(texts.type) for test in tests):
        msg = f"JSON is text, the values are {texts.type}"
        raise SchemaMismatch(msg, hint="Give strings, such as those of json.dumps.")
    return _each(texts, _native.variants_from_json, PLAIN_VARIANT)


def variant_to_json(values: Any) -> Any:
    """JSON texts of VARIANT values, such as those of a scan.

    Dates, times, UUIDs, bytes (base64), and numbers that JSON lacks (`NaN`) become JSON strings.

    Args:
        values: a struct array of `metadata` and `value`, as a `pyarrow.Array` or a `ChunkedArray`,
            or a list of such dicts.

    Returns:
        A string array, a `ChunkedArray` where one was given. Null where a VARIANT is null.

    Raises:
        SchemaMismatch: the values are no structs of `metadata` and `value`.
        CorruptTable: the bytes of a VARIANT are damaged.
        UnsupportedTableFeature: the texts take more than 2 GiB in one array, or one more than
            128 MiB.
    """
    variants = _arrow_column(values, PLAIN_VARIANT)
    if isinstance(variants.type, pa.BaseExtensionType):
        variants = variants.cast(variants.type.storage_type)
    return _each(variants, _native.variants_to_json, pa.string())


def _arrow_column(values: Any, kind: pa.DataType) -> pa.Array[Any] | pa.ChunkedArray[Any]:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    try:
        if hasattr(values, "__arrow_c_array__"):
            return pa.array(values)
        if hasattr(values, "__arrow_c_stream__"):
            return pa.chunked_array(values)
        return pa.array(values, kind)
    except (pa.ArrowException, TypeError, ValueError) as error:
        msg = f"the values are no column of {kind}: {error}"
        raise SchemaMismatch(msg, hint="Give a pyarrow.Array.") from error


def _each(column: Any, convert: Any, kind: pa.DataType) -> Any:
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([convert(chunk) for chunk in column.chunks], kind)
    return convert(column)
