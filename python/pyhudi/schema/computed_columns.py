"""Columns computed from the rows of a table: pyarrow expressions, cast to the types of columns.

`assignments.py` parses the expressions of a caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import acero

from pyhudi.errors import SchemaMismatch, without_hint
from pyhudi.input.exact_casts import cast_computed, cast_exactly
from pyhudi.schema.list_functions import with_list_functions

Names = Mapping[tuple[str, ...], pa.Field]
"""Columns by the names that expressions may use for them, such as `("source", "fare")`."""


@dataclass(frozen=True)
class SetValue:
    """The new value of a column."""

    expression: pc.Expression
    data_type: pa.DataType
    """The column's type."""
    is_column: bool
    """Whether it is another column without a computation: its values must not change."""

    def cast_to_column(self, values: pa.ChunkedArray[Any], name: str) -> pa.ChunkedArray[Any]:
        """Cast the expression's values to the column's type. Raises `SchemaMismatch`."""
        cast = cast_exactly if self.is_column else cast_computed
        try:
            return cast(values, pa.field(name, self.data_type))
        except SchemaMismatch as error:
            if not pa.types.is_decimal(self.data_type):
                raise
            data_type = f"DECIMAL({self.data_type.precision}, {self.data_type.scale})"
            hint = f"CAST(… AS {data_type}) rounds to the column's digits."
            raise SchemaMismatch(without_hint(error), hint=hint) from error


def project(table: pa.Table, columns: Mapping[str, SetValue | pc.Expression]) -> pa.Table:
    """Return the values for each row, in order.

    Raises `SchemaMismatch` if one cannot be computed or does not fit its type.
    """
    expressions = {
        name: value.expression if isinstance(value, SetValue) else value
        for name, value in columns.items()
    }
    values = zip(columns.items(), project_values(table, expressions).columns, strict=True)
    return pa.table(
        {
            name: value.cast_to_column(column, name) if isinstance(value, SetValue) else column
            for (name, value), column in values
        }
    )


def project_values(table: pa.Table, expressions: Mapping[str, pc.Expression]) -> pa.Table:
    """Return the values of the expressions for each row. Raises `SchemaMismatch`."""
    options = acero.ProjectNodeOptions(list(expressions.values()), list(expressions))
    steps = [
        acero.Declaration("table_source", acero.TableSourceNodeOptions(table)),
        acero.Declaration("project", options),
    ]
    try:
        plan = acero.Declaration.from_sequence(steps)
        return with_list_functions(lambda: plan.to_table(use_threads=False))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, KeyError) as error:
        raise SchemaMismatch(f"a value cannot be set: {error}") from error
