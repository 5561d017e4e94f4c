"""Casts between Arrow types that never change a value.

Arrow's own safe casts check most types. They let numbers lose digits between floats and decimals,
and times their time of day or their zone; this module checks those. A float represents the shortest
number that parses to it. Nested types are cast leaf by leaf, and no field of a struct is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.formatting import count_text
from pyhudi.errors import SchemaMismatch, without_hint
from pyhudi.input.required_fields import (
    entries_of,
    restore_required_fields,
    with_fields_of,
    with_nullable_fields,
)
from pyhudi.input.type_tests import is_date_or_timestamp, is_list, is_number, is_real, is_text

Column: TypeAlias = "pa.ChunkedArray[Any]"

CAST_ERRORS = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError)
_HINT = "Cast the column before writing."

UTC_ZONES = ("UTC", "Etc/UTC", "Z", "+00:00", "GMT", "Etc/GMT")
"""Time zones in which a timestamp has the same digits as without a time zone."""
_PLAIN_SCALE = 6
"""Arrow may format decimals with a larger scale with an exponent."""
_MAX_DIGITS = 38
_MAX_DIGITS_256 = 76
"""Maximum digits of decimals of 128 and of 256 bits."""
_MANTISSA = {64: 53, 32: 24, 16: 11}
"""Bits of an integer that a float of that width represents exactly."""
_AMBIGUOUS_HINT = "Give integers; in pandas the types Int64 and int64[pyarrow] allow nulls."


def cast_exactly(column: Column, field: pa.Field[Any]) -> Column:
    """Return the column in the field's type.

    Raises `SchemaMismatch`, naming the column and a value, if a value would change, or if the types
    are not compatible.
    """
    if column.type == field.type:
        return column
    column = to_fixed_size(_without_dictionary(column), field)
    reason = _incompatibility(column.type, field.type, field.name)
    if reason:
        raise _mismatch(column, field, reason)
    try:
        column = with_fields_of(field.type, column)
    except CAST_ERRORS as error:
        raise _mismatch(column, field, str(error)) from error
    return _check_cast(column, field)


def restore_type(column: Column, field: pa.Field[Any]) -> Column:
    """Return values of the field in its type again, after an exchange with a wider type.

    Arrow before release 18 casts no struct to one with required fields.
    """
    return column if column.type == field.type else _cast(to_fixed_size(column, field), field)


def cast_computed(column: Column, field: pa.Field[Any]) -> Column:
    """Cast values that an expression computed: as `cast_exactly`, with more conversions.

    Floats are rounded to the nearest of the field's type, as arithmetic did before. Strings are
    parsed, and values become strings if Arrow formats them as Spark does. Timestamps and dates
    become each other if nothing is lost.
    """
    column = to_fixed_size(_without_dictionary(column), field)
    source, target = column.type, field.type
    if source == target or pa.types.is_null(source):
        return _cast(column, field)
    if pa.types.is_floating(target) and (is_text(source) or is_real(source)):
        return _round_floats(column, field)
    if is_text(target) and not (is_text(source) or has_spark_format(source)):
        why = f"CAST from {source} to {target} is unknown"
        raise _mismatch(column, field, why)
    if is_text(source) and pa.types.is_integer(target):
        _check_decimal(column, field)
    if is_text(source) or is_text(target):
        return _cast(column, field)
    if is_date_or_timestamp(source) and is_date_or_timestamp(target):
        return _check_cast(column, field)
    return cast_exactly(column, field)


def exact_integer_bound(data_type: pa.DataType) -> int:
    """Return the bound below which floats of a type distinguish integers."""
    return 1 << _MANTISSA[data_type.bit_width]


def has_spark_format(data_type: pa.DataType) -> bool:
    """Return whether Arrow formats values of a type as Spark does."""
    if pa.types.is_decimal(data_type):
        return 0 <= int(data_type.scale) <= _PLAIN_SCALE
    tests = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_date)
    return any(test(data_type) for test in tests)


# --- columns --------------------------------------------------------------------------------------


def _without_dictionary(column: Column) -> Column:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def to_fixed_size(column: Column, field: pa.Field[Any]) -> Column:
    """Return lists as lists of a fixed size, if the field has such.

    Arrow's own cast reads beyond the elements if a list is null, and crashes without elements
    (pyarrow 26).
    """
    source, target = column.type, field.type
    has_sizes = pa.types.is_list(source) or pa.types.is_large_list(source)
    if not has_sizes or not pa.types.is_fixed_size_list(target):
        return column
    data_type = pa.list_(source.value_field, target.list_size)
    return pa.chunked_array(
        [_convert_to_fixed_size(chunk, data_type, field) for chunk in column.chunks], data_type
    )


def _convert_to_fixed_size(
    lists: pa.Array[Any], data_type: pa.FixedSizeListType, field: pa.Field[Any]
) -> pa.Array[Any]:
    size = data_type.list_size
    has_other_size = pc.fill_null(pc.not_equal(pc.list_value_length(lists), size), fill_value=False)
    if pc.any(has_other_size).as_py():
        count = pc.list_value_length(lists.filter(has_other_size))[0].as_py()
        why = f"a list has {count_text(count, 'element')}"
        raise _mismatch(pa.chunked_array([lists]), field, why)
    elements = lists.flatten()
    if not len(elements):
        return pa.nulls(len(lists), data_type)
    full = pa.FixedSizeListArray.from_arrays(elements, type=data_type)
    if not lists.null_count:
        return full
    # A null list gets the elements of any other list.
    valid = lists.is_valid()
    row = pc.subtract(pc.cumulative_sum(valid.cast(pa.int64())), 1)
    full = full.take(pc.if_else(valid, row, 0))
    return pa.FixedSizeListArray.from_arrays(full.values, type=data_type, mask=lists.is_null())


def _cast(column: Column, field: pa.Field[Any]) -> Column:
    nullable_type = with_nullable_fields(field.type)
    try:
        converted = column.cast(
            with_nullable_fields(_intermediate_type(column.type, nullable_type))
        ).cast(nullable_type, safe=True)
    except CAST_ERRORS as error:
        raise _mismatch(column, field, _example(column, field) or str(error)) from error
    if nullable_type == field.type:
        return converted
    try:
        chunks = [
            restore_required_fields(chunk, field.type, field.name) for chunk in converted.chunks
        ]
    except SchemaMismatch as error:
        raise _mismatch(column, field, without_hint(error), hint=error.hint) from error
    return pa.chunked_array(chunks, field.type)


def _intermediate_type(source: pa.DataType, target: pa.DataType) -> pa.DataType:
    """Return the intermediate type of a cast; `source` if Arrow's own cast is right."""
    if is_real(source) and is_real(target):
        # Between floats and decimals Arrow's own cast may give the neighbour of the nearest value.
        is_mixed = pa.types.is_decimal(source) != pa.types.is_decimal(target)
        return pa.string() if is_mixed else source
    if pa.types.is_integer(source) and pa.types.is_decimal(target):
        # Arrow requires room for all integers of the type.
        return pa.decimal256(_MAX_DIGITS_256, target.scale)
    if pa.types.is_struct(source) and pa.types.is_struct(target):
        return pa.struct(
            [f.with_type(_intermediate_type(f.type, target.field(f.name).type)) for f in source]
        )
    if pa.types.is_map(source) and pa.types.is_map(target):
        return pa.map_(source.key_type, _intermediate_type(source.item_type, target.item_type))
    if is_list(source) and is_list(target):
        items = _intermediate_type(source.value_type, target.value_type)
        return source if items == source.value_type else pa.list_(items)
    return source


def _check_cast(column: Column, field: pa.Field[Any]) -> Column:
    converted = _cast(column, field)
    try:
        changed = _first_change(column, converted, field.name, all_types=False)
    except CAST_ERRORS as error:
        # The nearest float has more digits than a decimal holds.
        raise _mismatch(column, field, str(error)) from error
    if changed:
        raise _mismatch(column, field, changed)
    ambiguous = _first_ambiguous(column, converted, field.name)
    if ambiguous:
        raise _mismatch(column, field, ambiguous, hint=_AMBIGUOUS_HINT)
    return converted


def _round_floats(column: Column, field: pa.Field[Any]) -> Column:
    """Round floats to another width; none may become infinite."""
    wide = _cast(column, pa.field(field.name, pa.float64()))
    converted = _cast(column, field)
    overflows = pc.and_(pc.is_inf(converted), pc.is_finite(wide))
    if pc.any(overflows).as_py():
        raise _mismatch(column, field, f"{wide.filter(overflows)[0].as_py()!r} is out of range")
    return converted


def _check_decimal(column: Column, field: pa.Field[Any]) -> None:
    """Raise `SchemaMismatch` for a string that Arrow reads as a hexadecimal number."""
    is_hexadecimal = pc.match_substring_regex(column, "[xX]")
    if pc.any(is_hexadecimal).as_py():
        raise _mismatch(
            column, field, f"{column.filter(is_hexadecimal)[0].as_py()!r} is not a number"
        )


def _mismatch(column: Column, field: pa.Field[Any], why: str, *, hint: str = "") -> SchemaMismatch:
    msg = f"column {field.name!r} is {column.type}, the table has {field.type}: {why}"
    return SchemaMismatch(msg, hint=hint or _widening(column.type, field) or _HINT)


def _widening(source: pa.DataType, field: pa.Field[Any]) -> str:
    """Return how to widen the table's decimal column; "" if that does not help."""
    if not (pa.types.is_decimal(source) and pa.types.is_decimal(field.type)):
        return ""
    scale = max(source.scale, field.type.scale)
    integer_digits = max(
        data_type.precision - data_type.scale for data_type in (source, field.type)
    )
    if integer_digits + scale > _MAX_DIGITS:
        return ""
    alter = (
        f"table.alter().change_type({field.name!r}, 'decimal({integer_digits + scale},{scale})')"
    )
    return f"Cast the column, or widen the table's: {alter}.execute()."


def _example(column: Column, field: pa.Field[Any]) -> str:
    """Return a value that the cast would change, or ""."""
    intermediates = (column.type, _intermediate_type(column.type, field.type))
    return next(
        filter(
            None, (_describe_change(column, intermediate, field) for intermediate in intermediates)
        ),
        "",
    )


def _describe_change(column: Column, intermediate: pa.DataType, field: pa.Field[Any]) -> str:
    try:
        converted = column.cast(intermediate).cast(with_nullable_fields(field.type), safe=False)
        return _first_change(column, converted, field.name, all_types=True)
    except CAST_ERRORS:
        return ""


# --- what changed ---------------------------------------------------------------------------------


def _first_change(column: Column, converted: Column, name: str, *, all_types: bool) -> str:
    """Describe the first value that differs in `converted`; "" if none does.

    all_types: check all types, not only those that Arrow may change.
    """
    for path, before, after in _leaf_pairs(column, converted, name):
        if before.type == after.type or not (all_types or _may_lose(before.type, after.type)):
            continue
        location = "" if path == name else f" in {path}"
        differs = pc.fill_null(_differs(before, after), fill_value=False)
        if pc.any(differs).as_py():
            old, new = before.filter(differs)[0], after.filter(differs)[0]
            return f"{_format_distinct(old, new)}{location} would become {_format_value(new)}"
        if all_types and pa.types.is_decimal(after.type):
            is_over = _is_over(after)
            if pc.any(is_over).as_py():
                return f"{_format_value(before.filter(is_over)[0])}{location} is out of range"
    return ""


def _first_ambiguous(column: Column, converted: Column, name: str) -> str:
    """Describe the first float that represents several integers; "" if none does."""
    for path, before, after in _leaf_pairs(column, converted, name):
        if pa.types.is_floating(before.type) and pa.types.is_integer(after.type):
            bound = float(exact_integer_bound(before.type))
            ambiguous = before.filter(pc.greater_equal(pc.abs(before.cast(pa.float64())), bound))
            if len(ambiguous):
                location = "" if path == name else f" in {path}"
                return f"{_format_value(ambiguous[0])}{location} may be a rounded integer"
    return ""


def _leaf_pairs(
    column: Column, converted: Column, name: str
) -> Iterator[tuple[str, pa.Array[Any], pa.Array[Any]]]:
    for batch in pa.Table.from_arrays([column, converted], ["source", "converted"]).to_batches():
        source, new = batch.columns
        yield from _leaves(source, new, name)


def _format_distinct(value: pa.Scalar[Any], converted: pa.Scalar[Any]) -> str:
    """Format a value so that it differs from its cast, also by less than Python's precision."""
    formatted = _format_value(value)
    return formatted if formatted != _format_value(converted) else f"{value.value} as {value.type}"


def _format_value(value: pa.Scalar[Any]) -> str:
    """Format a value, also a time that Python cannot represent."""
    try:
        return repr(value.as_py())
    except (OverflowError, ValueError):
        return f"{getattr(value, 'value', '')} as {value.type}"


def _leaves(
    source: pa.Array[Any], converted: pa.Array[Any], path: str
) -> Iterator[tuple[str, pa.Array[Any], pa.Array[Any]]]:
    """Yield the leaf values of two arrays of one shape, with their paths."""
    if source.type == converted.type or pa.types.is_null(source.type):
        return
    if pa.types.is_struct(source.type):
        children, new = source.flatten(), converted.flatten()
        for number, child in enumerate(children):
            name = source.type.field(number).name
            at = converted.type.get_field_index(name)
            yield from _leaves(child, new[at], f"{path}.{name}")
    elif pa.types.is_map(source.type):
        yield from _leaves(entries_of(source).flatten(), entries_of(converted).flatten(), path)
    elif is_list(source.type):
        yield from _leaves(source.flatten(), converted.flatten(), path)
    else:
        yield path, source, converted


def _may_lose(source: pa.DataType, target: pa.DataType) -> bool:
    """Return whether Arrow's safe cast may change a value."""
    if pa.types.is_floating(target):
        narrower = pa.types.is_floating(source) and source.bit_width > target.bit_width
        return bool(pa.types.is_decimal(source) or narrower)
    if pa.types.is_time32(source) and pa.types.is_time32(target):
        return True  # it multiplies in 32 bits
    return bool(pa.types.is_timestamp(source) and pa.types.is_date(target))


def _differs(source: pa.Array[Any], converted: pa.Array[Any]) -> Any:
    """Return for each value whether it differs in `converted`; null for nulls."""
    if pa.types.is_decimal(source.type) and pa.types.is_floating(converted.type):
        return _decimal_differs(source, converted)
    if pa.types.is_floating(source.type) and pa.types.is_decimal(converted.type):
        back = converted.cast(pa.string()).cast(source.type)
    elif pa.types.is_decimal(source.type) and pa.types.is_integer(converted.type):
        back = converted  # the type may not hold all integers
    else:
        back = converted.cast(source.type, safe=False)
    differs = pc.not_equal(back, source)
    if pa.types.is_floating(source.type):
        differs = pc.and_(differs, pc.invert(pc.and_(pc.is_nan(source), pc.is_nan(back))))
    return differs


def _decimal_differs(source: pa.Array[Any], converted: pa.Array[Any]) -> Any:
    """Return for each decimal whether it differs from the float, formatted with its scale.

    A float can be formatted by its shortest digits, or by all that it has.
    """
    scale = source.type.scale
    wide_type = pa.decimal128(_MAX_DIGITS, scale)
    if pa.types.is_decimal256(source.type):
        wide_type = pa.decimal256(_MAX_DIGITS_256, scale)
    finite = pc.if_else(pc.is_finite(converted), converted, pa.scalar(0, converted.type))
    shortest = finite.cast(pa.string()).cast(wide_type)
    all_digits = finite.cast(pa.float64()).cast(source.type, safe=False)
    return pc.and_(pc.not_equal(shortest, source), pc.not_equal(all_digits, source))


def _is_over(converted: pa.Array[Any]) -> Any:
    """Return for each decimal whether it has more digits than its type, as after an unsafe cast."""
    wide_type = pa.decimal256(_MAX_DIGITS_256, converted.type.scale)
    bound = pa.scalar(Decimal(10) ** (converted.type.precision - converted.type.scale), wide_type)
    return pc.fill_null(
        pc.greater_equal(pc.abs(converted.cast(wide_type)), bound), fill_value=False
    )


# --- types ----------------------------------------------------------------------------------------


def with_leaves(data_type: pa.DataType, leaf: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Return the type with other leaf types."""
    if pa.types.is_struct(data_type):
        return pa.struct([field.with_type(with_leaves(field.type, leaf)) for field in data_type])
    if pa.types.is_map(data_type):
        return pa.map_(data_type.key_type, with_leaves(data_type.item_type, leaf))
    if pa.types.is_list(data_type):
        return pa.list_(data_type.value_field.with_type(with_leaves(data_type.value_type, leaf)))
    return leaf(data_type)


def _incompatibility(
    source: pa.DataType, target: pa.DataType, path: str, *, is_nested: bool = False
) -> str:
    """Return why two types are not compatible, at any depth; "" if they are.

    is_nested: the path is of a part of the column. The error names the types of the column itself.
    """
    if pa.types.is_dictionary(source):
        source = source.value_type
    if pa.types.is_null(source):
        return ""
    if pa.types.is_timestamp(source) and source.tz is None and pa.types.is_date(target):
        return ""
    if _type_group(source) != _type_group(target):
        if is_nested:
            return f"{path} is {source}, which is not compatible with {target}"
        return "the types are not compatible"
    if pa.types.is_timestamp(source) and target.tz is None and source.tz not in (None, *UTC_ZONES):
        return (
            f"{path} has a time zone, and the table's column has none: convert it with "
            "pc.local_timestamp"
        )
    if pa.types.is_struct(source):
        fields = {field.name: field.type for field in target}
        unknown = [field.name for field in source if field.name not in fields]
        if unknown:
            return f"the table has no {path}.{unknown[0]}"
        repeated = [field.name for field in source if source.get_field_index(field.name) < 0]
        if repeated:
            return f"there is more than one {path}.{repeated[0]}"
        pairs = [(f.type, fields[f.name], f.name) for f in source]
    elif pa.types.is_map(source):
        pairs = [
            (source.key_type, target.key_type, "key"),
            (source.item_type, target.item_type, "value"),
        ]
    else:
        pairs = [(source.value_type, target.value_type, "element")] if is_list(source) else []
    reasons = (
        _incompatibility(part, target_part, f"{path}.{name}", is_nested=True)
        for part, target_part, name in pairs
    )
    return next(filter(None, reasons), "")


def _type_group(data_type: pa.DataType) -> str:
    tests = {
        "boolean": pa.types.is_boolean,
        "text": is_text,
        "bytes": lambda t: (
            pa.types.is_binary(t) or pa.types.is_large_binary(t) or pa.types.is_fixed_size_binary(t)
        ),
        "number": is_number,
        "date": pa.types.is_date,
        "timestamp": pa.types.is_timestamp,
        "time": pa.types.is_time,
        "list": is_list,
    }
    return next((name for name, test in tests.items() if test(data_type)), str(data_type.id))
