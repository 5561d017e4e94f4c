"""The verbs: upsert, insert and delete by key. Each is one transaction of one writer.

All checks of the table and the data come before the first change on storage, the clean-up after
dead writers included. Which files a write makes is `plan/write.py`'s part, where rows are already
is `index/`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi import _native
from pyhudi.index import simple
from pyhudi.keys import PARTITION_PATH, RECORD_KEY
from pyhudi.plan import write as plan
from pyhudi.plan.write import Incoming, Tagged, WriteTask
from pyhudi.txn import targets
from pyhudi.txn.result import WriteResult, result_of
from pyhudi.txn.rows import marked_deleted
from pyhudi.txn.session import Session
from pyhudi.txn.transaction import Transaction
from pyhudi.work.write import write_file

if TYPE_CHECKING:
    from pyhudi.clock import Clock
    from pyhudi.txn.session import WritableTable

UPSERT = "UPSERT"
INSERT = "INSERT"
DELETE = "DELETE"

_TAG_STAGE = 0
_WRITE_STAGE = 1


def upsert(table: WritableTable, data: Any, *, clock: Clock | None = None) -> WriteResult:
    """Replaces the rows whose keys the table has, adds the others.

    Rows of one key among the data are combined first, by the table's merge mode. Raises
    `SchemaMismatch` for data that do not fit, `UnsupportedTableFeature` for a table that pyhudi
    does not write to, `CommitConflict` for one that it must not write to now.
    """
    session = Session.open(table, clock)
    rows = session.with_keys(data)
    if session.merge_mode is not None:
        rows = _native.combine(
            rows, ordering_fields=session.config.ordering_fields, merge_mode=session.merge_mode
        )
    return _write_rows(session.recovered(), rows, UPSERT)


def insert(table: WritableTable, data: Any, *, clock: Clock | None = None) -> WriteResult:
    """Adds rows without looking whether the table, or the data twice, has their keys.

    Raises as `upsert` does.
    """
    session = Session.open(table, clock)
    rows = session.with_keys(data)
    return _write_rows(session.recovered(), rows, INSERT)


def delete_keys(table: WritableTable, keys: Any, *, clock: Clock | None = None) -> WriteResult:
    """Removes the rows with the given keys; keys that the table lacks are passed over.

    keys: data with the table's key columns and, to look in their partitions only, all partition
    columns. Other columns of the table are ignored. Raises as `upsert` does.
    """
    session = Session.open(table, clock)
    given, in_partitions = session.delete_keys(keys)
    session = session.recovered()
    partitions = given.column(PARTITION_PATH).unique().to_pylist() if in_partitions else None
    groups, slices = session.groups(partitions)
    tagged = simple.tag(
        session.engine,
        session.key_source,
        given,
        slices,
        stage=_TAG_STAGE,
        any_partition=not in_partitions,
    )
    plan.check_not_clustered(groups[number] for number, _ in tagged.by_group())
    with Transaction(session.writer, DELETE) as txn:
        target = session.target(txn.instant)
        return _run(session, txn, plan.plan_deletes(target, given, tagged, groups), DELETE)


def _write_rows(session: Session, rows: pa.Table, operation: str) -> WriteResult:
    partitions = rows.column(PARTITION_PATH).unique().to_pylist()
    groups, slices = session.groups(partitions)
    incoming = Incoming(
        rows=rows,
        marked_deleted=marked_deleted(
            rows, session.config.merge.delete_field, session.config.merge.delete_marker
        ),
        tagged=_NOWHERE,
        merge_by_key=operation == UPSERT,
    )
    if operation == UPSERT:
        keys = rows.select([RECORD_KEY, PARTITION_PATH])
        tagged = simple.tag(session.engine, session.key_source, keys, slices, stage=_TAG_STAGE)
        plan.check_not_clustered(groups[number] for number, _ in tagged.by_group())
        incoming = replace(incoming, tagged=tagged)
    with Transaction(session.writer, operation) as txn:
        tasks = plan.plan_rows(
            session.target(txn.instant),
            incoming,
            groups,
            row_bytes=targets.row_size(session.timeline, session.options),
            new_file_id=lambda: f"{session.writer.clock.uuid()}-0",
        )
        return _run(session, txn, tasks, operation)


_NOWHERE = Tagged(pa.array([], pa.int64()), pa.array([], pa.int64()))


def _run(
    session: Session, txn: Transaction, tasks: Sequence[WriteTask], operation: str
) -> WriteResult:
    txn.start(plan.workload_profile(tasks))
    stats = session.engine.run(
        write_file, tasks, stage=_WRITE_STAGE, label=f"write files of {txn.instant}"
    )
    completion = txn.commit(stats, session.schema.avro)
    return result_of(txn.instant, completion, operation, stats)
