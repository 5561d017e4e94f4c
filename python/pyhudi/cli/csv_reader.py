"""Rows of a CSV file, read as a stream."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.cli.text_parsing import check_no_bytes, floats
from pyhudi.errors import ConfigError

_OTHER_DELIMITERS = ";\t|"
"""What parts values in files of others, and is in no name of a column."""
_LONGEST_HEADER = 1 << 20
"""Of a longer one the reader says what is wrong."""
_PADDED = r"^\s*[+-]?0[0-9]"


def csv_rows(
    path: Path, wanted: pa.Schema | None, delimiter: str = ","
) -> tuple[pa.Schema, Callable[[], pa.RecordBatchReader]]:
    """The columns, and what opens a stream of the rows.

    delimiter: the character of ASCII between two values.

    Nothing between two of them is null, `""` is the empty text; in a file of one column an empty
    line is null. Columns that the table has are read with its types, others with those that the
    values tell; numbers of which one is padded with zeros are text. Raises `ConfigError` for a file
    whose values something else parts, that is not UTF-8, or has no rows to tell types.
    """
    import pyarrow.dataset as ds  # noqa: PLC0415 - not for commands that read no file

    _check_header(path, delimiter)
    form = _form(delimiter, one_column=False)
    found = ds.dataset(str(path), format=form).schema
    if len(found) == 1:
        form = _form(delimiter, one_column=True)
    known = wanted.names if wanted is not None else ()
    _check_told(path, found, known, lambda: ds.dataset(str(path), format=form))
    numbers = [each.name for each in found if _is_number(each.type) and each.name not in known]
    kinds = _kinds(found, wanted, _zero_padded_columns(path, form, found, numbers))
    as_text = [
        column.with_type(pa.string()) if pa.types.is_floating(column.type) else column
        for column in kinds
    ]
    rows = ds.dataset(str(path), format=form, schema=pa.schema(as_text))

    def open_reader() -> pa.RecordBatchReader:
        batches = _cast_batches(_read(path, rows.scanner().to_reader()), kinds)
        return pa.RecordBatchReader.from_batches(kinds, batches)

    return kinds, open_reader


def _check_header(path: Path, delimiter: str) -> None:
    # As the reader opens it, which unpacks files by the ends of their names.
    with pa.input_stream(str(path)) as file:
        header, _, rest = file.read(_LONGEST_HEADER).partition(b"\n")
    if not rest and len(header) == _LONGEST_HEADER:
        return
    try:
        names = header.decode()
    except UnicodeDecodeError as error:
        raise _not_utf_8(path) from error
    found = next((each for each in _OTHER_DELIMITERS if each in names), None)
    if found is not None and delimiter not in names:
        msg = f"{path} has one column, {names.strip()!r}"
        raise ConfigError(msg, hint=f"Name the delimiter: --delimiter {found!r}.")


def _check_told(
    path: Path, found: pa.Schema, known: Collection[str], rows: Callable[[], Any]
) -> None:
    told = [each.type for each in found if each.name not in known]
    if any(map(pa.types.is_binary, told)):
        raise _not_utf_8(path)
    if told and all(map(pa.types.is_null, told)) and not rows().head(1).num_rows:
        msg = f"{path} has no rows, so its columns have no types"
        raise ConfigError(msg, hint="pyhudi create --schema makes a table without rows.")


def _read(path: Path, batches: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    try:
        yield from batches
    except pa.ArrowInvalid as error:
        if "UTF8" in str(error):
            raise _not_utf_8(path) from error
        raise


def _not_utf_8(path: Path) -> ConfigError:
    hint = f"Convert it, as by iconv -f latin1 -t utf-8 {path}."
    return ConfigError(f"{path} is not UTF-8 text", hint=hint)


def _form(delimiter: str, *, one_column: bool) -> Any:
    import pyarrow.dataset as ds  # noqa: PLC0415 - as above
    from pyarrow import csv  # noqa: PLC0415 - as above

    convert = csv.ConvertOptions(
        null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    # Without the first, rows with line breaks in texts are cut in two where a block of them ends.
    parse = csv.ParseOptions(
        delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=not one_column
    )
    return ds.CsvFileFormat(
        parse_options=parse, default_fragment_scan_options=ds.CsvFragmentScanOptions(convert)
    )


def _zero_padded_columns(
    path: Path, form: Any, found: pa.Schema, numbers: Collection[str]
) -> set[str]:
    """Columns with a number that begins with a zero too many: a code, such as one of a place."""
    import pyarrow.dataset as ds  # noqa: PLC0415 - as above

    padded: set[str] = set()
    if not numbers:
        return padded
    as_text = [each.with_type(pa.string()) if each.name in numbers else each for each in found]
    rows = ds.dataset(str(path), format=form, schema=pa.schema(as_text))
    for batch in rows.scanner(columns=list(numbers)).to_reader():
        padded |= {
            name
            for name in numbers
            if name not in padded
            and pc.any(pc.match_substring_regex(batch.column(name), _PADDED)).as_py()
        }
    return padded


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _kinds(found: pa.Schema, wanted: pa.Schema | None, texts: Collection[str]) -> pa.Schema:
    found = pa.schema(
        [each.with_type(pa.string()) if each.name in texts else each for each in found]
    )
    if wanted is not None:
        known = set(wanted.names)
        found = pa.schema(
            [wanted.field(each.name) if each.name in known else each for each in found]
        )
    for column in found:
        check_no_bytes(column.type, column.name)
    return pa.schema([column.with_nullable(True) for column in found])


def _cast_batches(batches: Iterator[pa.RecordBatch], kinds: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        columns = [
            floats(pa.chunked_array([column]), field).combine_chunks()
            if pa.types.is_floating(field.type)
            else column
            for column, field in zip(batch.columns, kinds, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=kinds)
