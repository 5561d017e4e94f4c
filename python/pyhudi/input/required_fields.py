"""Nested values in types whose structs have required fields.

A scan returns such fields as nullable, because they are null below a null struct. Arrow's cast
takes those nulls for values of the field and fails.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import SchemaMismatch


def with_nullable_fields(kind: pa.DataType) -> pa.DataType:
    """Return the type with all struct fields nullable."""
    if pa.types.is_struct(kind):
        fields = (kind.field(at) for at in range(kind.num_fields))
        return pa.struct(
            [f.with_type(with_nullable_fields(f.type)).with_nullable(True) for f in fields]
        )
    if pa.types.is_map(kind):
        return pa.map_(
            kind.key_field, kind.item_field.with_type(with_nullable_fields(kind.item_type))
        )
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(with_nullable_fields(kind.value_type)))
    return kind


def restore_required_fields(values: pa.Array[Any], kind: pa.DataType, path: str) -> pa.Array[Any]:
    """Return values of the nullable type in the type itself.

    Raises `SchemaMismatch` for a struct that is not null and has no value in a required field.
    """
    if values.type == kind:
        return values
    if pa.types.is_struct(kind):
        fields = [kind.field(at) for at in range(kind.num_fields)]
        below = zip(values.flatten(), fields, strict=True)
        children = [_child(values, child, field, path) for child, field in below]
        return pa.StructArray.from_arrays(children, fields=fields, mask=values.is_null())
    if pa.types.is_list(kind):
        items = restore_required_fields(values.flatten(), kind.value_type, f"{path}.element")
        return list_of(values, items, kind)
    entries = entries_of(values)
    flat = entries.flatten()
    items = restore_required_fields(flat.field(1), kind.item_type, f"{path}.value")
    return map_of(entries, flat.field(0), items, kind)


def entries_of(maps: pa.MapArray) -> pa.ListArray:
    """Return maps as lists of structs."""
    kind = maps.type
    pair = [kind.key_field.with_name("key"), kind.item_field.with_name("value")]
    return maps.cast(pa.list_(pa.struct(pair)))


def list_of(lists: pa.ListArray, items: pa.Array[Any], kind: pa.DataType | None = None) -> Any:
    """Return lists of the same lengths as others, with other elements."""
    mask = lists.is_null() if lists.null_count else None
    return pa.ListArray.from_arrays(_offsets(lists), items, type=kind, mask=mask)


def map_of(
    entries: pa.ListArray,
    keys: pa.Array[Any],
    items: pa.Array[Any],
    kind: pa.DataType | None = None,
) -> Any:
    """Return maps of the same lengths as others, with other keys and values."""
    made = pa.MapArray.from_arrays(_offsets(entries), keys, items, type=kind)
    if not entries.null_count:
        return made
    return pc.if_else(entries.is_null(), pa.scalar(None, made.type), made)


def _offsets(lists: pa.ListArray) -> pa.Array[Any]:
    """Return where each list begins among the flattened elements; null lists have none."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])


def _child(
    structs: pa.StructArray, child: pa.Array[Any], field: pa.Field[Any], path: str
) -> pa.Array[Any]:
    name = f"{path}.{field.name}"
    made = restore_required_fields(child, field.type, name)
    if field.nullable or not made.null_count:
        return made
    if made.null_count > structs.null_count:
        msg = f"{name} has nulls, but the table requires a value"
        raise SchemaMismatch(msg, hint="Give the field a value, or make the whole struct null.")
    # No null may remain, or casts of the whole column would find it.
    at = pc.if_else(
        made.is_null(), len(made), pc.add(pc.cumulative_sum(pa.repeat(1, len(made))), -1)
    )
    return pa.concat_arrays([made, _any_value(field.type)]).take(at)


def _any_value(kind: pa.DataType) -> pa.Array[Any]:
    """Return a value of a type, which is never read."""
    if pa.types.is_struct(kind):
        fields = [kind.field(at) for at in range(kind.num_fields)]
        return pa.StructArray.from_arrays([_any_value(f.type) for f in fields], fields=fields)
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        return pa.array([[]], kind)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pa.array([""], kind)
    if pa.types.is_fixed_size_binary(kind):
        return pa.array([bytes(kind.byte_width)], kind)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.array([b""], kind)
    return pa.array([False if pa.types.is_boolean(kind) else 0], kind)
