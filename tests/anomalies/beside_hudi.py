"""Apache Hudi as the second client: its reads and writes run while pyhudi is held at a step.

Hudi itself cannot be held at a step. `measure_late_commit` lets pyhudi write as soon as Hudi has
planned, and counts a run only if pyhudi completed first.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyhudi
from pyhudi.config import lock_options
from pyhudi.config.lock_options import ConcurrencyMode
from pyhudi.errors import LockTimeout
from tests.anomalies.holding_storage import COMPLETE, DATA, READ_TIMELINE
from tests.anomalies.modes import Mode, rows_of
from tests.anomalies.observed_history import Commit, Read, ReadKind
from tests.anomalies.results import Results
from tests.anomalies.scenarios import SCENARIOS, Client, Scenario
from tests.anomalies.scripted_run import ObservedClient, ObservedTable, Outcome, Place, measure
from tests.compat.test_alternating_writers import KEY_GENERATORS
from tests.helpers.oracle.client import HudiError, HudiOracle

RELEASES = ("0.15.0", "1.0.2", "1.2.0")
_FILE_LOCK = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
MODES = {
    "0.15.0": Mode(ConcurrencyMode.OPTIMISTIC, lock_options.FILE_SYSTEM, 6, "cow"),
    "1.0.2": Mode(ConcurrencyMode.OPTIMISTIC, lock_options.FILE_SYSTEM, 8, "mor"),
    "1.2.0": Mode(ConcurrencyMode.OPTIMISTIC, lock_options.FILE_SYSTEM, 9, "mor"),
}
"""The mode of the table beside each release."""


def steps_in(scenario: Scenario) -> tuple[str, ...]:
    """The steps at which pyhudi is held: Hudi takes seconds for each read and write."""
    if scenario.holds == "reads":
        return (READ_TIMELINE,)
    return (DATA, COMPLETE) if scenario.name in _HUDI_READS else (DATA,)


_HUDI_READS = ("read of a pending write", "intermediate read", "read-optimized skew")
"""Scenarios in which Hudi needs no lock."""
NAMES = (
    "dirty write",
    "read of a pending write",
    "intermediate read",
    "read skew",
    "lost update of one statement",
    "duplicate key of upserts",
    "phantom under update",
    "phantom under delete",
    "non-prefix incremental read",
    "read-optimized skew",
)
"""Scenarios whose second client can be Hudi."""
LATE_NAMES = ("lost update of one statement", "duplicate key of upserts")
"""Scenarios in which Hudi plans first and commits last, too."""
_CONFLICTS = ("HoodieLockException", "Unable to acquire", "WriteConflictException")
"""Errors of Hudi if pyhudi is held and has the lock, or has changed the same file group."""
_DDL = "id string, city string, v string"


@dataclass
class HudiClient(Client):
    """Apache Hudi with the lock and the concurrency mode of the table's other writers."""

    hudi: HudiOracle
    table: ObservedTable

    def read(self, kind: ReadKind = "snapshot") -> dict[str, str]:
        """Read all rows."""
        first = len(self.history.commits)
        query = kind.replace("-", "_")
        rows = self.hudi.read(self.table.uri, query=query, metadata=False)["rows"]
        state = tuple(sorted((row["id"], row["v"]) for row in rows))
        self.history.reads.append(Read(self.name, state, first, first, kind))
        return dict(state)

    def upsert(self, values: dict[str, str]) -> None:
        """Write values by key."""
        self.history.writes.setdefault(self.name, {}).update(values)
        rows = rows_of(values).to_pylist()
        self._commit(
            partial(self.hudi.write, self.table.uri, rows=rows, schema=_DDL, options=self._options)
        )

    def append_to(self, where: str) -> None:
        """Append the client's name to the values of rows, among them x, in one statement."""
        self.history.updates[self.name] = {"x"}
        statement = f"UPDATE {{table}} SET v = concat(v, '.{self.name}') WHERE {where}"
        self._commit(partial(self.hudi.sql, self.table.uri, statement, conf=self._options))

    def _commit(self, write: Callable[[], object]) -> None:
        try:
            write()
        except HudiError as error:
            text = str((error.type, error.message, error.causes))
            if any(reason in text for reason in _CONFLICTS):
                raise LockTimeout(text) from error
            raise
        self.history.commits.append(Commit(self.name, self.table.state()))

    @property
    def _options(self) -> dict[str, str]:
        mode = self.table.mode
        # Otherwise 0.15.0 needs an ordering field.
        old = {"hoodie.combine.before.upsert": "false"} if mode.version == 6 else {}  # noqa: PLR2004
        return {
            **old,
            "hoodie.table.name": "t",
            "hoodie.datasource.write.table.type": "COPY_ON_WRITE"
            if mode.kind == "cow"
            else "MERGE_ON_READ",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "city",
            "hoodie.datasource.write.keygenerator.class": f"{KEY_GENERATORS}.SimpleKeyGenerator",
            "hoodie.index.type": "SIMPLE",
            "hoodie.parquet.small.file.limit": "0",
            "hoodie.metadata.enable": "true",
            "hoodie.embed.timeline.server": "false",
            "hoodie.write.markers.type": "DIRECT",
            "hoodie.upsert.shuffle.parallelism": "1",
            "hoodie.write.auto.upgrade": "false",
            "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
            "hoodie.clean.failed.writes.policy": "LAZY",
            "hoodie.cleaner.policy.failed.writes": "LAZY",
            "hoodie.write.lock.provider": _FILE_LOCK,
            "hoodie.write.lock.wait_time_ms": "200",
            "hoodie.write.lock.num_retries": "1",
            "hoodie.write.lock.client.num_retries": "1",
            "hoodie.write.lock.client.wait_time_ms_between_retry": "100",
            "hoodie.write.lock.wait_time_ms_between_retry": "100",
        }


def measure_late_commit(scenario: Scenario, hudi: HudiOracle, place: Place) -> Outcome:
    """Measure a scenario in which Hudi plans first and commits last."""
    outcome = Outcome()
    for _ in range(_MAX_LATE_RUNS):
        table = ObservedTable(scenario, MODES[hudi.hudi], place, None)
        timeline = (table.mode.version < 8 and ".hoodie") or ".hoodie/timeline"  # noqa: PLR2004
        folder = Path(table.uri) / timeline
        before = {*folder.glob("*inflight")}
        thread = threading.Thread(
            target=table.run_client, args=(scenario.first, _hudi_client("a", table, hudi))
        )
        thread.start()
        while thread.is_alive() and not {*folder.glob("*inflight")} - before:
            time.sleep(0.005)
        planned_first = thread.is_alive()
        table.run_second()
        thread.join()
        writers = [commit.writer for commit in table.history.commits]
        has_interleaved = planned_first and writers in (["b"], ["b", "a"])
        if has_interleaved and _last_commit_is_first_request(table):
            outcome.add(COMPLETE, scenario, table.history)
            table.place.remove(table.uri)
            return outcome
        table.place.remove(table.uri)
    return outcome


_MAX_LATE_RUNS = 5
"""Attempts until pyhudi is fast enough."""


def _last_commit_is_first_request(table: ObservedTable) -> bool:
    """Whether the order of completion is not the one of the requests, if both committed."""
    if len(table.history.commits) < len("ab"):
        return True
    rows = pyhudi.open_table(table.uri).history().to_pylist()
    last = max(rows, key=lambda row: str(row["completed"]))
    return bool(last["instant"] != max(row["instant"] for row in rows))


def _hudi_client(name: str, table: ObservedTable, hudi: HudiOracle) -> HudiClient:
    # Its incremental reads are those of pyhudi.
    pyhudi_client = table.client(ObservedClient(name, table, "changes"), {})
    return HudiClient(name, pyhudi_client.open, table.history, hudi, table)


def measure_beside(hudi: HudiOracle, place: Place, names: Collection[str] = NAMES) -> Results:
    """Measure scenarios with Hudi as the second client, and some with Hudi as the first one."""
    mode = MODES[hudi.hudi]
    measured = {
        scenario.name: measure(
            scenario, mode, place, steps_in(scenario), lambda table: _hudi_client("b", table, hudi)
        ).summary
        for scenario in SCENARIOS
        if scenario.name in names
    }
    for scenario in SCENARIOS:
        if scenario.name in LATE_NAMES:
            outcome = measure_late_commit(scenario, hudi, place)
            measured[f"{scenario.name}, Hudi last"] = outcome.summary
    return {f"hudi-{hudi.hudi}-{mode}": measured}
