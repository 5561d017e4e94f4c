"""Comparisons of a column, or of an expression, with known values.

Values are converted to the type with which they are compared; the result is null for null.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.schema.predicate_floats import among_floats, compare_floats
from pyhudi.schema.predicate_literals import compare, plain_texts, to_scalar, within_column

if TYPE_CHECKING:
    import pyarrow.compute as pc
else:
    from pyhudi.schema import lazy_compute as pc


def compare_value(
    left: pc.Expression, kind: pa.DataType, op: str, value: Any, name: str
) -> pc.Expression:
    """Compare an expression of a type with a value. name: for messages. Raises `SchemaMismatch`."""
    if value is None:
        return boolean(None)
    literal = to_scalar(value, kind, name)
    if pa.types.is_floating(kind):
        wide = left if literal.type == kind else left.cast(literal.type)
        return compare_floats(wide, op, literal)
    if literal.type != kind:
        within = within_column(op, literal, kind)
        if isinstance(within, bool):
            return left == left if within else left != left  # noqa: PLR0124 - null where null
        op, literal = within
    return compare(left, op, literal)


def among_values(
    left: pc.Expression, kind: pa.DataType, values: Sequence[Any], name: str
) -> pc.Expression:
    """Return whether an expression is among values. Raises `SchemaMismatch`."""
    texts = plain_texts(values, kind)
    if texts is not None:
        return pc.if_else(left.is_valid(), left.isin(texts), boolean(None))
    literals = [to_scalar(v, kind, name) for v in values if v is not None]
    # No row has a number that the type cannot represent.
    fitting = [literal for literal in literals if literal.type == kind]
    if pa.types.is_floating(kind):
        among = among_floats(left, (literal.as_py() for literal in fitting), kind)
    else:
        among = left.isin(pa.array(fitting, kind))
    found = pc.if_else(left.is_valid(), among, boolean(None))
    return found | boolean(None) if len(literals) < len(values) else found


def boolean(value: bool | None) -> pc.Expression:
    """True, false or null."""
    return pc.scalar(pa.scalar(value, pa.bool_()))
