"""One scripted interleaving for each anomaly, as in Hermitage: two clients of one table.

The first client is held before one of its calls to storage. Meanwhile the second one runs from its
beginning to its end. If the first one holds the lock, the second one runs after it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from pyhudi.api.table import HudiTable
from pyhudi.errors import (
    CommitConflict,
    HistoryUnavailable,
    LockTimeout,
    UnsupportedTableFeature,
)
from pyhudi.query.commit_range import HollowCommits
from tests.anomalies.checker import Anomaly
from tests.anomalies.modes import rows_of
from tests.anomalies.observed_history import ObservedHistory, Read, ReadKind, State

REFUSALS = (UnsupportedTableFeature, HistoryUnavailable)
CONFLICTS = (CommitConflict, LockTimeout)


@dataclass
class Client:
    """A client with its own handle, whose reads and writes enter the history."""

    name: str
    open: Callable[[], HudiTable]
    history: ObservedHistory

    def read(self, kind: ReadKind = "snapshot") -> dict[str, str]:
        """Read all rows with a new handle."""
        first = len(self.history.commits)
        scan = self.open().scan(read_optimized=kind == "read-optimized")
        rows = as_state(scan.to_arrow())
        read = Read(self.name, rows, first, len(self.history.commits), kind)
        self.history.reads.append(read)
        return dict(rows)

    def upsert(self, values: dict[str, str]) -> None:
        """Write values by key, which the client chose itself."""
        self.history.writes.setdefault(self.name, {}).update(values)
        self.open().upsert(rows_of(values))

    def insert(self, values: dict[str, str]) -> None:
        """Insert rows without a lookup of their keys."""
        self.history.writes.setdefault(self.name, {}).update(values)
        self.open().insert(rows_of(values))

    def follow(self, hollow_commits: HollowCommits = "fail") -> None:
        """Read the rows of the commits since the last call; at first all rows."""
        history, table = self.history, self.open()
        if history.position is None:
            scan = table.scan()
        else:
            scan = table.incremental(history.position, hollow_commits=hollow_commits)
        history.deliveries.append((as_state(scan.to_arrow()), len(history.commits)))
        history.position = scan.position

    def append_to(self, where: str) -> None:
        """Append the client's name to the values of rows, among them x, in one statement."""
        self.history.updates[self.name] = {"x"}
        self.open().update(where, {"v": f"concat(v, '.{self.name}')"})


def as_state(table: Any) -> State:
    """The rows of an Arrow table as a state."""
    return tuple(sorted(zip(table["id"].to_pylist(), table["v"].to_pylist(), strict=True)))


Act = Callable[[Client], None]


@dataclass(frozen=True)
class Scenario:
    """Two clients, and the anomaly that they may show.

    first: held before its calls. second: runs meanwhile. end: runs after both.
    """

    name: str
    anomaly: Anomaly
    first: Act
    second: Act
    end: Act | None = None
    holds: Literal["changes", "reads"] = "changes"


def _write_both(client: Client) -> None:
    client.upsert({"x": client.name, "y": client.name})


def _read_all(client: Client) -> None:
    client.read()


class _RejectedError(Exception):
    pass


def _abort(client: Client) -> None:
    """A write that its validator rejects after the files are written."""
    read_between = Client("between", client.open, client.history)

    def validate(_: Any) -> None:
        read_between.read()
        raise _RejectedError

    try:
        client.open().with_validators(validate).upsert(rows_of({"x": client.name}))
    except _RejectedError:
        client.read()


def _write_twice(client: Client) -> None:
    name = client.name
    client.history.intermediate |= {f"{name}1", f"0.{name}1"}
    with client.open().transaction() as changes:
        changes.upsert(rows_of({"x": f"{name}1"}))
        changes.update("id = 'x'", {"v": f"'{name}'"})


def _update_both(client: Client) -> None:
    client.append_to("TRUE")


def _update_x(client: Client) -> None:
    client.append_to("id = 'x'")


def _read_all_and_upsert(key: str) -> Act:
    def act(client: Client) -> None:
        value = client.read()[key]
        client.upsert({key: f"{value}.{client.name}"})

    return act


def _update_by_subquery(client: Client) -> None:
    client.history.updates[client.name] = {"x"}
    table = client.open()
    table.sql(
        f"UPDATE {table.name} SET v = "
        f"concat((SELECT v FROM {table.name} WHERE id = 'x'), '.{client.name}') WHERE id = 'x'"
    )


def _update_if_other_is_unchanged(key: str, other: str) -> Act:
    """One SQL statement with a subquery of another row of the table."""

    def act(client: Client) -> None:
        table = client.open()
        table.sql(
            f"UPDATE {table.name} SET v = concat(v, '.{client.name}') WHERE id = '{key}' AND "
            f"(SELECT v FROM {table.name} WHERE id = '{other}') = '0'"
        )
        if client.name in client.history.committed:
            client.history.conditions.append((client.name, other, "0"))

    return act


def _upsert_new(client: Client) -> None:
    client.upsert({"z": client.name})


def _insert_new(client: Client) -> None:
    client.insert({"z": client.name})


def _update_all_matching(client: Client) -> None:
    suffix = f".{client.name}"
    client.history.filters[client.name] = lambda key, value: (
        key != "y" and not value.endswith(suffix)
    )
    client.append_to("city = 'rome'")


def _delete_all_matching(client: Client) -> None:
    client.history.filters[client.name] = lambda key, _: key != "y"
    client.open().delete("city = 'rome'")


def _upsert_x(client: Client) -> None:
    client.upsert({"x": client.name})


def _follow(hollow_commits: HollowCommits) -> Act:
    return lambda client: client.follow(hollow_commits)


def _upsert_y_and_follow(hollow_commits: HollowCommits) -> Act:
    def act(client: Client) -> None:
        client.follow(hollow_commits)
        client.upsert({"y": client.name})
        client.follow(hollow_commits)

    return act


def _read_base_files(client: Client) -> None:
    client.read("read-optimized")


def _compact_partitions(client: Client) -> None:
    table = client.open()
    if table.type == "mor":
        table.compact(partitions=[{"city": "rome"}])
    client.read("read-optimized")


SCENARIOS = [
    Scenario("dirty write", Anomaly.DIRTY_WRITE, _write_both, _write_both),
    Scenario("read of an aborted write", Anomaly.DIRTY_READ, _abort, _read_all),
    Scenario("read of a pending write", Anomaly.DIRTY_READ, _write_both, _read_all),
    Scenario("intermediate read", Anomaly.INTERMEDIATE_READ, _write_twice, _read_all),
    Scenario("read skew", Anomaly.READ_SKEW, _read_all, _write_both, holds="reads"),
    Scenario("lost update of one statement", Anomaly.LOST_UPDATE, _update_x, _update_x),
    Scenario(
        "lost update of a subquery",
        Anomaly.LOST_UPDATE,
        _update_by_subquery,
        _update_by_subquery,
    ),
    Scenario(
        "lost update of a read and an upsert",
        Anomaly.LOST_UPDATE,
        _read_all_and_upsert("x"),
        _read_all_and_upsert("x"),
    ),
    Scenario(
        "write skew of a subquery",
        Anomaly.WRITE_SKEW,
        _update_if_other_is_unchanged("x", "y"),
        _update_if_other_is_unchanged("y", "x"),
    ),
    Scenario(
        "write skew of reads and upserts",
        Anomaly.WRITE_SKEW,
        _read_all_and_upsert("x"),
        _read_all_and_upsert("y"),
    ),
    Scenario("duplicate key of upserts", Anomaly.DUPLICATE_KEY, _upsert_new, _upsert_new),
    Scenario("duplicate key of inserts", Anomaly.DUPLICATE_KEY, _insert_new, _insert_new),
    Scenario("phantom under update", Anomaly.PHANTOM, _update_all_matching, _upsert_new),
    Scenario("phantom under delete", Anomaly.PHANTOM, _delete_all_matching, _upsert_new),
    Scenario(
        "non-prefix incremental read",
        Anomaly.NON_PREFIX,
        _upsert_x,
        _upsert_y_and_follow("fail"),
        end=_follow("fail"),
    ),
    Scenario(
        "non-prefix incremental read that waits",
        Anomaly.NON_PREFIX,
        _upsert_x,
        _upsert_y_and_follow("block"),
        end=_follow("block"),
    ),
    Scenario(
        "read-optimized skew",
        Anomaly.READ_OPTIMIZED_SKEW,
        _write_both,
        _read_base_files,
        end=_compact_partitions,
    ),
]
