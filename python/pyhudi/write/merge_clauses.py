"""The clauses of a merge, applied to source rows and the table's rows of the same keys. Pure.

The clauses of each type are tried in order; the first one whose condition holds applies. Conditions
and values refer to the source's columns as `source.name` and to the table's as `target.name`. A
name without prefix is the table's column for matched rows, otherwise the source's.
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
    """One clause, its expressions over the columns of `join_sides`."""

    condition: pc.Expression | None
    values: Mapping[str, SetValue] | None
    """By column of the table; None deletes the row."""


def join_sides(source: pa.Table | None, target: pa.Table | None) -> pa.Table:
    """Return the columns of both sides, row by row, prefixed with the name of their side."""
    columns = {
        f"{side}.{name}": rows.column(name)
        for side, rows in ((SOURCE, source), (TARGET, target))
        if rows is not None
        for name in rows.column_names
    }
    return pa.table(columns)


def names(source: Iterable[pa.Field], target: Iterable[pa.Field]) -> Names:
    """Return the names that expressions may use for the columns of `join_sides`."""
    fields: dict[tuple[str, ...], pa.Field] = {}
    for side, columns in ((SOURCE, source), (TARGET, target)):
        for column in columns:
            joined = column.with_name(f"{side}.{column.name}")
            fields[column.name,] = fields[side, column.name] = joined
    return fields


def select_rows(rows: pa.Table, clauses: Sequence[Clause]) -> list[pa.Array[Any]]:
    """Return for each clause the numbers of the rows that it applies to.

    Raises `SchemaMismatch` for a condition that is not boolean.
    """
    free = pa.repeat(pa.scalar(value=True), rows.num_rows)
    selected = []
    for clause in clauses:
        holds = free
        if clause.condition is not None:
            holding = project(rows, {"holds": clause.condition}).column("holds")
            if not (pa.types.is_boolean(holding.type) or pa.types.is_null(holding.type)):
                msg = f"where: a condition is {holding.type}, expected a boolean"
                raise SchemaMismatch(msg, hint="Compare it with a value.")
            holding = pc.fill_null(holding.cast(pa.bool_()), fill_value=False).combine_chunks()
            holds = pc.and_(free, holding)
        selected.append(pc.indices_nonzero(holds).cast(pa.int64()))
        free = pc.and_(free, pc.invert(holds))
    return selected
