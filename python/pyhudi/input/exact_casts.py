"""Casts between Arrow types that never change a value.

Arrow's own safe casts check most types. They let numbers lose digits between floats and decimals,
and times their time of day or their zone; this module checks those. A float represents the shortest
number that parses to it. Nested types are cast leaf by leaf, and no field of a struct is dropped.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import SchemaMismatch, without_hint
from pyhudi.input.required_fields import entries_of, restore_required_fields, with_nullable_fields

Column: TypeAlias = "pa.ChunkedArray[Any]"

_FAILS = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError)
_HINT = "Cast the column before writing."

UTC_ZONES = ("UTC", "Etc/UTC", "Z", "+00:00", "GMT", "Etc/GMT")
"""Time zones in which a timestamp has the same digits as without a time zone."""
_PLAIN_SCALE = 6
"""Arrow may format decimals with a larger scale with an exponent."""
_MOST_DIGITS = 38
_MOST_DIGITS_256 = 76
"""Maximum digits of decimals of 128 and of 256 bits."""
_MANTISSA = {64: 53, 32: 24, 16: 11}
"""Bits of an integer that a float of that width represents exactly."""
_UNSURE = "Give integers; in pandas the types Int64 and int64[pyarrow] allow nulls."


def cast_exactly(column: Column, field: pa.Field[Any]) -> Column:
    """Return the column in the field's type.

    Raises `SchemaMismatch`, naming the column and a value, if a value would change, or if the types
    are not compatible.
    """
    if column.type == field.type:
        return column
    column = of_fixed_size(_plain(column), field)
    apart = _other_kinds(column.type, field.type, field.name)
    if apart:
        raise _mismatch(column, field, apart)
    return _check_cast(column, field)


def cast_computed(column: Column, field: pa.Field[Any]) -> Column:
    """Cast values that an expression computed: as `cast_exactly`, with more conversions.

    Floats are rounded to the nearest of the field's type, as arithmetic did before. Strings are
    parsed, and values become strings if Arrow formats them as Spark does. Timestamps and dates
    become each other if nothing is lost.
    """
    column = of_fixed_size(_plain(column), field)
    given, wanted = column.type, field.type
    if given == wanted or pa.types.is_null(given):
        return _cast(column, field)
    if pa.types.is_floating(wanted) and (_is_text(given) or _is_real(given)):
        return _round_floats(column, field)
    if _is_text(wanted) and not (_is_text(given) or is_spelled_alike(given)):
        why = f"CAST from {given} to {wanted} is unknown"
        raise _mismatch(column, field, why)
    if _is_text(given) and pa.types.is_integer(wanted):
        _check_decimal(column, field)
    if _is_text(given) or _is_text(wanted):
        return _cast(column, field)
    if _is_moment(given) and _is_moment(wanted):
        return _check_cast(column, field)
    return cast_exactly(column, field)


def sure_below(kind: pa.DataType) -> int:
    """Return the bound below which floats of a type distinguish integers."""
    return 1 << _MANTISSA[kind.bit_width]


def is_spelled_alike(kind: pa.DataType) -> bool:
    """Return whether Arrow formats values of a type as Spark does."""
    if pa.types.is_decimal(kind):
        return 0 <= int(kind.scale) <= _PLAIN_SCALE
    tests = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_date)
    return any(test(kind) for test in tests)


def literal(value: Any, kind: pa.DataType, what: str) -> pa.Scalar[Any]:
    """Convert a Python value to a type. A float is rounded to the nearest, nothing else changes.

    what: for messages. Raises `SchemaMismatch`.
    """
    if isinstance(value, (float, Decimal)) and _is_real(kind):
        value = _as_number(value, what)
    if isinstance(value, pa.Scalar):
        column = pa.chunked_array([pa.array([value.as_py()], value.type)])
        return cast_computed(column, pa.field(what, kind))[0]
    try:
        made = pa.scalar(value, kind)
    except (*_FAILS, OverflowError, TypeError, ValueError) as error:
        msg = f"{what}: {format_value(value)} is no {kind}: {error}"
        raise SchemaMismatch(msg) from error
    if not _is_kept(value, made.as_py()):
        msg = f"{what}: {format_value(value)} is no {kind}: it would become {made.as_py()!r}"
        raise SchemaMismatch(msg)
    return made


def format_value(value: Any) -> str:
    """Format a Python value for a message; Python prints no huge integers and no deep lists."""
    try:
        return repr(value)
    except (ValueError, RecursionError):
        return f"a {type(value).__name__} that is too long to print"


# --- columns --------------------------------------------------------------------------------------


def _plain(column: Column) -> Column:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def of_fixed_size(column: Column, field: pa.Field[Any]) -> Column:
    """Return lists as lists of a fixed size, if the field has such.

    Arrow's own cast reads beyond the elements if a list is null, and crashes if there are none
    (pyarrow 26).
    """
    given, wanted = column.type, field.type
    is_list = pa.types.is_list(given) or pa.types.is_large_list(given)
    if not is_list or not pa.types.is_fixed_size_list(wanted):
        return column
    kind = pa.list_(given.value_field, wanted.list_size)
    return pa.chunked_array(
        [_parse_fixed_size(chunk, kind, field) for chunk in column.chunks], kind
    )


def _parse_fixed_size(
    lists: pa.Array[Any], kind: pa.FixedSizeListType, field: pa.Field[Any]
) -> pa.Array[Any]:
    size = kind.list_size
    odd = pc.fill_null(pc.not_equal(pc.list_value_length(lists), size), fill_value=False)
    if pc.any(odd).as_py():
        count = pc.list_value_length(lists.filter(odd))[0].as_py()
        why = f"a list has {count} elements"
        raise _mismatch(pa.chunked_array([lists]), field, why)
    elements = lists.flatten()
    if not len(elements):
        return pa.nulls(len(lists), kind)
    full = pa.FixedSizeListArray.from_arrays(elements, type=kind)
    if not lists.null_count:
        return full
    # A null list gets the elements of any other list.
    valid = lists.is_valid()
    row = pc.subtract(pc.cumulative_sum(valid.cast(pa.int64())), 1)
    full = full.take(pc.if_else(valid, row, 0))
    return pa.FixedSizeListArray.from_arrays(full.values, type=kind, mask=lists.is_null())


def _cast(column: Column, field: pa.Field[Any]) -> Column:
    loose = with_nullable_fields(field.type)
    try:
        made = column.cast(with_nullable_fields(_way(column.type, loose))).cast(loose, safe=True)
    except _FAILS as error:
        raise _mismatch(column, field, _example(column, field) or str(error)) from error
    if loose == field.type:
        return made
    try:
        chunks = [restore_required_fields(chunk, field.type, field.name) for chunk in made.chunks]
    except SchemaMismatch as error:
        raise _mismatch(column, field, without_hint(error), hint=error.hint) from error
    return pa.chunked_array(chunks, field.type)


def _way(given: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    """Return the intermediate type of a cast; the given one if Arrow's own cast is right."""
    if _is_real(given) and _is_real(wanted):
        # Between floats and decimals Arrow's own cast may give the neighbour of the nearest value.
        apart = pa.types.is_decimal(given) != pa.types.is_decimal(wanted)
        return pa.string() if apart else given
    if pa.types.is_integer(given) and pa.types.is_decimal(wanted):
        # Arrow requires room for all integers of the type.
        return pa.decimal256(_MOST_DIGITS_256, wanted.scale)
    if pa.types.is_struct(given) and pa.types.is_struct(wanted):
        return pa.struct([f.with_type(_way(f.type, wanted.field(f.name).type)) for f in given])
    if pa.types.is_map(given) and pa.types.is_map(wanted):
        return pa.map_(given.key_type, _way(given.item_type, wanted.item_type))
    if _is_list(given) and _is_list(wanted):
        items = _way(given.value_type, wanted.value_type)
        return given if items == given.value_type else pa.list_(items)
    return given


def _check_cast(column: Column, field: pa.Field[Any]) -> Column:
    made = _cast(column, field)
    try:
        changed = _first_change(column, made, field.name, every=False)
    except _FAILS as error:
        # The nearest float has more digits than a decimal holds.
        raise _mismatch(column, field, str(error)) from error
    if changed:
        raise _mismatch(column, field, changed)
    unsure = _first_unsure(column, made, field.name)
    if unsure:
        raise _mismatch(column, field, unsure, hint=_UNSURE)
    return made


def _round_floats(column: Column, field: pa.Field[Any]) -> Column:
    """Round floats to another width; none may become infinite."""
    wide = _cast(column, pa.field(field.name, pa.float64()))
    made = _cast(column, field)
    over = pc.and_(pc.is_inf(made), pc.is_finite(wide))
    if pc.any(over).as_py():
        raise _mismatch(column, field, f"{wide.filter(over)[0].as_py()!r} is out of range")
    return made


def _check_decimal(column: Column, field: pa.Field[Any]) -> None:
    """Raise `SchemaMismatch` for a string that Arrow reads as a hexadecimal number."""
    odd = pc.match_substring_regex(column, "[xX]")
    if pc.any(odd).as_py():
        raise _mismatch(column, field, f"{column.filter(odd)[0].as_py()!r} is not a number")


def _mismatch(column: Column, field: pa.Field[Any], why: str, *, hint: str = "") -> SchemaMismatch:
    msg = f"column {field.name!r} is {column.type}, the table has {field.type}: {why}"
    return SchemaMismatch(msg, hint=hint or _widening(column.type, field) or _HINT)


def _widening(given: pa.DataType, field: pa.Field[Any]) -> str:
    """Return how to widen the table's decimal column; "" if that does not help."""
    if not (pa.types.is_decimal(given) and pa.types.is_decimal(field.type)):
        return ""
    scale = max(given.scale, field.type.scale)
    whole = max(kind.precision - kind.scale for kind in (given, field.type))
    if whole + scale > _MOST_DIGITS:
        return ""
    alter = f"table.alter().change_type({field.name!r}, 'decimal({whole + scale},{scale})')"
    return f"Cast the column, or widen the table's: {alter}.execute()."


def _example(column: Column, field: pa.Field[Any]) -> str:
    """Return a value that the cast would change; "" if there is none."""
    ways = (column.type, _way(column.type, field.type))
    return next(filter(None, (_describe_change(column, way, field) for way in ways)), "")


def _describe_change(column: Column, way: pa.DataType, field: pa.Field[Any]) -> str:
    try:
        made = column.cast(way).cast(with_nullable_fields(field.type), safe=False)
        return _first_change(column, made, field.name, every=True)
    except _FAILS:
        return ""


# --- what changed ---------------------------------------------------------------------------------


def _first_change(column: Column, made: Column, name: str, *, every: bool) -> str:
    """Describe the first value that differs in `made`; "" if none does.

    every: check all types, not only those that Arrow may change.
    """
    for path, before, after in _pairs(column, made, name):
        if before.type == after.type or not (every or _may_lose(before.type, after.type)):
            continue
        said = "" if path == name else f" in {path}"
        differs = pc.fill_null(_differs(before, after), fill_value=False)
        if pc.any(differs).as_py():
            first, made_first = before.filter(differs)[0], after.filter(differs)[0]
            return f"{_apart(first, made_first)}{said} would become {_format_value(made_first)}"
        if every and pa.types.is_decimal(after.type):
            over = _is_over(after)
            if pc.any(over).as_py():
                return f"{_format_value(before.filter(over)[0])}{said} is out of range"
    return ""


def _first_unsure(column: Column, made: Column, name: str) -> str:
    """Describe the first float that represents several integers; "" if none does."""
    for path, before, after in _pairs(column, made, name):
        if pa.types.is_floating(before.type) and pa.types.is_integer(after.type):
            least = float(sure_below(before.type))
            unsure = before.filter(pc.greater_equal(pc.abs(before.cast(pa.float64())), least))
            if len(unsure):
                said = "" if path == name else f" in {path}"
                return f"{_format_value(unsure[0])}{said} may be a rounded integer"
    return ""


def _pairs(
    column: Column, made: Column, name: str
) -> Iterator[tuple[str, pa.Array[Any], pa.Array[Any]]]:
    for batch in pa.Table.from_arrays([column, made], ["given", "made"]).to_batches():
        given, new = batch.columns
        yield from _leaves(given, new, name)


def _apart(value: pa.Scalar[Any], made: pa.Scalar[Any]) -> str:
    """Format a value so that it differs from its cast, also by less than Python's precision."""
    words = _format_value(value)
    return words if words != _format_value(made) else f"{value.value} as {value.type}"


def _format_value(value: pa.Scalar[Any]) -> str:
    """Format a value, also a time that Python cannot represent."""
    try:
        return repr(value.as_py())
    except (OverflowError, ValueError):
        return f"{getattr(value, 'value', '')} as {value.type}"


def _leaves(
    given: pa.Array[Any], made: pa.Array[Any], path: str
) -> Iterator[tuple[str, pa.Array[Any], pa.Array[Any]]]:
    """Yield the leaf values of two arrays of one shape, with their paths."""
    if given.type == made.type or pa.types.is_null(given.type):
        return
    if pa.types.is_struct(given.type):
        children, new = given.flatten(), made.flatten()
        for number, child in enumerate(children):
            name = given.type.field(number).name
            at = made.type.get_field_index(name)
            yield from _leaves(child, new[at], f"{path}.{name}")
    elif pa.types.is_map(given.type):
        yield from _leaves(entries_of(given).flatten(), entries_of(made).flatten(), path)
    elif _is_list(given.type):
        yield from _leaves(given.flatten(), made.flatten(), path)
    else:
        yield path, given, made


def _may_lose(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether Arrow's safe cast may change a value."""
    if pa.types.is_floating(wanted):
        narrower = pa.types.is_floating(given) and given.bit_width > wanted.bit_width
        return bool(pa.types.is_decimal(given) or narrower)
    if pa.types.is_time32(given) and pa.types.is_time32(wanted):
        return True  # it multiplies in 32 bits
    return bool(pa.types.is_timestamp(given) and pa.types.is_date(wanted))


def _differs(given: pa.Array[Any], made: pa.Array[Any]) -> Any:
    """Return for each value whether it differs in `made`; null for nulls."""
    if pa.types.is_decimal(given.type) and pa.types.is_floating(made.type):
        return _differs_written(given, made)
    if pa.types.is_floating(given.type) and pa.types.is_decimal(made.type):
        back = made.cast(pa.string()).cast(given.type)
    elif pa.types.is_decimal(given.type) and pa.types.is_integer(made.type):
        back = made  # the type may have no room for all whole numbers
    else:
        back = made.cast(given.type, safe=False)
    differs = pc.not_equal(back, given)
    if pa.types.is_floating(given.type):
        differs = pc.and_(differs, pc.invert(pc.and_(pc.is_nan(given), pc.is_nan(back))))
    return differs


def _differs_written(given: pa.Array[Any], made: pa.Array[Any]) -> Any:
    """Return for each decimal whether it differs from the float, formatted with its scale.

    A float can be formatted by its shortest digits, or by all that it has.
    """
    scale = given.type.scale
    room = pa.decimal128(_MOST_DIGITS, scale)
    if pa.types.is_decimal256(given.type):
        room = pa.decimal256(_MOST_DIGITS_256, scale)
    finite = pc.if_else(pc.is_finite(made), made, pa.scalar(0, made.type))
    shortest = finite.cast(pa.string()).cast(room)
    in_full = finite.cast(pa.float64()).cast(given.type, safe=False)
    return pc.and_(pc.not_equal(shortest, given), pc.not_equal(in_full, given))


def _is_over(made: pa.Array[Any]) -> Any:
    """Return for each decimal whether it has more digits than its type, as after an unsafe cast."""
    room = pa.decimal256(_MOST_DIGITS_256, made.type.scale)
    least = pa.scalar(Decimal(10) ** (made.type.precision - made.type.scale), room)
    return pc.fill_null(pc.greater_equal(pc.abs(made.cast(room)), least), fill_value=False)


# --- types ----------------------------------------------------------------------------------------


def with_leaves(kind: pa.DataType, leaf: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Return the type with other leaf types."""
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(with_leaves(each.type, leaf)) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, with_leaves(kind.item_type, leaf))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(with_leaves(kind.value_type, leaf)))
    return leaf(kind)


def _other_kinds(given: pa.DataType, wanted: pa.DataType, path: str) -> str:
    """Return why two types are not compatible, at any depth; "" if they are."""
    if pa.types.is_dictionary(given):
        given = given.value_type
    if pa.types.is_null(given):
        return ""
    if pa.types.is_timestamp(given) and given.tz is None and pa.types.is_date(wanted):
        return ""
    if _kind(given) != _kind(wanted):
        return f"{path} is {given}, which is not compatible with {wanted}"
    if pa.types.is_timestamp(given) and wanted.tz is None and given.tz not in (None, *UTC_ZONES):
        return (
            f"{path} has a time zone, and the table's column has none: convert it with "
            "pc.local_timestamp"
        )
    if pa.types.is_struct(given):
        fields = {field.name: field.type for field in wanted}
        unknown = [field.name for field in given if field.name not in fields]
        if unknown:
            return f"the table has no {path}.{unknown[0]}"
        twice = [field.name for field in given if given.get_field_index(field.name) < 0]
        if twice:
            return f"there is more than one {path}.{twice[0]}"
        below = (_other_kinds(f.type, fields[f.name], f"{path}.{f.name}") for f in given)
        return next((why for why in below if why), "")
    if pa.types.is_map(given):
        return _other_kinds(given.key_type, wanted.key_type, f"{path}.key") or _other_kinds(
            given.item_type, wanted.item_type, f"{path}.value"
        )
    if _is_list(given):
        return _other_kinds(given.value_type, wanted.value_type, f"{path}.element")
    return ""


def _kind(data_type: pa.DataType) -> str:
    tests = {
        "boolean": pa.types.is_boolean,
        "text": _is_text,
        "bytes": lambda t: (
            pa.types.is_binary(t) or pa.types.is_large_binary(t) or pa.types.is_fixed_size_binary(t)
        ),
        "number": lambda t: pa.types.is_integer(t) or _is_real(t),
        "date": pa.types.is_date,
        "timestamp": pa.types.is_timestamp,
        "time": pa.types.is_time,
        "list": _is_list,
    }
    return next((kind for kind, test in tests.items() if test(data_type)), str(data_type.id))


def _is_text(kind: pa.DataType) -> bool:
    tests = (pa.types.is_string, pa.types.is_large_string, pa.string_view().equals)
    return any(test(kind) for test in tests)


def _is_real(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_moment(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _is_list(kind: pa.DataType) -> bool:
    tests = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(test(kind) for test in tests)


# --- single values --------------------------------------------------------------------------------


def _as_number(value: float | Decimal, what: str) -> pa.Scalar[Any]:
    """Return a float or decimal in a type of its own."""
    try:
        return pa.scalar(value)
    except _FAILS as error:
        raise SchemaMismatch(f"{what}: {value!r} is not a number: {error}") from error


def _is_kept(value: Any, made: Any) -> bool:
    """Return whether a Python value survives the round trip through Arrow."""
    if value is None or made is None:
        return value is made or value != value  # noqa: PLR0124 - a NaN, which pandas has for null
    if isinstance(made, float):
        return math.isinf(made) == math.isinf(value)
    if isinstance(made, int) and isinstance(value, float):
        return made == value and abs(value) < sure_below(pa.float64())
    if isinstance(made, dict) and isinstance(value, Mapping):
        return set(value) <= set(made) and all(
            _is_kept(value.get(name), item) for name, item in made.items()
        )
    if isinstance(made, list):
        items = list(value.items() if isinstance(value, Mapping) else value)
        return len(items) == len(made) and all(map(_is_kept, items, made))
    if isinstance(made, tuple):
        return len(value) == len(made) and all(map(_is_kept, value, made))
    if isinstance(made, datetime.date) and isinstance(value, datetime.datetime):
        return _is_same_moment(value, made)
    return bool(made == value)


def _is_same_moment(value: datetime.datetime, made: datetime.date) -> bool:
    if not isinstance(made, datetime.datetime):
        return value == datetime.datetime.combine(made, datetime.time(), value.tzinfo)
    if value.tzinfo is None:
        return value == made.replace(tzinfo=None)
    # A column without a time zone holds the timestamp in UTC.
    return value == (made if made.tzinfo else made.replace(tzinfo=datetime.timezone.utc))
