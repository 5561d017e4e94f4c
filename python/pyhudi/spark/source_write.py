"""`df.write.format("pyhudi")`: rows go to new files, each task's to its own, without a shuffle.

That is a bulk insert without looking for keys. Spark makes the writer in one Python worker beside
the driver, which starts the write on the timeline, writes in executors, and commits or aborts in
another worker beside the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from pyhudi.engine.local import LocalEngine
from pyhudi.engine.protocol import Attempt
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.index.options import BUCKET, INDEX_TYPE, PARTITIONED_RECORD_INDEX, RECORD_INDEX
from pyhudi.plan import parts
from pyhudi.spark.columns import SEQ
from pyhudi.spark.engine import attempt_of
from pyhudi.spark.flow import struct_schema
from pyhudi.spark.keying import KeyRows
from pyhudi.spark.remote import RemoteSession
from pyhudi.timeline import Timeline
from pyhudi.txn import intake, targets
from pyhudi.txn.bulk import plan_bulk
from pyhudi.txn.operations import opened
from pyhudi.txn.running import BULK_INSERT, WRITE_STAGE
from pyhudi.txn.transaction import Transaction
from pyhudi.work.write import write_file

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from pyhudi.spark.source_options import Query
    from pyhudi.timeline.metadata import WriteStat

_FILE_BITS = 14
"""A file's number is its task's and, in so many bits, its own."""
_HINT = "The verbs of pyhudi.open_table(uri) take a DataFrame."


@dataclass
class Written(WriterCommitMessage):  # type: ignore[misc]
    """The files of one task."""

    stats: tuple[WriteStat, ...]


class HudiWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """One bulk insert. Making it starts the write."""

    def __init__(self, query: Query, schema: StructType) -> None:
        """Raises what `HudiTable.bulk_insert` raises, and refuses what would need a shuffle."""
        super().__init__()
        given = struct_schema(schema).empty_table()
        session = opened(query.table(), None, query.memory_limit)
        if session.index.kind == BUCKET:
            msg = (
                f'{INDEX_TYPE} is {BUCKET}: df.write.format("pyhudi") cannot bring buckets together'
            )
            raise UnsupportedTableFeature(msg, hint=_HINT)
        if session.options.combine_inserts:
            msg = (
                'hoodie.combine.before.insert: df.write.format("pyhudi") cannot bring keys together'
            )
            raise UnsupportedTableFeature(msg, hint=_HINT)
        generated = session.key_spec().keys_are_generated
        self._key_instant = session.key_instant() if generated else None
        remote = RemoteSession.of(session)
        self._schema = remote.keyed(given, "strict", self._key_instant, (0, 0)).schema
        session = session.recovered()
        self._session = RemoteSession.of(session)
        self._memory_limit = query.memory_limit
        txn = Transaction(session.writer, BULK_INSERT).__enter__()
        txn.start(None)
        self._instant = txn.instant

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """On an executor: writes the rows of one task."""
        session = self._session
        keyed = KeyRows(session, "strict", self._key_instant)(iterator)
        pieces = (rows.drop_columns([SEQ]) for rows in keyed)
        taken = intake.gathered(chain([self._schema.empty_table()], pieces), self._memory_limit)
        with ExitStack() as stack:
            rows = plan_bulk(stack, session, taken)
            tasks = parts.plan_new_files(
                session.target(self._instant),
                rows,
                row_bytes=targets.sampled_row_size(rows.values(), session.options),
                new_file_id=session.new_file_id,
            )
            stats = [
                stat
                for number, task in enumerate(tasks)
                for stat in write_file(task, _attempt(number))
            ]
        return Written(tuple(stats))

    def commit(self, messages: Sequence[Written | None]) -> None:
        """Beside the driver: publishes the files of all tasks."""
        stats = [stat for message in messages if message is not None for stat in message.stats]
        with self._resumed() as txn:
            kind = self._session.index.kind
            txn.by_record_index = kind in (RECORD_INDEX, PARTITIONED_RECORD_INDEX)
            txn.commit(stats, self._session.schema_words)

    def abort(self, messages: Sequence[Written | None]) -> None:  # noqa: ARG002 - Spark's
        """Beside the driver: takes the write back."""
        self._resumed().roll_back()

    def _resumed(self) -> Transaction:
        writer = replace(self._session.writer, engine=LocalEngine())
        writer.generator.observe(Timeline.load(writer.storage, writer.config))
        return Transaction.resumed(writer, BULK_INSERT, self._instant)


def writer_of(query: Query, schema: StructType, *, overwrite: bool) -> HudiWriter:
    """Refuses to overwrite, and operations that need a shuffle."""
    if overwrite:
        raise UnsupportedTableFeature(
            'df.write.format("pyhudi").mode("overwrite"): Spark does not say what is to go',
            hint="overwrite and overwrite_partitions of a table take a DataFrame.",
        )
    if query.operation not in (None, "bulk_insert"):
        msg = f"the operation {query.operation!r} needs a shuffle, which a data source cannot do"
        raise UnsupportedTableFeature(msg, hint=_HINT)
    return HudiWriter(query, schema)


def _attempt(number: int) -> Attempt:
    attempt = attempt_of(WRITE_STAGE)
    return replace(attempt, task=(attempt.task << _FILE_BITS) + number)
