"""The statements of a transaction, and their common commit.

Each statement has the effect that the operation of its name would have in a commit of its own,
after the commits of the statements before it. `staged_changes.py` holds the rows that they change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.clock import Clock
from pyhudi.config.column_rules import MERGE_RULES
from pyhudi.config.meta_columns import META_COLUMNS, PARTITION_PATH, RECORD_KEY
from pyhudi.errors import SchemaMismatch, UnsupportedTableFeature
from pyhudi.index import tagging
from pyhudi.index.duplicate_keys import (
    duplicate_key_source,
    duplicate_keys_error,
    find_duplicate_keys,
)
from pyhudi.input.conform import data_schema
from pyhudi.query.dml_rows import set_new_values
from pyhudi.schema.predicate_parser import parse_where
from pyhudi.schema.predicates import filter_rows
from pyhudi.slices.tagged_rows import row_numbers
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.table.scan_columns import scan_schema, text_columns
from pyhudi.txn.conflicts import CommitCheck
from pyhudi.txn.result import WriteResult
from pyhudi.write import input_rows
from pyhudi.write.commit_validation import check_filter_finds_nothing
from pyhudi.write.execute import DELETE, UPSERT, write
from pyhudi.write.merge_planning import check_once
from pyhudi.write.non_blocking import check_appends
from pyhudi.write.staged_changes import StagedChanges
from pyhudi.write.table_opening import WritableTable
from pyhudi.write.update_delete import check_changes, current_groups, plan_filter
from pyhudi.write.upsert import open_write, with_count_kept_in_partition
from pyhudi.write.write_context import WriteContext


class Statement(Protocol):
    """One operation of a transaction."""

    def check(self, context: WriteContext) -> None:
        """Raise the operation's errors for arguments that do not fit the table."""

    def run(self, changes: StagedChanges) -> CommitCheck | None:
        """Apply the operation; return a check of what it read from the table.

        Raises as `check`, because the table may have changed since that.
        """


@dataclass(frozen=True)
class Upsert:
    """`HudiTable.upsert`."""

    data: pa.Table

    def check(self, context: WriteContext) -> None:
        """See `Statement`."""
        tagging.check_mergeable(context)
        context.with_keys(self.data)

    def run(self, changes: StagedChanges) -> None:
        """See `Statement`."""
        context = changes.context
        tagging.check_mergeable(context)
        rows = context.with_keys(self.data)
        if context.options.combine_upserts:
            rows = tagging.combine(context, rows)
        check_once(context, rows)
        changes.upsert(rows)


@dataclass(frozen=True)
class Insert:
    """`HudiTable.insert`, with keys that the table does not have."""

    data: pa.Table

    def check(self, context: WriteContext) -> None:
        """See `Statement`."""
        self._rows(context)

    def run(self, changes: StagedChanges) -> None:
        """See `Statement`."""
        context = changes.context
        rows = self._rows(context)
        if context.options.combine_inserts:
            rows = tagging.combine(context, rows)
        check_once(context, rows)
        keys = rows.select([RECORD_KEY, PARTITION_PATH])
        stored = tagging.find_existing_keys(context, keys)
        exists = pc.is_in(row_numbers(rows.num_rows), value_set=stored.cast(pa.int64()))
        exists = pc.and_(exists, pc.invert(changes.find_deleted(rows)))
        exists = pc.or_(exists, changes.find_staged(rows))
        if pc.any(exists).as_py() and context.options.insert_duplicates != "drop":
            key = rows.column(RECORD_KEY).filter(exists)[0].as_py()
            raise SchemaMismatch(
                f"a transaction inserts the key {key!r}, which the table already has",
                hint="Use upsert to replace the row.",
            )
        changes.upsert(rows.filter(pc.invert(exists)))

    def _rows(self, context: WriteContext) -> pa.Table:
        generated = context.key_spec().keys_are_generated
        return context.with_keys(self.data, instant=context.key_instant() if generated else None)


@dataclass(frozen=True)
class DeleteKeys:
    """`HudiTable.delete_keys`."""

    keys: pa.Table

    def check(self, context: WriteContext) -> None:
        """See `Statement`."""
        context.delete_keys(self.keys)

    def run(self, changes: StagedChanges) -> None:
        """See `Statement`."""
        keys, in_partitions = changes.context.delete_keys(self.keys)
        changes.delete_keys(keys.combine_chunks(), in_partitions=in_partitions)


@dataclass(frozen=True)
class Delete:
    """`HudiTable.delete`."""

    where: Any

    def check(self, context: WriteContext) -> None:
        """See `Statement`."""
        plan_filter(context, self.where, (RECORD_KEY, PARTITION_PATH))

    def run(self, changes: StagedChanges) -> CommitCheck:
        """See `Statement`."""
        for rows, group in _matching_rows(changes, self.where, (RECORD_KEY, PARTITION_PATH)):
            changes.delete_stored(rows, group)
        changes.delete_staged(_matching_staged(changes, self.where))
        return check_filter_finds_nothing(changes.context, self.where)


@dataclass(frozen=True)
class Update:
    """`HudiTable.update`."""

    where: Any
    values: Mapping[str, Any]

    def check(self, context: WriteContext) -> None:
        """See `Statement`."""
        check_changes(context, self.values)
        plan_filter(context, self.where, (RECORD_KEY, PARTITION_PATH))

    def run(self, changes: StagedChanges) -> CommitCheck:
        """See `Statement`."""
        context = changes.context
        is_changed = _matching_staged(changes, self.where)
        staged = changes.current_rows().filter(is_changed)
        changes.change_staged(is_changed, self._set(context, staged))
        columns = tuple(changes.schema.names)
        for rows, group in _matching_rows(changes, self.where, columns):
            changes.change_stored(rows, self._set(context, rows), group)
        return check_filter_finds_nothing(context, self.where)

    def _set(self, context: WriteContext, rows: pa.Table) -> pa.Table:
        values = check_changes(context, self.values)
        schema = data_schema(context.schema.arrow)
        new = set_new_values(rows, schema, values, context.row_rules)
        if context.ignored_values is not None:
            context.ignored_values.check(rows, new, values)
        return new


def transaction(
    table: WritableTable,
    statements: Sequence[Statement],
    *,
    clock: Clock | None = None,
    memory_limit: int | None = None,
) -> WriteResult:
    """Run statements in order and commit their changes together.

    The rows that they change must fit in memory. Raises as the operations of the statements do.
    """
    context = open_write(table, clock, input_rows.memory_limit(memory_limit))
    check_appends(context, "transaction", appends=False)
    if context.config.merge.column_rules:
        msg = f"{MERGE_RULES}: a transaction cannot change a table with merge rules by column"
        raise UnsupportedTableFeature(msg, hint="Make each change in a commit of its own.")
    changes = StagedChanges(context.recover())
    commit_checks = [check for statement in statements if (check := statement.run(changes))]
    result = write(
        changes.assign(),
        DELETE if changes.only_deletes else UPSERT,
        deletes=True,
        commit_checks=[*commit_checks, *changes.commit_checks()],
    )
    return with_count_kept_in_partition(changes.context, result, changes.kept_in_partition)


def _matching_rows(
    changes: StagedChanges, where: Any, columns: tuple[str, ...]
) -> list[tuple[pa.Table, FileGroup]]:
    """Return the rows of the snapshot that match a filter, without changed rows, by file group."""
    context = changes.context
    tasks = plan_filter(context, where, columns)
    groups = current_groups(context, [task.slice for task in tasks])
    source = duplicate_key_source(context)
    found = []
    for rows, group in zip(changes.read(tasks, groups), groups, strict=True):
        if not rows.num_rows:
            continue
        if source is not None:
            keys = rows.column(RECORD_KEY).combine_chunks()
            duplicates = find_duplicate_keys(source, group.read_slice, keys.unique())
            if len(duplicates):
                key = duplicates[0].as_py()
                raise duplicate_keys_error(f"the table has duplicates of the key {key!r}")
        found.append((rows, group))
    return found


def _matching_staged(changes: StagedChanges, where: Any) -> pa.Array[Any]:
    """Return for each changed row whether it matches a filter."""
    rows = changes.current_rows()
    if not rows.num_rows:
        return pa.array([], pa.bool_())
    table = changes.context.table
    as_text = text_columns(table.config, table.columns)
    condition = parse_where(where, scan_schema(replace(table, as_text=as_text)))
    unknown = {*as_text, *META_COLUMNS} - {RECORD_KEY, PARTITION_PATH}
    for name in condition.columns:
        if name in unknown:
            msg = f"where: a row that the transaction has written has no value of {name!r} yet"
            raise UnsupportedTableFeature(msg, hint="Leave it out of the filter, or commit first.")
    numbered = rows.append_column("_pyhudi_row", row_numbers(rows.num_rows))
    matching = filter_rows(numbered, condition).column("_pyhudi_row").combine_chunks()
    return pc.is_in(row_numbers(rows.num_rows), value_set=matching)
