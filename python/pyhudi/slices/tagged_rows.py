"""Existing locations of incoming rows, as numbers of rows and of file groups. Pure.

`index/` finds them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native


@dataclass(frozen=True)
class Tagged:
    """Existing locations of incoming rows: pairs of row number and file group number.

    A key in several file groups has several pairs, and all of them are updated, as in Hudi.
    """

    rows: pa.Array[Any]
    groups: pa.Array[Any]
    left_rows: pa.Array[Any] = field(default_factory=lambda: pa.array([], pa.int64()))
    """Rows that move elsewhere, and whose keys are deleted from `left_groups`."""
    left_groups: pa.Array[Any] = field(default_factory=lambda: pa.array([], pa.int64()))

    base_rows: pa.Array[Any] | None = None
    """For each pair the row number in the group's base file; null if it is unknown."""

    def deletes_by_group(self) -> dict[int, pa.Array[Any]]:
        """Return row numbers of the keys to delete from each file group."""
        return dict(group_values(self.left_groups, self.left_rows))

    def only(self, mask: pa.Array[Any]) -> Tagged:
        """Return the pairs that a mask selects, without the rows that move elsewhere."""
        base_rows = None if self.base_rows is None else self.base_rows.filter(mask)
        return Tagged(self.rows.filter(mask), self.groups.filter(mask), base_rows=base_rows)

    def base_rows_by_group(self) -> dict[int, pa.Array[Any]]:
        """Return the base rows of each file group, in the order of the rows of `by_group`."""
        return {} if self.base_rows is None else dict(group_values(self.groups, self.base_rows))

    def by_group(self) -> Iterator[tuple[int, pa.Array[Any]]]:
        """Yield each file group with tagged rows, and the numbers of these rows."""
        yield from group_values(self.groups, self.rows)


def group_values(keys: pa.Array[Any], values: pa.Array[Any]) -> Iterator[tuple[Any, pa.Array[Any]]]:
    """Yield each key and its values in their order; keys are ascending."""
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


def _rank(strings: pa.Array[Any]) -> tuple[pa.Array[Any], pa.Array[Any]]:
    """Return each string's rank among the distinct strings, and those; numbers sort faster."""
    encoded = strings.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary)
    return pc.sort_indices(order).take(encoded.indices), encoded.dictionary.take(order)


def flat(column: pa.ChunkedArray[Any]) -> pa.Array[Any]:
    """Return a column in one chunk."""
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def find_untagged(row_count: int, tagged: Tagged) -> pa.Array[Any]:
    """Return the numbers of the rows without a file group, ascending."""
    at_row = _native.scatter(tagged.rows, tagged.rows, row_count)
    return pc.indices_nonzero(pc.is_null(at_row)).cast(pa.int64())


def row_numbers(count: int) -> pa.Array[Any]:
    """Return 0 to `count` - 1."""
    return pc.indices_nonzero(pa.repeat(pa.scalar(value=True), count)).cast(pa.int64())
