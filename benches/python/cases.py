"""What the merge-on-read benchmark reads. Data only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """One way of reading the table's snapshot."""

    title: str
    columns: tuple[str, ...] | None
    """None for all that is stored, Hudi's own columns too."""
    streamed: bool = False
    """Batches are counted and dropped; else all rows are in memory in the end."""


_ROWS = (
    "id", "ts", "rider", "driver", "fare", "begin_lat", "begin_lon",
    "distance", "paid", "updated_at", "note", "city",
)  # fmt: skip

CASES = {
    "stored": Case("all that is stored: 12 columns and Hudi's own 5", None),
    "rows": Case("the 12 columns", _ROWS),
    "narrow": Case("2 columns", ("fare", "city")),
    "streamed": Case("the 12 columns, batch by batch", _ROWS, streamed=True),
}
