"""Carrying out planned tasks in a transaction, the same for every verb."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pyhudi.config.options import commit_metadata
from pyhudi.schema.table_schema import table_schema
from pyhudi.slices.write_base import write_file
from pyhudi.slices.write_tasks import BaseFileTask, WriteTask
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.txn.result import WriteResult, result_of
from pyhudi.txn.transaction import Transaction
from pyhudi.write import plan_rows as plan
from pyhudi.write.key_claims import key_claims
from pyhudi.write.write_context import Session

UPSERT = "UPSERT"
INSERT = "INSERT"
BULK_INSERT = "BULK_INSERT"
DELETE = "DELETE"

TAG_STAGE = 0
WRITE_STAGE = 1


def carry_out(
    session: Session,
    txn: Transaction,
    tasks: Sequence[WriteTask],
    operation: str,
    *,
    replaced: Mapping[str, tuple[str, ...]] | None = None,
    write: Callable[[], Iterable[tuple[WriteStat, ...]]] | None = None,
) -> WriteResult:
    """Writes the files of the tasks and commits them, unless that changes nothing.

    replaced: file ids by partition path that a replace commit takes away. write: writes the files
    where the rows of the tasks are not with them.
    """
    txn.by_record_index = session.index.is_record_index
    txn.companions += key_claims(session, operation)
    # Hudi's bulk insert has no profile.
    txn.start(None if operation == BULK_INSERT else plan.workload_profile(tasks))
    label = f"write files of {txn.instant}"
    written = (
        session.engine.run(write_file, tasks, stage=WRITE_STAGE, label=label)
        if write is None
        else write()
    )
    stats = [stat for stats in written for stat in stats]
    instant, completion = txn.instant, ""
    if stats or any((replaced or {}).values()) or is_worth_a_commit(session):
        completion = txn.commit(stats, session.schema_words, replaced)
    else:
        txn.withdraw()
        instant = ""
    return result_of(
        instant,
        completion,
        operation,
        stats,
        rows_ignored=rows_ignored(tasks, stats),
        bytes_read=bytes_read(tasks),
        duration_ms=session.table.clock.now_ms() - session.started_ms,
        file_groups_replaced=sum(len(ids) for ids in (replaced or {}).values()),
    )


def is_worth_a_commit(session: Session) -> bool:
    """Whether a write without files or replaced file groups is to be a commit all the same.

    It is where it changes the table's schema, where the handle's options have something to say in
    each commit, such as the batch of a stream, and where `hoodie.allow.empty.commit` is true.
    """
    if session.options.allow_empty_commit or commit_metadata(session.table.options):
        return True
    stored = table_schema(session.storage, session.config, session.timeline)
    return (stored.avro, stored.history) != (session.schema.avro, session.schema.history)


def rows_ignored(tasks: Iterable[WriteTask], stats: Iterable[WriteStat]) -> int:
    """Rows that were to be merged into base files and lost against what is stored there."""
    changed = {
        (stat.partition_path, stat.file_id): (
            stat.num_inserts + stat.num_update_writes + stat.num_deletes
        )
        for stat in stats
    }
    return sum(
        max(task.inserts + task.updates - changed.get((task.partition, task.file_id), 0), 0)
        for task in tasks
        if isinstance(task, BaseFileTask) and task.previous is not None and task.rows is not None
    )


def bytes_read(tasks: Iterable[WriteTask]) -> int:
    """Sizes of the slices that tasks read to write them anew."""
    previous = (task.previous for task in tasks if isinstance(task, BaseFileTask))
    return sum(slice_.size for slice_ in previous if slice_ is not None)
