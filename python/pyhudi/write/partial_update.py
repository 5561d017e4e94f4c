"""Partial updates: data with some of a table's columns; existing rows keep the others.

Tasks write log blocks with only these columns if readers support such blocks. Otherwise they
complete the rows from stored rows. If rows may move to another file group, they are completed
before they are assigned, since the next steps need whole rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.meta_columns import META_COLUMNS, PARTITION_PATH, RECORD_KEY
from pyhudi.errors import ConfigError, SchemaMismatch, UnsupportedTableFeature
from pyhudi.index import tagging
from pyhudi.input.conform import conform, data_schema
from pyhudi.schema.evolution import SchemaMode
from pyhudi.schema.key_generator import add_keys
from pyhudi.schema.row_rules import build_generated_columns
from pyhudi.slices.file_size_checks import check_listed
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.partial_rows import NUMBER, CompletingTask, read_existing_columns
from pyhudi.slices.tagged_rows import row_numbers
from pyhudi.slices.task_packing import engine_for_slices
from pyhudi.write import checks
from pyhudi.write.file_assignment import Counts
from pyhudi.write.pending_clustering import check_update_allowed
from pyhudi.write.write_context import WriteContext


def check_partial(context: WriteContext, schema_mode: SchemaMode) -> None:
    """Raise `ConfigError` or `UnsupportedTableFeature` if rows cannot have missing columns."""
    if schema_mode != "strict":
        msg = f"partial cannot be combined with schema_mode {schema_mode!r}"
        raise ConfigError(msg, hint="Add the columns first, then update some of them.")
    if not context.config.populate_meta_fields:
        msg = "hoodie.populate.meta.fields is false: partial updates need stored keys"
        raise UnsupportedTableFeature(msg, hint="Give whole rows, or use update or merge.")


def check_no_truncated_logs(context: WriteContext, counts: Counts) -> None:
    """Reject updated file groups with a truncated log file: older values would return."""
    _check_slices(context, [counts.groups[number].read_slice for number in counts.updates])


def _check_slices(context: WriteContext, slices: Sequence[FileSlice]) -> None:
    check_listed(context.storage, context.handle_options, context.timeline, slices)


def partial_rows(context: WriteContext, data: Any) -> pa.Table:
    """Return the data's columns in the table's types, after record key and partition path.

    Raises `SchemaMismatch` for an unknown column, for values that do not fit, and if a column of
    the record key, of the partition path or, in event-time mode, of the ordering value is missing.
    """
    _, table = context.evolve(data, "strict")
    spec = context.key_spec()
    table = context.with_generated(table, (*spec.key_fields, *spec.partition_fields))
    schema = data_schema(context.schema.arrow)
    names = [name for name in table.column_names if name not in META_COLUMNS]
    checks.check_known_columns(names, schema)
    target = context.target("")
    ordering = target.merge_ordering if target.merge_mode == "EVENT_TIME_ORDERING" else ()
    required = dict.fromkeys((*spec.key_fields, *spec.partition_fields, *ordering))
    missing = [field for field in required if field.split(".")[0] not in names]
    if missing:
        msg = f"the input is missing the column {', '.join(repr(name) for name in missing)}"
        raise SchemaMismatch(
            msg, hint="A partial update needs the key, partition and ordering columns."
        )
    input_names = frozenset(names) | _columns_to_compute(context, names)
    input_schema = pa.schema([field for field in schema if field.name in input_names])
    return add_keys(conform(table, input_schema, rules=context.row_rules), spec)


def _columns_to_compute(context: WriteContext, names: Sequence[str]) -> frozenset[str]:
    """Return the generated columns of which the input has a source."""
    columns = build_generated_columns(context.config, data_schema(context.schema.arrow))
    return frozenset(column.name for column in columns if not set(column.sources).isdisjoint(names))


def needs_whole_rows(context: WriteContext) -> bool:
    """Return whether a row of nulls has a generated column that is not null.

    A log block with some columns has nulls in the others, also for new rows.
    """
    schema = data_schema(context.schema.arrow)
    nulls = pa.table([pa.nulls(1, field.type) for field in schema], schema.names)
    return any(
        not column.compute(nulls).null_count
        for column in build_generated_columns(context.config, schema)
    )


def whole_rows(context: WriteContext, rows: pa.Table) -> pa.Table:
    """Fill missing columns of combined `partial_rows` from the stored rows.

    New keys get nulls. Columns with a merge rule get nulls in all rows, which leave them unchanged.
    Raises `SchemaMismatch` if a column must not be null.
    """
    schema = data_schema(context.schema.arrow)
    input_names = frozenset(rows.column_names)
    missing = tuple(name for name in schema.names if name not in input_names)
    if not missing:
        return rows
    existing = _read_existing(context, rows, missing)
    matches = pc.index_in(
        row_numbers(rows.num_rows), value_set=existing.column(NUMBER).combine_chunks()
    )
    columns = {
        name: rows.column(name) if name in input_names else existing.column(name).take(matches)
        for name in schema.names
    }
    for name in frozenset(missing).intersection(context.config.merge.combined_columns):
        columns[name] = pa.nulls(rows.num_rows, schema.field(name).type)
    complete = conform(pa.table(columns), schema, stored=missing, rules=context.row_rules)
    for position, name in enumerate((RECORD_KEY, PARTITION_PATH)):
        key = rows.schema.field(name)
        complete = complete.add_column(position, key, rows.column(name))
    return complete


def _read_existing(context: WriteContext, rows: pa.Table, missing: tuple[str, ...]) -> pa.Table:
    """Return the stored columns of rows whose keys the table has, with their row numbers."""
    keys = rows.select([RECORD_KEY, PARTITION_PATH])
    # Marked as deletes, new keys get no file groups.
    tag_result = tagging.look_up(context, keys, pa.repeat(pa.scalar(value=True), keys.num_rows))
    target = context.target("")
    tasks = []
    for number, at in tag_result.tagged.by_group():
        group = tag_result.groups[number]
        check_update_allowed(context, [group])
        group_keys = keys.column(RECORD_KEY).combine_chunks().take(at)
        tasks.append(CompletingTask(target, group.read_slice, at, group_keys, missing))
    _check_slices(context, [task.slice for task in tasks])
    columns = context.table.columns
    fields = [*(columns.field(name) for name in missing), pa.field(NUMBER, pa.int64())]
    engine = engine_for_slices(context.engine, context.storage, (task.slice for task in tasks))
    parts = engine.run(read_existing_columns, tasks, label="complete rows")
    return pa.concat_tables([pa.schema(fields).empty_table(), *parts])
