"""Ingests a source: a loop of batches, each of which is one commit with rows and checkpoint."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event
from typing import Any, Literal, get_args
from warnings import warn

import pyarrow as pa

from pyhudi.api.create import TableTypeName, create_table
from pyhudi.api.progress import Progress
from pyhudi.api.table import HudiTable, open_table
from pyhudi.config import argument_checks as arg
from pyhudi.config.argument_checks import KEY_HINT, ArgumentError
from pyhudi.config.formatting import count_text
from pyhudi.config.memory_size import MemorySize
from pyhudi.config.options import WRITE_PAYLOAD_CLASS
from pyhudi.engine.protocol import Engine
from pyhudi.errors import ColumnTypeWarning, CommitConflict, ConfigError, TableNotFound
from pyhudi.ingestion.bad_records import BadRecordSink
from pyhudi.ingestion.checkpoint import Position, commit_entries, find_position
from pyhudi.ingestion.column_selection import ColumnSelection
from pyhudi.ingestion.debezium import ordering_fields
from pyhudi.ingestion.row_checks import CheckedRows
from pyhudi.ingestion.source import Source, SourceBatch
from pyhudi.storage.storage import Storage
from pyhudi.txn.result import WriteResult

Operation = Literal["upsert", "insert", "bulk_insert"]


@dataclass(frozen=True)
class IngestResult:
    """The result of an ingestion."""

    commits: int = 0
    """Number of commits."""
    rows: int = 0
    """Number of rows that the commits were given."""
    bad_records: int = 0
    """Number of records that were left out."""
    checkpoint: str | None = None
    """The checkpoint of the last commit; None without a commit."""
    last: WriteResult | None = None
    """The result of the last commit."""

    def __str__(self) -> str:
        text = f"{count_text(self.rows, 'row')} in {count_text(self.commits, 'commit')}"
        bad = f", {count_text(self.bad_records, 'bad record')}" if self.bad_records else ""
        return f"{text}{bad}"


@dataclass(frozen=True)
class NewTable:
    """How a missing table is created."""

    key: str | Sequence[str] | None
    """No columns if the caller did not choose; None for a table without a key."""
    partition_by: str | Sequence[str] | None
    order_by: str | Sequence[str] | None
    type: TableTypeName
    version: int
    index: str | None

    def check_key(self, uri: str | os.PathLike[str], operation: Operation) -> None:
        """Raise `ArgumentError` if no key is chosen, or upserts cannot find rows by it."""
        if self.key is None and operation == "upsert":
            raise ArgumentError(
                f"{os.fspath(uri)} does not exist, and upserts into a table without a key are not "
                "possible",
                hint="Pass operation='insert', or the key columns, such as key='id'.",
            )
        if self.key is not None and not self.key:
            raise ArgumentError(
                f"{os.fspath(uri)} does not exist, and the new table's key is missing",
                hint=KEY_HINT,
            )

    def check(self, table: HudiTable) -> None:
        """Raise `ConfigError` if an existing table has other key, partition or ordering columns."""
        config = table.config
        requested = {
            "key": (() if self.key is None else self.key or None, config.record_key_fields),
            "partition_by": (self.partition_by, config.partition_fields),
            "order_by": (self.order_by, config.ordering_fields),
        }
        for name, (argument, columns) in requested.items():
            passed = [argument] if isinstance(argument, str) else argument
            # `city:simple` names the column and its key generator.
            if passed is not None and [each.partition(":")[0] for each in passed] != [*columns]:
                value, stored = getattr(self, name), ", ".join(columns) or "none"
                raise ConfigError(
                    f"{name} is {value!r}, and {table.uri} has {stored}",
                    hint=f"Leave out {name}: an existing table keeps its columns.",
                )


@arg.check_arguments(
    key=arg.check_ordered_names,
    partition_by=arg.check_ordered_names,
    order_by=arg.check_ordered_names,
)
def ingest(
    table: HudiTable | str | os.PathLike[str],
    source: Source,
    *,
    key: str | Sequence[str] | None = (),
    partition_by: str | Sequence[str] | None = None,
    order_by: str | Sequence[str] | None = None,
    type: TableTypeName = "cow",  # noqa: A002 - as in create_table
    version: int = 9,
    index: str | None = None,
    operation: Operation = "upsert",
    columns: Sequence[str] | None = None,
    rename: Mapping[str, str] | None = None,
    checkpoint: str | None = None,
    interval: float | None = None,
    bad_records: str | os.PathLike[str] | None = None,
    max_bad_records: int = 0,
    memory_limit: MemorySize | None = None,
    options: Mapping[str, object] | None = None,
    storage_options: Mapping[str, str] | None = None,
    engine: Engine | None = None,
    progress: Progress = False,
    on_commit: Callable[[WriteResult], None] | None = None,
    stop: Event | None = None,
) -> IngestResult:
    """Write what is new in a source to a table: every record once, whatever fails.

    A commit has rows and the source's checkpoint, so that both are in the table or neither is. The
    next call continues at the newest checkpoint. Checkpoints are those of Hudi's streamer
    (`HoodieStreamer`), which can continue them, and the other way round. Of two calls at the same
    time, the one that commits later reads again from the checkpoint of the other.

    Args:
        table: location or name of the table, as in `open_table`, or a handle. A missing table is
            created with the columns of the first batch.
        source: a `FileSource`, `SqlSource` or `KafkaSource`.
        key: record key columns; None for an append-only table with generated keys, whose operation
            must not be "upsert". A new table needs one of both.
        partition_by: as in `create_table`, for a new table.
        order_by: as in `create_table`, for a new table.
        type: as in `create_table`, for a new table.
        version: as in `create_table`, for a new table.
        index: as in `create_table`, for a new table.
        operation: the table's method that writes the rows: "upsert", "insert" or "bulk_insert". New
            columns are added to the table, and numbers widened.
        columns: only these columns of the source; all by default.
        rename: new names by those in the source.
        checkpoint: where to begin, in place of the table's checkpoint. The commits store it: a
            second call with the same value continues.
        interval: seconds to wait when the source has no new data, again and again; None to return
            instead.
        bad_records: a directory or URI that gets a file of JSON lines for each batch with records
            that are not rows, with the reason.
        max_bad_records: maximum number of records to leave out; more raise `SchemaMismatch`.
        memory_limit: as in `HudiTable.upsert`.
        options: as in `open_table`.
        storage_options: as in `open_table`, of the table.
        engine: as in `open_table`.
        progress: as in `HudiTable.upsert`.
        on_commit: function that gets the result of each commit.
        stop: event that another thread sets to end the call after the commit that is running.

    Returns:
        Numbers of commits, rows and bad records.

    Raises:
        SchemaMismatch: the records do not match the table, or too many are bad.
        ConfigError: an argument is wrong, or the table's checkpoint is of another source.
        CommitConflict: another writer changed the same file groups, or is active on the table.
        UnsupportedTableFeature: pyhudi does not write to the table.
        LockTimeout: the table's lock was not free in time.
        AfterCommitError: the batch is committed; a later step failed.
        StorageError: the storage or the source fails.
    """
    if not hasattr(source, "fetch"):
        raise ConfigError(
            f"{source!r} is not a source",
            hint="Pass pyhudi.FileSource(directory), pyhudi.SqlSource or pyhudi.KafkaSource.",
        )
    if operation not in get_args(Operation):
        raise ConfigError(
            f"operation is {operation!r}", hint=f"It is one of {get_args(Operation)}."
        )
    if columns is not None and not columns:
        # A commit without columns would move the checkpoint past the rows.
        raise ConfigError("columns is empty", hint="Leave it out to get all columns.")
    if interval is not None and interval <= 0:
        raise ConfigError(f"interval is {interval}; it must be more than 0 seconds")
    if max_bad_records < 0:
        raise ConfigError("max_bad_records must be at least 0")
    sink_folder = None if bad_records is None else Storage(os.fspath(bad_records), storage_options)
    run = _Run(
        uri=table.uri if isinstance(table, HudiTable) else table,
        table=table if isinstance(table, HudiTable) else None,
        source=source,
        new=NewTable(key, partition_by, order_by, type, version, index),
        operation=operation,
        selection=ColumnSelection(columns, rename or {}),
        reset=checkpoint,
        bad=BadRecordSink(sink_folder, max_bad_records),
        memory_limit=memory_limit,
        options=options,
        storage_options=storage_options,
        engine=engine,
        progress=progress,
    )
    if run.table is not None:
        run.new.check(run.table)
    return run.until_stopped(stop or Event(), interval, on_commit)


@dataclass
class _Run:
    """One ingestion: the arguments, and the table as soon as it exists."""

    uri: str | os.PathLike[str]
    source: Source
    new: NewTable
    operation: Operation
    selection: ColumnSelection
    reset: str | None
    bad: BadRecordSink
    memory_limit: MemorySize | None
    options: Mapping[str, object] | None
    storage_options: Mapping[str, str] | None
    engine: Engine | None
    progress: Progress
    table: HudiTable | None = None
    result: IngestResult = field(default_factory=IngestResult)

    def until_stopped(
        self, stop: Event, interval: float | None, on_commit: Callable[[WriteResult], None] | None
    ) -> IngestResult:
        """Write batches until the source has no more, or for ever with an interval."""
        while not stop.is_set():
            self._load_table()
            position = find_position(self.table, self.source.name, self.reset)
            batch = self.source.fetch(position, self._types())
            if batch is None:
                if interval is None or stop.wait(interval):
                    break
                continue
            written = self._write(batch, position)
            if written is not None and on_commit is not None:
                on_commit(written)
        return self.result

    def _load_table(self) -> None:
        if self.table is not None:
            self.table.refresh()
            return
        with suppress(TableNotFound):
            self.table = open_table(
                self.uri,
                storage_options=self.storage_options,
                options=self.options,
                engine=self.engine,
            )
            self.new.check(self.table)
            return
        self.new.check_key(self.uri, self.operation)

    def _types(self) -> pa.Schema | None:
        """Return the types of columns by their names in the source."""
        if self.table is None:
            return None
        return self.selection.in_source(self.table.schema)

    def _write(self, batch: SourceBatch, position: Position) -> WriteResult | None:
        """Write a batch; return None if another process has moved the checkpoint."""
        put_bad = partial(self.bad.put, self.source.name, batch.checkpoint)
        data: Any = CheckedRows(
            batch, self.selection, self._columns_without_nulls(), self.source.name, put_bad
        )
        if self.table is None:
            self.bad.check(batch.bad)
            self.table = self._create(data.schema, batch.payload_class)
            _warn_of_columns_without_type(data.columns_without_type)
        table = self.table
        if not data.schema.names:
            put_bad(batch.bad)
            data = table.schema.empty_table()
        entries = {
            **commit_entries(table, self.source.name, batch.checkpoint, position, self.reset),
            **batch.entries,
        }
        try:
            written: WriteResult = getattr(table, self.operation)(
                data,
                schema_mode="merge",
                memory_limit=self.memory_limit,
                commit_metadata=entries,
                progress=self.progress,
            )
        except CommitConflict:
            table.refresh()
            if find_position(table, self.source.name, self.reset).instant == position.instant:
                raise
            return None
        self.bad.confirm()
        self.result = replace(
            self.result,
            commits=self.result.commits + 1,
            rows=self.result.rows + (written.rows_in or 0),
            bad_records=self.bad.count,
            checkpoint=batch.checkpoint,
            last=written,
        )
        return written

    def _columns_without_nulls(self) -> list[str]:
        """Return the columns without nulls: keys, and those that the table requires."""
        if self.table is None:
            key = self.new.key or ()
            names = [key] if isinstance(key, str) else [*key]
            return [name.split(".")[0] for name in names]
        keys = [name.split(".")[0] for name in self.table.config.record_key_fields]
        return list(
            dict.fromkeys([*keys, *(each.name for each in self.table.schema if not each.nullable)])
        )

    def _create(self, schema: pa.Schema, payload_class: str | None) -> HudiTable:
        """Create the table without rows, unless another process has created it."""
        if not schema.names:
            raise ConfigError(
                f"{os.fspath(self.uri)} does not exist, and the first records of the source have "
                "no columns",
                hint="Create the table first: pyhudi create.",
            )
        new, options = self.new, self.options
        if payload_class is not None:
            options = {WRITE_PAYLOAD_CLASS: payload_class, **(options or {})}
            order_by = new.order_by or ordering_fields(payload_class, new.version)
            new = replace(new, order_by=order_by)
        return create_table(
            self.uri,
            schema,
            key=new.key,
            partition_by=new.partition_by,
            order_by=new.order_by,
            type=new.type,
            version=new.version,
            index=new.index,
            mode="ignore",
            options=options,
            storage_options=self.storage_options,
            engine=self.engine,
        )


def _warn_of_columns_without_type(names: Sequence[str]) -> None:
    if names:
        warn(
            f"all values of {', '.join(names)} are null, so the type is unknown and the new table "
            "has no such column: the first batch with a value adds it. To choose the type, create "
            "the table first: pyhudi.create_table, or pyhudi create",
            ColumnTypeWarning,
            stacklevel=2,
        )
