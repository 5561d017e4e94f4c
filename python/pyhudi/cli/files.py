"""Parquet, CSV, JSON lines and Arrow files, read and written as streams of rows."""

from __future__ import annotations

import sys
from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from pyhudi.cli.arguments import Format, delimiter_of, format_of
from pyhudi.config.formatting import printable
from pyhudi.errors import ConfigError
from pyhudi.input.lazy_rows import LazyRows
from pyhudi.suggestions import did_you_mean

if TYPE_CHECKING:  # Help needs none of it.
    import pyarrow as pa

_NAMES = {Format.parquet: "parquet", Format.arrow: "ipc"}


class FileRows(LazyRows):
    """The rows of one file, read again each time.

    Text files have few types, so the table's columns are read with the table's types. Raises
    `ConfigError` for a pipe, and for bytes columns, which look like strings in text files.
    """

    def __init__(
        self,
        path: Path,
        file_format: Format,
        table_schema: pa.Schema | None = None,
        *,
        delimiter: str = ",",
    ) -> None:
        if not path.is_file():
            msg = f"{path} is not a regular file, and rows are read more than once"
            raise ConfigError(msg, hint="Save the rows in a file first.")
        self.schema: pa.Schema
        """The columns, without the metadata of the file's writer."""
        self._open: Callable[[], pa.RecordBatchReader]
        if file_format is Format.csv:
            if not path.stat().st_size:
                msg = f"{path} is empty"
                raise ConfigError(msg, hint="A CSV file begins with the names of its columns.")
            from pyhudi.input.csv_reader import csv_rows  # noqa: PLC0415 - help does not need it

            self.schema, self._open = csv_rows(path, table_schema, delimiter)
            return
        if file_format is Format.json:
            from pyhudi.input.json_reader import json_rows  # noqa: PLC0415 - help does not need it

            _check_lines(path)
            rows = json_rows(path, table_schema)
            self.schema, self._open = rows.schema, rows.to_reader
            return
        import pyarrow.dataset as ds  # noqa: PLC0415 - not for commands that read no file

        dataset = ds.dataset(str(path), format=_NAMES[file_format])
        self.schema = dataset.schema.remove_metadata()
        self._open = lambda: dataset.scanner().to_reader()

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream."""
        return self._open()


def rows_of(
    path: Path,
    requested: Format | None,
    delimiter: str | None,
    table_schema: pa.Schema | None = None,
) -> FileRows:
    """Return the rows of a file; the extension gives the format and the delimiter by default."""
    file_format = format_of(path, requested)
    return FileRows(
        path, file_format, table_schema, delimiter=delimiter_of(path, file_format, delimiter)
    )


class RenamedRows(LazyRows):
    """The rows of a file, with other names and without some columns."""

    def __init__(self, rows: FileRows, names: Mapping[str, str]) -> None:
        """names: the columns to keep, by their names in the file, with their new ones."""
        import pyarrow as pa  # noqa: PLC0415 - help does not need it

        self._rows, self._names = rows, names
        self.schema = pa.schema(
            [rows.schema.field(old).with_name(new) for old, new in names.items()]
        )

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream."""
        import pyarrow as pa  # noqa: PLC0415 - as above

        columns = list(self._names)
        batches = (
            pa.RecordBatch.from_arrays(batch.select(columns).columns, schema=self.schema)
            for batch in self._rows.to_reader()
        )
        return pa.RecordBatchReader.from_batches(self.schema, batches)


@dataclass(frozen=True)
class ColumnChanges:
    """Columns of a file that are renamed or left out."""

    renames: Mapping[str, str]
    """New names by those in the file."""
    drops: frozenset[str]

    def rows_of(
        self,
        path: Path,
        requested: Format | None,
        delimiter: str | None,
        table_schema: pa.Schema | None = None,
    ) -> FileRows | RenamedRows:
        """Return the rows of a file, as `rows_of`, with these changes.

        Raises `BadParameter` for a column that is not in the file, and for two columns of one name.
        """
        if not self.renames and not self.drops:
            return rows_of(path, requested, delimiter, table_schema)
        rows = rows_of(path, requested, delimiter, table_schema and self._in_file(table_schema))
        columns = rows.schema.names
        for name in (*self.renames, *sorted(self.drops)):
            if name not in columns:
                hint = did_you_mean(name, columns)
                raise typer.BadParameter(f"{path} has no column {name!r}. {hint}".strip())
        names = {name: self.renames.get(name, name) for name in columns if name not in self.drops}
        counts = Counter(names.values())
        if twice := next((name for name, count in counts.items() if count > 1), None):
            raise typer.BadParameter(f"two columns would have the name {twice!r}")
        return RenamedRows(rows, names)

    def _in_file(self, table_schema: pa.Schema) -> pa.Schema:
        """Return the table's columns by their names in the file, whose values get their types."""
        import pyarrow as pa  # noqa: PLC0415 - help does not need it

        old_names = {new: old for old, new in self.renames.items()}
        replaced = {*self.renames, *self.drops} - old_names.keys()
        return pa.schema(
            [
                field.with_name(old_names.get(field.name, field.name))
                for field in table_schema
                if field.name not in replaced
            ]
        )


def _check_lines(path: Path) -> None:
    """Raise `ConfigError` if the file is one array of all rows."""
    with path.open("rb") as file:
        begin = file.read(_FIRST_BYTES).lstrip(b"\xef\xbb\xbf \t\r\n")
    if begin.startswith(b"["):
        msg = f"{path} is one JSON array"
        raise ConfigError(msg, hint="Write one object per line, for example with jq -c '.[]'.")


_FIRST_BYTES = 1024


@contextmanager
def open_for_writing(
    path: Path, file_format: Format, schema: pa.Schema
) -> Iterator[Callable[[pa.RecordBatch], Any]]:
    """Yield a function that writes a batch. The file appears when the block ends without an error.

    `-` is standard output.
    """
    if str(path) == "-":
        sink: Any = sys.stdout.buffer
        if sys.stdout.isatty():
            if file_format in _NAMES:
                msg = f"{file_format.value} is binary, and standard output is a terminal"
                raise ConfigError(msg, hint="Name a file, or pipe the output to a command.")
            sink = _Terminal()
        with ExitStack() as stack:
            yield _writer(sink, file_format, schema, stack)
            stack.close()
            sys.stdout.flush()
        return
    part = path.with_name(f".{path.name}.part")
    try:
        with ExitStack() as stack:
            yield _writer(stack.enter_context(part.open("wb")), file_format, schema, stack)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


class _Terminal(RawIOBase):
    """Standard output that prints control characters of a CSV file in escaped form."""

    def __init__(self) -> None:
        self._decoder = getincrementaldecoder("utf-8")()

    def writable(self) -> bool:
        """Return true."""
        return True

    def write(self, data: Any, /) -> int:
        """Write all of the data."""
        text = self._decoder.decode(bytes(data))
        sys.stdout.write(printable(text.replace("\r\n", "\n")))
        return len(data)


def _writer(
    sink: Any, file_format: Format, schema: pa.Schema, stack: ExitStack
) -> Callable[[pa.RecordBatch], Any]:
    import pyarrow as pa  # noqa: PLC0415 - help does not need it

    from pyhudi.cli.json_writer import flat, json_lines  # noqa: PLC0415 - as above

    write: Callable[[pa.RecordBatch], Any]
    if file_format is Format.parquet:
        import pyarrow.parquet as pq  # noqa: PLC0415 - as above

        write = stack.enter_context(pq.ParquetWriter(sink, schema)).write_batch
    elif file_format is Format.arrow:
        write = stack.enter_context(pa.ipc.new_file(sink, schema)).write_batch
    elif file_format is Format.csv:
        from pyarrow import csv  # noqa: PLC0415 - as above

        columns = pa.schema(
            [(column.name, flat(pa.array([], column.type)).type) for column in schema]
        )
        lines = stack.enter_context(csv.CSVWriter(sink, columns))

        def write(batch: pa.RecordBatch) -> None:
            values = [flat(column) for column in batch.columns]
            lines.write_batch(pa.RecordBatch.from_arrays(values, schema=columns))
    else:

        def write(batch: pa.RecordBatch) -> None:
            if batch.num_rows:
                sink.write(json_lines(batch).encode())

    return write
