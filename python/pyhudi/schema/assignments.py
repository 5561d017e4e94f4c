"""The values that an operation assigns: SQL expressions and Python values as Arrow expressions.

SQL expressions are those of filters (`sql_evaluator.py`). An assignment never changes a value
silently, except that a computed or literal float is rounded to the column's type.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from pyhudi.errors import SchemaMismatch
from pyhudi.input.conform import check_elements
from pyhudi.input.literals import literal
from pyhudi.schema.arrow_expression_parser import Field, tree_of
from pyhudi.schema.computed_columns import Names, SetValue
from pyhudi.schema.predicate_literals import parse_literal
from pyhudi.schema.predicates import column_type
from pyhudi.schema.sql_evaluator import evaluate
from pyhudi.schema.sql_expressions import Literal, Operand, Value, to_value
from pyhudi.schema.sql_parser import parse_one
from pyhudi.suggestions import did_you_mean


def set_value(
    value: Any, data_type: pa.DataType, names: Names, what: str, *, null_elements: bool = False
) -> SetValue:
    """Return a value for a column of a type.

    A string is a SQL expression, a pyarrow expression itself, anything else a literal. what: for
    messages. null_elements: as in `conform`. Raises `ConfigError` for a string that cannot be used,
    `SchemaMismatch` for a literal that does not fit and a column that is not among `names`.
    """
    if isinstance(value, str):
        operand = _operand(value, names, what)
        if (
            isinstance(operand, Literal)
            and isinstance(operand.value, str)
            and at.is_temporal(data_type)
        ):
            value = pc.scalar(_read(operand.value, data_type, what))
        elif isinstance(operand, Literal) and isinstance(operand.value, list):
            value = operand.value
        else:
            value = to_value(operand, what).expression
    if isinstance(value, pc.Expression):
        return SetValue(value, data_type, is_column=isinstance(tree_of(value), Field))
    scalar = literal(value, data_type, what)
    if not null_elements:
        check_elements(pa.chunked_array([pa.repeat(scalar, 1)]), what)
    return SetValue(pc.scalar(scalar), data_type, is_column=False)


def parse_expression(sql: str, names: Names, what: str) -> pc.Expression:
    """Parse a SQL expression. Raises as `set_value` does."""
    return to_value(_operand(sql, names, what), what).expression


def _read(string: str, data_type: pa.DataType, what: str) -> pa.Scalar[Any]:
    try:
        return parse_literal(string, data_type)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise SchemaMismatch(f"{what}: {string!r} is not a valid {data_type}: {error}") from error


def _operand(sql: str, names: Names, what: str) -> Operand:
    tree = parse_one(sql, what, hint="Quote strings with single quotes: \"'text'\".")

    def resolve(column: Any) -> Value:
        parts = [column.args.get(name) for name in ("catalog", "db", "table", "this")]
        path = tuple(str(part.this) for part in parts if part)
        # A column wins over the field of a struct.
        for length in range(len(path), 0, -1):
            field = names.get(path[:length])
            if field is not None:
                below = (field.name, *path[length:])
                return Value(pc.field(*below), column_type(below, pa.schema([field])))
        columns = ", ".join(sorted({name[-1] for name in names}))
        msg = f"{what}: there is no column {'.'.join(path)!r}"
        meant = did_you_mean(".".join(path), [".".join(name) for name in names], similarity=0.5)
        hint = f"{meant} Columns: {columns}. Put strings into single quotes.".strip()
        raise SchemaMismatch(msg, hint=hint)

    return evaluate(tree, resolve, what)
