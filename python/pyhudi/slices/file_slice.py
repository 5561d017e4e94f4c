"""File groups and file slices as plain data, and as a table. Nothing here reads storage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Literal, TypeAlias, overload

import pyarrow as pa

from pyhudi.config.table_config import TableConfig
from pyhudi.storage.storage import Storage

FileParts: TypeAlias = tuple[str, str, str, int, "int | None", str]
"""A file in the core: name, instant, write token, bytes, version of a log file, ".cdc" or ""."""
SliceParts: TypeAlias = tuple[str, str, str, "FileParts | None", list[FileParts]]
"""A slice in the core: partition path, file id, base instant, base file, log files."""
Selection: TypeAlias = Literal["snapshot", "base files", "newest", "all"]
"""Slices of each group: the one that a snapshot reads, the newest base file alone, the newest one
(to which log files are appended), or every committed one, newest first."""


@dataclass(frozen=True)
class BootstrapFile:
    """The file, outside of the table, with the rows of a skeleton base file."""

    folder: str
    """The location to open a store for."""
    path: str
    """Relative to `folder`."""
    partition: str
    """The source's own partition path."""
    size: int
    """Bytes."""
    config: TableConfig = field(repr=False, compare=False)
    """The table's, which derives missing values of the file from its partition path."""

    @property
    def uri(self) -> str:
        """Its URI, as in plans of table services."""
        return f"{self.folder.rstrip('/')}/{self.path}"

    def storage(self, table: Storage) -> Storage:
        """Return a store for the directory, opened with the table's options."""
        return Storage(self.folder, table.options)


@dataclass(frozen=True, slots=True)
class BaseFile:
    """A base file: `<file id>_<write token>_<instant>.parquet`."""

    partition: str
    """Partition path, "" in a table without partitions."""
    name: str
    file_id: str
    instant: str
    write_token: str
    size: int
    """Bytes."""
    source: BootstrapFile | None = None
    """The source of the rows, if this is a skeleton of Hudi's own columns."""
    checked: bool = True
    """Whether another size on storage is damage."""

    @property
    def path(self) -> str:
        """Relative to the table."""
        return f"{self.partition}/{self.name}" if self.partition else self.name

    @property
    def whole_size(self) -> int:
        """Bytes, including a skeleton's source."""
        return self.size + (self.source.size if self.source else 0)


@dataclass(frozen=True, slots=True)
class LogFile:
    """A log file: `.<file id>_<instant>.log.<version>_<write token>[.cdc]`."""

    partition: str
    name: str
    file_id: str
    instant: str
    """Up to table version 6 the slice's base instant, later that of the log's own delta commit."""
    version: int
    write_token: str
    """"" when the name has none."""
    suffix: str
    """".cdc" or ""."""
    size: int
    """Bytes, by the commit or listing that the read was planned on."""
    appended: bool = False
    """Whether later commits may append to it, so that it may be larger then."""
    checked: bool = True
    """The same as in a base file."""

    @property
    def path(self) -> str:
        """Relative to the table."""
        return f"{self.partition}/{self.name}" if self.partition else self.name

    def may_hold_several(self, base_instant: str) -> bool:
        """Return whether it may have blocks of several commits, in a slice of that base instant.

        Up to table version 6, and in a table upgraded from there, it is named by the base instant
        of its slice, which can be that of a pending compaction if two slices are joined. From 8 on
        it has a later instant of its own, except in a slice that it opened itself.
        """
        return self.appended or self.instant == base_instant


class LogFiles(Sequence[LogFile]):
    """The log files of a slice from their parts in the core: each is made when it is read.

    A slice may have hundreds, and most operations on it need only their number.
    """

    __slots__ = ("_appended", "_file_id", "_partition", "_parts")

    def __init__(
        self, partition: str, file_id: str, parts: Sequence[FileParts], *, appended: bool
    ) -> None:
        """`appended`: whether commits append to existing log files."""
        self._partition = partition
        self._file_id = file_id
        self._parts = parts
        self._appended = appended

    def __len__(self) -> int:
        return len(self._parts)

    @overload
    def __getitem__(self, at: int) -> LogFile: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[LogFile, ...]: ...
    def __getitem__(self, at: int | slice) -> LogFile | tuple[LogFile, ...]:
        if isinstance(at, slice):
            return tuple(map(self._file, self._parts[at]))
        return self._file(self._parts[at])

    def __iter__(self) -> Iterator[LogFile]:
        return map(self._file, self._parts)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, LogFiles):
            return self._fields == other._fields
        return isinstance(other, tuple) and tuple(self) == other

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[type[tuple[LogFile, ...]], tuple[tuple[LogFile, ...]]]:
        return tuple, (tuple(self),)

    @property
    def _fields(self) -> tuple[str, str, Sequence[FileParts], bool]:
        return self._partition, self._file_id, self._parts, self._appended

    def _file(self, parts: FileParts) -> LogFile:
        return log_file(self._partition, self._file_id, parts, appended=self._appended)


def log_file(partition: str, file_id: str, parts: FileParts, *, appended: bool) -> LogFile:
    """Return a log file from its parts in the core."""
    name, instant, write_token, size, version, suffix = parts
    return LogFile(
        partition, name, file_id, instant, version or 0, write_token, suffix, size, appended
    )


LOG_ORDER = attrgetter("instant", "version", "write_token", "suffix")
"""Sort key of log files: oldest first (`HoodieLogFile.LogFileComparator`, 1.2.0)."""


@dataclass(frozen=True, slots=True)
class FileSlice:
    """One version of a file group: a base file and the log files on top of it."""

    partition: str
    file_id: str
    base_instant: str
    base: BaseFile | None
    logs: Sequence[LogFile] = field(default=())
    """Oldest first, without CDC files."""

    @property
    def key(self) -> tuple[str, str]:
        """The key of its file group: partition path and file id."""
        return (self.partition, self.file_id)

    @property
    def files(self) -> tuple[BaseFile | LogFile, ...]:
        """Its base file, if it has one, and its log files."""
        return (*self.logs,) if self.base is None else (self.base, *self.logs)

    @property
    def size(self) -> int:
        """Bytes of all its files, including a skeleton's source."""
        return (self.base.whole_size if self.base else 0) + self.log_size

    @property
    def log_size(self) -> int:
        """Bytes of its log files."""
        return sum(log.size for log in self.logs)

    @property
    def unchecked(self) -> FileSlice:
        """The slice, accepting files of any size."""
        base = None if self.base is None else replace(self.base, checked=False)
        return replace(
            self, base=base, logs=tuple(replace(log, checked=False) for log in self.logs)
        )


SLICES = pa.schema(
    [
        ("partition", pa.string()),
        ("file_id", pa.string()),
        ("base_instant", pa.string()),
        ("base_file", pa.string()),
        ("base_size", pa.int64()),
        ("log_files", pa.list_(pa.string())),
        ("log_size", pa.int64()),
    ]
)
"""Sizes in bytes; file names without directory."""
