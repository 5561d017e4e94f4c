"""What a merge does with rows of its source and the table's rows of the same keys. Pure.

The clauses of each kind are tried in order; of those whose condition holds the first one decides.
Conditions and values see the source's columns as `source.name`, the table's as `target.name`; a
plain name is the table's where a row is matched, else the source's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import SchemaMismatch
from pyhudi.schema.computed_columns import Names, SetValue, project

SOURCE = "source"
TARGET = "target"


@dataclass(frozen=True)
class Clause:
    """One clause, its expressions over the columns that `joined` names."""

    condition: pc.Expression | None
    values: Mapping[str, SetValue] | None
    """By column of the table; None deletes the row."""


def join_sides(source: pa.Table | None, target: pa.Table | None) -> pa.Table:
    """The columns of both sides, row by row, with their side's name before their own."""
    columns = {
        f"{side}.{name}": rows.column(name)
        for side, rows in ((SOURCE, source), (TARGET, target))
        if rows is not None
        for name in rows.column_names
    }
    return pa.table(columns)


def names(source: Iterable[pa.Field], target: Iterable[pa.Field]) -> Names:
    """What expressions may call the columns of `joined`."""
    found: dict[tuple[str, ...], pa.Field] = {}
    for side, columns in ((SOURCE, source), (TARGET, target)):
        for column in columns:
            made = column.with_name(f"{side}.{column.name}")
            found[column.name,] = found[side, column.name] = made
    return found


def select_rows(rows: pa.Table, clauses: Sequence[Clause]) -> list[pa.Array[Any]]:
    """For each clause the numbers of the rows that it decides.

    Raises `SchemaMismatch` for a condition that is neither true nor false.
    """
    free = pa.repeat(pa.scalar(value=True), rows.num_rows)
    found = []
    for clause in clauses:
        holds = free
        if clause.condition is not None:
            said = project(rows, {"holds": clause.condition}).column("holds")
            if not (pa.types.is_boolean(said.type) or pa.types.is_null(said.type)):
                msg = f"where: a condition is {said.type}, expected a boolean"
                raise SchemaMismatch(msg, hint="Compare it with a value.")
            said = pc.fill_null(said.cast(pa.bool_()), fill_value=False).combine_chunks()
            holds = pc.and_(free, said)
        found.append(pc.indices_nonzero(holds).cast(pa.int64()))
        free = pc.and_(free, pc.invert(holds))
    return found
