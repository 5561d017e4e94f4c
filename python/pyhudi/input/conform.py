"""Casts input to a table's schema.

Columns are matched by name and cast only if no value can change; everything else is an error with
the name of the column. Keys are not generated here.

Base files have two-level lists, which cannot hold null elements (docs/decisions/0004), unless an
option says otherwise. Log files could, but the compaction to base files would then fail, in Apache
Hudi as well. So lists with null elements raise an error before any row is written.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pyarrow as pa

from pyhudi.config.meta_columns import META_COLUMNS
from pyhudi.errors import SchemaMismatch
from pyhudi.input.batches import read_batches
from pyhudi.input.exact_casts import cast_exactly
from pyhudi.input.row_rules import NO_RULES, RowRules
from pyhudi.input.type_tests import is_list
from pyhudi.input.vectors import check_vector, is_vector
from pyhudi.suggestions import case_hint


def read_table(
    data: Any, table_schema: pa.Schema | None = None, *, allow_missing_keys: bool = False
) -> pa.Table:
    """Read all rows of an input that `read_batches` accepts. Raises as it does."""
    schema, batches = read_batches(data, table_schema, allow_missing_keys=allow_missing_keys)
    return pa.Table.from_batches(batches, schema)


def data_schema(schema: pa.Schema) -> pa.Schema:
    """Return a table's schema without the meta columns."""
    return pa.schema([field for field in schema if field.name not in META_COLUMNS])


def conform(
    rows: pa.Table,
    schema: pa.Schema,
    *,
    stored: Collection[str] = (),
    rules: RowRules = NO_RULES,
    check: bool = True,
) -> pa.Table:
    """Return the rows with exactly the schema's columns, in its order and types.

    schema: the table's schema without meta columns. Meta columns of the rows are dropped. stored:
    columns whose values come from the table. rules: what the rows must satisfy, and the columns
    that they may leave out. check: False if the caller finds the rows that violate the rules.
    Raises `SchemaMismatch` for an unknown, missing or repeated column, a type that cannot be cast
    without loss, a null in a required column, or a new list with a null element;
    `ConstraintViolation` for a row that violates a constraint.
    """
    computed = rules.columns_to_compute(rows.column_names, stored) & set(schema.names)
    input_schema = schema
    if computed:
        rows = rows.drop_columns([name for name in rows.column_names if name in computed])
        input_schema = pa.schema([field for field in schema if field.name not in computed])
    _check_names(rows, input_schema)
    kept = frozenset(stored)
    for field in input_schema:
        column = rows.column(field.name)
        if is_vector(field):
            check_vector(column, field.name)
        elif not rules.null_elements and field.name not in kept:
            check_elements(column, f"column {field.name!r}")
    columns = [_column(rows.column(field.name), field) for field in input_schema]
    conformed = pa.Table.from_arrays(columns, schema=input_schema)
    if computed:
        conformed = rules.compute(conformed, schema)
    if check:
        rules.check(conformed, computed)
    return conformed


def _check_names(rows: pa.Table, schema: pa.Schema) -> None:
    names = [name for name in rows.column_names if name not in META_COLUMNS]
    # Arrow builds the list of names on each access.
    expected = dict.fromkeys(schema.names)
    unknown = [name for name in names if name not in expected]
    if unknown:
        msg = f"the table has no column {_names(unknown)}"
        raise SchemaMismatch(
            msg,
            hint=case_hint(unknown, schema.names)
            or f'Pass schema_mode="merge" to add it, or leave it out. The table has '
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
        raise SchemaMismatch(f"column {field.name!r} has nulls, but the table requires a value")
    return cast_exactly(column, field)


def check_elements(column: pa.ChunkedArray[Any], what: str) -> None:
    """Raise `SchemaMismatch` if a list among the values, at any depth, has a null element."""
    if not _has_lists(column.type):
        return
    for chunk in column.chunks:
        path = _null_element(chunk, "")
        if path is not None:
            msg = f"{what}: a list{path and f' at {path[1:]}'} has a null element"
            raise SchemaMismatch(
                msg,
                hint="Lists in base files cannot hold one. Take it out of the list or fill it, "
                "make the elements structs with a field that may be null, or give the option "
                "parquet.avro.write-old-list-structure=false here and to every other writer.",
            )


def _has_lists(data_type: pa.DataType) -> bool:
    if pa.types.is_nested(data_type):
        fields = (data_type.field(at).type for at in range(data_type.num_fields))
        return is_list(data_type) or any(map(_has_lists, fields))
    return False


def _null_element(array: pa.Array[Any], path: str) -> str | None:
    """Return the path of a list with a null element, ignoring what is below null values."""
    data_type = array.type
    if not _has_lists(data_type):
        return None
    if is_list(data_type):
        elements = array.flatten()
        return path if elements.null_count else _null_element(elements, path)
    if pa.types.is_map(data_type):
        # Through its values as a list: a slice's `items` are those of the whole array.
        values = pa.ListArray.from_arrays(array.offsets, array.items).flatten()
        return _null_element(values, f"{path}.value")
    if pa.types.is_struct(data_type):
        for field, child in zip(data_type, array.flatten(), strict=True):
            below = _null_element(child, f"{path}.{field.name}")
            if below is not None:
                return below
    return None
