"""Runs a scenario in a mode, once for each step at which its first client can be held."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.engine.local import LocalEngine
from tests.anomalies.checker import find_anomalies
from tests.anomalies.holding_storage import CHANGES, HoldingStorage, StepNames, is_completion
from tests.anomalies.modes import START, Mode, create
from tests.anomalies.observed_history import Commit, ObservedHistory, state_of
from tests.anomalies.scenarios import CONFLICTS, REFUSALS, Act, Client, Scenario, as_state

SHORT_WAIT = {
    "hoodie.write.lock.wait_time_ms": "20",
    "hoodie.write.lock.client.num_retries": "0",
}
"""A second client that waits for the lock would wait for itself: it gives up, and runs later."""


@dataclass
class Place:
    """Where tables are."""

    folder: Path | None = None
    """Of local tables."""
    bucket: str = ""
    storage_options: dict[str, str] | None = None
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def create(self, mode: Mode) -> str:
        """Create the table of a mode at a new location."""
        number = next(self.numbers)
        if self.folder is None:
            uri = f"{self.bucket}/{number}/t"
            create(mode, uri, self.storage_options)
            return uri
        template = self.folder / str(mode) / "t"
        if not template.exists():
            create(mode, str(template))
        return str(shutil.copytree(template, self.folder / str(number) / "t"))

    def remove(self, uri: str) -> None:
        """Remove a local table."""
        if self.folder is not None:
            shutil.rmtree(Path(uri).parent)


@dataclass
class ObservedClient:
    """Records the steps and commits of a client, and holds it at one step."""

    name: str
    table: ObservedTable
    holds: str
    at: str | None = None
    steps: list[str] = field(default_factory=list)
    _names: StepNames = field(default_factory=StepNames)

    def before(self, verb: str, path: str) -> None:
        """Hold the client if this call is the first one of the step."""
        if (verb in CHANGES) != (self.holds == "changes"):
            return
        name = self._names.name(verb, path)
        if name in self.steps:
            return
        self.steps.append(name)
        if name == self.at:
            self.table.run_second()

    def after(self, verb: str, path: str, result: Any) -> None:
        """Read the table after each completed commit."""
        if verb == "put_if_absent" and result and is_completion(path):
            self.table.history.commits.append(Commit(self.name, self.table.state()))


class ObservedTable:
    """One table and its two clients."""

    def __init__(
        self,
        scenario: Scenario,
        mode: Mode,
        place: Place,
        at: str | None,
        second: Callable[[ObservedTable], Client] | None = None,
    ) -> None:
        self.scenario, self.mode, self.place = scenario, mode, place
        self.uri = place.create(mode)
        self.history = ObservedHistory(state_of(START))
        self.first = ObservedClient("a", self, scenario.holds, at)
        self._second = second or _second_client
        self.second_is_done = False

    def state(self) -> Any:
        """The rows that a new reader sees."""
        options = {**self.mode.options, "hoodie.metadata.enable": "false"}
        table = pyhudi.open_table(
            self.uri, options=options, storage_options=self.place.storage_options
        )
        return as_state(table.scan().to_arrow())

    def _handle(self, observer: ObservedClient, options: dict[str, str]) -> HudiTable:
        storage = HoldingStorage(self.uri, observer, self.place.storage_options)
        return HudiTable(storage, LocalEngine(1), {**self.mode.options, **options})

    def client(self, observer: ObservedClient, options: dict[str, str]) -> Client:
        """A client whose calls are observed."""
        return Client(observer.name, partial(self._handle, observer, options), self.history)

    def run_client(self, act: Act, client: Client) -> bool:
        """Run a client; return whether it did not give up because of a conflict."""
        try:
            act(client)
        except CONFLICTS:
            self.history.disown(client.name)
            return False
        except REFUSALS as error:
            self.history.refusals.append(f"{client.name}: {type(error).__name__}: {error}")
        return True

    def run_second(self) -> None:
        """Run the second client from beginning to end."""
        self.second_is_done = self.run_client(self.scenario.second, self._second(self))

    def run(self) -> ObservedHistory:
        """Run both clients."""
        self.run_client(self.scenario.first, self.client(self.first, {}))
        if not self.second_is_done:
            self.run_second()
        if self.scenario.end is not None:
            self.run_client(
                self.scenario.end, self.client(ObservedClient("c", self, "changes"), {})
            )
        self.place.remove(self.uri)
        return self.history


def _second_client(table: ObservedTable) -> Client:
    return table.client(ObservedClient("b", table, "changes"), SHORT_WAIT)


@dataclass
class Outcome:
    """What the interleavings of a scenario showed in a mode."""

    interleavings: int = 0
    anomalies: dict[str, str] = field(default_factory=dict)
    """What shows the anomaly, by the step at which the first client was held."""
    refusals: set[str] = field(default_factory=set)
    """Names of errors with which pyhudi refused a read or a write."""

    def add(self, step: str, scenario: Scenario, history: ObservedHistory) -> None:
        """Add the history of an interleaving."""
        self.interleavings += 1
        self.refusals |= {refusal.split(": ")[1] for refusal in history.refusals}
        texts = [
            finding.text
            for finding in find_anomalies(history)
            if finding.anomaly is scenario.anomaly
        ]
        if texts:
            self.anomalies[step] = texts[0]

    @property
    def summary(self) -> dict[str, object]:
        """The outcome as the file of results has it."""
        return {
            "interleavings": self.interleavings,
            "possible_at": sorted(self.anomalies),
            "refusals": sorted(self.refusals),
        }


def measure(
    scenario: Scenario,
    mode: Mode,
    place: Place,
    steps: Collection[str] | None = None,
    second: Callable[[ObservedTable], Client] | None = None,
) -> Outcome:
    """Run a scenario once for each step, or for some of them.

    second: gives the second client; by default it is pyhudi.
    """
    outcome = Outcome()
    if second is None:
        # Without a hold: it gives the steps of the mode.
        table = ObservedTable(scenario, mode, place, None)
        history = table.run()
        if not table.first.steps:
            outcome.add("", scenario, history)
        steps = [step for step in table.first.steps if steps is None or step in steps]
    for step in steps or ():
        held = ObservedTable(scenario, mode, place, step, second)
        outcome.add(step, scenario, held.run())
        assert step in held.first.steps
    return outcome
