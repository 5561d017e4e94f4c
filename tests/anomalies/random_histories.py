"""Histories of clients that a seed interleaves at each call of storage."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.clock import SystemClock
from pyhudi.engine.local import LocalEngine
from tests.anomalies.holding_storage import is_completion
from tests.anomalies.modes import START, Mode
from tests.anomalies.observed_history import Commit, ObservedHistory, state_of
from tests.anomalies.scenarios import CONFLICTS, Act, Client, as_state
from tests.sim.world import Odds, Task, World, WorldStorage, use_world_time

_WRITES: tuple[Act, ...] = (
    lambda client: client.append_to("id = 'x'"),
    lambda client: client.append_to("TRUE"),
    lambda client: client.upsert({"x": client.name, "y": client.name}),
    lambda client: client.upsert({"y": client.name}),
    lambda client: client.upsert({"z": client.name}),
)
_APPENDS = _WRITES[2:]
"""Writes that non-blocking writers may make."""


@dataclass
class _ObservedWorld:
    """A world that reads the table after each completed commit."""

    uri: str
    mode: Mode
    seed: int
    history: ObservedHistory = field(default_factory=lambda: ObservedHistory(state_of(START)))
    writers: dict[str, str] = field(default_factory=dict)
    """The client that a task runs."""
    names: Iterator[str] = field(default_factory=lambda: iter(string.ascii_lowercase))

    def __post_init__(self) -> None:
        self.world = World(self.seed, Odds(switch=(0.25, 0.6)[self.seed % 2]))
        self.world.on_create = self._observe  # type: ignore[method-assign]

    def _observe(self, path: str) -> None:
        assert self.world.running is not None
        if is_completion(path):
            table = pyhudi.open_table(self.uri, options={"hoodie.metadata.enable": "false"})
            state = as_state(table.scan().to_arrow())
            self.history.commits.append(Commit(self.writers[self.world.running.name], state))

    def client(self, task: Task, name: str) -> Client:
        """A client that the world interleaves."""
        self.writers[task.name] = name

        def open_table() -> HudiTable:
            storage = WorldStorage(self.uri, self.world)
            return HudiTable(storage, LocalEngine(1), self.mode.options)

        return Client(name, open_table, self.history)

    def write(self, acts: tuple[Act, ...]) -> Callable[[Task], None]:
        """A task that makes two writes."""

        def work(task: Task) -> None:
            for _ in range(2):
                client = self.client(task, next(self.names))
                try:
                    self.world.random.choice(acts)(client)
                except CONFLICTS:
                    self.history.disown(client.name)

        return work

    def read(self, task: Task) -> None:
        """A task that reads all rows a few times."""
        for number in range(4):
            self.client(task, f"r{number}").read()
            self.world.sleep(self.world.random.choice([0, 0.05, 0.2]))

    def follow(self, task: Task) -> None:
        """A task that reads each commit once."""
        client = self.client(task, "f")
        client.follow("block")
        for _ in range(4):
            self.world.sleep(self.world.random.choice([0, 0.05, 0.2]))
            client.follow("block")


def play(uri: str, mode: Mode, seed: int, patch: pytest.MonkeyPatch) -> ObservedHistory:
    """Play a seed on a table, and return its history."""
    observed = _ObservedWorld(uri, mode, seed)
    world = observed.world
    use_world_time(world, patch, same_machine=True)
    patch.setattr(SystemClock, "now_ms", lambda _: world.now_ms)
    patch.setattr(SystemClock, "ticks_ms", lambda _: world.now_ms)
    patch.setattr(SystemClock, "sleep", lambda _, seconds: world.sleep(seconds))
    acts = _APPENDS if mode.options.get("hoodie.index.type") == "BUCKET" else _WRITES
    for number in range(3):
        world.add(f"w{number}", observed.write(acts))
    world.add("reader", observed.read)
    world.add("follower", observed.follow)
    world.run()
    table = pyhudi.open_table(uri, options=mode.options)
    Client("f", lambda: table, observed.history).follow("block")
    return observed.history
