"""Values that a verb sets: SQL expressions and plain values as pyarrow expressions.

Expressions are those that filters may have (`sql_evaluator.py`). No value changes on its way into
a column, but a float that was computed or written down is rounded to the nearest of its type.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import SchemaMismatch
from pyhudi.schema.casts import literal
from pyhudi.schema.computed import Names, SetValue
from pyhudi.schema.elements import check_elements
from pyhudi.schema.near_names import near_name
from pyhudi.schema.sql_evaluator import evaluated
from pyhudi.schema.sql_text import parse_one
from pyhudi.schema.sql_values import Value, made


def set_value(
    value: Any, kind: pa.DataType, names: Names, what: str, *, null_elements: bool = False
) -> SetValue:
    """A value for a column of a type.

    Text is a SQL expression, a pyarrow expression itself, anything else a literal. what: for
    messages. null_elements: as `conform` takes it. Raises `ConfigError` for text that cannot be
    used, `SchemaMismatch` for a literal that does not fit and a column that is not among `names`.
    """
    if isinstance(value, str):
        value = parse_expression(value, names, what)
    if isinstance(value, pc.Expression):
        is_column = any(value.equals(pc.field(field.name)) for field in names.values())
        return SetValue(value, kind, is_column)
    scalar = literal(value, kind, what)
    if not null_elements:
        check_elements(pa.chunked_array([pa.repeat(scalar, 1)]), what)
    return SetValue(pc.scalar(scalar), kind, is_column=False)


def parse_expression(text: str, names: Names, what: str) -> pc.Expression:
    """A SQL expression. Raises as `set_value` does."""
    tree = parse_one(text, what, hint="Text takes single quotes within: \"'text'\".")

    def resolve(column: Any) -> Value:
        parts = [column.args.get(name) for name in ("catalog", "db", "table", "this")]
        path = tuple(str(part.this) for part in parts if part)
        if path not in names:
            known = ", ".join(sorted({name[-1] for name in names}))
            msg = f"{what}: there is no column {'.'.join(path)!r}"
            near = near_name(".".join(path), [".".join(name) for name in names])
            meant = f"Did you mean {near!r}? " if near else ""
            raise SchemaMismatch(msg, hint=f"{meant}Columns: {known}. Text takes single quotes.")
        return Value(pc.field(names[path].name), names[path].type)

    return made(evaluated(tree, resolve, what), what).expression
