"""A source of new files in a directory or bucket.

The checkpoint is a modification time in milliseconds, as with Hudi (`DFSPathSelector`, 1.2.0). A
batch has the files that are newer, in the order of their times, and all files of one time. Hudi
misses a file that appears later with the time of a checkpoint or an earlier one. So a commit of
pyhudi also stores which of the latest files it has.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

import pyarrow as pa

from pyhudi.config.argument_checks import check_fields
from pyhudi.config.bounded_json import parse_json
from pyhudi.config.formatting import count_text
from pyhudi.config.memory_size import MemorySize, parse_memory_size
from pyhudi.errors import ConfigError, CorruptTable, SchemaMismatch
from pyhudi.ingestion.bad_records import BadRecord
from pyhudi.ingestion.checkpoint import Position
from pyhudi.ingestion.file_reader import FORMATS, DataFile, FileFormat, concat, format_of
from pyhudi.ingestion.source import BatchRows, SourceBatch
from pyhudi.storage.storage import Entry, Storage

LATEST_FILES = "_pyhudi_ingest_files"
"""Entry with JSON of the files of a checkpoint's last milliseconds: paths with their times."""


@dataclass(frozen=True)
class _LatestFiles:
    """The files of a checkpoint's last milliseconds that are read."""

    since_ms: int
    """The time from which on all files that are read are listed."""
    files: dict[str, int]
    """Modification times by path."""


@dataclass(frozen=True)
class FileSource:
    """New files in a directory or bucket: Parquet, JSON lines, CSV or Avro.

    Names that begin with a dot or an underscore, of files or directories, and empty files are
    ignored. A file must be complete when it appears: write it elsewhere and move it here.
    """

    path: str | os.PathLike[str]
    """The directory, with the files of its subdirectories: a path or a URI, such as
    `s3://bucket/landing`."""
    format: FileFormat | None = None
    """Format of all files; None to tell it by their extensions."""
    pattern: str = "*"
    """Only files whose path below the directory matches, such as `*.json`; `*` matches `/` too."""
    max_bytes: MemorySize = 256 * 1024 * 1024
    """Maximum size of the files of one commit. A commit has one modification time at least."""
    late_seconds: float = 60
    """How long after a file, by modification time, an older file may still appear."""
    delimiter: str | None = None
    """Delimiter of CSV files; None for a comma, or a tab in `.tsv` files."""
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)
    """Options of the storage, as in `open_table`."""

    def __post_init__(self) -> None:
        """Raise `ConfigError` for a wrong argument."""
        check_fields(self)
        if self.format is not None and self.format not in FORMATS:
            raise ConfigError(f"format is {self.format!r}", hint=f"It is one of {FORMATS}.")
        if parse_memory_size(self.max_bytes, "max_bytes") < 1 or self.late_seconds < 0:
            raise ConfigError("max_bytes must be at least 1, and late_seconds at least 0")
        if "://" not in os.fspath(self.path) and not Path(self.path).expanduser().is_dir():
            raise ConfigError(f"{os.fspath(self.path)} is not a directory")

    @property
    def name(self) -> str:
        """The source's name, by which commits tell whether they have its checkpoint."""
        return f"files:{self._storage().uri.rstrip('/')}"

    def _storage(self) -> Storage:
        return Storage(os.fspath(self.path), self.storage_options)

    def fetch(self, position: Position, columns: pa.Schema | None) -> SourceBatch | None:
        """Return the next files; None without new files.

        Args:
            position: where to continue.
            columns: types of columns, as far as the table has them.

        Returns:
            The batch.

        Raises:
            ConfigError: the checkpoint is not a time, or the extension of a file shows no format.
            SchemaMismatch: the columns of two files have different types.
            CorruptTable: a Parquet or Avro file is damaged.
            StorageError: the storage fails.
        """
        storage = self._storage()
        after_ms, stored = self._read_position(position)
        # Hudi has read all files up to its checkpoint, without a list of them.
        known = stored or _LatestFiles(after_ms + 1, {})
        since_ms = max(known.since_ms, after_ms - self._late_ms)
        new = [
            entry
            for entry in storage.list()
            if self._is_data(entry)
            and (
                entry.modified_ms > after_ms
                or (
                    entry.modified_ms >= since_ms
                    and known.files.get(entry.path) != entry.modified_ms
                )
            )
        ]
        chosen = self._first_files(new)
        if not chosen:
            return None
        newest_ms = max(after_ms, chosen[-1].modified_ms)
        since_ms = max(known.since_ms, newest_ms - self._late_ms)
        files = {**known.files, **{entry.path: entry.modified_ms for entry in chosen}}
        latest = {path: time for path, time in files.items() if time >= since_ms}
        entries = {LATEST_FILES: json.dumps({"since": since_ms, "files": latest})}
        bad: list[BadRecord] = []
        data_files = [
            DataFile(storage, entry.path, self.format or format_of(entry.path), self.delimiter)
            for entry in chosen
        ]
        return SourceBatch(_rows_of(data_files, columns, bad), str(newest_ms), entries, bad)

    def _read_position(self, position: Position) -> tuple[int, _LatestFiles | None]:
        """Return the modification time, and the files that the commit stores; None if none."""
        if position.checkpoint is None:
            return _FIRST_MS, None
        try:
            after_ms = int(position.checkpoint)
        except ValueError as error:
            raise ConfigError(
                f"the checkpoint {position.checkpoint!r} is not a modification time of files",
                hint="Pass checkpoint=, a time in milliseconds since 1970.",
            ) from error
        text = position.entries.get(LATEST_FILES)
        if text is None:
            return after_ms, None
        try:
            stored = parse_json(text, LATEST_FILES, is_file=False)
            return after_ms, _LatestFiles(int(stored["since"]), dict(stored["files"]))
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptTable(f"{LATEST_FILES} of {position.instant} has no times") from error

    @property
    def _late_ms(self) -> int:
        return int(self.late_seconds * 1000)

    def _is_data(self, entry: Entry) -> bool:
        is_hidden = any(part.startswith((".", "_")) for part in entry.path.split("/"))
        return entry.size > 0 and not is_hidden and fnmatchcase(entry.path, self.pattern)

    def _first_files(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return the first files up to the maximum size, and all of the last one's time."""
        chosen: list[Entry] = []
        size, max_bytes = 0, parse_memory_size(self.max_bytes, "max_bytes")
        for entry in sorted(entries, key=lambda each: (each.modified_ms, each.path)):
            is_later = not chosen or entry.modified_ms > chosen[-1].modified_ms
            if chosen and is_later and size + entry.size > max_bytes:
                break
            chosen.append(entry)
            size += entry.size
        return chosen


_FIRST_MS = -(1 << 63)
"""The checkpoint before all files, as Hudi has it."""


def _rows_of(
    files: Sequence[DataFile], columns: pa.Schema | None, bad: list[BadRecord]
) -> BatchRows:
    tables = {
        each.location: each.table(columns, bad) for each in files if each.file_format != "parquet"
    }
    try:
        return _FileRows(tables, [each for each in files if each.file_format == "parquet"])
    except pa.ArrowException as error:
        names = ", ".join(each.path for each in files[:_NAMED])
        msg = f"{count_text(len(files), 'file')}, {names}, have columns that differ: {error}"
        raise SchemaMismatch(
            msg, hint="Create the table first, whose types then count; or use another pattern."
        ) from error


_NAMED = 3
"""Number of files in an error."""


class _FileRows(BatchRows):
    """The rows of files: first those in memory, then Parquet files, which are read as a stream."""

    def __init__(self, tables: Mapping[str, pa.Table], parquet: Sequence[DataFile]) -> None:
        """tables: the rows of other files, by location."""
        self._parquet = parquet
        schemas = [each.schema for each in (*tables.values(), *parquet)]
        self.schema = pa.unify_schemas(schemas, promote_options="permissive")
        self._tables = {location: self._conform(rows) for location, rows in tables.items()}

    def with_locations(self) -> Iterator[tuple[pa.RecordBatch, str | None]]:
        """Yield the rows as batches, with the file of each."""
        for location, rows in self._tables.items():
            for batch in rows.to_batches():
                yield batch, location
        for file in self._parquet:
            for batch in file.batches():
                for part in self._conform(pa.Table.from_batches([batch])).to_batches():
                    yield part, file.location

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream."""
        batches = (batch for batch, _ in self.with_locations())
        return pa.RecordBatchReader.from_batches(self.schema, batches)

    def _conform(self, rows: pa.Table) -> pa.Table:
        """Return rows with all columns. Raises `ArrowException` if their types do not fit."""
        return concat([self.schema.empty_table(), rows])
