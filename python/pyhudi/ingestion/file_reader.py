"""The rows of one data file, of which records that are not rows are left out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.config.formatting import count_text
from pyhudi.engine.spill import local_files
from pyhudi.errors import ConfigError, CorruptTable, HudiError, without_hint
from pyhudi.ingestion.bad_records import BadRecord, without_bad_rows
from pyhudi.input.csv_reader import csv_rows, not_utf_8_error
from pyhudi.input.json_reader import json_text_rows
from pyhudi.storage.options import is_remote
from pyhudi.storage.storage import Storage

FileFormat = Literal["parquet", "json", "csv", "avro"]
FORMATS: tuple[str, ...] = get_args(FileFormat)

_EXTENSIONS: dict[str, FileFormat] = {
    ".parquet": "parquet",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".csv": "csv",
    ".tsv": "csv",
    ".avro": "avro",
}
_COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
"""Codecs of pyarrow by the extensions of compressed text files."""
_READ_ERRORS = (HudiError, pa.ArrowException)


def format_of(path: str) -> FileFormat:
    """Return the format that the extension of a file shows. Raises `ConfigError` if it does not."""
    extension = Path(_plain_name(path)).suffix.lower()
    if extension not in _EXTENSIONS:
        raise ConfigError(
            f"the extension of {path} shows no format",
            hint=f"Pass format=, one of {', '.join(FORMATS)}; or pattern=, such as '*.json'.",
        )
    return _EXTENSIONS[extension]


def _plain_name(path: str) -> str:
    return next((path.removesuffix(end) for end in _COMPRESSED if path.endswith(end)), path)


@dataclass(frozen=True)
class DataFile:
    """A file of a source, and how its text is read."""

    storage: Storage
    path: str
    file_format: FileFormat
    delimiter: str | None

    @property
    def location(self) -> str:
        """Location of the file, for messages."""
        return f"{self.storage.uri.rstrip('/')}/{self.path}"

    @property
    def schema(self) -> pa.Schema:
        """The columns of a Parquet file."""
        import pyarrow.parquet as pq  # noqa: PLC0415 - text files do not need it

        with self._local_path() as path:
            try:
                schema: pa.Schema = pq.read_schema(path)
            except pa.ArrowInvalid as error:
                raise self._damage(f"is not a Parquet file: {error}") from error
        return schema.remove_metadata()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return the rows of a Parquet file as a stream."""
        import pyarrow.parquet as pq  # noqa: PLC0415 - as above

        with self._local_path() as path, pq.ParquetFile(path) as file:
            yield from file.iter_batches()

    def table(self, columns: pa.Schema | None, bad: list[BadRecord]) -> pa.Table:
        """Return the rows of a text file or of an Avro file.

        Args:
            columns: types of columns, as far as the table has them.
            bad: gets the records that are not rows.

        Returns:
            The rows; a table without columns if the file has no rows.

        Raises:
            CorruptTable: an Avro file or a compressed file is damaged.
        """
        if self.file_format == "avro":
            return _native.avro_file_rows(self.storage.read(self.path))
        with self._local_path() as path:
            if self.file_format == "csv":
                return self._csv(path, columns, bad)
            with pa.OSFile(str(path)) as file:
                lines = JsonLines(file.read_buffer(), self.location)
            return lines.rows(columns, bad)

    @contextmanager
    def _local_path(self) -> Iterator[Path]:
        """Yield a local path of the uncompressed file."""
        is_compressed = self.file_format in {"json", "csv"} and _plain_name(self.path) != self.path
        if not is_compressed and not is_remote(self.storage.uri):
            yield Path(self.location.removeprefix("file://"))
            return
        data = self.storage.read(self.path)
        if is_compressed:
            codec = _COMPRESSED[Path(self.path).suffix.lower()]
            try:
                with pa.input_stream(pa.BufferReader(data), compression=codec) as stream:
                    data = stream.read()
            except OSError as error:
                raise self._damage(f"cannot be decompressed: {error}") from error
        with local_files(), TemporaryDirectory(prefix="pyhudi-") as folder:
            copy = Path(folder) / Path(_plain_name(self.path)).name
            copy.write_bytes(data)
            yield copy

    def _damage(self, problem: str) -> CorruptTable:
        """Return the error of a file that cannot be read."""
        hint = "Put the whole file there, move it away, or choose others with pattern=."
        return CorruptTable(f"{self.location} {problem}", file=self.location, hint=hint)

    def _csv(self, path: Path, columns: pa.Schema | None, bad: list[BadRecord]) -> pa.Table:
        delimiter = self.delimiter or ("\t" if path.suffix.lower() == ".tsv" else ",")
        try:
            schema, read = csv_rows(path, columns, delimiter)
            return pa.Table.from_batches(read(), schema)
        except _READ_ERRORS:
            texts = self._csv_texts(path, delimiter, bad)
        expected = columns
        strings = pa.schema([(name, pa.string()) for name in texts.column_names])

        def convert(start: int, end: int) -> pa.Table:
            nonlocal expected
            # The cast fails for rows that are not UTF-8.
            rows = _parse_values(texts.slice(start, end - start).cast(strings), expected)
            expected = rows.schema
            return rows

        def reject(row: int, reason: str) -> None:
            values = {
                name: None if value is None else value.decode(errors="replace")
                for name, value in texts.slice(row, 1).to_pylist()[0].items()
            }
            bad.append(BadRecord(reason, self.location, str(values)))

        return concat(without_bad_rows(texts.num_rows, convert, reject))

    def _csv_texts(self, path: Path, delimiter: str, bad: list[BadRecord]) -> pa.Table:
        """Return all values as bytes; lines with another number of values are bad.

        Raises `ConfigError` if the header is not UTF-8.
        """
        from pyarrow import csv  # noqa: PLC0415 - other files do not need it

        def skip(row: Any) -> str:
            values = count_text(row.actual_columns, "value")
            reason = f"{values}, and {count_text(row.expected_columns, 'column')}"
            bad.append(BadRecord(reason, self.location, row.text))
            return "skip"

        def ignore(_: Any) -> str:
            return "skip"

        def parse(handler: Any) -> csv.ParseOptions:
            return csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, invalid_row_handler=handler
            )

        with csv.open_csv(path, parse_options=parse(ignore)) as reader:
            try:
                names = reader.schema.names
            except UnicodeDecodeError as error:
                raise not_utf_8_error(self.location) from error
        convert = csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.binary()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        read = csv.ReadOptions(use_threads=False)
        return csv.read_csv(path, read, parse(skip), convert)


def _parse_values(texts: pa.Table, columns: pa.Schema | None) -> pa.Table:
    """Return values with the types of a CSV file that has these texts."""
    from pyarrow import csv  # noqa: PLC0415 - as above

    with local_files(), TemporaryDirectory(prefix="pyhudi-") as folder:
        path = Path(folder) / "rows.csv"
        csv.write_csv(texts, path)
        try:
            schema, read = csv_rows(path, columns, ",")
            return pa.Table.from_batches(read(), schema)
        except ConfigError as error:
            msg = without_hint(error).replace(str(path), "the file")
            raise ConfigError(msg, hint=error.hint) from error


class JsonLines:
    """JSON lines, read as one text; if that fails, lines that are not rows are left out."""

    def __init__(self, text: pa.Buffer, location: str) -> None:
        self._text, self._location = text, location

    def rows(self, columns: pa.Schema | None, bad: list[BadRecord]) -> pa.Table:
        """Return the rows. columns: types of columns. bad: gets the lines that are not rows."""
        try:
            return json_text_rows(self._text, self._location, columns)
        except _READ_ERRORS:
            lines = self._lines()
        numbers = pc.indices_nonzero(pc.match_substring_regex(lines, r"\S"))
        lines = lines.take(numbers)
        return rows_of_lines(
            lines, columns, lambda row: f"{self._location}:{numbers[row].as_py() + 1}", bad
        )

    def _lines(self) -> pa.Array[Any]:
        ends = pa.array([0, self._text.size], pa.int64()).buffers()[1]
        text = pa.Array.from_buffers(pa.large_binary(), 1, [None, ends, self._text])
        return pc.split_pattern(text, "\n").flatten()


def rows_of_lines(
    lines: pa.Array[Any],
    columns: pa.Schema | None,
    location: Any,
    bad: list[BadRecord],
) -> pa.Table:
    """Return the rows of JSON objects, without those that are not rows.

    Args:
        lines: the objects as large_binary.
        columns: types of columns.
        location: returns where a line comes from, by its number.
        bad: gets the lines that are not rows.
    """
    expected = columns

    def convert(start: int, end: int) -> pa.Table:
        nonlocal expected
        part = lines.slice(start, end - start)
        lists = pa.LargeListArray.from_arrays(pa.array([0, len(part)], pa.int64()), part)
        text = pc.binary_join(lists, pa.scalar(b"\n", pa.large_binary()))[0].as_buffer()
        rows = json_text_rows(text, location(start), expected)
        # The first rows that are read decide about the types of new columns.
        known = {each.name: each for each in expected or ()}
        fields = [*known.values(), *(each for each in rows.schema if each.name not in known)]
        expected = pa.schema([each for each in fields if not pa.types.is_null(each.type)])
        return rows

    def reject(row: int, reason: str) -> None:
        record = lines[row].as_py().decode(errors="replace")
        bad.append(BadRecord(reason, location(row), record))

    return concat(without_bad_rows(len(lines), convert, reject))


def concat(tables: list[pa.Table]) -> pa.Table:
    """Return the rows of tables whose columns may differ."""
    if not tables:
        return pa.table({})
    return pa.concat_tables(tables, promote_options="permissive")
