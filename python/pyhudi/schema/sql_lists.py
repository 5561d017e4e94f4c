"""SQL functions of lists and maps in Arrow's terms.

`list_functions.py` has the function that searches lists: Arrow has none.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.input.type_tests import is_list, is_text
from pyhudi.schema.list_functions import SEARCHED, function_name, register_list_functions
from pyhudi.schema.sql_expressions import (
    Literal,
    Operand,
    Value,
    call,
    cast,
    common_type,
    in_type,
    literal_argument,
    null,
    to_value,
)
from pyhudi.schema.sql_operators import among

_MAX_POSITION = 2**31 - 2


def _list(what: str, operand: Operand, function: str) -> Value:
    value = to_value(operand, what)
    if not is_list(value.data_type):
        raise SchemaMismatch(
            f"{what}: {function} needs a list, not {value.data_type}",
            hint="Name a column that has lists.",
        )
    return value


def list_length(what: str, operand: Operand) -> Value:
    """Return the number of elements; null for null."""
    return call("list_value_length", _list(what, operand, "len"), what=what)


def _cardinality(what: str, operand: Operand) -> Value:
    length = list_length(what, operand)
    minus = Value(pc.scalar(pa.scalar(-1, length.data_type)), length.data_type)
    return call("coalesce", length, minus, what=what)


def _array_contains(what: str, lists: Operand, value: Operand) -> Value:
    if isinstance(lists, Literal) and isinstance(lists.value, list):
        return among(value, [Literal(element) for element in lists.value], what)
    searched = _list(what, lists, "array_contains")
    element = null(searched.data_type.value_type)
    common = common_type((element, value), what)
    data_type = _search_type(common)
    if data_type is None:
        raise SchemaMismatch(f"{what}: array_contains cannot search {searched.data_type}")
    register_list_functions()
    lossy = at.is_floating(data_type)
    return call(
        function_name(data_type),
        cast(cast(searched, pa.list_(common), safe=not lossy), pa.list_(data_type)),
        cast(in_type(value, common, what), data_type),
        what=what,
    )


def _search_type(data_type: pa.DataType) -> pa.DataType | None:
    """Return the type in which elements are searched; None if they cannot be."""
    if is_text(data_type) or at.is_decimal(data_type):
        return pa.string()  # decimals of one scale have one text each
    if at.is_timestamp(data_type):
        return pa.timestamp("ns" if data_type.unit == "ns" else "us")
    for test, searched in ((at.is_integer, pa.int64()), (at.is_floating, pa.float64())):
        if test(data_type):
            return searched
    return data_type if data_type in SEARCHED else None


def element_at(what: str, operand: Operand, index: Operand) -> Value:
    """Return the element of a list at a position from 1, or the value of a key of a map."""
    value = to_value(operand, what)
    if at.is_map(value.data_type):
        return _value_of_key(what, value, index)
    position = literal_argument(what, index, "element_at", int)
    if position is not None and position < 1:
        raise ConfigError(
            f"{what}: element_at has the position {position}", hint="Positions begin at 1."
        )
    return _element(what, value, None if position is None else position - 1)


def subscript(what: str, operand: Operand, index: Operand) -> Value:
    """Return what `x[i]` is: the element of a list at a position from 0, or a map's value."""
    value = to_value(operand, what)
    if at.is_map(value.data_type):
        return _value_of_key(what, value, index)
    return _element(what, value, literal_argument(what, index, "x[i]", int))


def _element(what: str, value: Value, position: int | None) -> Value:
    """Return an element of each list; null if it has no such element."""
    lists = _list(what, value, "element_at")
    data_type = lists.data_type.value_type
    if position is None or not 0 <= position <= _MAX_POSITION:
        return null(data_type)
    options = pc.ListSliceOptions(position, position + 1, return_fixed_size_list=True)
    single = call("list_slice", lists, options=options, what=what)
    zero = Value(pc.scalar(pa.scalar(0, pa.int32())), pa.int32())
    return call("list_element", single, zero, what=what)


def _value_of_key(what: str, value: Value, key: Operand) -> Value:
    if not isinstance(key, Literal):
        raise ConfigError(f"{what}: the key of a map must be a literal", hint="Write m['key'].")
    if key.value is None:
        return null(value.data_type.item_type)
    scalar = pa.scalar(key.value, value.data_type.key_type)
    return call("map_lookup", value, options=pc.MapLookupOptions(scalar, "last"), what=what)


LIST_FUNCTIONS: dict[str, tuple[Callable[..., Value], int, int]] = {
    "cardinality": (_cardinality, 1, 1),
    "array_size": (list_length, 1, 1),
    "array_contains": (_array_contains, 2, 2),
    "element_at": (element_at, 2, 2),
    "subscript": (subscript, 2, 2),
}
"""Entries of `sql_functions.FUNCTIONS`."""
