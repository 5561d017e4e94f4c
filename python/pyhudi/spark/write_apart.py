"""Rows that each Spark task writes to new files of its own: a bulk insert without a shuffle."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain

import pyarrow as pa
from pyspark.sql import DataFrame

from pyhudi.slices.write_base import write_file
from pyhudi.spark.columns import SEQ
from pyhudi.spark.engine import attempt_of
from pyhudi.spark.flow import arrow_schema, collected, mapped
from pyhudi.spark.keying import Batches, KeyRows
from pyhudi.spark.remote import RemoteSession
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.txn.result import WriteResult
from pyhudi.txn.transaction import Transaction
from pyhudi.write import incoming, plan_partitioned, row_sizes
from pyhudi.write.bulk_insert import plan_bulk
from pyhudi.write.execute import BULK_INSERT, WRITE_STAGE, carry_out
from pyhudi.write.write_context import Session

_FILE_BITS = 14
"""A file's number is its task's and, in so many bits, its own."""
_STATS = pa.schema([("stats", pa.binary())])


def write_apart(
    session: Session, data: DataFrame, schema_mode: str, memory_limit: int
) -> WriteResult:
    """Adds rows. memory_limit: bytes that a task may use; what is more goes to local files."""
    given = arrow_schema(data).empty_table()
    session, _ = session.evolved(given, schema_mode)
    step = WriteApart.of(session, given, schema_mode, memory_limit)
    session = session.recovered()
    with Transaction(session.table, BULK_INSERT) as txn:
        step = step.in_write(session, txn.instant)

        def written() -> list[tuple[WriteStat, ...]]:
            rows = collected(mapped(data, step, _STATS), f"write files of {txn.instant}")
            return [pickle.loads(row[0]) for row in rows]  # noqa: S301  our own tasks made them

        return carry_out(session, txn, [], BULK_INSERT, write=written)


@dataclass(frozen=True)
class WriteApart:
    """Gives rows their keys and writes them; what is written comes back as pickled statistics."""

    session: RemoteSession
    keys: KeyRows
    schema: pa.Schema
    """Of keyed rows."""
    memory_limit: int
    instant: str = ""
    """Of the write."""

    @classmethod
    def of(
        cls, session: Session, given: pa.Table, schema_mode: str, memory_limit: int
    ) -> WriteApart:
        """For rows with the schema of an empty table. Raises as `RemoteSession.keyed` does."""
        keys, schema = KeyRows.of(session, given, schema_mode, generate=True)
        return cls(keys.session, keys, schema, memory_limit)

    def in_write(self, session: Session, instant: str) -> WriteApart:
        """The step in a write that has begun, after the clean-up."""
        return replace(self, session=RemoteSession.of(session), instant=instant)

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """As a step of `flow.mapped`."""
        yield pa.table({"stats": [pickle.dumps(self.written(batches))]}, schema=_STATS)

    def written(self, batches: Batches) -> tuple[WriteStat, ...]:
        """Writes the rows of one Spark task."""
        pieces = (rows.drop_columns([SEQ]) for rows in self.keys(batches))
        taken = incoming.gathered(chain([self.schema.empty_table()], pieces), self.memory_limit)
        with ExitStack() as stack:
            rows = plan_bulk(stack, self.session, taken)
            tasks = plan_partitioned.plan_new_files(
                self.session.target(self.instant),
                rows,
                row_bytes=row_sizes.sampled_row_size(rows.values(), self.session.options),
                new_file_id=self.session.new_file_id,
            )
            attempt = attempt_of(WRITE_STAGE)
            first = attempt.task << _FILE_BITS
            return tuple(
                stat
                for number, task in enumerate(tasks)
                for stat in write_file(task, replace(attempt, task=first + number))
            )
