"""Finds lists with null elements before any row is written.

Base files have two-level lists, which cannot hold null elements (docs/decisions/0004), unless an
option says otherwise. Log files could, but the compaction to base files would then fail, in Apache
Hudi as well.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pyhudi.errors import SchemaMismatch


def check_elements(column: pa.ChunkedArray[Any], what: str) -> None:
    """Raise `SchemaMismatch` if a list among the values, at any depth, has a null element."""
    if not _has_lists(column.type):
        return
    for chunk in column.chunks:
        path = _null_element(chunk, "")
        if path is not None:
            msg = f"{what}: a list{path and f' at {path[1:]}'} has a null element"
            raise SchemaMismatch(
                msg,
                hint="Lists in base files cannot hold one. Take it out of the list or fill it, "
                "make the elements structs with a field that may be null, or give the option "
                "parquet.avro.write-old-list-structure=false here and to every other writer.",
            )


def _has_lists(data_type: pa.DataType) -> bool:
    if pa.types.is_nested(data_type):
        fields = (data_type.field(at).type for at in range(data_type.num_fields))
        return _is_list(data_type) or any(map(_has_lists, fields))
    return False


def _is_list(data_type: pa.DataType) -> bool:
    tests = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(test(data_type) for test in tests)


def _null_element(array: pa.Array[Any], path: str) -> str | None:
    """Return the path of a list with a null element, ignoring what is below null values."""
    data_type = array.type
    if not _has_lists(data_type):
        return None
    if _is_list(data_type):
        elements = array.flatten()
        return path if elements.null_count else _null_element(elements, path)
    if pa.types.is_map(data_type):
        # Through its values as a list: a slice's `items` are those of the whole array.
        values = pa.ListArray.from_arrays(array.offsets, array.items).flatten()
        return _null_element(values, f"{path}.value")
    if pa.types.is_struct(data_type):
        for field, child in zip(data_type, array.flatten(), strict=True):
            below = _null_element(child, f"{path}.{field.name}")
            if below is not None:
                return below
    return None
