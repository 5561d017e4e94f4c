"""A heartbeat for work without an instant: building a metadata table, changing a table's version.

The heartbeat shows other writers that the work is active. The table's properties name it while the
operation is pending (`metadata/pending_operation.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pyhudi.clock import Clock
from pyhudi.config.actions import INDEXING
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CommitConflict
from pyhudi.metadata.pending_operation import PendingOperation
from pyhudi.storage.storage import Storage
from pyhudi.table.locking import LockManager
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import InstantGenerator, Timeline
from pyhudi.txn.heartbeat import Heartbeat, live_instants, path_of


@contextmanager
def build_heartbeat(
    storage: Storage, clock: Clock, lock_manager: LockManager
) -> Iterator[tuple[TableConfig, str]]:
    """Hold a heartbeat in a critical section; yield the table's properties and its name.

    The name is that of a failed writer's pending operation, if there is one. Raises
    `CommitConflict` if that writer is active, `LockTimeout` if the lock is not available in time.
    """
    # Raises before a lock is created if there is no table.
    TableConfig.load(storage, clock)
    with lock_manager.critical_section():
        config = TableConfig.load(storage, clock)
        with _heartbeat(storage, config, clock) as config_and_name:
            yield config_and_name


def fence_build(table: TableSnapshot) -> None:
    """Fence a writer that builds a part of the metadata table, unless it still checks for commits.

    A writer that completes or rolls back commits calls it under the table's lock. The builder has
    then failed or lost the lock. A concurrent index build checks once more before its indexing is
    complete. table: the current snapshot.
    """
    pending = PendingOperation.of(table.config)
    if not pending:
        return
    is_indexing_complete = any(
        instant.is_completed
        and (instant.requested, instant.action) == (pending.heartbeat, INDEXING)
        for instant in table.timeline.instants
    )
    if is_indexing_complete or not pending.is_concurrent or pending.times_fenced:
        pending.fence(table.storage, table.config, table.clock)


def _new_instant(storage: Storage, config: TableConfig, clock: Clock) -> str:
    """Return a time that no instant has, since a heartbeat counts for the instant of its name."""
    generator = InstantGenerator(clock, config.timezone)
    generator.observe(Timeline.load(storage, config))
    return generator.next()


@contextmanager
def _heartbeat(
    storage: Storage, config: TableConfig, clock: Clock
) -> Iterator[tuple[TableConfig, str]]:
    pending = PendingOperation.of(config)
    if pending and live_instants(storage, {pending.heartbeat}, clock):
        msg = "another writer is building the metadata table or changing the table's version"
        raise CommitConflict(
            msg, hint="Wait until it is done, or two minutes if it has failed, then retry."
        )
    name = pending.heartbeat or _new_instant(storage, config, clock)
    heartbeat = Heartbeat(storage, name, clock)
    try:
        heartbeat.start()
        if pending:
            config = pending.fence(storage, config, clock)
        yield config, name
    except BaseException:
        heartbeat.stop_beating()
        with suppress(Exception):
            storage.delete(path_of(name))
        raise
    heartbeat.stop()
