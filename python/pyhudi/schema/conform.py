"""What a caller hands over, as an Arrow table that fits the table's schema exactly.

Columns are matched by name and cast only where no value can change; anything else is refused with
the name of the column. Keys are not made here.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.config.merge_mode import DELETE_FIELD, MergeConfig
from pyhudi.config.meta_columns import IS_DELETED, META_COLUMNS
from pyhudi.errors import SchemaMismatch, UnsupportedTableFeature
from pyhudi.schema.exact_casts import cast_exactly
from pyhudi.schema.input_data import read_batches
from pyhudi.schema.null_elements import check_elements
from pyhudi.schema.predicate_literals import is_text
from pyhudi.schema.vectors import check_vector, is_vector


def read_table(data: Any, like: pa.Schema | None = None, *, uneven: bool = False) -> pa.Table:
    """All rows of what `read_batches` takes. Raises as it does."""
    schema, batches = read_batches(data, like, uneven=uneven)
    return pa.Table.from_batches(batches, schema)


def data_schema(schema: pa.Schema) -> pa.Schema:
    """A table's schema without the meta columns."""
    return pa.schema([field for field in schema if field.name not in META_COLUMNS])


def conform(
    rows: pa.Table,
    schema: pa.Schema,
    *,
    stored: Collection[str] = (),
    null_elements: bool = False,
) -> pa.Table:
    """The rows with exactly the schema's columns, in its order and types.

    schema: the table's schema without meta columns. Meta columns among the rows are dropped.
    stored: columns with values as the table has them already. null_elements: new lists may have
    some. Raises `SchemaMismatch` for an unknown, missing or repeated column, a type that cannot be
    cast without loss, a null in a required column, or a new list with a null element.
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
    given = [name for name in rows.column_names if name not in META_COLUMNS]
    # Arrow makes the list of names anew whenever it is asked for.
    known = dict.fromkeys(schema.names)
    unknown = [name for name in given if name not in known]
    if unknown:
        msg = f"the table has no column {_names(unknown)}"
        raise SchemaMismatch(msg, hint=f"Its columns are {_names(schema.names)}.")
    lacking = known.keys() - given
    missing = [name for name in known if name in lacking]
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


def find_delete_markers(
    rows: pa.Table, delete_field: str | None, marker: str | None
) -> pa.Array[Any]:
    """For each row whether it says of itself that it is a delete; never null.

    `_hoodie_is_deleted` being true says so in every table, `delete_field` having the marker's text
    in tables that name one.
    """
    deleted = pa.chunked_array([pa.repeat(pa.scalar(False), rows.num_rows)])  # noqa: FBT003
    if IS_DELETED in rows.column_names:
        said = pc.equal(rows.column(IS_DELETED), pa.scalar(True))  # noqa: FBT003
        deleted = pc.or_(deleted, pc.fill_null(said, False))  # noqa: FBT003
    if delete_field is not None and marker is not None and delete_field in rows.column_names:
        said = pc.equal(_as_java_prints(rows.column(delete_field), delete_field), marker)
        deleted = pc.or_(deleted, pc.fill_null(said, False))  # noqa: FBT003
    return deleted.combine_chunks()


def with_marker(rows: pa.Table, merge: MergeConfig) -> pa.Table:
    """The rows with delete markers as readers know them, who compare exactly."""
    field, marker = merge.delete_field, merge.delete_marker
    if not merge.marked_in_any_case or field not in rows.column_names:
        return rows
    given = rows.column(field)
    if not is_text(given.type):
        return rows
    marks = pc.equal(pc.utf8_lower(given), str(marker).lower())
    spelled = pc.if_else(pc.fill_null(marks, False), pa.scalar(marker, given.type), given)  # noqa: FBT003
    return rows.set_column(rows.column_names.index(field), rows.schema.field(field), spelled)


def _as_java_prints(column: pa.ChunkedArray[Any], name: str) -> pa.ChunkedArray[Any]:
    """The column as text, as readers compare it with a marker."""
    if not pa.types.is_floating(column.type):
        return column.cast(pa.string())
    texts = [_native.shown_text(chunk, name) for chunk in column.chunks]
    return pa.chunked_array(texts, pa.string())


def check_has_delete_field(schema: pa.Schema, delete_field: str | None) -> None:
    """Refuses delete markers in what is no column: a field of a struct, or one that is not there.

    Hudi finds the first, and fails on the second (`FileGroupReaderSchemaHandler`, 1.2.0). Raises
    `UnsupportedTableFeature`.
    """
    if delete_field is not None and delete_field not in schema.names:
        raise UnsupportedTableFeature(
            f"{DELETE_FIELD} is {delete_field}, which is not a column of the table: pyhudi cannot "
            "tell which rows are deletes",
        )


def check_delete_field(schema: pa.Schema, delete_field: str | None) -> None:
    """Refuses a column of delete markers whose text is not the same with every engine of Hudi.

    Dates, times, decimals and bytes are compared as an engine has them in memory
    (`RecordContext.isCustomDeleteRecord`, 1.2.0). Raises `UnsupportedTableFeature`, also as
    `check_has_delete_field` does.
    """
    check_has_delete_field(schema, delete_field)
    if delete_field is None:
        return
    kind = schema.field(delete_field).type
    printed = (is_text, pa.types.is_integer, pa.types.is_boolean, pa.types.is_floating)
    if not any(test(kind) for test in printed):
        msg = (
            f"{DELETE_FIELD} is {delete_field} of type {kind}: engines disagree on the "
            "delete marker of such a column"
        )
        raise UnsupportedTableFeature(msg, hint="Write to this table with Apache Hudi.")
