"""Reads the rows that a caller passes, in any supported form, as Arrow batches of plain types.

`decode_encodings.py` removes encodings that no file of a table has. `conform.py` checks later that
the rows match the table's schema. An error of the library that produces the rows becomes one of
pyhudi's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Any

import pyarrow as pa

from pyhudi.config.formatting import type_text
from pyhudi.errors import ConfigError, HudiError, SchemaMismatch
from pyhudi.input.decode_encodings import plain_batch, plain_schema
from pyhudi.input.lazy_rows import LazyRows
from pyhudi.input.python_objects import (
    holds_objects,
    object_column,
    table_from_columns,
    table_from_dicts,
)

_HINT = (
    "Pass an Arrow table, stream or dataset, record batches in a list or an iterator, a pandas or "
    "polars data frame, a polars LazyFrame, a DuckDB relation, a list of dicts or a dict of lists."
)


def read_batches(
    data: Any, table_schema: pa.Schema | None = None, *, allow_missing_keys: bool = False
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the schema and the batches of Arrow data, data frames or Python objects.

    Accepts anything with `__arrow_c_stream__` or `__arrow_c_array__`, pyarrow's datasets and
    scanners, batches in a list or an iterator, a list of dicts and a dict of lists.

    table_schema: the table's columns. Python objects get their types, as do pandas columns of
    objects, and pandas columns without a value. allow_missing_keys: dicts may have different keys.

    Raises `ConfigError` for other input, and if the library that produces the rows fails, also
    while they are read; `SchemaMismatch` for a repeated column, an unknown extension type, and a
    value that does not fit, is not UTF-8 or has more digits than its type;
    `UnsupportedTableFeature` for types nested too deeply.
    """
    if isinstance(data, (list, tuple, Mapping)):
        data = _objects_table(data, table_schema, allow_missing_keys=allow_missing_keys)
    elif _is_frame(data, "pandas"):
        data = _pandas_table(data, table_schema)
    schema, batches = _open_stream(data)
    plain = plain_schema(schema)
    read = _read(batches)
    if plain != schema:
        read = (plain_batch(batch, plain) for batch in read)
    return plain, map(_with_checked_values, read)


def is_read_once(data: Any) -> bool:
    """Return whether data can be read only once, such as a stream."""
    if isinstance(data, (LazyRows, pa.Table, pa.RecordBatch)):
        return False
    if _is_frame(data, "pandas") or _is_frame(data, "polars"):
        return False
    if isinstance(data, (pa.RecordBatchReader, Iterator)) or _is_dataset_class(data, "Scanner"):
        return True
    return hasattr(data, "__arrow_c_stream__")


def _open_stream(data: Any) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    if isinstance(data, LazyRows):
        # As a C stream its errors would lose their type.
        data = data.to_reader()
    if isinstance(data, pa.Table):
        return data.schema, iter(data.to_batches())
    if isinstance(data, pa.RecordBatch):
        return data.schema, iter([data])
    if isinstance(data, pa.RecordBatchReader):
        return data.schema, iter(data)
    if _is_frame(data, "polars"):
        _check_no_objects(data)
    if _is_frame(data, "polars", "LazyFrame"):
        return _stream_of_lazy_frame(data)
    if isinstance(data, Iterator):
        return _stream_of_batches(data)
    what = f"cannot read rows from {type_text(type(data))}"
    if hasattr(data, "__arrow_c_stream__"):
        with _wrap_errors(what, _HINT):
            reader = pa.RecordBatchReader.from_stream(data)
        return reader.schema, iter(reader)
    if hasattr(data, "__arrow_c_array__"):
        with _wrap_errors(what, _HINT):
            return _open_stream(pa.record_batch(data))
    if _is_dataset_class(data, "Dataset"):
        data = data.scanner()
    if _is_dataset_class(data, "Scanner"):
        with _wrap_errors(what, _HINT):
            return _open_stream(data.to_reader())
    raise ConfigError(what, hint=_HINT)


def _is_frame(data: Any, library: str, name: str = "DataFrame") -> bool:
    frame_type = type(data)
    return frame_type.__module__.split(".")[0] == library and frame_type.__name__ == name


def _is_dataset_class(data: Any, name: str) -> bool:
    """Return whether data are of a class of `pyarrow.dataset`, without the slow import."""
    return any(
        base.__module__ == "pyarrow._dataset" and base.__name__ == name
        for base in type(data).__mro__
    )


def _objects_table(data: Any, table_schema: pa.Schema | None, *, allow_missing_keys: bool) -> Any:
    if isinstance(data, Mapping):
        return table_from_columns(data, table_schema)
    if data and isinstance(data[0], (pa.RecordBatch, pa.Table)):
        return iter(data)
    return table_from_dicts(data, table_schema, allow_missing_keys=allow_missing_keys)


def _stream_of_batches(data: Iterator[Any]) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return record batches or tables of one schema, read one by one."""
    parts = _read(data)
    first = _check_batch(next(parts, None), None)
    schema = first.schema

    def batches() -> Iterator[pa.RecordBatch]:
        for part in chain([first], (_check_batch(batch, schema) for batch in parts)):
            yield from part.to_batches() if isinstance(part, pa.Table) else [part]

    return schema, batches()


def _check_batch(batch: Any, schema: pa.Schema | None) -> pa.RecordBatch | pa.Table:
    if batch is None:
        raise ConfigError("the iterator returned no batch, so there is no schema", hint=_HINT)
    if not isinstance(batch, (pa.RecordBatch, pa.Table)):
        msg = f"cannot read rows from {type_text(type(batch))} that an iterator returned"
        raise ConfigError(msg, hint=_HINT)
    if schema is not None and not batch.schema.equals(schema):
        columns, first = _describe_schema(batch.schema), _describe_schema(schema)
        raise SchemaMismatch(f"a batch has the columns {columns}, the first had {first}")
    return batch


def _describe_schema(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _with_checked_values(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Check strings and decimals, which nothing else checks before they are in a file."""
    for column, name in zip(batch.columns, batch.schema.names, strict=True):
        if _may_be_invalid(column.type):
            try:
                column.validate(full=True)
            except pa.ArrowInvalid as error:
                msg = f"column {name!r} has no valid {column.type}: {error}"
                hint = "Strings must be UTF-8; use binary for bytes."
                raise SchemaMismatch(msg, hint=hint) from error
    return batch


def _may_be_invalid(data_type: pa.DataType) -> bool:
    """Return whether bytes of a value may be invalid for the type, which Arrow does not check."""
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_decimal)
    if any(test(data_type) for test in tests):
        return True
    return any(_may_be_invalid(data_type.field(at).type) for at in range(data_type.num_fields))


def _stream_of_lazy_frame(frame: Any) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Run a polars query with the streaming engine, if this release returns its batches."""
    with _wrap_errors("the polars query fails"):
        _check_no_objects(frame)
        schema = pa.RecordBatchReader.from_stream(frame.clear().collect()).schema
        frames = frame.collect_batches() if hasattr(frame, "collect_batches") else None

    def batches() -> Iterator[pa.RecordBatch]:
        for part in [frame.collect()] if frames is None else frames:
            yield from pa.RecordBatchReader.from_stream(part)

    return schema, batches()


def _check_no_objects(data: Any) -> None:
    """Refuse Python objects in polars frames: polars exports their addresses without a warning."""
    for name, data_type in data.collect_schema().items():
        if str(data_type) == "Object":
            msg = f"column {name!r} holds Python objects"
            raise SchemaMismatch(msg, hint="Convert it to an Arrow type.")


@contextmanager
def _wrap_errors(what: str, hint: str = "") -> Iterator[None]:
    """Raise errors of other libraries as pyhudi's, with what pyhudi was doing."""
    try:
        yield
    except HudiError:
        raise
    except Exception as error:
        raise ConfigError(f"{what}: {_first_line(error)}", hint=hint) from error


def _first_line(error: BaseException) -> str:
    """Return an error's text without the stack trace that Arrow's streams add."""
    messages = [str(part) for part in error.args if isinstance(part, str)] or [str(error)]
    line = "; ".join(messages).split("Traceback (most recent call last)", 1)[0]
    line = line.removesuffix("Detail: Python exception: ").strip().split("\n", 1)[0]
    return f"{type(error).__name__}: {line}"


def _read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    while True:
        with _wrap_errors("the input rows cannot be read"):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


# --- pandas ---------------------------------------------------------------------------------------


def _pandas_table(frame: Any, table_schema: pa.Schema | None) -> pa.Table:
    """Return the columns of a pandas data frame, with named index levels among them.

    Columns of Python objects go through the checks of `python_objects.py`: pyarrow alone would
    truncate times to the type that it infers for all of them.

    table_schema: the table's columns; a column without values has no type of its own and gets the
    table's. Raises `SchemaMismatch` for a repeated name, and for a column or value that cannot be
    converted to Arrow.
    """
    rows = _pandas_columns(_with_levels(frame), table_schema)
    if table_schema is None:
        return rows
    if not rows.num_columns and not len(frame):
        return table_schema.empty_table()
    return _without_empty_types(rows, frozenset(table_schema.names))


def _with_levels(frame: Any) -> Any:
    levels = [name for name in frame.index.names if name is not None]
    repeated = [name for name in levels if name in frame.columns]
    if repeated:
        msg = f"the data frame has {repeated[0]!r} as a column and as a level of its index"
        raise SchemaMismatch(msg, hint="Leave the level out: frame.reset_index(drop=True).")
    frame = frame.reset_index(level=levels) if levels else frame
    if not frame.columns.is_unique:
        name = frame.columns[frame.columns.duplicated()][0]
        msg = f"the data frame has more than one column {name!r}"
        raise SchemaMismatch(msg, hint="Give each column a name of its own.")
    return frame


def _pandas_columns(frame: Any, table_schema: pa.Schema | None) -> pa.Table:
    hold_objects = [holds_objects(dtype) for dtype in frame.dtypes]
    if not any(hold_objects):
        return _to_arrow(frame)
    typed = iter(_to_arrow(frame.loc[:, [not are for are in hold_objects]]).columns)
    names = _to_arrow(frame.iloc[:0]).column_names
    columns = [
        object_column(frame.iloc[:, at], name, table_schema) if hold_objects[at] else next(typed)
        for at, name in enumerate(names)
    ]
    return pa.Table.from_arrays(columns, names)


def _to_arrow(frame: Any) -> pa.Table:
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        msg = f"the data frame cannot be converted to Arrow: {type(error).__name__}: {error}"
        raise SchemaMismatch(msg, hint="Give each column one Arrow type.") from error


def _without_empty_types(rows: pa.Table, table_columns: frozenset[str]) -> pa.Table:
    """Remove the type that pandas gave to table columns without values."""
    for at, field in enumerate(rows.schema):
        column = rows.column(at)
        if field.name in table_columns and column.null_count == len(column):
            rows = rows.set_column(at, field.name, pa.nulls(len(column)))
    return rows
