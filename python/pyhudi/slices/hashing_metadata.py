"""Consistent-hashing metadata: hash ranges, and their split and merge. Pure.

The nodes are the buckets of one partition. Each has the hashes after the node before it, up to its
own value; the first one also those beyond the last. Source: `ConsistentBucketIdentifier` (Hudi
0.15.0, 1.0.2, 1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Ring = list[tuple[int, str]]
"""Last hash and file id prefix of each range, ascending."""

_HASHES = 1 << 31
"""Hashes are 0 or more and less than this."""


@dataclass(frozen=True)
class Child:
    """The change of a hash node in a plan."""

    value: int
    """The last hash of its range."""
    prefix: str | None
    """Prefix of its new file id; None if the node is removed and its range goes to the next."""


@dataclass(frozen=True)
class Span:
    """A range of hashes, which may wrap around."""

    after: int
    """The last hash before it."""
    upto: int

    def holds(self, places: pa.Array[Any]) -> pa.Array[Any]:
        """Return for each hash whether it is in this range."""
        above, below = pc.greater(places, self.after), pc.less_equal(places, self.upto)
        return pc.and_(above, below) if self.after < self.upto else pc.or_(above, below)


def file_id_of(prefix: str) -> str:
    """Return the file id of a hash node."""
    return f"{prefix}-0"


def span_of(ring: Ring, value: int) -> Span:
    """Return the hash range of the node with this value."""
    values = [node for node, _ in ring]
    return Span(values[values.index(value) - 1], value)


def middle_of(ring: Ring, value: int) -> int | None:
    """Return the value that splits this node in two; None for a range of one hash."""
    span = span_of(ring, value)
    wrapped = 0 if span.after < value else _HASHES
    middle = ((span.after + value + wrapped) >> 1) % _HASHES
    return None if middle in (span.after, value) else middle


def replace_nodes(ring: Ring, children: Iterable[Child]) -> Ring:
    """Replace, add and remove nodes. Raises KeyError if one is missing."""
    nodes: dict[int, str] = dict(ring)
    for child in children:
        if child.prefix is None:
            del nodes[child.value]
        else:
            nodes[child.value] = child.prefix
    return sorted(nodes.items())
