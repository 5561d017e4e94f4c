"""The rules for new rows of a table: constraints, and the values of generated columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.constraints import read_constraints, read_generated_columns
from pyhudi.config.property_names import CONSTRAINTS, GENERATED_COLUMNS
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import SchemaMismatch, UnsupportedTableFeature
from pyhudi.input.row_rules import RowRules
from pyhudi.schema.constraints import Constraint, build_constraint
from pyhudi.schema.delete_field import find_delete_markers
from pyhudi.schema.payloads import merges_batches_like_commits

if TYPE_CHECKING:
    from pyhudi.schema.generated_columns import GeneratedColumn


@dataclass(frozen=True)
class TableRules(RowRules):
    """The rules of a table with constraints or generated columns."""

    constraints: tuple[Constraint, ...] = ()
    generated: tuple[GeneratedColumn, ...] = ()
    partition_fields: tuple[str, ...] = ()
    delete_rule: tuple[str | None, str | None] = (None, None)
    """Column and value that mark rows which delete their keys; the checks ignore these rows."""

    def columns_to_compute(self, names: Collection[str], stored: Collection[str]) -> frozenset[str]:
        """See `RowRules`. A stored partition column is checked: its row cannot move."""
        return frozenset(
            column.name
            for column in self.generated
            if column.name not in names
            or (column.name in stored and column.name not in self.partition_fields)
        )

    def compute(self, rows: pa.Table, schema: pa.Schema) -> pa.Table:
        """See `RowRules`. Raises `SchemaMismatch` for values that do not fit."""
        names = set(rows.column_names)
        for column in self.generated:
            if column.name in names or column.name not in schema.names:
                continue
            column.check_sources(names)
            values = column.compute(rows)
            if values.null_count and not schema.field(column.name).nullable:
                msg = f"the generated column {column.name!r} has nulls, but it requires a value"
                raise SchemaMismatch(msg)
            rows = rows.append_column(schema.field(column.name), values)
        return rows.select(schema.names).cast(schema)

    def check(self, rows: pa.Table, computed: Collection[str]) -> None:
        """See `RowRules`."""
        marked = find_delete_markers(rows, *self.delete_rule)
        if pc.any(marked).as_py():
            rows = rows.filter(pc.invert(marked))
        for column in self.generated:
            if column.name in computed or column.name not in rows.column_names:
                continue
            column.check_sources(rows.column_names)
            wrong = column.find_wrong(rows)
            if pc.any(wrong).as_py():
                raise column.violation_error(rows.filter(wrong))
        for constraint in self.constraints:
            constraint.check(rows)

    def find_violations(
        self, rows: pa.Table, computed: Collection[str]
    ) -> Iterator[tuple[Any, str]]:
        """See `RowRules`."""
        from pyhudi.schema.computed_columns import project_values  # noqa: PLC0415 - few writes need it

        live = pc.invert(find_delete_markers(rows, *self.delete_rule))
        for column in self.generated:
            if column.name not in computed:
                yield pc.and_(column.find_wrong(rows), live), column.violation
        for constraint in self.constraints:
            violating = project_values(rows, {"": ~constraint.where.expression}).column(0)
            is_false = pc.fill_null(violating, fill_value=False)
            yield pc.and_(is_false, live), constraint.violation


def build_generated_columns(config: TableConfig, schema: pa.Schema) -> tuple[GeneratedColumn, ...]:
    """Return the generated columns of a table. schema: its columns, without meta columns."""
    expressions = read_generated_columns(config)
    if not expressions:
        return ()
    from pyhudi.schema.generated_columns import build_generated_column  # noqa: PLC0415 - sqlglot takes a while to import

    return tuple(build_generated_column(name, sql, schema) for name, sql in expressions.items())


def row_rules(config: TableConfig, schema: pa.Schema, *, null_elements: bool) -> RowRules:
    """Return the rules for new rows of a table.

    schema: its columns, without meta columns. null_elements: lists may have null elements.
    """
    conditions = read_constraints(config)
    if not conditions and not read_generated_columns(config):
        return RowRules(null_elements)
    check_merge_mode(config)
    constraints = tuple(
        build_constraint(name, condition, schema) for name, condition in conditions.items()
    )
    merge = config.merge
    return TableRules(
        null_elements,
        constraints,
        build_generated_columns(config, schema),
        config.partition_fields,
        (merge.delete_field, merge.delete_marker),
    )


def check_merge_mode(config: TableConfig, name: str = "") -> None:
    """Raise `UnsupportedTableFeature` if a merge may build rows that no writer has checked.

    name: the property with rules that is to be set; "" for those that the table has.
    """
    if not merges_batches_like_commits(config):
        mode = config.merge.mode
        name = name or (CONSTRAINTS if read_constraints(config) else GENERATED_COLUMNS)
        msg = f"{name}: hoodie.record.merge.mode {mode} merges rows column by column"
        raise UnsupportedTableFeature(
            msg, hint="A table with such rules keeps whole rows: the newer one wins."
        )
