"""Planning of a merge, for any source: keys, clauses, inserts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.constraints import read_generated_columns
from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.input.conform import conform, data_schema
from pyhudi.query.dml_scan import plan_slices
from pyhudi.schema.assignments import parse_expression
from pyhudi.schema.computed_columns import Names, project
from pyhudi.schema.key_generator import add_keys
from pyhudi.slices.read_tasks import ReadTask
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.suggestions import case_hint
from pyhudi.write import checks, merge_clauses
from pyhudi.write.merge_clauses import Clause, join_sides, select_rows
from pyhudi.write.merge_match import Matcher, MatchTask
from pyhudi.write.update_delete import check_settable, set_values
from pyhudi.write.write_context import WriteContext


@dataclass(frozen=True)
class MergeClause:
    """A clause as the caller passes it."""

    action: str
    """"update", "delete" or "insert"."""
    where: str | pc.Expression | None = None
    values: Mapping[str, Any] | None = None
    """None sets every column of the source."""
    by_source: bool = False
    """Whether it applies to the table's rows without a row of the source."""


def tasks_for_groups(context: WriteContext, groups: Sequence[FileGroup]) -> list[ReadTask]:
    """Return the read tasks of file groups with keys of the source."""
    columns = (RECORD_KEY, PARTITION_PATH, *data_schema(context.schema.arrow).names)
    slices = [group.read_slice for group in groups]
    return plan_slices(context.table, slices, columns, context.task_memory, context.virtual_keys)


def match_task(
    context: WriteContext,
    read: ReadTask,
    keys: pa.Array[Any],
    source: pa.Table,
    clauses: tuple[Clause, ...],
) -> MatchTask:
    """Return the task that matches rows of the source with one slice. keys: of these rows."""
    return MatchTask(read, matcher(context, data_schema(read.schema), keys, source, clauses))


def matcher(
    context: WriteContext,
    schema: pa.Schema,
    keys: pa.Array[Any],
    source: pa.Table,
    clauses: tuple[Clause, ...],
) -> Matcher:
    """Return what applies clauses to rows with the table's columns. keys: of the source's rows."""
    combined = context.config.merge.combined_columns
    ignored = context.ignored_values
    return Matcher(schema, keys, source, clauses, context.row_rules, ignored, combined)


def add_source_keys(context: WriteContext, source: pa.Table) -> pa.Table:
    """Return record key and partition path of the source's rows."""
    spec = context.key_spec()
    fields = dict.fromkeys((*spec.key_fields, *spec.partition_fields))
    source = context.with_generated(source, fields)
    for name in fields:
        if name.split(".")[0] not in source.column_names:
            msg = f"the source does not have the column {name!r} of the key or partition"
            hint = case_hint([name], source.column_names) or "Rename the source's column."
            raise SchemaMismatch(msg, hint=hint)
    keyed = add_keys(context.key_columns(source, fields), spec).select([RECORD_KEY, PARTITION_PATH])
    return keyed.combine_chunks()


def check_once(context: WriteContext, keyed: pa.Table) -> None:
    """Raise `SchemaMismatch` for a duplicate key of the rows to write."""
    identity = [RECORD_KEY] if context.index.is_global else [RECORD_KEY, PARTITION_PATH]
    if keyed.group_by(identity).aggregate([]).num_rows < keyed.num_rows:
        msg = "the data have several rows of one key"
        raise SchemaMismatch(msg, hint="Keep one row of each key.")


def check_clauses(
    context: WriteContext,
    source: pa.Table,
    clauses: Sequence[MergeClause],
    *,
    matched: bool,
    by_source: bool = False,
) -> tuple[Clause, ...]:
    """Return the clauses for matched or unmatched rows, checked against both schemas.

    by_source: the clauses for the table's rows without a row of the source; with `matched`.
    """
    schema = data_schema(context.schema.arrow)
    names = merge_clauses.names(() if by_source else source.schema, schema if matched else ())
    joined = join_sides(
        None if by_source else source.slice(0, 0), schema.empty_table() if matched else None
    )
    checked = [
        _clause(context, source, names, clause)
        for clause in clauses
        if (clause.action != "insert") is matched and clause.by_source is by_source
    ]
    select_rows(joined, checked)
    for clause in checked:
        project(joined, clause.values or {})
    return tuple(checked)


def _clause(context: WriteContext, source: pa.Table, names: Names, clause: MergeClause) -> Clause:
    condition = clause.where
    if isinstance(condition, str):
        condition = parse_expression(condition, names, "where")
    elif not isinstance(condition, (pc.Expression, type(None))):
        msg = f"where: {condition!r} is not a merge condition"
        raise ConfigError(msg, hint="Give a SQL expression as a string, or a pyarrow expression.")
    if clause.action == "delete":
        return Clause(condition, None)
    schema = data_schema(context.schema.arrow)
    values = clause.values
    if values is None:
        fixed = {*context.config.record_key_fields, *context.config.partition_fields}
        skipped = fixed if clause.action == "update" else set()
        checks.check_known_columns(source.column_names, schema)
        values = {name: f'source."{name}"' for name in source.column_names if name not in skipped}
    if clause.action == "update":
        # A matched row has the source's key, but not always its partition.
        check_settable(context, values, same_key=clause.values is None)
    checks.check_known_columns(list(values), schema)
    return Clause(condition, set_values(context, values, names))


@dataclass(frozen=True)
class Inserted:
    """Inserted rows and the numbers of their source rows."""

    rows: pa.Table
    numbers: pa.Array[Any]


def build_inserts(
    context: WriteContext,
    source_rows: pa.Table,
    keyed: pa.Table,
    unmatched: pa.Array[Any],
    clauses: tuple[Clause, ...],
) -> Inserted:
    """Build the rows that clauses insert for unmatched rows of the source.

    Raises `ConfigError` if their keys differ from the source's.
    """
    schema = data_schema(context.schema.arrow)
    generated = read_generated_columns(context.config)
    joined = join_sides(source_rows.take(unmatched), None)
    parts, numbers = [schema.empty_table()], [pa.array([], pa.int64())]
    for clause, selected in zip(clauses, select_rows(joined, clauses), strict=True):
        projected = project(joined.take(selected), clause.values or {})
        set_columns = frozenset(projected.column_names)
        columns = {
            field.name: projected.column(field.name)
            if field.name in set_columns
            else pa.nulls(len(selected), field.type)
            for field in schema
            if field.name in set_columns or field.name not in generated
        }
        parts.append(conform(pa.table(columns), schema, rules=context.row_rules))
        numbers.append(unmatched.take(selected))
    inserted = pa.concat_arrays(numbers)
    rows = add_keys(pa.concat_tables(parts).combine_chunks(), context.key_spec())
    if not rows.select([RECORD_KEY, PARTITION_PATH]).equals(keyed.take(inserted)):
        msg = "a clause inserts rows with other keys than the source's"
        raise ConfigError(msg, hint="Set key and partition columns to those of the source.")
    return Inserted(rows, inserted)
