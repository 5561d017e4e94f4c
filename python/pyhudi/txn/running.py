"""Carrying out planned tasks in a transaction, the same for every verb."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pyhudi.plan import write as plan
from pyhudi.plan.write import BaseFileTask, WriteTask
from pyhudi.txn.result import WriteResult, result_of
from pyhudi.work.write import write_file

if TYPE_CHECKING:
    from pyhudi.timeline.metadata import WriteStat
    from pyhudi.txn.session import Session
    from pyhudi.txn.transaction import Transaction

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
    """Writes the files of the tasks and commits them.

    replaced: file ids by partition path that a replace commit takes away. write: writes the files
    where the rows of the tasks are not with them.
    """
    txn.by_record_index = session.index.is_record_index
    # Hudi's bulk insert has no profile.
    txn.start(None if operation == BULK_INSERT else plan.workload_profile(tasks))
    label = f"write files of {txn.instant}"
    written = (
        session.engine.run(write_file, tasks, stage=WRITE_STAGE, label=label)
        if write is None
        else write()
    )
    stats = [stat for stats in written for stat in stats]
    completion = txn.commit(stats, session.schema_words, replaced)
    return result_of(
        txn.instant,
        completion,
        operation,
        stats,
        bytes_read=bytes_read(tasks),
        duration_ms=session.writer.clock.now_ms() - session.started_ms,
        file_groups_replaced=sum(len(ids) for ids in (replaced or {}).values()),
    )


def bytes_read(tasks: Iterable[WriteTask]) -> int:
    """Sizes of the slices that tasks read to write them anew."""
    previous = (task.previous for task in tasks if isinstance(task, BaseFileTask))
    return sum(slice_.size for slice_ in previous if slice_ is not None)
