"""`df.write.format("pyhudi")`: tasks write rows, and a worker next to the driver commits them.

A bulk insert of the table's own columns needs no shuffle: each task writes its rows to new data
files (`HudiWriter`). Every other write needs the rows of a file in one place, and a data source
cannot shuffle: the tasks stage their rows, and the worker that commits runs the operation on them
(`StagedWriter`), as `pyhudi.spark.write` does with a DataFrame.

Spark creates the writer in one Python worker next to the driver; the writer writes in executors,
and commits or aborts in another worker next to the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pyhudi.api.table import HudiTable
from pyhudi.clock import SystemClock
from pyhudi.config.log import logger
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import SchemaMismatch
from pyhudi.spark.executor_steps import struct_schema
from pyhudi.spark.hudi_operations import (
    ArrowRows,
    existing_table,
    operation_of,
    run_write,
)
from pyhudi.spark.shuffle_free_write import WriteWithoutShuffle
from pyhudi.spark.source_write_options import SourceWrite
from pyhudi.spark.staged_rows import Stage
from pyhudi.spark.task_errors import run_task, wrap_exceptions
from pyhudi.timeline import Timeline
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.txn.heartbeat import Heartbeat
from pyhudi.txn.lock_manager import lock_manager_for
from pyhudi.txn.transaction import Transaction
from pyhudi.write.execute import BULK_INSERT, needs_commit
from pyhudi.write.key_uniqueness_claims import key_claims
from pyhudi.write.upsert import open_write
from pyhudi.write.write_context import WriteContext


@dataclass
class Written(WriterCommitMessage):  # type: ignore[misc]
    """The data files of one task."""

    stats: tuple[WriteStat, ...]


@dataclass
class Staged(WriterCommitMessage):  # type: ignore[misc]
    """The staged files of one task."""

    stage: Stage
    names: tuple[str, ...]


@dataclass(frozen=True)
class StagedWrite:
    """A write whose rows go through a stage. Picklable."""

    query: SourceWrite
    mode: str
    columns: pa.Schema
    case: bool
    """Whether names that differ only in case are different."""
    stage: Stage

    @classmethod
    def begin(cls, query: SourceWrite, mode: str, schema: StructType, *, case: bool) -> StagedWrite:
        """Create the stage."""
        columns = struct_schema(schema)
        storage = query.target(LocalEngine(1)).storage
        return cls(query, mode, columns, case, Stage.create(storage, SystemClock()))

    def write(self, batches: Iterator[pa.RecordBatch]) -> Staged:
        """On an executor: stage the rows of one task."""
        return Staged(self.stage, self.stage.write(batches, SystemClock()))

    def commit(self, messages: Sequence[Staged | None], entries: dict[str, str]) -> None:
        """Next to the driver: run the operation on the rows. entries: metadata of the commit."""
        names = [name for message in messages if message is not None for name in message.names]
        try:
            with self.stage.load(names, self.columns) as rows:
                # The operation may remove the table to replace it.
                self.stage.remove()
                target = self.query.target(LocalEngine(), commit_metadata=entries or None)
                run_write(ArrowRows(rows, self.case), self.query.request, target, self.mode)
        finally:
            self.stage.remove()


class TaskStaging:
    """The tasks of Spark's writers through a stage, of batches and of streams."""

    def __init__(self, write: StagedWrite) -> None:
        super().__init__()
        self._write = write

    @wrap_exceptions()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        """On an executor: stage the rows of one task."""
        return self._write.write(iterator)


class StagedWriter(TaskStaging, DataSourceArrowWriter):  # type: ignore[misc]
    """One write through a stage. Creating the writer creates the stage."""

    @wrap_exceptions()
    def commit(self, messages: Sequence[Staged | None]) -> None:
        """Next to the driver: run the operation on the rows of all tasks."""
        self._write.commit(messages, {})

    def abort(self, messages: Sequence[Staged | None]) -> None:  # noqa: ARG002 - Spark's
        """Next to the driver: remove the rows."""
        self._write.stage.remove()


class _DriverEngine(LocalEngine):
    """The engine next to the driver of a write whose tasks Spark runs."""

    @property
    def has_late_tasks(self) -> bool:
        """Yes, those of Spark."""
        return True


class HudiWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """One bulk insert. Creating the writer starts the write."""

    def __init__(self, context: WriteContext, step: WriteWithoutShuffle) -> None:
        """Start the write. Raises what `HudiTable.bulk_insert` raises."""
        super().__init__()
        context = context.recover()
        txn = Transaction(context.table, BULK_INSERT, shared=True).__enter__()
        txn.start(None)
        self._step = step.in_write(context, txn.instant)

    @run_task()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """On an executor: write the rows of one task, and keep the write's heartbeat alive."""
        context = self._step.context
        beat = Heartbeat(context.storage, self._step.instant, SystemClock(), owned=False)
        beat.join()
        try:
            # The user would not see a warning of Spark's worker, so no keys are counted.
            stats, _ = self._step.write_rows(iterator)
            return Written(stats)
        finally:
            beat.stop_beating()

    @wrap_exceptions()
    def commit(self, messages: Sequence[Written | None]) -> None:
        """Next to the driver: publish the files of all tasks."""
        stats = [stat for message in messages if message is not None for stat in message.stats]
        context = self._step.context
        with self._resume_transaction() as txn:
            txn.by_record_index = context.index.is_record_index
            txn.participants += key_claims(context, BULK_INSERT)
            if stats or needs_commit(context):
                txn.commit(stats, context.commit_schema)
                rows = sum(stat.num_inserts for stat in stats)
                message_format = "%s: committed %s %s: %d rows in %d files"
                uri = context.storage.uri
                logger.info(message_format, uri, BULK_INSERT, txn.instant, rows, len(stats))
            else:
                txn.withdraw()

    @wrap_exceptions()
    def abort(self, messages: Sequence[Written | None]) -> None:  # noqa: ARG002 - Spark's
        """Next to the driver: roll the write back."""
        self._resume_transaction().roll_back()

    def _resume_transaction(self) -> Transaction:
        table = self._step.context.table
        lock_manager = lock_manager_for(table.storage, table.options, table.clock)
        table = replace(table, engine=_DriverEngine(), lock_manager=lock_manager)
        table.generator.observe(Timeline.load(table.storage, table.config))
        return Transaction.resume(table, BULK_INSERT, self._step.instant)


def writer_of(
    query: SourceWrite, schema: StructType, *, overwrite: bool, case: bool
) -> DataSourceArrowWriter:
    """Return the writer of a batch. Raises what `pyhudi.spark.write` raises before it has rows."""
    mode = "overwrite" if overwrite else "append"
    table = existing_table(query.target(LocalEngine(1)), query.request, mode)
    bulk_insert = None if table is None or overwrite else _bulk_insert(table, query, schema)
    if bulk_insert is not None:
        return HudiWriter(*bulk_insert)
    return StagedWriter(StagedWrite.begin(query, mode, schema, case=case))


def _bulk_insert(
    table: HudiTable, query: SourceWrite, schema: StructType
) -> tuple[WriteContext, WriteWithoutShuffle] | None:
    """Return the step of a write without a shuffle; None if the write needs one."""
    request = query.request
    if operation_of(request, table.config) != "bulk_insert" or request.sort != "none":
        return None
    context = open_write(table, None, query.memory_limit)
    if context.index.has_buckets or context.options.combine_inserts:
        return None
    rows = struct_schema(schema).empty_table()
    try:
        step = WriteWithoutShuffle.of(context, rows, "strict", query.memory_limit)
    except SchemaMismatch:  # The columns differ from the table's.
        return None
    return context, step
