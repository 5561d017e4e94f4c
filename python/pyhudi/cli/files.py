"""Files of rows: Parquet, CSV, JSON lines and Arrow, read and written as streams."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from pyhudi.cli.arguments import Format
from pyhudi.cli.json_text import flat, json_lines
from pyhudi.errors import ConfigError

_NAMES = {Format.parquet: "parquet", Format.arrow: "ipc"}


class FileRows:
    """The rows of one file, as anything that takes Arrow streams takes them; read anew each time.

    Text files know few types: columns that the table has are read with its types. Raises
    `ConfigError` for those of bytes, which text files cannot tell from text, and for a pipe. JSON
    files are read into memory, since any line may have a field that those before lack.
    """

    def __init__(self, path: Path, form: Format, wanted: pa.Schema | None = None) -> None:
        import pyarrow.dataset as ds  # noqa: PLC0415 - not for commands that read no file

        if not path.is_file():
            msg = f"{path} is no regular file, and rows are read more than once"
            raise ConfigError(msg, hint="Save them in a file first.")
        if form is Format.json:
            self._rows = ds.dataset(_json_rows(path, wanted))
        elif form is Format.csv:
            self._rows = _csv_rows(path, wanted)
        else:
            self._rows = ds.dataset(str(path), format=_NAMES[form])

    @property
    def schema(self) -> pa.Schema:
        """The columns, without what a file's writer noted beside them."""
        return self._rows.schema.remove_metadata()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The Arrow PyCapsule stream of the rows."""
        return self._rows.scanner().to_reader().__arrow_c_stream__(requested_schema)


def _csv_rows(path: Path, wanted: pa.Schema | None) -> Any:
    """A data set. Nothing between two commas is null, `""` is the empty text."""
    import pyarrow.dataset as ds  # noqa: PLC0415 - as above
    from pyarrow import csv  # noqa: PLC0415 - as above

    convert = csv.ConvertOptions(
        null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    form = ds.CsvFileFormat(default_fragment_scan_options=ds.CsvFragmentScanOptions(convert))
    found = ds.dataset(str(path), format=form)
    if wanted is None:
        return found
    return ds.dataset(str(path), format=form, schema=_typed(found.schema, wanted))


def _json_rows(path: Path, wanted: pa.Schema | None) -> pa.Table:
    """All rows. A file without rows has no columns, so those that are wanted stand in."""
    from pyarrow import json  # noqa: PLC0415 - as above

    found = json.read_json(str(path)) if path.stat().st_size else pa.table({})
    if found.num_rows == 0:
        if wanted is None:
            msg = f"{path} has no rows, which would tell what columns they have"
            raise ConfigError(msg, hint="Make the table with --schema first.")
        return wanted.empty_table()
    if wanted is None:
        return found
    typed = _typed(found.schema, wanted)
    options = json.ParseOptions(explicit_schema=_as_read(typed))
    return json.read_json(str(path), parse_options=options).select(typed.names).cast(typed)


def _typed(columns: pa.Schema, wanted: pa.Schema) -> pa.Schema:
    """A text file's columns with the types of the table's columns of the same names."""
    typed = [
        wanted.field(column.name) if column.name in wanted.names else column for column in columns
    ]
    for column in typed:
        if pa.types.is_binary(column.type):
            msg = f"column {column.name!r} is of bytes, which a text file cannot have"
            raise ConfigError(msg, hint="Give a Parquet or an Arrow file.")
    return pa.schema([column.with_nullable(True) for column in typed])


def _as_read(columns: pa.Schema) -> pa.Schema:
    """How JSON is read first: pyarrow takes dates and times in it for numbers."""
    return pa.schema(
        [
            column.with_type(pa.string())
            if pa.types.is_date(column.type) or pa.types.is_time(column.type)
            else column
            for column in columns
        ]
    )


@contextmanager
def written(
    path: Path, form: Format, schema: pa.Schema
) -> Iterator[Callable[[pa.RecordBatch], Any]]:
    """A file in the making: gives what writes a batch. It is there when the block has ended well.

    `-` is standard output.
    """
    if str(path) == "-":
        with ExitStack() as held:
            yield _writer(sys.stdout.buffer, form, schema, held)
            held.close()
            sys.stdout.flush()
        return
    part = path.with_name(f".{path.name}.part")
    try:
        with ExitStack() as held:
            yield _writer(held.enter_context(part.open("wb")), form, schema, held)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _writer(
    sink: Any, form: Format, schema: pa.Schema, held: ExitStack
) -> Callable[[pa.RecordBatch], Any]:
    write: Callable[[pa.RecordBatch], Any]
    if form is Format.parquet:
        import pyarrow.parquet as pq  # noqa: PLC0415 - as above

        write = held.enter_context(pq.ParquetWriter(sink, schema)).write_batch
    elif form is Format.arrow:
        write = held.enter_context(pa.ipc.new_file(sink, schema)).write_batch
    elif form is Format.csv:
        from pyarrow import csv  # noqa: PLC0415 - as above

        columns = pa.schema(
            [(column.name, flat(pa.array([], column.type)).type) for column in schema]
        )
        lines = held.enter_context(csv.CSVWriter(sink, columns))

        def write(batch: pa.RecordBatch) -> None:
            values = [flat(column) for column in batch.columns]
            lines.write_batch(pa.RecordBatch.from_arrays(values, schema=columns))
    else:

        def write(batch: pa.RecordBatch) -> None:
            if batch.num_rows:
                sink.write(json_lines(batch).encode())

    return write
