"""Changes a property with rules for rows, such as constraints, under the lock of the table.

A writer that is planned with the old properties notices their change at its commit, and runs again.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyhudi.config.constraints import format_expressions
from pyhudi.config.lock_options import LockOptions
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CommitConflict
from pyhudi.metadata.write_checks import check_not_building
from pyhudi.timeline import Timeline
from pyhudi.txn.locks.foreign_locks import check_no_other_lock
from pyhudi.write.write_context import WriteContext

ATTEMPTS = 3
"""How often a change that checks stored rows is tried while other writers commit."""


def store_expressions(
    context: WriteContext, name: str, expressions: Mapping[str, str], *, commits_count: bool
) -> None:
    """Change the property under the lock; without expressions it is removed.

    commits_count: whether a commit after the snapshot of `context` is a conflict.
    """
    table = context.table
    with table.lock_manager.critical_section():
        config = TableConfig.load(table.storage, table.clock)
        timeline = Timeline.load(table.storage, config)
        is_changed = config.properties != context.config.properties
        if is_changed or (commits_count and timeline.commits != context.timeline.commits):
            msg = "the table was written to while the rows were checked"
            raise CommitConflict(msg, retry=True)
        check_no_other_lock(
            table.storage, config, timeline, LockOptions.of(table.options), table.clock
        )
        check_not_building(config)
        table.lock_manager.check_held()
        if expressions:
            new = {name: format_expressions(expressions)}
            config.update(table.storage, new, table.clock)
        else:
            config.update(table.storage, {}, table.clock, removed=(name,))
