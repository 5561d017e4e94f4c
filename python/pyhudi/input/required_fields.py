"""Nested values in types whose structs have required fields, or fields in another order.

A scan returns required fields as nullable, because they are null below a null struct. Arrow's cast
takes those nulls for values of the field and fails. Before release 18 it casts no struct to one
whose fields are not the same ones in the same order.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import SchemaMismatch


def with_nullable_fields(data_type: pa.DataType) -> pa.DataType:
    """Return the type with all struct fields nullable."""
    if pa.types.is_struct(data_type):
        fields = (data_type.field(at) for at in range(data_type.num_fields))
        return pa.struct(
            [f.with_type(with_nullable_fields(f.type)).with_nullable(True) for f in fields]
        )
    if pa.types.is_map(data_type):
        return pa.map_(
            data_type.key_field,
            data_type.item_field.with_type(with_nullable_fields(data_type.item_type)),
        )
    if pa.types.is_list(data_type):
        return pa.list_(data_type.value_field.with_type(with_nullable_fields(data_type.value_type)))
    return data_type


def with_fields_of(data_type: pa.DataType, column: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """Return structs, at any depth, with the fields of a type in its order; new ones are null."""
    if _has_fields_of(data_type, column.type):
        return column
    chunks = column.chunks or [pa.nulls(0, column.type)]
    return pa.chunked_array([_arrange(chunk, data_type) for chunk in chunks])


def _has_fields_of(data_type: pa.DataType, other: pa.DataType) -> bool:
    if pa.types.is_struct(data_type) and pa.types.is_struct(other):
        return [f.name for f in data_type] == [f.name for f in other] and all(
            _has_fields_of(data_type.field(at).type, other.field(at).type)
            for at in range(data_type.num_fields)
        )
    if pa.types.is_map(data_type) and pa.types.is_map(other):
        return _has_fields_of(data_type.item_type, other.item_type)
    if pa.types.is_list(data_type) and hasattr(other, "value_type"):
        return _has_fields_of(data_type.value_type, other.value_type)
    return True


def _arrange(values: pa.Array[Any], data_type: pa.DataType) -> pa.Array[Any]:
    if _has_fields_of(data_type, values.type):
        return values
    if pa.types.is_struct(data_type):
        children = dict(zip((f.name for f in values.type), values.flatten(), strict=True))
        arranged = [
            _arrange(children[f.name], f.type)
            if f.name in children
            else pa.nulls(len(values), with_nullable_fields(f.type))
            for f in data_type
        ]
        names = [f.name for f in data_type]
        return pa.StructArray.from_arrays(arranged, names=names, mask=values.is_null())
    if pa.types.is_list(data_type):
        return list_of(values, _arrange(values.flatten(), data_type.value_type))
    entries = entries_of(values)
    flat = entries.flatten()
    return map_of(entries, flat.field(0), _arrange(flat.field(1), data_type.item_type))


def restore_required_fields(
    values: pa.Array[Any], data_type: pa.DataType, path: str
) -> pa.Array[Any]:
    """Return values of the nullable type in the type itself.

    Raises `SchemaMismatch` for a struct that is not null and has no value in a required field.
    """
    if values.type == data_type:
        return values
    if pa.types.is_struct(data_type):
        fields = [data_type.field(at) for at in range(data_type.num_fields)]
        below = zip(values.flatten(), fields, strict=True)
        children = [_child(values, child, field, path) for child, field in below]
        return pa.StructArray.from_arrays(children, fields=fields, mask=values.is_null())
    if pa.types.is_list(data_type):
        items = restore_required_fields(values.flatten(), data_type.value_type, f"{path}.element")
        return list_of(values, items, data_type)
    entries = entries_of(values)
    flat = entries.flatten()
    items = restore_required_fields(flat.field(1), data_type.item_type, f"{path}.value")
    return map_of(entries, flat.field(0), items, data_type)


def entries_of(maps: pa.MapArray) -> pa.ListArray:
    """Return maps as lists of structs."""
    data_type = maps.type
    pair = [data_type.key_field.with_name("key"), data_type.item_field.with_name("value")]
    return maps.cast(pa.list_(pa.struct(pair)))


def list_of(lists: pa.ListArray, items: pa.Array[Any], data_type: pa.DataType | None = None) -> Any:
    """Return lists of the same lengths as others, with other elements."""
    mask = lists.is_null() if lists.null_count else None
    return pa.ListArray.from_arrays(_offsets(lists), items, type=data_type, mask=mask)


def map_of(
    entries: pa.ListArray,
    keys: pa.Array[Any],
    items: pa.Array[Any],
    data_type: pa.DataType | None = None,
) -> Any:
    """Return maps of the same lengths as others, with other keys and values."""
    maps = pa.MapArray.from_arrays(_offsets(entries), keys, items, type=data_type)
    if not entries.null_count:
        return maps
    return pc.if_else(entries.is_null(), pa.scalar(None, maps.type), maps)


def _offsets(lists: pa.ListArray) -> pa.Array[Any]:
    """Return where each list begins among the flattened elements; null lists have none."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).cast(pa.int32())
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])


def _child(
    structs: pa.StructArray, child: pa.Array[Any], field: pa.Field[Any], path: str
) -> pa.Array[Any]:
    name = f"{path}.{field.name}"
    values = restore_required_fields(child, field.type, name)
    if field.nullable or not values.null_count:
        return values
    if values.null_count > structs.null_count:
        msg = f"{name} has nulls, but the table requires a value"
        raise SchemaMismatch(msg, hint="Give the field a value, or make the whole struct null.")
    # No null may remain, or casts of the whole column would find it.
    at = pc.if_else(
        values.is_null(), len(values), pc.add(pc.cumulative_sum(pa.repeat(1, len(values))), -1)
    )
    return pa.concat_arrays([values, _any_value(field.type)]).take(at)


def _any_value(data_type: pa.DataType) -> pa.Array[Any]:
    """Return a value of a type, which is never read."""
    if pa.types.is_struct(data_type):
        fields = [data_type.field(at) for at in range(data_type.num_fields)]
        return pa.StructArray.from_arrays([_any_value(f.type) for f in fields], fields=fields)
    if pa.types.is_list(data_type) or pa.types.is_map(data_type):
        return pa.array([[]], data_type)
    if pa.types.is_string(data_type) or pa.types.is_large_string(data_type):
        return pa.array([""], data_type)
    if pa.types.is_fixed_size_binary(data_type):
        return pa.array([bytes(data_type.byte_width)], data_type)
    if pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type):
        return pa.array([b""], data_type)
    return pa.array([False if pa.types.is_boolean(data_type) else 0], data_type)
