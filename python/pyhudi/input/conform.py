"""Casts input to a table's schema.

Columns are matched by name and cast only if no value can change; everything else is refused with
the name of the column. Keys are not generated here.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pyarrow as pa

from pyhudi.config.meta_columns import META_COLUMNS
from pyhudi.errors import SchemaMismatch
from pyhudi.input.batches import read_batches
from pyhudi.input.exact_casts import cast_exactly
from pyhudi.input.null_elements import check_elements
from pyhudi.input.vectors import check_vector, is_vector


def read_table(data: Any, like: pa.Schema | None = None, *, uneven: bool = False) -> pa.Table:
    """Read all rows of an input that `read_batches` accepts. Raises as it does."""
    schema, batches = read_batches(data, like, uneven=uneven)
    return pa.Table.from_batches(batches, schema)


def data_schema(schema: pa.Schema) -> pa.Schema:
    """Return a table's schema without the meta columns."""
    return pa.schema([field for field in schema if field.name not in META_COLUMNS])


def conform(
    rows: pa.Table,
    schema: pa.Schema,
    *,
    stored: Collection[str] = (),
    null_elements: bool = False,
) -> pa.Table:
    """Return the rows with exactly the schema's columns, in its order and types.

    schema: the table's schema without meta columns. Meta columns of the rows are dropped. stored:
    columns whose values come from the table. null_elements: new lists may have null elements.
    Raises `SchemaMismatch` for an unknown, missing or repeated column, a type that cannot be cast
    without loss, a null in a required column, or a new list with a null element.
    """
    _check_names(rows, schema)
    kept = frozenset(stored)
    for field in schema:
        column = rows.column(field.name)
        if is_vector(field):
            check_vector(column, field.name)
        elif not null_elements and field.name not in kept:
            check_elements(column, f"column {field.name!r}")
    columns = [_column(rows.column(field.name), field) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _check_names(rows: pa.Table, schema: pa.Schema) -> None:
    names = [name for name in rows.column_names if name not in META_COLUMNS]
    # Arrow builds the list of names on each access.
    expected = dict.fromkeys(schema.names)
    unknown = [name for name in names if name not in expected]
    if unknown:
        msg = f"the table has no column {_names(unknown)}"
        raise SchemaMismatch(
            msg,
            hint=f'Pass schema_mode="merge" to add it, or leave it out. The table has '
            f"{_names(schema.names)}.",
        )
    absent = expected.keys() - names
    missing = [name for name in expected if name in absent]
    if missing:
        msg = f"the input is missing the table's column {_names(missing)}"
        raise SchemaMismatch(
            msg,
            hint="An upsert replaces whole rows: give every column, or pass partial=True, which "
            "keeps the stored values of missing columns.",
        )


def _names(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names)


def _column(column: pa.ChunkedArray[Any], field: pa.Field[Any]) -> pa.ChunkedArray[Any]:
    if column.null_count and not field.nullable:
        msg = f"column {field.name!r} has nulls, but the table requires a value"
        raise SchemaMismatch(msg)
    return cast_exactly(column, field)
