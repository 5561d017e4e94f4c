"""Bounds of values against the conditions of a filter: which files can hold no wanted row.

Whole columns of bounds at a time. A bound that is not known rules nothing out.
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
"""Of a longer list only its least and greatest value are compared."""


def exclude_by_stats(stats: pa.RecordBatch, conjunct: Conjunct) -> pa.Array:
    """For each row of statistics whether no value that they describe meets the condition.

    stats: columns min, max and only_nulls, as `_native.MetadataPartition.stats` gives them. Null
    meets no condition.
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
