"""Adds a generated column to a table, or makes one a plain column.

Stored rows get the column, too. First the column is added, then the property is stored, so that
later writers compute it, then stored rows without a value are rewritten. A call after a crash
continues: a step that is done changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.admin.row_rule_property import drop_expression, store_expressions
from pyhudi.clock import Clock, SystemClock
from pyhudi.config.constraints import read_generated_columns
from pyhudi.config.formatting import count_text
from pyhudi.config.property_names import GENERATED_COLUMNS
from pyhudi.engine.protocol import Attempt
from pyhudi.errors import ConfigError, ConstraintViolation
from pyhudi.input.conform import data_schema
from pyhudi.query.dml_scan import plan_select
from pyhudi.schema.column_transforms import quote_column
from pyhudi.schema.generated_columns import (
    GeneratedColumn,
    add_generated_fields,
    build_generated_column,
)
from pyhudi.schema.row_rules import check_merge_mode
from pyhudi.slices.read import read_task
from pyhudi.slices.read_tasks import ReadTask
from pyhudi.write.conflict_retries import retry_on_conflict
from pyhudi.write.table_opening import WritableTable
from pyhudi.write.update_delete import recompute
from pyhudi.write.upsert import upsert
from pyhudi.write.write_context import WriteContext


def add_generated_column(
    handle: WritableTable, name: str, expression: object, *, clock: Clock | None = None
) -> None:
    """Add a generated column, and compute it for the stored rows that have null in it.

    Raises `ConstraintViolation` if a stored row has another value, `ConfigError` for a name that
    exists with another expression and an invalid expression, `CommitConflict` if other writers keep
    committing, and the errors of every write.
    """
    clock = clock or SystemClock()
    column = retry_on_conflict(
        handle, expression, lambda table, sql: _add_property(table, name, sql, clock), clock
    )
    missing = f"{quote_column(name)} IS NULL"
    if column.buckets is None:
        missing += f" AND ({column.sql}) IS NOT NULL"
    retry_on_conflict(handle, missing, lambda table, where: recompute(table, where, clock=clock))


def _add_property(
    handle: WritableTable, name: str, expression: object, clock: Clock
) -> GeneratedColumn:
    context = WriteContext.open(handle, clock).recover()
    expressions = read_generated_columns(context.config)
    schema = data_schema(context.schema.arrow)
    others = pa.schema([field for field in schema if field.name != name])
    sql = build_generated_column(name, expression, others).sql
    if name in expressions and expressions[name] != sql:
        msg = f"the table has the generated column {name!r} already: {expressions[name]}"
        raise ConfigError(msg, hint="Drop it first, or choose another name.")
    column = build_generated_column(name, sql, schema)
    if name in expressions:
        return column
    check_merge_mode(context.config, GENERATED_COLUMNS)
    _, checked = add_generated_fields(schema, {**expressions, name: expression})
    if name not in schema.names:
        empty = schema.append(pa.field(name, column.value.data_type)).empty_table()
        upsert(handle, empty, schema_mode="merge", clock=clock)
        context = WriteContext.open(handle, clock).recover()
        column = build_generated_column(name, expression, data_schema(context.schema.arrow))
    _check_stored_rows(context, column)
    store_expressions(context, GENERATED_COLUMNS, checked, commits_count=True)
    return column


def drop_generated_column(handle: WritableTable, name: str, *, clock: Clock | None = None) -> None:
    """Make a generated column a plain column. Raises `ConfigError` if it does not exist."""
    drop_expression(handle, GENERATED_COLUMNS, name, "generated column", clock)


def _check_stored_rows(context: WriteContext, column: GeneratedColumn) -> None:
    tasks = plan_select(
        context.table,
        f"{quote_column(column.name)} IS NOT NULL",
        (*column.sources, column.name),
        context.task_memory,
        context.virtual_keys,
    )
    checks = [_CheckTask(task, column) for task in tasks]
    counts = context.engine.run(_count_wrong, checks, label="check the generated column")
    count = sum(counts)
    if count:
        raise ConstraintViolation(
            f"the column {column.name!r} is not {column.sql} for {count_text(count, 'stored row')}",
            constraint=column.name,
            hint="Correct the column, or choose another name.",
        )


@dataclass(frozen=True)
class _CheckTask:
    read: ReadTask
    column: GeneratedColumn


def _count_wrong(task: _CheckTask, _attempt: Attempt) -> int:
    """Count the rows whose value is not that of the expression."""
    count: Any = 0
    for batch in read_task(task.read):
        wrong = task.column.find_wrong(pa.Table.from_batches([batch]))
        count += pc.sum(wrong).as_py() or 0
    return int(count)
