"""A heartbeat for work that is not a write: building a metadata table, changing a table's version.

Such work has no instant on the timeline. Its heartbeat shows other writers that it is active; the
table's properties name it while an operation is pending (`metadata/pending_operation.py`).
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

    The name is that of the pending operation of a failed writer, if there is one. Raises
    `CommitConflict` if that writer is active, `LockTimeout` if the critical section cannot be
    entered.
    """
    # Without a table no lock is created.
    TableConfig.load(storage, clock)
    with lock_manager.critical_section():
        config = TableConfig.load(storage, clock)
        with _beating(storage, config, clock) as begun:
            yield begun


def fence_build(table: TableSnapshot) -> None:
    """Fence a writer that builds a part of the metadata table, if it has made its last check.

    Called under the table's lock by a writer that completes or rolls back commits: the builder has
    lost the lock, or has failed. Only a concurrent index build still checks once more, until its
    indexing is complete.

    table: the current snapshot.
    """
    undone = PendingOperation.of(table.config)
    if not undone:
        return
    completed = (one for one in table.timeline.instants if one.is_completed)
    is_last = any((one.requested, one.action) == (undone.by, INDEXING) for one in completed)
    if is_last or not undone.beside or undone.overtaken:
        undone.fence(table.storage, table.config, table.clock)


def _new_name(storage: Storage, config: TableConfig, clock: Clock) -> str:
    """Return a time that no instant has; its heartbeat would count for that instant."""
    generator = InstantGenerator(clock, config.timezone)
    generator.observe(Timeline.load(storage, config))
    return generator.next()


@contextmanager
def _beating(
    storage: Storage, config: TableConfig, clock: Clock
) -> Iterator[tuple[TableConfig, str]]:
    undone = PendingOperation.of(config)
    if undone and live_instants(storage, {undone.by}, clock):
        msg = "another writer is building the metadata table or changing the table's version"
        raise CommitConflict(
            msg, hint="Wait until it is done, or two minutes if it has failed, then retry."
        )
    name = undone.by or _new_name(storage, config, clock)
    heartbeat = Heartbeat(storage, name, clock)
    try:
        heartbeat.start()
        if undone:
            config = undone.fence(storage, config, clock)
        yield config, name
    except BaseException:
        heartbeat.stop_beating()
        with suppress(Exception):
            storage.delete(path_of(name))
        raise
    heartbeat.stop()
