"""Rows of a CSV file, read as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from pyhudi.cli.text_values import check_no_bytes, floats


def csv_rows(
    path: Path, wanted: pa.Schema | None
) -> tuple[pa.Schema, Callable[[], pa.RecordBatchReader]]:
    """The columns, and what opens a stream of the rows.

    Nothing between two commas is null, `""` is the empty text; in a file of one column an empty
    line is null. Columns that the table has are read with its types.
    """
    import pyarrow.dataset as ds  # noqa: PLC0415 - not for commands that read no file

    form = _form(one_column=False)
    found = ds.dataset(str(path), format=form).schema
    if len(found) == 1:
        form = _form(one_column=True)
    kinds = _kinds(found, wanted)
    as_text = [
        column.with_type(pa.string()) if pa.types.is_floating(column.type) else column
        for column in kinds
    ]
    rows = ds.dataset(str(path), format=form, schema=pa.schema(as_text))

    def opened() -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(kinds, _typed(rows.scanner().to_reader(), kinds))

    return kinds, opened


def _form(*, one_column: bool) -> Any:
    import pyarrow.dataset as ds  # noqa: PLC0415 - as above
    from pyarrow import csv  # noqa: PLC0415 - as above

    convert = csv.ConvertOptions(
        null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    # Without the first, rows with line breaks in texts are cut in two where a block of them ends.
    parse = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=not one_column)
    return ds.CsvFileFormat(
        parse_options=parse, default_fragment_scan_options=ds.CsvFragmentScanOptions(convert)
    )


def _kinds(found: pa.Schema, wanted: pa.Schema | None) -> pa.Schema:
    if wanted is not None:
        known = set(wanted.names)
        found = pa.schema(
            [wanted.field(each.name) if each.name in known else each for each in found]
        )
    for column in found:
        check_no_bytes(column.type, column.name)
    return pa.schema([column.with_nullable(True) for column in found])


def _typed(batches: pa.RecordBatchReader, kinds: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        columns = [
            floats(pa.chunked_array([column]), field).combine_chunks()
            if pa.types.is_floating(field.type)
            else column
            for column, field in zip(batch.columns, kinds, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=kinds)
