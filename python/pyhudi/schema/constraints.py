"""Constraints: conditions that the rows of a table satisfy, and that writers check.

A constraint is a SQL condition with a name. As in SQL, a row violates it if the condition is false,
not if it is null. Constraints are a property of pyhudi's own, so Apache Hudi's writers do not check
them.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.constraints import read_constraints
from pyhudi.config.formatting import count_text
from pyhudi.config.property_names import CONSTRAINTS
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import ConfigError, ConstraintViolation, UnsupportedTableFeature
from pyhudi.input.row_rules import RowRules
from pyhudi.schema.delete_field import find_delete_markers
from pyhudi.schema.payloads import merges_batches_like_commits
from pyhudi.schema.predicate_parser import parse_where
from pyhudi.schema.predicates import Where, filter_rows


@dataclass(frozen=True)
class Constraint:
    """A condition that no row of the table makes false."""

    name: str
    condition: str
    where: Where

    def check(self, rows: pa.Table) -> None:
        """Raise `ConstraintViolation` if a row violates it."""
        missing = [name for name in self.where.columns if name not in rows.column_names]
        if missing:
            raise UnsupportedTableFeature(
                f"{CONSTRAINTS}: the constraint {self.name!r} uses the column {missing[0]!r}, "
                "which the input does not have",
                hint="A partial update needs all columns of a constraint.",
            )
        violating = filter_rows(rows, Where(~self.where.expression, self.where.columns))
        if violating.num_rows:
            values = violating.select(list(self.where.columns)).slice(0, 1).to_pylist()[0]
            raise ConstraintViolation(
                f"the constraint {self.name!r}, {self.condition}, is false for "
                f"{count_text(violating.num_rows, 'row')}; the first: "
                + ", ".join(f"{name}={value!r}" for name, value in values.items()),
                constraint=self.name,
            )


@dataclass(frozen=True)
class ConstrainedRows(RowRules):
    """The rules of a table with constraints."""

    constraints: tuple[Constraint, ...] = ()
    delete_rule: tuple[str | None, str | None] = (None, None)
    """Column and value that mark rows which delete their keys; constraints ignore these rows."""

    def check(self, rows: pa.Table) -> None:
        """See `RowRules`."""
        marked = find_delete_markers(rows, *self.delete_rule)
        if pc.any(marked).as_py():
            rows = rows.filter(pc.invert(marked))
        for constraint in self.constraints:
            constraint.check(rows)


def row_rules(config: TableConfig, schema: pa.Schema, *, null_elements: bool) -> RowRules:
    """Return the rules for new rows of a table.

    schema: its columns, without meta columns. null_elements: lists may have null elements.
    """
    conditions = read_constraints(config)
    if not conditions:
        return RowRules(null_elements)
    check_merge_mode(config)
    constraints = tuple(
        build_constraint(name, condition, schema) for name, condition in conditions.items()
    )
    merge = config.merge
    return ConstrainedRows(null_elements, constraints, (merge.delete_field, merge.delete_marker))


def build_constraint(name: str, condition: object, schema: pa.Schema) -> Constraint:
    """Check and return a constraint.

    schema: the table's columns, without meta columns. Raises `ConfigError` and `SchemaMismatch` for
    an invalid one.
    """
    if not name.strip() or not name.isprintable():
        raise ConfigError(f"a constraint has the name {name!r}", hint="Give it a name of letters.")
    if not isinstance(condition, str) or not condition.strip():
        msg = f"the constraint {name!r} is {condition!r}"
        raise ConfigError(msg, hint="Pass a SQL condition as a string, such as 'fare >= 0'.")
    return Constraint(name, condition, parse_where(condition, schema))


def check_merge_mode(config: TableConfig) -> None:
    """Raise `UnsupportedTableFeature` if a merge may build rows that no writer has checked."""
    if not merges_batches_like_commits(config):
        mode = config.merge.mode
        msg = f"{CONSTRAINTS}: hoodie.record.merge.mode {mode} merges rows column by column"
        raise UnsupportedTableFeature(
            msg, hint="A table with constraints keeps whole rows: the newer one wins."
        )
