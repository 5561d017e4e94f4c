"""Reads the rows of a CSV file as a stream."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError
from pyhudi.input.text_parsing import check_no_bytes, floats

_OTHER_DELIMITERS = ";\t|"
"""Delimiters of other CSV dialects, which column names do not contain."""
_MAX_HEADER = 1 << 20
"""Maximum header length that is checked here; pyarrow reports errors in longer ones."""
_PADDED = r"^\s*[+-]?0[0-9]"


def csv_rows(
    path: Path, table_schema: pa.Schema | None, delimiter: str = ","
) -> tuple[pa.Schema, Callable[[], pa.RecordBatchReader]]:
    """Return the columns, and a function that opens a stream of the rows.

    An empty value is null, `""` is the empty string; in a file of one column an empty line is null.
    Columns of the table are read with its types, other columns with the inferred type; a numeric
    column with a zero-padded value is a string. Raises `ConfigError` for a file with another
    delimiter, that is not UTF-8, or that has no rows to infer types from.

    delimiter: the ASCII character between two values.
    """
    import pyarrow.dataset as ds  # noqa: PLC0415 - not for commands that read no file

    _check_header(path, delimiter)
    csv_format = _csv_format(delimiter, one_column=False)
    inferred = ds.dataset(str(path), format=csv_format).schema
    if len(inferred) == 1:
        csv_format = _csv_format(delimiter, one_column=True)
    table_columns = table_schema.names if table_schema is not None else ()
    _check_inferred_types(
        path, inferred, table_columns, lambda: ds.dataset(str(path), format=csv_format)
    )
    numbers = [
        column.name
        for column in inferred
        if _is_number(column.type) and column.name not in table_columns
    ]
    target = _column_types(
        inferred, table_schema, _zero_padded_columns(path, csv_format, inferred, numbers)
    )
    as_text = [
        column.with_type(pa.string()) if pa.types.is_floating(column.type) else column
        for column in target
    ]
    rows = ds.dataset(str(path), format=csv_format, schema=pa.schema(as_text))

    def open_reader() -> pa.RecordBatchReader:
        batches = _cast_batches(_read(path, rows.scanner().to_reader()), target)
        return pa.RecordBatchReader.from_batches(target, batches)

    return target, open_reader


def _check_header(path: Path, delimiter: str) -> None:
    # Opened as pyarrow's reader opens it, which decompresses files by their extension.
    with pa.input_stream(str(path)) as file:
        header, _, rest = file.read(_MAX_HEADER).partition(b"\n")
    if not rest and len(header) == _MAX_HEADER:
        return
    try:
        names = header.decode()
    except UnicodeDecodeError as error:
        raise not_utf_8_error(path) from error
    other_delimiter = next(
        (candidate for candidate in _OTHER_DELIMITERS if candidate in names), None
    )
    if other_delimiter is not None and delimiter not in names:
        msg = f"{path} has one column, {names.strip()!r}"
        raise ConfigError(msg, hint=f"Name the delimiter: --delimiter {other_delimiter!r}.")


def _check_inferred_types(
    path: Path, inferred: pa.Schema, table_columns: Collection[str], rows: Callable[[], Any]
) -> None:
    types = [column.type for column in inferred if column.name not in table_columns]
    if any(map(pa.types.is_binary, types)):
        raise not_utf_8_error(path)
    if types and all(map(pa.types.is_null, types)) and not rows().head(1).num_rows:
        msg = f"{path} has no rows, so its columns have no types"
        raise ConfigError(msg, hint="pyhudi create --schema creates a table without rows.")


def _read(path: Path, batches: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    try:
        yield from batches
    except pa.ArrowInvalid as error:
        if "UTF8" in str(error):
            raise not_utf_8_error(path) from error
        raise


def not_utf_8_error(path: str | Path) -> ConfigError:
    """Return the error of a text file in another encoding."""
    hint = f"Convert it, for example with iconv -f latin1 -t utf-8 {path}."
    return ConfigError(f"{path} is not UTF-8 text", hint=hint)


def _csv_format(delimiter: str, *, one_column: bool) -> Any:
    import pyarrow.dataset as ds  # noqa: PLC0415 - as above
    from pyarrow import csv  # noqa: PLC0415 - as above

    convert = csv.ConvertOptions(
        null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    # Without newlines_in_values, the reader splits rows with line breaks at block boundaries.
    parse = csv.ParseOptions(
        delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=not one_column
    )
    return ds.CsvFileFormat(
        parse_options=parse, default_fragment_scan_options=ds.CsvFragmentScanOptions(convert)
    )


def _zero_padded_columns(
    path: Path, csv_format: Any, inferred: pa.Schema, numbers: Collection[str]
) -> set[str]:
    """Return columns with a zero-padded number: a code, such as a postal code."""
    import pyarrow.dataset as ds  # noqa: PLC0415 - as above

    padded: set[str] = set()
    if not numbers:
        return padded
    as_text = [
        column.with_type(pa.string()) if column.name in numbers else column for column in inferred
    ]
    rows = ds.dataset(str(path), format=csv_format, schema=pa.schema(as_text))
    for batch in rows.scanner(columns=list(numbers)).to_reader():
        padded |= {
            name
            for name in numbers
            if name not in padded
            and pc.any(pc.match_substring_regex(batch.column(name), _PADDED)).as_py()
        }
    return padded


def _is_number(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(data_type) or pa.types.is_floating(data_type))


def _column_types(
    columns: pa.Schema, table_schema: pa.Schema | None, string_columns: Collection[str]
) -> pa.Schema:
    columns = pa.schema(
        [
            column.with_type(pa.string()) if column.name in string_columns else column
            for column in columns
        ]
    )
    if table_schema is not None:
        table_columns = set(table_schema.names)
        columns = pa.schema(
            [
                table_schema.field(column.name) if column.name in table_columns else column
                for column in columns
            ]
        )
    for column in columns:
        check_no_bytes(column.type, column.name)
    return pa.schema([column.with_nullable(True) for column in columns])


def _cast_batches(batches: Iterator[pa.RecordBatch], target: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        columns = [
            floats(pa.chunked_array([column]), field).combine_chunks()
            if pa.types.is_floating(field.type)
            else column
            for column, field in zip(batch.columns, target, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=target)
