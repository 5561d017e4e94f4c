"""Which golden reads pyhudi refuses, and the property or feature that its error names.

A key is a table's name (every read of it), `<table>-<kind>`, or `<table>-<kind>-<number>` for one
of several. A read that is refused without being listed fails the tests, and so does a listed one
that is read. Where snapshots are refused, time travel and incremental reads may be refused alike.
"""

from __future__ import annotations

from tests.helpers.tables import Case

REFUSED: dict[str, str] = {}


def refusal(case: Case) -> str | None:
    """What the error must name, None for a read that must succeed."""
    names = (str(case), f"{case.table}-{case.kind}", case.table)
    return next((REFUSED[name] for name in names if name in REFUSED), None)


def possible_refusal(case: Case) -> str | None:
    """What the error must name if there is one; some slices of the table cannot be merged."""
    if case.kind in ("as_of", "incremental"):
        return REFUSED.get(f"{case.table}-snapshot")
    return None
