"""`df.write.format("pyhudi")`: each task writes its rows to new files, without a shuffle.

This is a bulk insert without key lookups. Spark creates the writer in one Python worker next to the
driver, which starts the write on the timeline; the writer writes in executors, and commits or
aborts in another worker next to the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pyhudi.clock import SystemClock
from pyhudi.config.index_options import INDEX_TYPE
from pyhudi.config.log import logger
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.spark.executor_steps import struct_schema
from pyhudi.spark.shuffle_free_write import WriteWithoutShuffle
from pyhudi.spark.source_options import Query
from pyhudi.spark.task_errors import wrap_exceptions
from pyhudi.timeline import Timeline
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.txn.heartbeat import Heartbeat
from pyhudi.txn.lock_manager import lock_manager_for
from pyhudi.txn.transaction import Transaction
from pyhudi.write.execute import BULK_INSERT, needs_commit
from pyhudi.write.key_uniqueness_claims import key_claims
from pyhudi.write.upsert import open_write

_HINT = "Pass the DataFrame to a method of pyhudi.open_table(uri), such as upsert."


@dataclass
class Written(WriterCommitMessage):  # type: ignore[misc]
    """The files of one task."""

    stats: tuple[WriteStat, ...]


class HudiWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """One bulk insert. Creating the writer starts the write."""

    def __init__(self, query: Query, schema: StructType) -> None:
        """Start the write. Raises what `HudiTable.bulk_insert` raises, and for a needed shuffle."""
        super().__init__()
        context = open_write(query.table(), None, query.memory_limit)
        if context.index.has_buckets:
            index_type = context.index.index_type
            msg = (
                f'{INDEX_TYPE} is {index_type}: df.write.format("pyhudi") cannot shuffle by bucket'
            )
            raise UnsupportedTableFeature(msg, hint=_HINT)
        if context.options.combine_inserts:
            msg = (
                'hoodie.combine.before.insert: df.write.format("pyhudi") cannot combine rows by key'
            )
            raise UnsupportedTableFeature(msg, hint=_HINT)
        input_rows = struct_schema(schema).empty_table()
        step = WriteWithoutShuffle.of(context, input_rows, "strict", query.memory_limit)
        context = context.recover()
        txn = Transaction(context.table, BULK_INSERT, shared=True).__enter__()
        txn.start(None)
        self._step = step.in_write(context, txn.instant)

    @wrap_exceptions()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """On an executor: write the rows of one task, and keep the write's heartbeat alive."""
        context = self._step.context
        beat = Heartbeat(context.storage, self._step.instant, SystemClock(), owned=False)
        beat.start()
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
        table = replace(table, engine=LocalEngine(), lock_manager=lock_manager)
        table.generator.observe(Timeline.load(table.storage, table.config))
        return Transaction.resume(table, BULK_INSERT, self._step.instant)


def writer_of(query: Query, schema: StructType, *, overwrite: bool) -> HudiWriter:
    """Return the writer. Raises for overwrites, and operations that need a shuffle."""
    if overwrite:
        raise UnsupportedTableFeature(
            'df.write.format("pyhudi").mode("overwrite") does not say which partitions to replace',
            hint="Call overwrite or overwrite_partitions of the table with the DataFrame.",
        )
    if query.operation not in (None, "bulk_insert"):
        msg = f"the operation {query.operation!r} needs a shuffle, which a data source cannot do"
        raise UnsupportedTableFeature(msg, hint=_HINT)
    return HudiWriter(query, schema)
