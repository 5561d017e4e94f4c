"""What the write benchmark writes, by whom, and the aims it is held against. Data only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One commit. Shares are of the table's first rows."""

    title: str
    verb: str
    """bulk_insert, upsert or delete."""
    share: float
    new: float = 0.0
    """Rows that come with an upsert and that no table has yet."""


STEPS = {
    "bulk": Step("bulk_insert of all rows", "bulk_insert", 1.0),
    "u1": Step("upsert of 1 %", "upsert", 0.01, 0.001),
    "u20": Step("upsert of 20 %", "upsert", 0.20, 0.01),
    "d2": Step("delete of 2 %", "delete", 0.02),
}
"""In the order that they are written to one table."""

TYPES = ("cow", "mor")

WRITERS = {
    "plain": ("cow",),
    "deltalake": ("cow",),
    "pyhudi": TYPES,
    "pyhudi-bare": TYPES,
    "hudi-rs": TYPES,
    "spark": TYPES,
}
"""The writers, and the kinds of table that each knows."""


@dataclass(frozen=True)
class Aim:
    """So many times the seconds of another writer are the most that pyhudi may take."""

    step: str
    type: str
    most: float
    of: str


AIMS = (
    Aim("bulk", "cow", 1.6, "deltalake"),
    Aim("bulk", "mor", 1.6, "deltalake"),
    Aim("u1", "cow", 1 / 2, "deltalake"),
    Aim("u20", "cow", 1 / 2, "deltalake"),
    Aim("u1", "cow", 1 / 10, "spark"),
    Aim("u20", "cow", 1 / 10, "spark"),
    Aim("u1", "mor", 1 / 5, "deltalake"),
    *(Aim(step, kind, 1.3, "pyhudi-bare") for step in STEPS for kind in TYPES),
    *(Aim(step, kind, 1.0, "hudi-rs") for step in STEPS for kind in TYPES),
)
