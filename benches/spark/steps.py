"""What the Spark benchmark measures, and the targets. Data only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Write:
    """A commit that is measured on a copy of the table that an earlier commit left."""

    title: str
    verb: str
    """bulk_insert, upsert or delete."""
    source: str
    """Name of the input file with its rows; "" deletes the rows that match `CONDITION`."""
    before: str | None = None
    """The write that left the table; None creates the table."""
    one_of: int = 1
    """It writes one of this many rows of the source."""


WRITES = {
    "bulk": Write("bulk_insert of all rows", "bulk_insert", "bulk"),
    "u1": Write("upsert of 1 %", "upsert", "u1", "bulk"),
    "u20": Write("upsert of 20 %", "upsert", "u20", "u1"),
    "few": Write("upsert of 0.02 %", "upsert", "u1", "u20", one_of=50),
    "d1": Write("delete of 1 %, by key", "delete", "u1", "u20"),
    "where": Write("delete of 1 %, by a condition", "delete", "", "u20"),
}
CONDITION = "distance < 1000"
READS = {
    "incremental": "incremental read of the upsert of 1 %",
    "count": "count()",
    "sum": "sum of one column",
    "groups": "sums of 4 groups",
    "many": "sums of 50,000 groups",
    "columns": "every column digested",
    "key": "one key",
    "partition": "sum of one partition",
    "join": "join",
    "window": "window function",
}
"""Queries of the table that the upsert of 20 % left, or that of 1 % for the incremental read."""

STEPS = {**{name: write.title for name, write in WRITES.items()}, **READS}
ENGINES = ("pyhudi", "hudi", "parquet")
"""The last one is Spark on the same rows in plain Parquet files: nothing is merged."""
TYPES = ("cow", "mor")


@dataclass(frozen=True)
class Target:
    """The maximum ratio of pyhudi's seconds to those of another session."""

    step: str
    type: str
    ratio: float
    of: str
    unit: str = "processor"
    """Seconds of the processors, or "elapsed"."""


TARGETS = (
    *(Target("u1", kind, 0.35, "hudi local[2]") for kind in TYPES),
    *(Target("u20", kind, 0.5, "hudi local[2]") for kind in TYPES),
    *(
        Target(step, kind, 0.6, "hudi local[2]")
        for step in ("few", "d1", "where")
        for kind in TYPES
    ),
    Target("columns", "mor", 0.5, "hudi local[2]"),
    *(Target(step, kind, 0.8, "hudi local[2]") for step in READS for kind in TYPES),
    *(
        Target(step, "mor", 1.5, "parquet local[2]")
        for step in ("count", "sum", "groups", "many", "join", "window")
    ),
    *(
        Target(step, kind, 1 / 1.7, "pyhudi local[1]", "elapsed")
        for step in ("bulk", "u20", "columns")
        for kind in TYPES
    ),
)
