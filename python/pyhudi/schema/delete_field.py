"""The delete markers of rows: `_hoodie_is_deleted`, and the delete field of a table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.config.merge_mode import DELETE_FIELD, MergeConfig
from pyhudi.config.meta_columns import IS_DELETED
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.input.type_tests import is_text


def find_delete_markers(
    rows: pa.Table, delete_field: str | None, marker: str | None
) -> pa.Array[Any]:
    """Return for each row whether it is a delete; never null.

    A row is a delete if `_hoodie_is_deleted` is true, in every table, or if `delete_field` has the
    marker, in tables that name one.
    """
    deleted = pa.chunked_array([pa.repeat(pa.scalar(False), rows.num_rows)])  # noqa: FBT003
    if IS_DELETED in rows.column_names:
        matches = pc.equal(rows.column(IS_DELETED), pa.scalar(True))  # noqa: FBT003
        deleted = pc.or_(deleted, pc.fill_null(matches, False))  # noqa: FBT003
    if delete_field is not None and marker is not None and delete_field in rows.column_names:
        matches = pc.equal(_as_java_prints(rows.column(delete_field), delete_field), marker)
        deleted = pc.or_(deleted, pc.fill_null(matches, False))  # noqa: FBT003
    return deleted.combine_chunks()


def with_marker(rows: pa.Table, merge: MergeConfig) -> pa.Table:
    """Return the rows with delete markers in the exact case that readers compare."""
    field, marker = merge.delete_field, merge.delete_marker
    if not merge.marked_in_any_case or field not in rows.column_names:
        return rows
    column = rows.column(field)
    if not is_text(column.type):
        return rows
    marks = pc.equal(pc.utf8_lower(column), str(marker).lower())
    marked = pc.if_else(pc.fill_null(marks, False), pa.scalar(marker, column.type), column)  # noqa: FBT003
    return rows.set_column(rows.column_names.index(field), rows.schema.field(field), marked)


def _as_java_prints(column: pa.ChunkedArray[Any], name: str) -> pa.ChunkedArray[Any]:
    """Return the column as strings, as readers compare it with a marker."""
    if not pa.types.is_floating(column.type):
        return column.cast(pa.string())
    strings = [_native.shown_text(chunk, name) for chunk in column.chunks]
    return pa.chunked_array(strings, pa.string())


def check_has_delete_field(schema: pa.Schema, delete_field: str | None) -> None:
    """Refuse a delete field that is not a column: a field of a struct, or one that does not exist.

    Hudi finds the first, and fails on the second (`FileGroupReaderSchemaHandler`, 1.2.0). Raises
    `UnsupportedTableFeature`.
    """
    if delete_field is not None and delete_field not in schema.names:
        raise UnsupportedTableFeature(
            f"{DELETE_FIELD} is {delete_field}, which is not a column of the table: pyhudi cannot "
            "tell which rows are deletes",
            hint="Set the property to the name of a column that is not inside a struct.",
        )


def check_delete_field(schema: pa.Schema, delete_field: str | None) -> None:
    """Refuse a delete field whose strings differ between Hudi's engines.

    Dates, times, decimals and bytes are compared in the form that an engine has in memory
    (`RecordContext.isCustomDeleteRecord`, 1.2.0). Raises `UnsupportedTableFeature`, also as
    `check_has_delete_field` does.
    """
    check_has_delete_field(schema, delete_field)
    if delete_field is None:
        return
    data_type = schema.field(delete_field).type
    printed = (is_text, pa.types.is_integer, pa.types.is_boolean, pa.types.is_floating)
    if not any(test(data_type) for test in printed):
        msg = (
            f"{DELETE_FIELD} is {delete_field} of type {data_type}: engines disagree on the "
            "delete marker of such a column"
        )
        raise UnsupportedTableFeature(msg, hint="Write to this table with Apache Hudi.")
