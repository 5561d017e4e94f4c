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

_LITERALS_MOST = 64
"""Of a longer list only the minimum and the maximum are compared."""


def exclude_by_stats(stats: pa.RecordBatch, conjunct: Conjunct) -> pa.Array:
    """Return for each row of statistics whether none of its values can match the condition.

    stats: columns min, max and only_nulls, as `_native.MetadataPartition.stats` returns them. Null
    matches no condition.
    """
    _, op, values = conjunct
    least, greatest = stats["min"], stats["max"]
    outside = pc.and_kleene(
        _outside(least, greatest, op, values), pc.and_(least.is_valid(), greatest.is_valid())
    )
    return pc.or_(pc.fill_null(outside, fill_value=False), stats["only_nulls"])


def _outside(least: pa.Array, greatest: pa.Array, op: str, values: pa.Array) -> pa.Array:
    first = values[0]
    match op:
        case "=" | "in":
            return _all_outside(least, greatest, values)
        case "!=":
            return pc.and_(pc.equal(least, first), pc.equal(greatest, first))
        case "<":
            return pc.greater_equal(least, first)
        case "<=":
            return pc.greater(least, first)
        case ">":
            return pc.less_equal(greatest, first)
        case _:
            return pc.less(greatest, first)


def _all_outside(least: pa.Array, greatest: pa.Array, values: pa.Array) -> pa.Array:
    if len(values) > _LITERALS_MOST:
        low, high = pc.min(values), pc.max(values)
        return pc.or_(pc.less(greatest, low), pc.greater(least, high))
    found = pa.repeat(pa.scalar(value=True), len(least))
    for value in values:
        found = pc.and_(found, pc.or_(pc.less(value, least), pc.greater(value, greatest)))
    return found
