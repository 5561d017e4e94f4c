"""Where incoming rows are already, as numbers of rows and of file groups. Pure.

Finding that out is the part of `index/`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True)
class Tagged:
    """Where incoming rows are already: pairs of row number and number of a file group.

    A key that several file groups hold has several pairs, and all of them are updated, as Hudi
    does.
    """

    rows: pa.Array[Any]
    groups: pa.Array[Any]
    left_rows: pa.Array[Any] = field(default_factory=lambda: pa.array([], pa.int64()))
    """Rows that go elsewhere, and whose keys are to be deleted from `left_groups`."""
    left_groups: pa.Array[Any] = field(default_factory=lambda: pa.array([], pa.int64()))

    base_rows: pa.Array[Any] | None = None
    """For each pair the row of the group's base file; null where that is not known."""

    def leaving(self) -> dict[int, pa.Array[Any]]:
        """Row numbers of the keys that leave each file group."""
        return dict(group_values(self.left_groups, self.left_rows))

    def only(self, mask: pa.Array[Any]) -> Tagged:
        """The pairs that a mask keeps, and none of the rows that go elsewhere."""
        base_rows = None if self.base_rows is None else self.base_rows.filter(mask)
        return Tagged(self.rows.filter(mask), self.groups.filter(mask), base_rows=base_rows)

    def base_rows_by_group(self) -> dict[int, pa.Array[Any]]:
        """The base rows of each file group, in the order of the rows that `by_group` gives."""
        return {} if self.base_rows is None else dict(group_values(self.groups, self.base_rows))

    def by_group(self) -> Iterator[tuple[int, pa.Array[Any]]]:
        """Row numbers of each file group that was hit."""
        yield from group_values(self.groups, self.rows)


def group_values(keys: pa.Array[Any], values: pa.Array[Any]) -> Iterator[tuple[Any, pa.Array[Any]]]:
    """The values of each key, in their order; keys ascending."""
    names = None
    if pa.types.is_string(keys.type):
        keys, names = _rank(keys)
    order = pc.sort_indices(keys)
    runs = pc.run_end_encode(keys.take(order)) if len(keys) else None
    ordered = values.take(order)
    start = 0
    for key, end in zip(runs.values, runs.run_ends, strict=True) if runs is not None else ():
        name = key if names is None else names[key.as_py()]
        yield name.as_py(), ordered.slice(start, end.as_py() - start)
        start = end.as_py()


def _rank(texts: pa.Array[Any]) -> tuple[pa.Array[Any], pa.Array[Any]]:
    """For each text its place among the different texts, and those; sorting numbers is faster."""
    encoded = texts.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary)
    return pc.sort_indices(order).take(encoded.indices), encoded.dictionary.take(order)


def flat(column: pa.ChunkedArray[Any]) -> pa.Array[Any]:
    """A column in one piece."""
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def find_untagged(row_count: int, tagged: Tagged) -> pa.Array[Any]:
    """Numbers of the rows that are in no file group, ascending."""
    numbers = row_numbers(row_count)
    return numbers.filter(pc.invert(pc.is_in(numbers, value_set=tagged.rows)))


def row_numbers(count: int) -> pa.Array[Any]:
    """0 to `count` - 1."""
    return pc.indices_nonzero(pa.repeat(pa.scalar(value=True), count)).cast(pa.int64())
