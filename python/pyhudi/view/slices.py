"""File groups and file slices as plain facts. Nothing here reads storage."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
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

    @property
    def path(self) -> str:
        """Relative to the table."""
        return f"{self.partition}/{self.name}" if self.partition else self.name


@dataclass(frozen=True)
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

    @property
    def path(self) -> str:
        """Relative to the table."""
        return f"{self.partition}/{self.name}" if self.partition else self.name

    @property
    def order(self) -> tuple[str, int, str, str]:
        """Sort key: oldest first (`HoodieLogFile.LogFileComparator`, 1.2.0)."""
        return (self.instant, self.version, self.write_token, self.suffix)


@dataclass(frozen=True)
class FileSlice:
    """One version of a file group: a base file and the log files on top of it."""

    partition: str
    file_id: str
    base_instant: str
    base: BaseFile | None
    logs: tuple[LogFile, ...] = field(default=())
    """Oldest first, CDC files left out."""

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return (self.base.size if self.base else 0) + sum(log.size for log in self.logs)
