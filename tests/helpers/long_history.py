"""A long history of commits with services, for those who go through all of it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import pyhudi
from pyhudi import HudiTable
from tests.helpers.table_builder import SMALL, Kind, TableBuilder, numbered

SAVED_AT, ROLLED_BACK_EVERY = 0.8, 29
CITIES = ("oslo", "rome", "lima")
_KEPT = {
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": "6",
    "hoodie.keep.min.commits": "12",
    "hoodie.keep.max.commits": "16",
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "5",
}

TABLE = TableBuilder(
    {
        "id": (pa.string(), numbered(4)),
        "city": (pa.string(), lambda number: CITIES[number % 3]),
        "v": (pa.int32(), 0),
        "ts": (pa.int64(), 0),
    },
    partition_by="city",
    order_by="ts",
    options={**SMALL, **_KEPT},
)


def write(base: Path, version: int, kind: Kind, commits: int) -> HudiTable:
    """A table after as many writes, each with inline services; some are deletes or rolled back."""
    table = TABLE.make(base, version=version, kind=kind)
    for number in range(1, commits + 1):
        if number % 10 == 0:
            table.delete(f"v = {number - 8}")
        else:
            numbers = [(number * 7 + at) % 200 for at in range(12)]
            table.upsert(TABLE.rows(numbers, v=number, ts=number))
        if number % 20 == 0:
            table.cluster(sort_by=["id"])
        if number % ROLLED_BACK_EVERY == 0:
            table.rollback(table.state.timeline.commits[-1].requested)
        if number == int(commits * SAVED_AT):
            table.savepoint("kept")
    return pyhudi.open_table(base)
