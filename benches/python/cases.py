"""What the read benchmark reads, and the aims it is held against. Data only."""

from __future__ import annotations

from dataclasses import dataclass, field

Condition = tuple[str, str, str | float]
"""Column, comparison, value; several are joined by `and`."""


@dataclass(frozen=True)
class Aim:
    """A ratio between two readers' figures of one case that must not be exceeded."""

    reader: str
    figure: str
    """wall, cpu or peak of the process, or seconds of the read alone."""
    most: float
    of: str


@dataclass(frozen=True)
class Case:
    """One read, the same for every reader."""

    title: str
    table: str
    """One of `SHAPES`, or `record_index`."""
    columns: tuple[str, ...] | None
    """None for all that is stored, Hudi's own columns too."""
    readers: tuple[str, ...] = ("parquet", "pyhudi", "hudi", "deltalake")
    collected: bool = False
    """All rows are in memory in the end; else batches are counted and dropped."""
    where: tuple[Condition, ...] = ()
    keys: str | None = None
    """The name of a list of keys that rows must have."""
    incremental: bool = False
    """Only what the last commit wrote."""
    expected: str = "snapshot"
    """The name of the sums that a right reader gives."""
    aims: tuple[Aim, ...] = field(default=())


@dataclass(frozen=True)
class Upsert:
    """One commit into log files. Shares are of the table's first rows."""

    updated: float
    late: float
    """Share of the updates that lose against the base row; none of the last commit."""
    new: float = 0.0


@dataclass(frozen=True)
class Shape:
    """How a table's log files came to be."""

    upserts: tuple[Upsert, ...]
    deleted: float
    """Share of the rows that the commit before the last one deletes."""


SHAPES = {
    "third": Shape(
        (Upsert(0.047, 0.2, 0.005), Upsert(0.025, 0.2, 0.003), Upsert(0.01, 0.0)), deleted=0.005
    ),
    "twice": Shape((*[Upsert(0.0125, 0.2)] * 39, Upsert(0.0125, 0.0)), deleted=0.01),
}
"""Log files hold a third of the base files' bytes, and twice as many in many small files."""

DERIVED = {"third_parquet": "third"}
"""The same commits with Parquet blocks in the log files."""

ROWS = (
    "id", "ts", "rider", "driver", "fare", "begin_lat", "begin_lon",
    "distance", "paid", "updated_at", "note", "city",
)  # fmt: skip

_LESS_MEMORY = Aim("pyhudi", "peak", 0.5, "hudi")

CASES = {
    "a": Case(
        "logs a third of the base files, streamed",
        "third",
        ROWS,
        aims=(Aim("pyhudi", "wall", 1.25, "parquet"), _LESS_MEMORY),
    ),
    "a-table": Case(
        "the same with Hudi's own five columns, all rows in memory",
        "third",
        None,
        collected=True,
        aims=(Aim("pyhudi", "wall", 1.25, "parquet"),),
    ),
    "b": Case(
        "logs twice the base files, in many small files",
        "twice",
        ROWS,
        aims=(Aim("pyhudi", "wall", 1 / 3, "hudi"), _LESS_MEMORY),
    ),
    "c": Case(
        "two columns of twelve",
        "third",
        ("fare", "city"),
        aims=(Aim("pyhudi", "wall", 1 / 5, "hudi"), _LESS_MEMORY),
    ),
    "d": Case(
        "one partition of four, one row in a hundred",
        "third",
        ROWS,
        where=(("city", "=", "denver"), ("fare", ">", 99.0)),
        expected="filtered",
        aims=(_LESS_MEMORY,),
    ),
    "e": Case(
        "1,000 keys that came together, by the record index",
        "record_index",
        ROWS,
        readers=("parquet", "pyhudi", "hudi", "deltalake", "pyhudi-all"),
        keys="recent",
        expected="recent",
        aims=(Aim("pyhudi", "seconds", 0.05, "pyhudi-all"), _LESS_MEMORY),
    ),
    "e-spread": Case(
        "1,000 keys from all over the table, by the record index",
        "record_index",
        ROWS,
        readers=("parquet", "pyhudi", "hudi", "deltalake", "pyhudi-all"),
        keys="spread",
        expected="spread",
        aims=(_LESS_MEMORY,),
    ),
    "f": Case(
        "what the last commit changed, one row in a hundred",
        "third",
        ROWS,
        readers=("pyhudi", "hudi"),
        incremental=True,
        expected="last commit",
        aims=(_LESS_MEMORY,),
    ),
    "g": Case(
        "as a, with Parquet blocks in the log files",
        "third_parquet",
        ROWS,
        aims=(_LESS_MEMORY,),
    ),
}
