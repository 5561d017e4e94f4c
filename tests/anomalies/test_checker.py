"""The checker finds each anomaly in a history made by hand, and none in histories without one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.anomalies.checker import Anomaly, find_anomalies
from tests.anomalies.observed_history import Commit, ObservedHistory, Read, State, state_of


def state(**values: str) -> State:
    """The state with these values by key."""
    return state_of(values)


START = state(x="0", y="0")


def history(*commits: tuple[str, State]) -> ObservedHistory:
    """A history of commits, each with its writer and the state after it."""
    return ObservedHistory(START, [Commit(*commit) for commit in commits])


def both_wrote(last: State) -> ObservedHistory:
    """Two blind writes of both rows, of which the last one completes with a state."""
    made = history(("a", state(x="a", y="a")), ("b", last))
    made.writes = {name: {"x": name, "y": name} for name in "ab"}
    return made


def read_after(rows: State, *, commits: int = 1, kind: str = "snapshot") -> ObservedHistory:
    """A read after the commit of a writer that updated both rows."""
    made = history(("a", state(x="0.a", y="0.a")))
    made.reads = [Read("r", rows, commits, commits, kind)]  # type: ignore[arg-type]
    return made


def intermediate_read() -> ObservedHistory:
    made = read_after(state(x="a1", y="0.a"))
    made.intermediate = {"a1"}
    return made


def updates(second: str) -> ObservedHistory:
    """Two updates of one row, of which the second one writes a value."""
    return history(("a", state(x="0.a", y="0")), ("b", state(x=second, y="0")))


def invisible_update() -> ObservedHistory:
    """The later request completed first, and wins."""
    made = history(("b", state(x="0.b", y="0")), ("a", state(x="0.b", y="0")))
    made.writes = {"a": {"x": "0.a"}, "b": {"x": "0.b"}}
    return made


def update_without_effect() -> ObservedHistory:
    made = history(("b", state(x="0.b", y="0")), ("a", state(x="0.b", y="0")))
    made.updates = {"a": {"x"}, "b": {"x"}}
    return made


def write_skew() -> ObservedHistory:
    made = history(("a", state(x="0.a", y="0")), ("b", state(x="0.a", y="0.b")))
    made.reads = [Read("a", START, 0, 0), Read("b", START, 0, 0)]
    return made


def condition_skew() -> ObservedHistory:
    made = replace(write_skew(), reads=[])
    made.conditions = [("a", "y", "0"), ("b", "x", "0")]
    return made


def circular_reads() -> ObservedHistory:
    made = write_skew()
    made.reads = [
        Read("a", state(x="0.a", y="0.b"), 0, 2),
        Read("b", state(x="0.a", y="0.b"), 0, 2),
    ]
    return made


def inserts(*values: str) -> ObservedHistory:
    """A new key with several rows."""
    rows = (*START, *(("z", value) for value in values))
    return history(("a", (*START, ("z", "a"))), ("b", rows))


def phantom(after: State) -> ObservedHistory:
    """An update of all rows that completes after the insert of one."""
    made = history(("b", state(x="0", y="0", z="b")), ("a", after))
    made.filters = {"a": lambda _, value: not value.endswith(".a")}
    return made


def deliveries(*ranges: tuple[State, int]) -> ObservedHistory:
    """A follower of two commits, of which the second one was requested first."""
    made = history(("b", state(x="0", y="0.b")), ("a", state(x="0.a", y="0.b")))
    made.deliveries = [(START, 0), *ranges]
    return made


WITH_ANOMALY = {
    "write of each row by another writer": (both_wrote(state(x="b", y="a")), Anomaly.DIRTY_WRITE),
    "value without a commit": (read_after(state(x="c", y="0.a")), Anomaly.DIRTY_READ),
    "value before its commit": (read_after(state(x="0.a", y="0"), commits=0), Anomaly.DIRTY_READ),
    "replaced value": (intermediate_read(), Anomaly.INTERMEDIATE_READ),
    "old and new row": (read_after(state(x="0.a", y="0")), Anomaly.READ_SKEW),
    "old rows after the commit": (read_after(START), Anomaly.READ_SKEW),
    "update of an old version": (updates("0.b"), Anomaly.LOST_UPDATE),
    "update that nobody saw": (invisible_update(), Anomaly.LOST_UPDATE),
    "update without effect": (update_without_effect(), Anomaly.LOST_UPDATE),
    "reads of both rows": (write_skew(), Anomaly.WRITE_SKEW),
    "conditions on the other row": (condition_skew(), Anomaly.WRITE_SKEW),
    "each read the other's version": (circular_reads(), Anomaly.CIRCULAR_READ),
    "two rows of a key": (inserts("a", "b"), Anomaly.DUPLICATE_KEY),
    "row that an update left": (phantom(state(x="0.a", y="0.a", z="b")), Anomaly.PHANTOM),
    "commit that was skipped": (
        deliveries((state(y="0.b"), 1), ((), 2)),
        Anomaly.NON_PREFIX,
    ),
    "commit without an earlier one": (
        deliveries((state(x="0.a"), 2), (state(y="0.b"), 2)),
        Anomaly.NON_PREFIX,
    ),
    "base files of several commits": (
        read_after(state(x="0.a", y="0"), kind="read-optimized"),
        Anomaly.READ_OPTIMIZED_SKEW,
    ),
}

WITHOUT_ANOMALY = {
    "writes one after the other": both_wrote(state(x="b", y="b")),
    "read of the commit": read_after(state(x="0.a", y="0.a")),
    "read before the commit": read_after(START, commits=0),
    "base files of an earlier commit": read_after(START, kind="read-optimized"),
    "update of the newest version": updates("0.a.b"),
    "write that reads no row": updates("b"),
    "one row of the key": inserts("b"),
    "row that an update changed": phantom(state(x="0.a", y="0.a", z="b.a")),
    "row that a delete removed": phantom(state(x="0.a", y="0.a")),
    "commits in the order of completion": deliveries((state(y="0.b"), 1), (state(x="0.a"), 2)),
}


@pytest.mark.parametrize("name", WITH_ANOMALY)
def test_checker_finds_anomaly(name: str) -> None:
    made, anomaly = WITH_ANOMALY[name]
    assert anomaly in {finding.anomaly for finding in find_anomalies(made)}


@pytest.mark.parametrize("name", WITHOUT_ANOMALY)
def test_checker_accepts_history_without_anomaly(name: str) -> None:
    assert find_anomalies(WITHOUT_ANOMALY[name]) == []


def test_checker_tests_cover_each_kind() -> None:
    assert {anomaly for _, anomaly in WITH_ANOMALY.values()} == set(Anomaly)
