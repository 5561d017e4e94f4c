"""Changes a property with rules for rows, such as constraints, under the lock of the table.

A writer that is planned with the old properties notices their change at its commit, and runs again.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyhudi.clock import Clock, SystemClock
from pyhudi.config.constraints import format_expressions, read_expressions
from pyhudi.config.lock_options import LockOptions
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CommitConflict, ConfigError
from pyhudi.metadata.write_checks import check_not_building
from pyhudi.timeline import Timeline
from pyhudi.txn.locks.foreign_locks import check_no_other_lock
from pyhudi.write.table_opening import WritableTable
from pyhudi.write.write_context import WriteContext


def drop_expression(
    handle: WritableTable, property_name: str, name: str, kind: str, clock: Clock | None
) -> None:
    """Drop an expression of a property. Raises `ConfigError` if it does not exist.

    kind: "constraint" or "generated column", for messages.
    """
    context = WriteContext.open(handle, clock or SystemClock())
    expressions = dict(read_expressions(context.config, property_name))
    if expressions.pop(name, None) is None:
        names = ", ".join(map(repr, expressions)) or "none"
        raise ConfigError(f"there is no {kind} {name!r}", hint=f"The table has {names}.")
    store_expressions(context, property_name, expressions, commits_count=False)


def store_expressions(
    context: WriteContext, name: str, expressions: Mapping[str, str], *, commits_count: bool
) -> None:
    """Change the property under the lock; without expressions it is removed.

    Raises `CommitConflict`, for a retry, if the table has changed since the snapshot of `context`.
    commits_count: whether a later commit counts as a change.
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
