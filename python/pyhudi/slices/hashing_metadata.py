"""A ring of hash ranges, and what it becomes when its buckets are split or merged. Pure.

A ring is the buckets of one partition. Each has the hashes after the bucket before it, up to its
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
"""Last hash and file id prefix of each range, rising."""

_HASHES = 1 << 31
"""The hashes are 0 and up to below this."""


@dataclass(frozen=True)
class Child:
    """What a plan wants of a node of a ring."""

    value: int
    """The last hash of its range."""
    prefix: str | None
    """Of the file id of its new file group; None where the node goes, and its range to the next."""


@dataclass(frozen=True)
class Span:
    """A part of a ring, which may go over its end."""

    after: int
    """The last hash before it."""
    upto: int

    def holds(self, places: pa.Array[Any]) -> pa.Array[Any]:
        """For each place on the ring whether it is in this part."""
        above, below = pc.greater(places, self.after), pc.less_equal(places, self.upto)
        return pc.and_(above, below) if self.after < self.upto else pc.or_(above, below)


def file_id_of(prefix: str) -> str:
    """The file id of a node of a ring."""
    return f"{prefix}-0"


def span_of(ring: Ring, value: int) -> Span:
    """The part of a ring that the node of this value has."""
    values = [node for node, _ in ring]
    return Span(values[values.index(value) - 1], value)


def middle_of(ring: Ring, value: int) -> int | None:
    """Where to split the node of this value in two; None for a range of one hash."""
    span = span_of(ring, value)
    wrapped = 0 if span.after < value else _HASHES
    middle = ((span.after + value + wrapped) >> 1) % _HASHES
    return None if middle in (span.after, value) else middle


def replace_nodes(ring: Ring, children: Iterable[Child]) -> Ring:
    """The ring once nodes are replaced, added and taken away. Raises KeyError for one it lacks."""
    nodes: dict[int, str] = dict(ring)
    for child in children:
        if child.prefix is None:
            del nodes[child.value]
        else:
            nodes[child.value] = child.prefix
    return sorted(nodes.items())
