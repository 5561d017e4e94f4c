"""The file groups that a commit changes, before and after it, for indexes of records.

Indexes follow records, not the contents of files: a record that a log file deletes may be elsewhere
already, and a delete may lose by its ordering value. So both sides are read merged, as a snapshot
reads them. Only the listing of files happens here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.cached_property import cached_property
from pyhudi.config.file_names import file_name_of, parse_base_name, parse_log_name
from pyhudi.config.meta_columns import RECORD_KEY
from pyhudi.schema.table_schema import TableSchema, table_schema
from pyhudi.slices.file_slice import LOG_ORDER, BaseFile, FileSlice, LogFile
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.listing import ListedOnce
from pyhudi.slices.read_tasks import ReadTask, ScanRequest, merge_rule, slice_tasks
from pyhudi.storage.storage import Entry
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.commit_metadata import CommitMetadata, WriteStat

_LOG_MEMORY_BYTES = 64 * 1024 * 1024
"""Bytes of log records in the memory of one task; the others spill to local files."""

SingleFile = tuple[str, int, FileSlice]
"""Name and size of a file, and a slice of this file only."""


@dataclass(frozen=True)
class GroupChange:
    """One file group that a commit changes; None for no rows."""

    before: FileSlice | None
    after: FileSlice | None


class ChangedSlices:
    """The file groups that a pending commit changes."""

    def __init__(
        self,
        data: TableSnapshot,
        instant: str,
        metadata: CommitMetadata,
        schema: pa.Schema,
        avro: str,
        listed: Mapping[str, list[Entry]] | None = None,
    ) -> None:
        """`data`: the current snapshot. `schema`, `avro`: the schemas with the commit.

        `schema` has meta fields. listed: as in `Commit`.
        """
        self._data = data
        self._instant = instant
        self._metadata = metadata
        self._schema = schema
        self._avro = avro
        self.listing = ListedOnce(data.storage, listed=listed)
        """The files of the data table, shared by everything that is in sync with the commit."""

    @cached_property
    def changes(self) -> list[GroupChange]:
        """The file groups that get files, and those that are replaced."""
        return [
            *self._iter_written(),
            *(GroupChange(slice_, None) for slice_ in self.iter_replaced()),
        ]

    def task(self, slice_: FileSlice | None, columns: tuple[str, ...]) -> ReadTask | None:
        """Return the task that reads some columns of a slice, as stored."""
        return None if slice_ is None else self.read(slice_, columns)

    def read(self, slice_: FileSlice, columns: tuple[str, ...]) -> ReadTask:
        """Return the task of `task` for a slice that exists."""
        return read_columns(self._table, slice_, columns)

    def keys(self, slice_: FileSlice, *, with_pending: bool = False) -> ReadTask:
        """Return the task that reads a slice's keys. with_pending: also blocks of the commit."""
        return read_columns(
            self._table, slice_, (RECORD_KEY,), pending=self._instant if with_pending else None
        )

    def before(self, stat: WriteStat) -> FileSlice | None:
        """Return the file group of a write stat; None for a new one."""
        return self._slices(stat.partition_path or "").get(stat.file_id)

    def after(self, stats: list[WriteStat], *, only_new_files: bool) -> FileSlice:
        """Return the slice to which the log files of the stats belong, with these files.

        only_new_files: without the files from before the commit.
        """
        before = None if only_new_files else self.before(stats[0])
        return _slice_after(stats[0].partition_path or "", stats[0].file_id, before, stats)

    def iter_replaced(self) -> Iterator[FileSlice]:
        """Yield every file group that the commit replaces."""
        for partition, ids in (self._metadata.partition_to_replace_file_ids or {}).items():
            slices = self._slices(partition) if ids else {}
            yield from (slices[file_id] for file_id in ids if file_id in slices)

    @cached_property
    def files(self) -> dict[str, list[SingleFile]]:
        """Return every written file by partition, each as a slice of its own."""
        files: dict[str, list[SingleFile]] = {}
        for partition, stats in self._metadata.partition_to_write_stats.items():
            for stat in stats:
                if stat.path:
                    slice_ = _slice_after(partition, stat.file_id, None, [stat])
                    files.setdefault(partition, []).extend(split_by_file(slice_))
        return files

    def _iter_written(self) -> Iterator[GroupChange]:
        for partition, stats in self._metadata.partition_to_write_stats.items():
            slices = self._slices(partition)
            groups: dict[str, list[WriteStat]] = {}
            for stat in stats:
                if stat.path:
                    groups.setdefault(stat.file_id, []).append(stat)
            for file_id, written in groups.items():
                before = slices.get(file_id)
                yield GroupChange(before, _slice_after(partition, file_id, before, written))

    def _slices(self, partition: str) -> dict[str, FileSlice]:
        return self._slices_by_partition.get(partition, {})

    @cached_property
    def _slices_by_partition(self) -> dict[str, dict[str, FileSlice]]:
        """The file groups of each partition that the commit changes, by file id."""
        table, metadata = self._table, self._metadata
        replaced = metadata.partition_to_replace_file_ids or {}
        partitions = {
            *metadata.partition_to_write_stats,
            *(path for path in replaced if replaced[path]),
        }
        view = FileSystemView(table.storage, table.config, table.timeline, partitions, self.listing)
        slices: dict[str, dict[str, FileSlice]] = {path: {} for path in partitions}
        for slice_ in view.slices():
            slices[slice_.partition][slice_.file_id] = slice_
        return slices

    @cached_property
    def _table(self) -> TableSnapshot:
        table = self._data
        evolution = table_schema(table.storage, table.config, table.timeline).evolution
        schema = TableSchema(self._avro, self._schema, evolution)
        return replace(table, schema=schema, columns=self._schema, as_text=())


def split_by_file(slice_: FileSlice) -> list[SingleFile]:
    """Return the files of a slice, each as a slice of its own."""
    base = slice_.base
    bases = [] if base is None else [(base.name, base.size, replace(slice_, logs=()))]
    logs = ((log.name, log.size, replace(slice_, base=None, logs=(log,))) for log in slice_.logs)
    return [*bases, *logs]


def read_columns(
    table: TableSnapshot, slice_: FileSlice, columns: tuple[str, ...], *, pending: str | None = None
) -> ReadTask:
    """Return the task that reads a slice which may contain files of a pending commit.

    pending: the commit's instant, if its log blocks count as committed ones do.
    """
    request = ScanRequest(output=columns, memory_limit=_LOG_MEMORY_BYTES)
    rule = replace(merge_rule(table), max_instant=None)
    if pending is not None and rule.valid_instants is not None:
        rule = replace(rule, valid_instants=(*rule.valid_instants, pending))
    return replace(slice_tasks(table, request, [slice_], rule)[0], path_values=())


def is_log_path(path: str | None) -> bool:
    """Return whether a path is that of a log file."""
    return file_name_of(path).startswith(".")


def _slice_after(
    partition: str, file_id: str, before: FileSlice | None, written: list[WriteStat]
) -> FileSlice:
    """Return the slice with the written files: a new base file replaces everything before it."""
    bases = [base for stat in written if (base := _base_of_stat(partition, stat)) is not None]
    new = [log for stat in written if (log := _log_of_stat(partition, stat)) is not None]
    if bases:
        return FileSlice(partition, file_id, bases[-1].instant, bases[-1], _sort_logs(new))
    if before is None:
        return FileSlice(partition, file_id, new[0].instant, None, _sort_logs(new))
    names = {log.name for log in new}
    kept = [log for log in before.logs if log.name not in names]
    return replace(before, logs=(*kept, *_sort_logs(new)))


def _sort_logs(logs: list[LogFile]) -> tuple[LogFile, ...]:
    return tuple(sorted((log for log in logs if not log.suffix), key=LOG_ORDER))


def _base_of_stat(partition: str, stat: WriteStat) -> BaseFile | None:
    name = file_name_of(stat.path)
    parsed = None if name.startswith(".") else parse_base_name(name)
    if parsed is None:
        return None
    size = stat.file_size_in_bytes
    return BaseFile(partition, name, parsed.file_id, parsed.instant, parsed.write_token, size)


def _log_of_stat(partition: str, stat: WriteStat) -> LogFile | None:
    """Return the log file of a write stat; None for another file."""
    name = file_name_of(stat.path)
    parsed = parse_log_name(name)
    if parsed is None:
        return None
    size = stat.file_size_in_bytes
    return LogFile(
        partition,
        name,
        parsed.file_id,
        parsed.instant,
        parsed.version,
        parsed.write_token,
        parsed.suffix,
        size,
    )
