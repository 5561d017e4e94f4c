"""Delete and update by a filter. Each is one transaction.

The rows are found by a scan and changed in their file group, so no index is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pyhudi.clock import Clock
from pyhudi.config.memory_size import MemorySize
from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.errors import ConfigError, retryable_conflict
from pyhudi.index.duplicate_keys import duplicate_key_source
from pyhudi.input.conform import data_schema
from pyhudi.query.dml_rows import (
    ChangedRows,
    FindTask,
    SettableRows,
    check_values,
    count_updated,
    keys_to_delete,
)
from pyhudi.query.dml_scan import plan_select
from pyhudi.schema.assignments import set_value
from pyhudi.schema.column_rules import check_assignments
from pyhudi.schema.computed_columns import Names, SetValue, project
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.read_tasks import ReadTask
from pyhudi.slices.task_packing import engine_for_slices
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.txn.result import WriteResult
from pyhudi.write import checks, input_rows
from pyhudi.write.assigned_rows import AssignedLocalRows, DeletedKeys, GroupRows
from pyhudi.write.commit_validation import check_filter_finds_nothing
from pyhudi.write.execute import DELETE, TAG_STAGE, UPSERT, write
from pyhudi.write.non_blocking import check_appends
from pyhudi.write.pending_clustering import check_update_allowed
from pyhudi.write.table_opening import WritableTable
from pyhudi.write.upsert import open_write
from pyhudi.write.write_context import WriteContext, retry_if_stale

_FIND = "find rows"


class TooManyKeysError(Exception):
    """The keys to delete exceed the caller's limit."""


def delete(
    table: WritableTable,
    where: Any,
    *,
    clock: Clock | None = None,
    memory_limit: MemorySize | None = None,
    max_key_bytes: int | None = None,
) -> WriteResult:
    """Delete the rows that match a filter.

    where: as `HudiTable.scan` takes it. max_key_bytes: maximum bytes of the keys, which must fit in
    memory. Raises `TooManyKeysError` before anything is written if they have more, `ConfigError`
    and `SchemaMismatch` for an invalid filter, `SchemaMismatch` if a file has duplicates of their
    keys that do not match the filter; otherwise as `upsert` does.
    """
    context = open_write(table, clock, input_rows.memory_limit(memory_limit)).recover()
    check_appends(context, "delete", appends=False)
    tasks = plan_filter(context, where, (RECORD_KEY,))
    source = duplicate_key_source(context)
    task_bytes = None if max_key_bytes is None else max_key_bytes // max(len(tasks), 1)
    finds = [FindTask(task, source, task_bytes) for task in tasks]
    engine = engine_for_slices(context.engine, context.storage, (task.slice for task in tasks))
    changed = []
    for task, keys in zip(
        tasks,
        engine.run(keys_to_delete, finds, stage=TAG_STAGE, label=_FIND),
        strict=True,
    ):
        if keys is None:
            raise TooManyKeysError
        if len(keys[0]):
            changed.append((task.slice, *keys))
    groups = current_groups(context, [slice_ for slice_, _, _ in changed])
    deletes = {number: DeletedKeys(keys) for number, (_, keys, _) in enumerate(changed)}
    duplicates = [number for number, (_, _, has_duplicates) in enumerate(changed) if has_duplicates]
    assigned = AssignedLocalRows(context, groups, deletes=deletes)
    commit_checks = [check_filter_finds_nothing(context, where)]
    return write(assigned, DELETE, deletes=True, duplicates=duplicates, commit_checks=commit_checks)


def update(
    table: WritableTable,
    where: Any,
    changes: Mapping[str, Any],
    *,
    clock: Clock | None = None,
    memory_limit: MemorySize | None = None,
) -> WriteResult:
    """Set new values in the rows that match a filter.

    where: as `HudiTable.scan` takes it. changes: by column a SQL expression over the table's
    columns, a `pyarrow.compute.Expression`, or a value that is not a string. A row with a smaller
    new value of an ordering field loses to the stored row, as in an upsert.

    Raises `ConfigError` for no changes, changes of key or partition columns, and invalid
    expressions; `SchemaMismatch` for unknown columns, values that do not fit, and rows whose file
    has duplicates of their key; `UnsupportedTableFeature` for values that the merge mode ignores;
    otherwise as `upsert` does.
    """
    context = open_write(table, clock, input_rows.memory_limit(memory_limit)).recover()
    check_appends(context, "update", appends=False)
    return _set(context, where, check_changes(context, changes))


def recompute(table: WritableTable, where: Any, *, clock: Clock | None = None) -> WriteResult:
    """Write the rows that match a filter again, with new values of generated columns.

    Raises as `update` does.
    """
    context = open_write(table, clock, input_rows.memory_limit(None)).recover()
    check_appends(context, "update", appends=False)
    return _set(context, where, {})


def _set(context: WriteContext, where: Any, values: Mapping[str, SetValue]) -> WriteResult:
    columns = (RECORD_KEY, PARTITION_PATH, *data_schema(context.schema.arrow).names)
    tasks = plan_filter(context, where, columns)
    source = duplicate_key_source(context)
    finds = [FindTask(replace(task, output=(RECORD_KEY,)), source) for task in tasks]
    engine = engine_for_slices(context.engine, context.storage, (task.slice for task in tasks))
    counts = engine.run(count_updated, finds, stage=TAG_STAGE, label=_FIND)
    combined = context.config.merge.combined_columns
    all_changes = [ChangedRows(task, values, context.row_rules, combined) for task in tasks]
    changed = [(rows, count) for rows, count in zip(all_changes, counts, strict=True) if count]
    if context.ignored_values is not None:
        checked = [SettableRows(rows, context.ignored_values) for rows, _ in changed]
        engine.run(check_values, checked, stage=TAG_STAGE, label="check values")
    groups = current_groups(context, [rows.task.slice for rows, _ in changed])
    updates = {number: GroupRows(rows, count) for number, (rows, count) in enumerate(changed)}
    assigned = AssignedLocalRows(context, groups, updates)
    return write(assigned, UPSERT, commit_checks=[check_filter_finds_nothing(context, where)])


def plan_filter(context: WriteContext, where: Any, columns: tuple[str, ...]) -> list[ReadTask]:
    """Return the tasks that read the rows of a filter. Raises as `plan_select` does."""
    with retry_if_stale():
        return plan_select(context.table, where, columns, context.task_memory, context.virtual_keys)


def set_values(
    context: WriteContext, changes: Mapping[str, Any], names: Names
) -> dict[str, SetValue]:
    """Return the new values of columns. names: the names that expressions may use."""
    schema = data_schema(context.schema.arrow)
    return {
        name: set_value(
            value,
            schema.field(name).type,
            names,
            f"set {name!r}",
            null_elements=context.options.null_elements,
        )
        for name, value in changes.items()
    }


def check_changes(context: WriteContext, changes: Mapping[str, Any]) -> Mapping[str, SetValue]:
    """Return the new values of an update. Raises as `update` does for them."""
    schema = data_schema(context.schema.arrow)
    if not changes:
        msg = "no column is set"
        raise ConfigError(msg)
    names: dict[tuple[str, ...], pa.Field] = {(field.name,): field for field in schema}
    check_settable(context, changes)
    values = set_values(context, changes, names)
    project(schema.empty_table(), values)
    return values


def check_settable(
    context: WriteContext, changes: Mapping[str, Any], *, same_key: bool = False
) -> None:
    """Raise `ConfigError` or `SchemaMismatch` for a column that cannot be set.

    `UnsupportedTableFeature` for a column with a merge rule.

    same_key: the new values keep the row's record key.
    """
    check_assignments(context.config.merge.column_rules, changes)
    fixed = set(context.config.partition_fields)
    if not same_key:
        fixed.update(context.config.record_key_fields)
    roots = {field.split(".")[0] for field in fixed}
    checks.check_known_columns(list(changes), data_schema(context.schema.arrow))
    for name in changes:
        if name in roots:
            relation = "is" if name in fixed else "holds"
            msg = f"{name!r} cannot be set: it {relation} part of the record key or partition path"
            raise ConfigError(msg, hint="Delete the rows and insert them again.")


def current_groups(context: WriteContext, slices: list[FileSlice]) -> list[FileGroup]:
    """Return the file groups of slices that a scan read, in the order of the slices.

    Raises `CommitConflict` if one has a pending clustering, or was rolled back concurrently.
    """
    if not slices:
        return []
    groups, slices_read = context.groups(sorted({slice_.partition for slice_ in slices}))
    by_id = {slice_.key: group for slice_, group in zip(slices_read, groups, strict=True)}
    removed = [slice_.key for slice_ in slices if slice_.key not in by_id]
    if removed:
        msg = f"the file group {removed[0][1]} was removed while its rows were read"
        raise retryable_conflict(msg)
    result = [by_id[slice_.key] for slice_ in slices]
    check_update_allowed(context, result)
    return result
