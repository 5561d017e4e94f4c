"""A history as its clients and a reader observed it: commits, states of the table, reads.

A value names the writes that led to it. `0` is a first row, `0.a` the update of `0` by the writer
a, and `b` a row that b wrote without reading one. So a value says which version its writer read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

Row = tuple[str, str]
"""Key and value."""
State = tuple[Row, ...]
"""The rows of the table, sorted; a key can be there twice."""
START = "start"
"""The writer of the first rows."""
ReadKind = Literal["snapshot", "read-optimized"]


def author(value: str) -> str:
    """The writer of a value."""
    return START if value == "0" else value.rpartition(".")[2].rstrip("0123456789")


def parent(value: str) -> str | None:
    """The value that the writer of `value` read; None if it read none."""
    return value.rpartition(".")[0] or None


@dataclass(frozen=True)
class Commit:
    """A completed commit and the rows that a new reader saw directly after it."""

    writer: str
    state: State


@dataclass(frozen=True)
class Read:
    """Rows that a client read.

    first, last: the numbers of the commits that were complete when it began and when it ended.
    """

    client: str
    rows: State
    first: int
    last: int
    kind: ReadKind = "snapshot"


@dataclass
class ObservedHistory:
    """What happened to one table, in the order of completion."""

    start: State
    commits: list[Commit] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    writes: dict[str, dict[str, str]] = field(default_factory=dict)
    """Values by key that a writer passed itself. Those of `update` stand in the states."""
    updates: dict[str, set[str]] = field(default_factory=dict)
    """Keys of the rows that a writer reported as updated."""
    filters: dict[str, Callable[[str, str], bool]] = field(default_factory=dict)
    """For a writer that changes each row that matches: whether a key and a value match."""
    conditions: list[tuple[str, str, str]] = field(default_factory=list)
    """Writer, key and value, where a statement changed rows because another row had this value."""
    intermediate: set[str] = field(default_factory=set)
    """Values that a writer replaced before it committed."""
    deliveries: list[tuple[State, int]] = field(default_factory=list)
    """Rows of the first snapshot and of the ranges after it that a follower read, each with the
    number of complete commits."""
    position: str | None = None
    """Where the follower's next range starts."""
    refusals: list[str] = field(default_factory=list)
    """Errors with which pyhudi refused a read or a write, instead of an anomaly."""

    def disown(self, client: str) -> None:
        """Attribute the reads and writes of a failed attempt to another client."""
        failed = f"{client}?"
        self.writes.pop(client, None)
        self.updates.pop(client, None)
        self.reads = [
            replace(read, client=failed) if read.client == client else read for read in self.reads
        ]

    @property
    def states(self) -> list[State]:
        """The first state, and the one after each commit."""
        return [self.start, *(commit.state for commit in self.commits)]

    @property
    def committed(self) -> set[str]:
        """The writers with a completed commit."""
        return {START, *(commit.writer for commit in self.commits)}


def repeated_keys(rows: State) -> list[str]:
    """Keys that have several rows."""
    return [key for key, count in Counter(key for key, _ in rows).items() if count > 1]


def state_of(rows: Mapping[str, str]) -> State:
    """The state with these values by key."""
    return tuple(sorted(rows.items()))
