"""Tools to test pipelines that write Hudi tables: strategies, a model, checks, temporary tables.

`strategies.py` makes tables, rows and histories for Hypothesis; `table_model.py` says in plain
Python what a table holds after a history; `comparison.py` and `invariants.py` compare. Nothing here
is loaded by `import pyhudi`, and only the strategies need the extra `testing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyhudi.lazy_names import lazy_names

if TYPE_CHECKING:
    from pyhudi.testing.comparison import assert_matches, comparable_rows
    from pyhudi.testing.failing_storage import StorageFailure, failing_table
    from pyhudi.testing.invariants import check_invariants
    from pyhudi.testing.operations import (
        Clean,
        Cluster,
        Compact,
        Condition,
        Delete,
        DeleteKeys,
        Insert,
        Operation,
        Update,
        Upsert,
    )
    from pyhudi.testing.strategies import (
        History,
        histories,
        next_operation,
        rows,
        schemas,
        tables,
    )
    from pyhudi.testing.table_layout import TableLayout
    from pyhudi.testing.table_model import TableModel
    from pyhudi.testing.temporary_tables import temporary_table

__all__ = [
    "Clean",
    "Cluster",
    "Compact",
    "Condition",
    "Delete",
    "DeleteKeys",
    "History",
    "Insert",
    "Operation",
    "StorageFailure",
    "TableLayout",
    "TableModel",
    "Update",
    "Upsert",
    "assert_matches",
    "check_invariants",
    "comparable_rows",
    "failing_table",
    "histories",
    "next_operation",
    "rows",
    "schemas",
    "tables",
    "temporary_table",
]

_MODULES = {
    "Clean": "operations",
    "Cluster": "operations",
    "Compact": "operations",
    "Condition": "operations",
    "Delete": "operations",
    "DeleteKeys": "operations",
    "History": "strategies",
    "Insert": "operations",
    "Operation": "operations",
    "StorageFailure": "failing_storage",
    "TableLayout": "table_layout",
    "TableModel": "table_model",
    "Update": "operations",
    "Upsert": "operations",
    "assert_matches": "comparison",
    "check_invariants": "invariants",
    "failing_table": "failing_storage",
    "histories": "strategies",
    "next_operation": "strategies",
    "rows": "strategies",
    "schemas": "strategies",
    "comparable_rows": "comparison",
    "tables": "strategies",
    "temporary_table": "temporary_tables",
}
"""Names by module. They are imported at first use: Hypothesis only if a strategy is used."""

__getattr__, __dir__ = lazy_names(__name__, _MODULES, __all__)
