"""Rules for the new rows of a table, beyond its columns.

`schema/row_rules.py` has the rules of a table with constraints or generated columns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class RowRules:
    """Rules for new rows."""

    null_elements: bool = False
    """Lists may have null elements."""

    def columns_to_compute(
        self,
        names: Collection[str],  # noqa: ARG002 - the base rule computes none
        stored: Collection[str],  # noqa: ARG002 - as above
    ) -> frozenset[str]:
        """Return the columns that the rows get computed.

        names: the columns of the rows. stored: those whose values come from the table.
        """
        return frozenset()

    def compute(self, rows: pa.Table, schema: pa.Schema) -> pa.Table:  # noqa: ARG002 - as above
        """Return the rows with all columns of the schema, in its order."""
        return rows

    def check(self, rows: pa.Table, computed: Collection[str]) -> None:
        """Raise `ConstraintViolation` for rows in the table's columns that break a rule.

        computed: columns that `compute` has added.
        """

    def find_violations(
        self,
        rows: pa.Table,  # noqa: ARG002 - as above
        computed: Collection[str],  # noqa: ARG002 - as above
    ) -> Iterator[tuple[Any, str]]:
        """Yield for each rule which rows break it, and the reason. computed: as in `check`."""
        yield from ()


NO_RULES = RowRules()
