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


def _has_lists(kind: pa.DataType) -> bool:
    if pa.types.is_nested(kind):
        fields = (kind.field(at).type for at in range(kind.num_fields))
        return _is_list(kind) or any(map(_has_lists, fields))
    return False


def _is_list(kind: pa.DataType) -> bool:
    tests = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(test(kind) for test in tests)


def _null_element(array: pa.Array[Any], path: str) -> str | None:
    """Return the path of a list with a null element, ignoring what is below null values."""
    kind = array.type
    if not _has_lists(kind):
        return None
    if _is_list(kind):
        elements = array.flatten()
        return path if elements.null_count else _null_element(elements, path)
    if pa.types.is_map(kind):
        # Through its values as a list: a slice's `items` are those of the whole array.
        values = pa.ListArray.from_arrays(array.offsets, array.items).flatten()
        return _null_element(values, f"{path}.value")
    if pa.types.is_struct(kind):
        for field, child in zip(kind, array.flatten(), strict=True):
            found = _null_element(child, f"{path}.{field.name}")
            if found is not None:
                return found
    return None
