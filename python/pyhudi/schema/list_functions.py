"""Functions of lists that Arrow does not have, registered with it for expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.types as at

if TYPE_CHECKING:
    import pyarrow.compute as pc
else:
    from pyhudi.schema import lazy_compute as pc

_T = TypeVar("_T")
SEARCHED = (
    pa.bool_(),
    pa.int64(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.date32(),
    pa.timestamp("us"),
    pa.timestamp("ns"),
)
"""The types of elements that lists can be searched for."""


def function_name(data_type: pa.DataType) -> str:
    """Return the name of the function that searches lists of a type for a value."""
    return f"pyhudi_list_contains_{data_type}"


def register_list_functions() -> None:
    """Register the functions, once in a process."""
    registered = set(pc.list_functions())
    for data_type in SEARCHED:
        name = function_name(data_type)
        if name not in registered:
            doc = {"summary": "Search lists", "description": "Return whether a list has a value"}
            inputs = {"lists": pa.list_(data_type), "value": data_type}
            pc.register_scalar_function(_contains, name, doc, inputs, pa.bool_())


def with_list_functions(evaluate: Callable[[], _T]) -> _T:
    """Evaluate an expression, perhaps of another process, with which functions do not travel."""
    try:
        return evaluate()
    except pa.ArrowKeyError as error:
        if function_name(pa.null()).removesuffix("null") not in str(error):
            raise
        register_list_functions()
        return evaluate()


def _contains(context: Any, lists: Any, value: Any) -> Any:
    """Return for each list whether it has a value; null if it may be one of its nulls."""
    rows = context.batch_length
    lists, value = (
        pa.repeat(column, rows) if isinstance(column, pa.Scalar) else column
        for column in (lists, value)
    )
    valid = lists.drop_null()  # a null may hide elements
    elements = pc.list_flatten(valid)
    parents = pc.indices_nonzero(lists.is_valid()).take(pc.list_parent_indices(valid))
    values = value.take(parents)
    matches = pc.equal(elements, values)
    if at.is_floating(elements.type):
        matches = pc.or_kleene(matches, pc.and_kleene(pc.is_nan(elements), pc.is_nan(values)))
    numbers = pc.indices_nonzero(pa.repeat(pa.scalar(value=True), rows))
    has_match = pc.is_in(numbers, value_set=parents.filter(matches))
    has_null = pc.is_in(numbers, value_set=parents.filter(elements.is_null()))
    is_null = pc.or_(has_null, pc.or_(lists.is_null(), value.is_null()))
    unknown = pc.if_else(is_null, pa.scalar(None, pa.bool_()), pa.scalar(value=False))
    return pc.if_else(has_match, pa.scalar(value=True), unknown)
