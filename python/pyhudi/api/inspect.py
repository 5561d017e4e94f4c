"""Instants, commits, files, slices and log blocks of a table, as Arrow tables.

Users can query these tables; nothing in pyhudi depends on them. Sizes are in bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.api.history import list_instants, row_counts
from pyhudi.config import argument_checks as arg
from pyhudi.slices.file_slice import LOG_ORDER, BaseFile, LogFile
from pyhudi.slices.file_slices import slices_table
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import CommitMetadata, Instant
from pyhudi.timeline.staleness import check_listing_complete

if TYPE_CHECKING:  # Reading needs none of it.
    from pyhudi.admin.health import Health
    from pyhudi.admin.readers import Readers

_TIMELINE = pa.schema(
    [
        ("requested", pa.string()),
        ("action", pa.string()),
        ("state", pa.string()),
        ("completed", pa.string()),
        ("file", pa.string()),
    ]
)
_COMMITS = pa.schema(
    [
        ("requested", pa.string()),
        ("completed", pa.string()),
        ("action", pa.string()),
        ("operation", pa.string()),
        ("partitions", pa.list_(pa.string())),
        ("files", pa.int64()),
        ("rows_written", pa.int64()),
        ("rows_inserted", pa.int64()),
        ("rows_updated", pa.int64()),
        ("rows_deleted", pa.int64()),
        ("bytes", pa.int64()),
    ]
)
_FILES = pa.schema(
    [
        ("partition", pa.string()),
        ("file_id", pa.string()),
        ("kind", pa.string()),
        ("name", pa.string()),
        ("instant", pa.string()),
        ("size", pa.int64()),
        ("replaced", pa.bool_()),
    ]
)
_PARTITIONS = pa.schema(
    [
        ("partition", pa.string()),
        ("file_groups", pa.int64()),
        ("log_files", pa.int64()),
        ("size", pa.int64()),
    ]
)
_LOGS = pa.schema(
    [
        ("partition", pa.string()),
        ("file_id", pa.string()),
        ("log_file", pa.string()),
        ("offset", pa.int64()),
        ("size", pa.int64()),
        ("type", pa.string()),
        ("instant", pa.string()),
        ("header", pa.map_(pa.string(), pa.string())),
    ]
)


class Inspect:
    """Internals of a table at the snapshot of its handle."""

    def __init__(self, table: TableSnapshot) -> None:
        self._table = table

    def __repr__(self) -> str:
        tables = "timeline, commits, files, slices, partitions, logs, metadata, health and readers"
        return f"<Inspect of {self._table.config.name!r}: {tables}>"

    def _repr_html_(self) -> str:
        from pyhudi.api.notebook_html.show import timeline_html  # noqa: PLC0415 - only for notebooks

        return timeline_html(self._table)

    @arg.check_arguments()
    def timeline(self, *, archived: bool = False) -> pa.Table:
        """Return the timeline: one row for each instant, in its furthest state, oldest first.

        Args:
            archived: include the instants that have left the active timeline. This reads the whole
                archive; `file` is then the archive's file.

        Returns:
            Columns requested, action, state, completed (null while pending or if not recorded),
            file.

        Raises:
            CorruptTable: the archive is damaged.
            ConfigError: `archived` is neither true nor false.
        """
        rows = [
            {
                "requested": instant.requested,
                "action": instant.action,
                "state": instant.state.value,
                "completed": instant.completed,
                "file": instant.file_name,
            }
            for instant in list_instants(self._table.timeline, None, archived=archived)
        ]
        return pa.Table.from_pylist(rows, _TIMELINE)

    def commits(self) -> pa.Table:
        """Return the completed commits of the active timeline and what they wrote, oldest first.

        Returns:
            Columns requested, completed, action, operation, partitions, files, rows_written,
            rows_inserted, rows_updated, rows_deleted (null for services, which change no rows),
            bytes.

        Raises:
            CorruptTable: the metadata of a commit are damaged.
        """
        timeline = self._table.timeline
        rows = [_commit(instant, timeline.commit_metadata(instant)) for instant in timeline.commits]
        return pa.Table.from_pylist(rows, _COMMITS)

    def files(self) -> pa.Table:
        """Return every base and log file on storage, including uncommitted and outdated ones.

        Returns:
            Columns partition, file_id, kind (base or log), name, instant (the one in the name),
            size in bytes, replaced (whether a completed replace commit removed its group).
        """
        view = self._view()
        rows = [
            {
                "partition": file.partition,
                "file_id": file.file_id,
                "kind": "base" if isinstance(file, BaseFile) else "log",
                "name": file.name,
                "instant": file.instant,
                "size": file.size,
                "replaced": (file.partition, file.file_id) in view.replaced,
            }
            for file in _files(view)
        ]
        return pa.Table.from_pylist(rows, _FILES)

    def slices(self) -> pa.Table:
        """Return every committed file slice, including outdated ones, the newest of a group first.

        Returns:
            Columns partition, file_id, base_instant, base_file, base_size, log_files, log_size;
            sizes in bytes.

        Raises:
            HistoryUnavailable: files of the handle's snapshot may have been removed.
        """
        return slices_table(self._complete_view().all_slices())

    def health(self) -> Health:
        """Return the table's health: files, log share, retention, timeline, and advice.

        Returns:
            The figures and the advice, each with its reason: `print` displays them, `to_arrow()`
                returns the figures as a table. `HudiTable.maintain` follows the advice.

        Raises:
            CorruptTable: timeline files are damaged.
            HistoryUnavailable: files of the handle's snapshot may have been removed.
        """
        from pyhudi.admin.health import assess_health  # noqa: PLC0415 - not needed for reading

        return assess_health(self._table)

    def readers(self) -> Readers:
        """Return which engines can read this table, with what limits, and what to change.

        The answers come from the table's properties, schema, timeline and files, and from the
        limits of docs/reference/readers.md. No data file is read.

        Returns:
            For each engine yes, partly, unknown, wrong (other rows without an error) or no, with
                the reasons: `print` displays them, `to_arrow()` returns them as a table.

        Raises:
            CorruptTable: timeline files are damaged.
            HistoryUnavailable: files of the handle's snapshot may have been removed.
        """
        from pyhudi.admin.readers import assess_readers  # noqa: PLC0415 - not needed for reading

        _ = self._complete_view()
        return assess_readers(self._table)

    def partitions(self) -> pa.Table:
        """Return the partitions with the files that a snapshot query reads in each.

        Returns:
            Columns partition, file_groups, log_files, size in bytes.

        Raises:
            HistoryUnavailable: files of the handle's snapshot may have been removed.
        """
        view = self._complete_view()
        totals = {partition: [0, 0, 0] for partition in view.partitions}
        for slice_ in view.slices():
            of_partition = totals[slice_.partition]
            of_partition[0] += 1
            of_partition[1] += len(slice_.logs)
            of_partition[2] += slice_.size
        rows = [(partition, *of_partition) for partition, of_partition in totals.items()]
        columns = [dict(zip(_PARTITIONS.names, row, strict=True)) for row in rows]
        return pa.Table.from_pylist(columns, _PARTITIONS)

    def logs(self) -> pa.Table:
        """Return the blocks of the log files that a snapshot query reads, in merge order.

        Returns:
            Columns partition, file_id, log_file, offset and size in bytes, type, instant, header
            (all entries).

        Raises:
            CorruptTable: a log file is damaged.
            HistoryUnavailable: files of the handle's snapshot may have been removed.
        """
        logs = [log for slice_ in self._complete_view().slices() for log in slice_.logs]
        rows = [row for log in logs for row in self._blocks(log)]
        return pa.Table.from_pylist(rows, _LOGS)

    def _blocks(self, log: LogFile) -> Iterator[dict[str, Any]]:
        from pyhudi import _native  # noqa: PLC0415 - the other tables need no core

        for block in _native.log_blocks(self._table.storage.native, log.path):
            yield {
                "partition": log.partition,
                "file_id": log.file_id,
                "log_file": log.name,
                "offset": block["offset"],
                "size": block["size"],
                "type": block["type"],
                "instant": block["header"].get("INSTANT_TIME"),
                "header": list(block["header"].items()),
            }

    @arg.check_arguments()
    def metadata(self, partition: str = "files", column: str | None = None) -> pa.Table:
        """Return the records of a partition of the metadata table, in its current state.

        Args:
            partition: `files`, `record_index`, `column_stats`, `partition_stats` or a secondary
                index.
            column: the column whose statistics you want; None if the partition has no statistics.

        Returns:
            The records; the columns depend on the partition.

        Raises:
            CorruptTable: the metadata table is missing, damaged or out of date.
            ConfigError: the partition cannot be returned as a table.
            SchemaMismatch: the table has no such column.
        """
        from pyhudi.metadata.partition_types.registry import to_display  # noqa: PLC0415 - it needs the core
        from pyhudi.metadata.reader import MetadataTable  # noqa: PLC0415 - it needs the core
        from pyhudi.schema.predicates import column_type  # noqa: PLC0415 - the other tables need none of it

        table, field = self._table, None
        if column is not None:
            field = pa.field(column, column_type((column,), table.columns))
        metadata = MetadataTable(table.storage, table.config, table.timeline)
        return pa.Table.from_batches([to_display(metadata, partition, field)])

    def _complete_view(self) -> FileSystemView:
        """Return the view, after checking that all files of the handle's snapshot still exist."""
        view, table = self._view(), self._table
        _ = view.groups
        check_listing_complete(table.storage, table.config, table.timeline)
        return view

    def _view(self) -> FileSystemView:
        table = self._table
        return FileSystemView(table.storage, table.config, table.timeline)


def _files(view: FileSystemView) -> Iterator[BaseFile | LogFile]:
    for _, group in sorted(view.groups.items()):
        yield from sorted(group.bases, key=lambda file: file.name)
        yield from sorted(group.logs, key=LOG_ORDER)


def _commit(instant: Instant, metadata: CommitMetadata) -> dict[str, Any]:
    stats = metadata.write_stats
    return {
        "requested": instant.requested,
        "completed": instant.completed,
        "action": instant.action,
        "operation": metadata.operation_type,
        "partitions": sorted(metadata.partition_to_write_stats),
        "files": len(stats),
        "rows_written": sum(stat.num_writes for stat in stats),
        **row_counts(metadata),
        "bytes": sum(stat.total_write_bytes for stat in stats),
    }
