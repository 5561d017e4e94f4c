"""Compares minimum and maximum values with the conditions of a filter, to prune files.

It works on whole columns of bounds. An unknown bound prunes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import pyarrow.compute as pc

    from pyhudi.schema.predicates import Conjunct
else:
    from pyhudi.schema import lazy_compute as pc

_MAX_LITERALS = 64
"""Maximum length of a list whose values are all compared; else minimum and maximum are."""


def exclude_by_stats(stats: pa.RecordBatch, conjunct: Conjunct) -> pa.Array:
    """Return for each row of statistics whether none of its values can match the condition.

    stats: columns min, max and only_nulls, as `_native.MetadataPartition.stats` returns them. Null
    matches no condition.
    """
    _, op, values = conjunct
    minimum, maximum = stats["min"], stats["max"]
    outside = pc.and_kleene(
        _outside(minimum, maximum, op, values), pc.and_(minimum.is_valid(), maximum.is_valid())
    )
    return pc.or_(pc.fill_null(outside, fill_value=False), stats["only_nulls"])


def _outside(minimum: pa.Array, maximum: pa.Array, op: str, values: pa.Array) -> pa.Array:
    first = values[0]
    match op:
        case "=" | "in":
            return _all_outside(minimum, maximum, values)
        case "!=":
            return pc.and_(pc.equal(minimum, first), pc.equal(maximum, first))
        case "<":
            return pc.greater_equal(minimum, first)
        case "<=":
            return pc.greater(minimum, first)
        case ">":
            return pc.less_equal(maximum, first)
        case _:
            return pc.less(maximum, first)


def _all_outside(minimum: pa.Array, maximum: pa.Array, values: pa.Array) -> pa.Array:
    if len(values) > _MAX_LITERALS:
        low, high = pc.min(values), pc.max(values)
        return pc.or_(pc.less(maximum, low), pc.greater(minimum, high))
    outside = pa.repeat(pa.scalar(value=True), len(minimum))
    for value in values:
        outside = pc.and_(outside, pc.or_(pc.less(value, minimum), pc.greater(value, maximum)))
    return outside
