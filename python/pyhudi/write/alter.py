"""Alteration of a table's columns by id, in one commit without files (schema on read).

No file is rewritten: readers find a column in older files by its id. `schema/alter_apply.py`
defines the changes. Hudi's `AlterTableCommand` does the same with `hoodie.schema.on.read.enable`
(1.2.0); Hudi's readers need that option, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyhudi import _native
from pyhudi.clock import Clock, SystemClock
from pyhudi.config.constraints import read_constraints
from pyhudi.config.property_names import CONSTRAINTS, GENERATED_COLUMNS
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import SchemaMismatch, UnsupportedTableFeature
from pyhudi.input.conform import data_schema
from pyhudi.metadata.partition_types.registry import partition_types_of
from pyhudi.schema import alter_apply
from pyhudi.schema.alter_apply import Rules
from pyhudi.schema.alter_changes import Change, ChangeType, Drop, Rename
from pyhudi.schema.column_rules import check_changes
from pyhudi.schema.column_tree import ColumnTree
from pyhudi.schema.commit_schema import NOT_STORED, first_history, tree_of
from pyhudi.schema.constraints import build_constraint
from pyhudi.schema.internal_schema import SchemaHistory
from pyhudi.schema.row_rules import build_generated_columns
from pyhudi.schema.table_schema import TableSchema, schema_from_avro
from pyhudi.txn.result import WriteResult
from pyhudi.txn.transaction import Transaction
from pyhudi.write import metadata_lifecycle
from pyhudi.write.execute import execute
from pyhudi.write.table_opening import Handle, WritableTable
from pyhudi.write.write_context import WriteContext

ALTER_SCHEMA = "ALTER_SCHEMA"


def alter(
    table: WritableTable, changes: Sequence[Change], *, clock: Clock | None = None
) -> WriteResult:
    """Apply changes in order, in one commit.

    Raises `SchemaMismatch` for an impossible change, `UnsupportedTableFeature` for a table whose
    columns pyhudi does not alter, and the errors of every write.
    """
    table = Handle.of(table, clock or SystemClock())
    context = WriteContext.open(
        table, clock, metadata_lifecycle.finish_pending_operation(table, clock)
    )
    config = context.config
    if config.cdc_enabled:
        msg = "hoodie.table.cdc.enabled: change logs would have the old column names"
        raise UnsupportedTableFeature(msg, hint="Change the schema with Apache Hudi.")
    before = tree_of(context.schema, config)
    # Keys, partitions, orderings and deletes depend on these columns.
    fixed = {*config.record_key_fields, *config.partition_fields, *config.ordering_fields}
    rules = Rules(
        frozenset(fixed | {field for field in (config.merge.delete_field,) if field}),
        config.version.internal_schema_has_all_types,
        before.root.name,
        context.index_names,
    )
    after = before
    for change in changes:
        after = alter_apply.apply(after, change, rules)
    _check_indexes(config, changes)
    _check_constraints(context, changes)
    check_changes(config.merge.column_rules, changes)
    schema = _alter_schema(context.schema, before, after, config)
    context = context.with_schema(schema).recover()
    with Transaction(context.table, ALTER_SCHEMA) as txn:
        return execute(context, txn, [], ALTER_SCHEMA)


def _check_indexes(config: TableConfig, changes: Sequence[Change]) -> None:
    by_name = any(isinstance(change, (Rename, Drop, ChangeType)) for change in changes)
    for partition_type, name in partition_types_of(config.metadata_partitions):
        if by_name and partition_type.depends_on_column_names and not partition_type.has_names:
            msg = f"hoodie.table.metadata.partitions has {name}, which depend on column names"
            raise UnsupportedTableFeature(msg, hint=f'Drop them first: drop_index("{name}").')


def _check_constraints(context: WriteContext, changes: Sequence[Change]) -> None:
    columns = data_schema(context.schema.arrow)
    constraints = [
        build_constraint(name, condition, columns)
        for name, condition in read_constraints(context.config).items()
    ]
    changed = {
        change.path.split(".")[0]
        for change in changes
        if isinstance(change, (Rename, Drop, ChangeType))
    }
    for generated in build_generated_columns(context.config, columns):
        for column in changed & {generated.name, *generated.sources}:
            msg = f"{GENERATED_COLUMNS}: the generated column {generated.name!r} uses {column!r}"
            hint = f"Drop it first: drop_generated_column({generated.name!r})."
            raise UnsupportedTableFeature(msg, hint=hint)
    for constraint in constraints:
        for column in changed & set(constraint.where.columns):
            msg = f"{CONSTRAINTS}: the constraint {constraint.name!r} uses the column {column!r}"
            hint = f"Drop it first: drop_constraint({constraint.name!r})."
            raise UnsupportedTableFeature(msg, hint=hint)


def _alter_schema(
    schema: TableSchema, before: ColumnTree, after: ColumnTree, config: TableConfig
) -> TableSchema:
    """Return the table's schema with the columns of `after`."""
    if after.internal(NOT_STORED) == before.internal(NOT_STORED):
        msg = "the changes do not change the table's columns"
        raise SchemaMismatch(msg)
    history = schema.history or first_history(before)
    history = SchemaHistory(after.internal(NOT_STORED), history.file_json, history.versions)
    return schema_from_avro(_native.without_meta_fields(after.avro()), config, history)
