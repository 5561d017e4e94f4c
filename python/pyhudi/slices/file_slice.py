"""File groups and file slices as plain facts. Nothing here reads storage."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pyhudi.config.table_config import TableConfig
from pyhudi.storage.storage import Storage


@dataclass(frozen=True)
class BootstrapFile:
    """The file, outside of the table, with the rows of a skeleton base file."""

    folder: str
    """Where to open a store."""
    path: str
    """Relative to the folder."""
    partition: str
    """The source's own partition path."""
    size: int
    """Bytes."""
    config: TableConfig = field(repr=False, compare=False)
    """The table's, by which its partition paths tell values that the file may lack."""

    @property
    def uri(self) -> str:
        """Where it is, as plans of table services name it."""
        return f"{self.folder.rstrip('/')}/{self.path}"

    def storage(self, table: Storage) -> Storage:
        """A store for the folder, opened as the table's own is."""
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
    """Where the rows are, when this is a skeleton of Hudi's own columns."""
    checked: bool = True
    """Whether a file of another size is damage."""

    @property
    def path(self) -> str:
        """Relative to the table."""
        return f"{self.partition}/{self.name}" if self.partition else self.name

    @property
    def whole_size(self) -> int:
        """Bytes, with those of a skeleton's source."""
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
    """Bytes, as the commit or storage says that the table was planned by."""
    appended: bool = False
    """Whether later commits may append to it: it may be larger by then."""
    checked: bool = True
    """As of a base file."""

    @property
    def path(self) -> str:
        """Relative to the table."""
        return f"{self.partition}/{self.name}" if self.partition else self.name

    @property
    def order(self) -> tuple[str, int, str, str]:
        """Sort key: oldest first (`HoodieLogFile.LogFileComparator`, 1.2.0)."""
        return (self.instant, self.version, self.write_token, self.suffix)

    def may_hold_several(self, base_instant: str) -> bool:
        """Whether it can have blocks of several commits, in a slice of that base instant.

        Up to table version 6, and of a table upgraded from there, it is named by the base instant
        of its slice, which can be that of a pending compaction in the slice joined of two. From 8
        on it has a later one of its own, but in a slice that it opened itself.
        """
        return self.appended or self.instant == base_instant


@dataclass(frozen=True, slots=True)
class FileSlice:
    """One version of a file group: a base file and the log files on top of it."""

    partition: str
    file_id: str
    base_instant: str
    base: BaseFile | None
    logs: tuple[LogFile, ...] = field(default=())
    """Oldest first, CDC files left out."""

    @property
    def key(self) -> tuple[str, str]:
        """What its file group is known by: partition path and file id."""
        return (self.partition, self.file_id)

    @property
    def files(self) -> tuple[BaseFile | LogFile, ...]:
        """Its base file, if it has one, and its log files."""
        return self.logs if self.base is None else (self.base, *self.logs)

    @property
    def size(self) -> int:
        """Bytes of all its files, a skeleton's source among them."""
        return (self.base.whole_size if self.base else 0) + sum(log.size for log in self.logs)

    @property
    def unchecked(self) -> FileSlice:
        """The slice, with files of whatever size they are found to have."""
        base = None if self.base is None else replace(self.base, checked=False)
        return replace(
            self, base=base, logs=tuple(replace(log, checked=False) for log in self.logs)
        )
