"""Removes encodings that data frames and streams have and no file of a table has.

Dictionaries, views, run-end encodings and extension types become plain columns, at any depth,
without a change of values.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import SchemaMismatch, UnsupportedTableFeature
from pyhudi.input.semi_structured import BLOB, EXTENSIONS, extension_name, with_hudi_type
from pyhudi.input.vectors import EXTENSION, is_vector_type

_AS_STORED = ("arrow.json", "arrow.uuid", EXTENSION, *EXTENSIONS)
"""Extension types that add nothing to their storage type."""
_MAX_BYTES = 2**31 - 1
"""Maximum bytes of strings in one array."""
_MAX_LEVELS = 64
"""Maximum levels of Avro schemas that pyhudi reads."""


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns without encodings. Raises as `read_batches` does."""
    for field in schema:
        check_depth(field, _MAX_LEVELS)
    check_names(schema)
    return pa.schema(
        [with_hudi_type(field, _plain_type(field.type, field.name)) for field in schema],
        schema.metadata,
    )


def check_names(schema: pa.Schema) -> None:
    """Raise `SchemaMismatch` if two columns have one name."""
    names = schema.names
    if len(set(names)) < len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise SchemaMismatch(f"the data have more than one column {', '.join(map(repr, repeated))}")


def check_depth(field: pa.Field[Any], max_levels: int) -> None:
    """Raise `UnsupportedTableFeature` for a column that is nested too deeply.

    It runs before anything recurses into the type, so the input cannot exhaust Python's stack.
    """
    level = [field.type]
    for _ in range(max_levels + 1):
        level = [part for data_type in level for part in _parts(data_type)]
        if not level:
            return
    msg = f"column {field.name!r} has more than {max_levels} nested lists, maps and structs"
    raise UnsupportedTableFeature(msg, hint="Store the inner value as a string, such as JSON.")


def _parts(data_type: pa.DataType) -> list[pa.DataType]:
    if pa.types.is_map(data_type):
        return [data_type.key_type, data_type.item_type]
    if pa.types.is_dictionary(data_type):
        return [data_type.value_type]
    return [data_type.field(at).type for at in range(data_type.num_fields)]


def plain_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with the columns of its `plain_schema`.

    Raises `SchemaMismatch` if decoded strings are too large for one batch.
    """
    arrays = [
        _plain_array(array, name) for array, name in zip(batch.columns, schema.names, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _plain_type(data_type: pa.DataType, path: str) -> pa.DataType:
    """Return the type without encodings. Raises `SchemaMismatch` for an unknown extension type."""
    if pa.types.is_dictionary(data_type) or pa.types.is_run_end_encoded(data_type):
        return _plain_type(data_type.value_type, path)
    if pa.types.is_union(data_type):
        msg = f"column {path!r} is {data_type}, a type that is not supported"
        raise SchemaMismatch(msg, hint="Use one column per alternative.")
    if isinstance(data_type, pa.BaseExtensionType):
        if data_type.extension_name not in _AS_STORED:
            msg = f"column {path!r} is {data_type}, a type that is not supported"
            raise SchemaMismatch(msg, hint=f"Cast it to {data_type.storage_type}, or to string.")
        return _plain_type(data_type.storage_type, path)
    if data_type.equals(pa.string_view()):
        return pa.string()
    if data_type.equals(pa.binary_view()):
        return pa.binary()
    if pa.types.is_struct(data_type):
        return pa.struct([_plain_field(field, path) for field in data_type])
    if pa.types.is_map(data_type):
        key, item = (
            _plain_field(field, path) for field in (data_type.key_field, data_type.item_field)
        )
        return pa.map_(key, item, keys_sorted=data_type.keys_sorted)
    if pa.types.is_fixed_size_list(data_type):
        return pa.list_(_plain_field(data_type.value_field, path), data_type.list_size)
    if pa.types.is_list(data_type) or pa.types.is_list_view(data_type):
        return pa.list_(_plain_field(data_type.value_field, path))
    if pa.types.is_large_list(data_type) or pa.types.is_large_list_view(data_type):
        return pa.large_list(_plain_field(data_type.value_field, path))
    return data_type


def _plain_field(field: pa.Field[Any], path: str) -> pa.Field[Any]:
    where = f"{path}.{field.name}"
    if is_vector_type(field.type):
        msg = f"column {where!r} is a VECTOR inside another type, which Hudi cannot store"
        raise UnsupportedTableFeature(
            msg, hint="Make it a column of its own, or a list of numbers."
        )
    extension = extension_name(field)
    if extension in EXTENSIONS:
        name = "BLOB" if extension == BLOB else "VARIANT"
        msg = f"column {where!r} is a {name} inside another type, which pyhudi does not store"
        raise UnsupportedTableFeature(msg, hint="Make it a column of its own.")
    return field.with_type(_plain_type(field.type, where))


def _plain_array(array: pa.Array[Any], path: str) -> pa.Array[Any]:
    data_type = array.type
    plain = _plain_type(data_type, path)
    if data_type == plain:
        return array
    _check_size(array, path)
    if pa.types.is_dictionary(data_type):
        return _plain_array(array.dictionary, path).take(array.indices)
    if pa.types.is_run_end_encoded(data_type):
        return _each_of_runs(array, _plain_array(array.values, path))
    if isinstance(data_type, pa.BaseExtensionType):
        return _plain_array(array.storage, path)
    if pa.types.is_struct(data_type):
        parts = [_plain_array(array.field(at), path) for at in range(data_type.num_fields)]
        return pa.StructArray.from_arrays(parts, fields=list(plain), mask=array.is_null())
    if pa.types.is_map(data_type):
        return _around(array, plain, _entries(array, plain, path), own_buffers=2)
    if pa.types.is_fixed_size_list(data_type):
        return _around(array, plain, _plain_array(array.values, path), own_buffers=1)
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return _around(array, plain, _plain_array(array.values, path), own_buffers=2)
    if pa.types.is_list_view(data_type) or pa.types.is_large_list_view(data_type):
        return _plain_array(_list_of_view(array), path)
    try:
        return array.cast(plain)
    except pa.ArrowNotImplementedError as error:
        msg = f"pyarrow {pa.__version__} cannot read column {path!r}, which is {data_type}"
        raise SchemaMismatch(msg, hint="Use pyarrow 18 or later.") from error


def _check_size(array: pa.Array[Any], path: str) -> None:
    lengths = _lengths(array)
    size = 0 if lengths is None else pc.sum(lengths).as_py() or 0
    if size > _MAX_BYTES:
        msg = f"column {path!r} has {size} bytes of {_plain_type(array.type, path)} in one batch"
        hint = f"Pass smaller batches: {_MAX_BYTES} bytes of a column at most."
        raise SchemaMismatch(msg, hint=hint)


def _lengths(array: pa.Array[Any]) -> pa.Array[Any] | None:
    """Return the bytes of each value; None if they are not strings, or have no limit."""
    data_type = array.type
    if pa.types.is_dictionary(data_type):
        inner = _lengths(array.dictionary)
        return None if inner is None else inner.take(array.indices)
    if pa.types.is_run_end_encoded(data_type):
        inner = _lengths(array.values)
        return None if inner is None else _each_of_runs(array, inner)
    if data_type.equals(pa.string_view()) or data_type.equals(pa.binary_view()):
        # A view is 16 bytes, of which the first four are the length.
        words = pa.Array.from_buffers(
            pa.int32(), 4 * (array.offset + len(array)), [None, array.buffers()[1]]
        )
        return pc.if_else(array.is_valid(), words[4 * array.offset :: 4], 0)
    is_text = pa.types.is_string(data_type) or pa.types.is_binary(data_type)
    return pc.binary_length(array) if is_text else None


def _each_of_runs(array: pa.Array[Any], values: pa.Array[Any]) -> pa.Array[Any]:
    """Expand a run-end encoded array to one value a row, with other values for the runs."""
    runs = pa.RunEndEncodedArray.from_arrays(array.run_ends, values)
    return pc.run_end_decode(runs.slice(array.offset, len(array)))


def _list_of_view(array: pa.Array[Any]) -> pa.Array[Any]:
    """Return a list for a list view, whose elements may be anywhere and repeated.

    Arrow's own cast makes a list whose buffer of offsets is too short (pyarrow 26).
    """
    field = array.type.value_field
    large = pa.types.is_large_list_view(array.type)
    lengths = pc.fill_null(pc.list_value_length(array), 0).cast(pa.int64() if large else pa.int32())
    ends = pc.cumulative_sum(lengths)
    offsets = pa.concat_arrays([pa.array([0], ends.type), ends])
    mask = array.is_null() if array.null_count else None
    if large:
        data_type = pa.large_list(field)
        return pa.LargeListArray.from_arrays(offsets, array.flatten(), type=data_type, mask=mask)
    return pa.ListArray.from_arrays(offsets, array.flatten(), type=pa.list_(field), mask=mask)


def _entries(array: pa.MapArray, plain: pa.MapType, path: str) -> pa.StructArray:
    parts = [_plain_array(array.keys, path), _plain_array(array.items, path)]
    return pa.StructArray.from_arrays(parts, fields=[plain.key_field, plain.item_field])


def _around(
    array: pa.Array[Any], plain: pa.DataType, items: pa.Array[Any], *, own_buffers: int
) -> pa.Array[Any]:
    """Return the lists or maps with other items."""
    own = array.buffers()[:own_buffers]
    return pa.Array.from_buffers(plain, len(array), own, offset=array.offset, children=[items])
