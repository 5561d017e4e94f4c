"""Rules for the new rows of a table, beyond its columns.

`schema/constraints.py` has the rules of a table with constraints.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class RowRules:
    """Rules for new rows."""

    null_elements: bool = False
    """Lists may have null elements."""

    def check(self, rows: pa.Table) -> None:
        """Raise `ConstraintViolation` for rows in the table's columns that break a rule."""


NO_RULES = RowRules()
