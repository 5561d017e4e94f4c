"""What the Spark benchmark does, and the aims it is held against. Data only."""

from __future__ import annotations

from dataclasses import dataclass

STEPS = {
    "bulk": "bulk_insert of all rows",
    "u1": "upsert of 1 %",
    "incremental": "incremental read of that upsert",
    "u20": "upsert of 20 %",
    "snapshot": "snapshot read",
}
"""In the order that they are done on one table. Writes have the names of their inputs."""

READS = ("incremental", "snapshot")
ENGINES = ("pyhudi", "hudi")
TYPES = ("cow", "mor")


@dataclass(frozen=True)
class Aim:
    """So many times the seconds of another run are the most that pyhudi may take."""

    step: str
    type: str
    most: float
    of: str


AIMS = (
    *(Aim("u1", kind, 0.35, "hudi local[2]") for kind in TYPES),
    *(Aim("u20", kind, 1 / 2, "hudi local[2]") for kind in TYPES),
    Aim("snapshot", "mor", 1 / 2, "hudi local[2]"),
    *(
        Aim(step, kind, 1 / 1.7, "pyhudi local[1]")
        for step in ("bulk", "u20", "snapshot")
        for kind in TYPES
    ),
)
