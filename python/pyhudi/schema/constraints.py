"""Constraints: conditions that the rows of a table satisfy, and that writers check.

A constraint is a SQL condition with a name. As in SQL, a row violates it if the condition is false,
not if it is null. Constraints are a property of pyhudi's own, so Apache Hudi's writers do not check
them.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pyhudi.config.formatting import count_text
from pyhudi.config.property_names import CONSTRAINTS
from pyhudi.errors import ConfigError, ConstraintViolation, UnsupportedTableFeature
from pyhudi.schema.predicate_parser import parse_where
from pyhudi.schema.predicates import Where, filter_rows


@dataclass(frozen=True)
class Constraint:
    """A condition that no row of the table makes false."""

    name: str
    condition: str
    where: Where

    @property
    def violation(self) -> str:
        """The rule that a row breaks, for messages."""
        return f"the constraint {self.name!r}, {self.condition}, is false"

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
                f"{self.violation} for {count_text(violating.num_rows, 'row')}; the first: "
                + ", ".join(f"{name}={value!r}" for name, value in values.items()),
                constraint=self.name,
            )


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
