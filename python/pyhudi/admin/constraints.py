"""Adds a constraint to a table, or drops one.

A new constraint holds for the stored rows, too. They are read without the lock; under the lock a
later commit, or another change of the properties, makes it read again.
"""

from __future__ import annotations

from pyhudi.admin.row_rule_property import drop_expression, store_expressions
from pyhudi.clock import Clock, SystemClock
from pyhudi.config.constraints import read_constraints
from pyhudi.config.formatting import count_text
from pyhudi.config.property_names import CONSTRAINTS
from pyhudi.errors import ConfigError, ConstraintViolation
from pyhudi.input.conform import data_schema
from pyhudi.query.dml_rows import count_rows
from pyhudi.query.dml_scan import plan_select
from pyhudi.schema.constraints import Constraint, build_constraint
from pyhudi.schema.row_rules import check_merge_mode
from pyhudi.write.conflict_retries import retry_on_conflict
from pyhudi.write.table_opening import WritableTable
from pyhudi.write.write_context import WriteContext


def add_constraint(
    handle: WritableTable, name: str, condition: str, *, clock: Clock | None = None
) -> None:
    """Add a constraint that all stored rows satisfy.

    Raises `ConstraintViolation` if one does not, `ConfigError` for a name that exists and an
    invalid condition, `CommitConflict` if other writers keep committing, and the errors of every
    write.
    """
    retry_on_conflict(handle, None, lambda table, _: _add(table, name, condition, clock), clock)


def _add(handle: WritableTable, name: str, condition: str, clock: Clock | None) -> None:
    context = WriteContext.open(handle, clock or SystemClock()).recover()
    conditions = read_constraints(context.config)
    if conditions.get(name) == condition:
        return
    if name in conditions:
        msg = f"the table has the constraint {name!r} already: {conditions[name]}"
        raise ConfigError(msg, hint="Drop it first, or choose another name.")
    check_merge_mode(context.config, CONSTRAINTS)
    constraint = build_constraint(name, condition, data_schema(context.schema.arrow))
    _check_stored_rows(context, constraint)
    store_expressions(context, CONSTRAINTS, {**conditions, name: condition}, commits_count=True)


def drop_constraint(handle: WritableTable, name: str, *, clock: Clock | None = None) -> None:
    """Drop a constraint. Raises `ConfigError` if it does not exist."""
    drop_expression(handle, CONSTRAINTS, name, "constraint", clock)


def _check_stored_rows(context: WriteContext, constraint: Constraint) -> None:
    tasks = plan_select(
        context.table,
        f"NOT ({constraint.condition})",
        constraint.where.columns or tuple(data_schema(context.schema.arrow).names[:1]),
        context.task_memory,
        context.virtual_keys,
    )
    count = sum(context.engine.run(count_rows, tasks, label="check the constraint"))
    if count:
        raise ConstraintViolation(
            f"the constraint {constraint.name!r}, {constraint.condition}, is false for "
            f"{count_text(count, 'stored row')}",
            constraint=constraint.name,
            hint=f"Find them with where={f'NOT ({constraint.condition})'!r}.",
        )
