"""Anomalies of a history, as Adya defines them, and a few that only tables of files have.

The versions of each key are ordered by the completion of commits. Writers depend on each other:

- ww: a writer replaced the version of another one
- wr: a writer read the version of another one
- rw: a writer read a version that another one replaced

A cycle of ww is a dirty write. A cycle with one rw is a lost update if both writers changed the
key, and read skew otherwise. A cycle with more of them is write skew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from tests.anomalies.observed_history import (
    START,
    ObservedHistory,
    Read,
    State,
    author,
    parent,
    repeated_keys,
)


class Anomaly(Enum):
    """Kinds of anomalies with their names in the literature."""

    DIRTY_WRITE = "dirty write (G0)"
    DIRTY_READ = "dirty read (G1a)"
    INTERMEDIATE_READ = "intermediate read (G1b)"
    CIRCULAR_READ = "circular reads (G1c)"
    LOST_UPDATE = "lost update (P4)"
    READ_SKEW = "read skew (G-single)"
    WRITE_SKEW = "write skew (G2)"
    DUPLICATE_KEY = "duplicate key"
    PHANTOM = "phantom"
    NON_PREFIX = "non-prefix incremental read"
    READ_OPTIMIZED_SKEW = "read-optimized rows of several commits"


_STRENGTH = {kind: rank for rank, kind in enumerate(Anomaly)}


@dataclass(frozen=True)
class Finding:
    """An anomaly and what shows it."""

    anomaly: Anomaly
    text: str


def find_anomalies(history: ObservedHistory) -> list[Finding]:
    """All anomalies of a history."""
    return [
        *_duplicate_keys(history),
        *_dirty_reads(history),
        *_reads_without_state(history),
        *_phantoms(history),
        *_invisible_updates(history),
        *_delivery_gaps(history),
        *_Dependencies(history).cycles(),
    ]


def _duplicate_keys(history: ObservedHistory) -> Iterator[Finding]:
    for state in (*history.states, *(read.rows for read in history.reads)):
        for key in repeated_keys(state):
            yield Finding(Anomaly.DUPLICATE_KEY, f"{key} is twice in {state}")


def _dirty_reads(history: ObservedHistory) -> Iterator[Finding]:
    for read in history.reads:
        complete = {START, *(commit.writer for commit in history.commits[: read.last])}
        for key, value in read.rows:
            if value in history.intermediate:
                text = f"{read.client} read {key}={value}, which its writer replaced"
                yield Finding(Anomaly.INTERMEDIATE_READ, text)
            elif author(value) not in complete:
                text = f"{read.client} read {key}={value} without a commit"
                yield Finding(Anomaly.DIRTY_READ, text)


def _reads_without_state(history: ObservedHistory) -> Iterator[Finding]:
    for read in history.reads:
        is_snapshot = read.kind == "snapshot"
        first = read.first if is_snapshot else 0
        # Before the first compaction there may be no base file.
        allowed = history.states[first : read.last + 1] + ([] if is_snapshot else [()])
        if read.rows not in allowed:
            kind = Anomaly.READ_SKEW if is_snapshot else Anomaly.READ_OPTIMIZED_SKEW
            yield Finding(kind, f"{read.client} read {read.rows}, a state after no commit")


def _phantoms(history: ObservedHistory) -> Iterator[Finding]:
    for before, commit in zip(history.states, history.commits, strict=False):
        matches = history.filters.get(commit.writer)
        for row in commit.state:
            if matches is not None and matches(*row) and row in before:
                text = f"{commit.writer} did not change {row}, which was committed before"
                yield Finding(Anomaly.PHANTOM, text)


def _invisible_updates(history: ObservedHistory) -> Iterator[Finding]:
    for commit in history.commits:
        authors = {key: author(value) for key, value in commit.state}
        for key in sorted(history.updates.get(commit.writer, ())):
            if authors.get(key) != commit.writer:
                text = f"{commit.writer} updated {key}, and its commit leaves {commit.state}"
                yield Finding(Anomaly.LOST_UPDATE, text)


def _delivery_gaps(history: ObservedHistory) -> Iterator[Finding]:
    """Upserts the rows of each range, which leads to the state after a later commit each time."""
    rows: dict[str, str] = {}
    reached = 0
    for delivered, complete in history.deliveries:
        rows.update(delivered)
        state: State = tuple(sorted(rows.items()))
        later = range(reached, complete + 1)
        found = next((at for at in reversed(later) if history.states[at] == state), None)
        if found is None:
            text = f"{delivered} leads to {state}, a state after no commit"
            yield Finding(Anomaly.NON_PREFIX, text)
            return
        reached = found
    if history.deliveries and reached != len(history.commits):
        text = f"the last commits were not delivered: {history.states[reached + 1 :]}"
        yield Finding(Anomaly.NON_PREFIX, text)


@dataclass(frozen=True)
class _Version:
    value: str | None
    """None for no row."""
    writer: str


@dataclass(frozen=True)
class _Edge:
    kind: str
    start: str
    end: str
    key: str


class _Dependencies:
    """The graph of a history's writers and readers."""

    def __init__(self, history: ObservedHistory) -> None:
        keys = {key for state in history.states for key, _ in state}
        keys |= {key for values in history.writes.values() for key in values}
        self._orders = {key: _version_order(history, key) for key in sorted(keys)}
        self._edges = {*self._replacements(), *self._reads(history)}

    def _replacements(self) -> Iterator[_Edge]:
        for key, order in self._orders.items():
            for before, after in pairwise(order):
                if before.writer != after.writer:
                    yield _Edge("ww", before.writer, after.writer, key)

    def _reads(self, history: ObservedHistory) -> Iterator[_Edge]:
        for key, order in self._orders.items():
            for version in order:
                value = None if version.value is None else parent(version.value)
                if value is not None:
                    yield from self._read_edges(version.writer, key, value)
        for writer, key, value in history.conditions:
            yield from self._read_edges(writer, key, value)
        for read in history.reads:
            if read.kind == "snapshot" and not repeated_keys(read.rows):
                yield from self._snapshot_edges(read)

    def _snapshot_edges(self, read: Read) -> Iterator[_Edge]:
        rows = dict(read.rows)
        for key in self._orders:
            yield from self._read_edges(read.client, key, rows.get(key))

    def _read_edges(self, client: str, key: str, value: str | None) -> Iterator[_Edge]:
        order = self._orders[key]
        values = [version.value for version in order]
        if value not in values:
            return
        at = values.index(value)
        if order[at].writer != client:
            yield _Edge("wr", order[at].writer, client, key)
        # A writer's own version is no dependency on the next one.
        following = [version.writer for version in order[at + 1 :] if version.writer != client]
        if following:
            yield _Edge("rw", client, following[0], key)

    def cycles(self) -> Iterator[Finding]:
        """A finding for each two clients in a cycle, of the strongest kind."""
        strongest: dict[frozenset[str], Finding] = {}
        for edge in sorted(self._edges, key=lambda edge: (edge.kind, edge.start, edge.end)):
            kind, pair = self._kind_of_cycle(edge), frozenset((edge.start, edge.end))
            if kind is None:
                continue
            text = f"{edge.start} -{edge.kind}-> {edge.end} ({edge.key}) closes a cycle"
            if pair not in strongest or _STRENGTH[kind] < _STRENGTH[strongest[pair].anomaly]:
                strongest[pair] = Finding(kind, text)
        yield from strongest.values()

    def _kind_of_cycle(self, edge: _Edge) -> Anomaly | None:
        if edge.kind == "ww":
            return Anomaly.DIRTY_WRITE if self._leads(edge.end, edge.start, {"ww"}) else None
        if edge.kind == "wr":
            is_cycle = self._leads(edge.end, edge.start, {"ww", "wr"})
            return Anomaly.CIRCULAR_READ if is_cycle else None
        if self._leads(edge.end, edge.start, {"ww"}, [edge.key]):
            return Anomaly.LOST_UPDATE
        if self._leads(edge.end, edge.start, {"ww", "wr"}):
            return Anomaly.READ_SKEW
        if self._leads(edge.end, edge.start, {"ww", "wr", "rw"}):
            return Anomaly.WRITE_SKEW
        return None

    def _leads(
        self, start: str, end: str, kinds: set[str], keys: Iterable[str] | None = None
    ) -> bool:
        """Whether dependencies of some kinds, and on some keys, lead from a client to another."""
        reached, pending = {start}, [start]
        while pending:
            client = pending.pop()
            if client == end:
                return True
            for edge in self._edges:
                is_usable = edge.kind in kinds and (keys is None or edge.key in keys)
                if edge.start == client and is_usable and edge.end not in reached:
                    reached.add(edge.end)
                    pending.append(edge.end)
        return False


def _version_order(history: ObservedHistory, key: str) -> list[_Version]:
    """The versions of a key.

    A write that no reader saw after its commit, since another one wins, is before the one that was
    seen.
    """
    order = [_Version(_value_in(history.start, key), START)]
    for commit in history.commits:
        seen = _value_in(commit.state, key)
        written = history.writes.get(commit.writer, {}).get(key, seen)
        for value in dict.fromkeys((written, seen)):
            is_new = all(value != version.value for version in order)
            if value == order[-1].value or (value is not None and not is_new):
                continue
            writer = commit.writer if value is None or value == written else author(value)
            at = len(order) if value == seen else len(order) - 1
            order.insert(at, _Version(value, writer))
    return order


def _value_in(state: State, key: str) -> str | None:
    return next((value for row_key, value in reversed(state) if row_key == key), None)
