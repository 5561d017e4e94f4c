"""Conditions that compute: functions, arithmetic and columns against columns in a SQL filter.

The condition keeps the syntax tree until the schema is known; then it becomes an expression. A part
without columns is computed immediately, so that it prunes files like any literal.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.schema.computed_columns import project_values
from pyhudi.schema.predicates import Computed, Path, column_type
from pyhudi.schema.sql_evaluator import condition, evaluate
from pyhudi.schema.sql_expressions import Literal, Value

_NO_CALLS = (exp.Column, exp.Identifier, exp.Literal, exp.Paren, exp.DataType, exp.DataTypeParam)


def parse_computed(node: Any) -> Computed:
    """Return the condition of a syntax tree that has columns in it."""
    paths = tuple(dict.fromkeys(path_of(column) for column in node.find_all(exp.Column)))
    size = sum(not isinstance(one, _NO_CALLS) for one in node.walk())
    return Computed(partial(build_expression, node), paths, max(size, 1))


def path_of(column: Any) -> Path:
    """Return the qualifiers of a column and its name. Raises `ConfigError` for `*`."""
    parts = [column.args.get(name) for name in ("catalog", "db", "table", "this")]
    names = [part for part in parts if part is not None]
    if not all(isinstance(name, exp.Identifier) for name in names):
        raise ConfigError(
            f"where: {column.sql()} cannot be used here", hint="Name one column, or a struct field."
        )
    return tuple(str(name.this) for name in names)


def is_constant(node: Any) -> bool:
    """Return whether a tree has no column in it."""
    return node.find(exp.Column) is None


def constant(node: Any) -> Any:
    """Compute a tree without columns. Raises `ConfigError` and `SchemaMismatch`."""
    found = evaluate(node, _no_column, "where")
    if isinstance(found, Literal):
        return found.value
    try:
        values = project_values(pa.table({"row": [0]}), {"value": found.expression})
    except SchemaMismatch as error:
        raise ConfigError(
            f"where: {node.sql()} cannot be computed: {error.__cause__}",
            hint="Write the value itself.",
        ) from error
    return values["value"][0].as_py()


def build_expression(node: Any, schema: pa.Schema) -> pc.Expression:
    """Build a computed condition for a schema. Raises `ConfigError` and `SchemaMismatch`."""

    def resolve(column: Any) -> Value:
        path = path_of(column)
        if column.this.args.get("quoted") and len(path) == 1 and path[0] not in schema.names:
            text = exp.Literal.string(path[0]).sql()
            raise ConfigError(
                f"where: there is no column {column.sql()}; double quotes mark a column name",
                hint=f"Put strings into single quotes: {text}.",
            )
        return Value(pc.field(*path), column_type(path, schema, "Put strings into single quotes."))

    found = condition(node, resolve, "where")
    try:
        schema.empty_table().filter(found)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise SchemaMismatch(f"where: {node.sql()} cannot be computed: {error}") from error
    return found


def _no_column(column: Any) -> Value:
    raise AssertionError(column)
