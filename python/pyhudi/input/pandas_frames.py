"""Data frames of pandas as Arrow tables.

pyarrow converts columns of pandas types. Columns of Python objects go through the checks of
`python_objects.py`: pyarrow alone would truncate times to the type that it infers for all of them.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pyhudi.errors import SchemaMismatch
from pyhudi.input.python_objects import is_of_objects, of_objects


def of_pandas(frame: Any, like: pa.Schema | None) -> pa.Table:
    """Return the columns, with named index levels among them.

    like: the table's columns; a column without values has no type of its own and gets the table's.
    Raises `SchemaMismatch` for a repeated name, and for a column or value that cannot be converted
    to Arrow.
    """
    rows = _table(_with_levels(frame), like)
    if like is None:
        return rows
    if not rows.num_columns and not len(frame):
        return like.empty_table()
    return _without_empty_types(rows, frozenset(like.names))


def _with_levels(frame: Any) -> Any:
    levels = [name for name in frame.index.names if name is not None]
    twice = [name for name in levels if name in frame.columns]
    if twice:
        msg = f"the data frame has {twice[0]!r} as a column and as a level of its index"
        raise SchemaMismatch(msg, hint="Leave the level out: frame.reset_index(drop=True).")
    frame = frame.reset_index(level=levels) if levels else frame
    if not frame.columns.is_unique:
        name = frame.columns[frame.columns.duplicated()][0]
        msg = f"the data frame has more than one column {name!r}"
        raise SchemaMismatch(msg, hint="Give each column a name of its own.")
    return frame


def _table(frame: Any, like: pa.Schema | None) -> pa.Table:
    are_objects = [is_of_objects(kind) for kind in frame.dtypes]
    if not any(are_objects):
        return _to_arrow(frame)
    typed = iter(_to_arrow(frame.loc[:, [not are for are in are_objects]]).columns)
    names = _to_arrow(frame.iloc[:0]).column_names
    columns = [
        of_objects(frame.iloc[:, at], name, like) if are_objects[at] else next(typed)
        for at, name in enumerate(names)
    ]
    return pa.Table.from_arrays(columns, names)


def _to_arrow(frame: Any) -> pa.Table:
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        msg = f"the data frame cannot be converted to Arrow: {type(error).__name__}: {error}"
        raise SchemaMismatch(msg, hint="Give each column one Arrow type.") from error


def _without_empty_types(rows: pa.Table, known: frozenset[str]) -> pa.Table:
    """Remove the type that pandas gave to table columns without values."""
    for at, field in enumerate(rows.schema):
        column = rows.column(at)
        if field.name in known and column.null_count == len(column):
            rows = rows.set_column(at, field.name, pa.nulls(len(column)))
    return rows
