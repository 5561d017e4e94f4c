"""Streams next to the writers of a simulated history, and the judgement of what they delivered.

Two tasks follow the table under one consumer's name. Each of them may end between the use of a
batch and its commit. Whatever happens, each commit is delivered, and committed once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyhudi
from pyhudi.api.stream import StreamBatch
from pyhudi.api.table import HudiTable
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import ConsumerConflict, HistoryUnavailable, MissingFile, StorageError
from pyhudi.query.stream_progress import commit_steps
from tests.sim.table_kinds import Kind, Rows
from tests.sim.world import Task, WorldStorage

COMMIT_TIME = "_hoodie_commit_time"


@dataclass
class Delivery:
    """A batch that a task has used."""

    instants: tuple[str, ...]
    position: str
    rows: list[dict[str, Any]]
    is_committed: bool = False


@dataclass
class Deliveries:
    """All batches of one consumer, in the order of their use."""

    kind: Kind
    start: str | None
    batches: list[Delivery] = field(default_factory=list)
    committed: list[str] = field(default_factory=list)
    """Positions, once their task knows that they are stored."""
    conflicts: int = 0

    def use(self, batch: StreamBatch) -> Delivery:
        rows = batch.to_arrow().to_pylist()
        self.batches.append(Delivery(batch.instants, batch.position, rows))
        return self.batches[-1]

    def commit(self, batch: StreamBatch, delivery: Delivery) -> None:
        batch.commit()
        delivery.is_committed = True
        self.committed.append(batch.position)

    def stream(self, table: HudiTable) -> pyhudi.Stream:
        return table.stream(
            self.start,
            consumer="c",
            wait=False,
            changes=self.kind.cdc,
            meta_fields=not self.kind.cdc,
            fallback_full_scan=self.kind.is_cleaned,
        )


def follows(deliveries: Deliveries, uri: str) -> Callable[[Task], None]:
    def work(task: Task) -> None:
        random = task.world.random
        for _ in range(5):
            storage = WorldStorage(uri, task.world)
            before = max(deliveries.committed, default="")
            try:
                table = HudiTable(storage, LocalEngine(1), deliveries.kind.options)
                for batch in deliveries.stream(table):
                    assert batch.position > before, "it was committed before"
                    delivery = deliveries.use(batch)
                    if random.random() < 0.1:
                        break
                    deliveries.commit(batch, delivery)
            except ConsumerConflict:
                deliveries.conflicts += 1
            except (StorageError, HistoryUnavailable, MissingFile) as error:
                task.world.log(f"ends with {error!r}")
            task.world.sleep(random.choice([0, 0.05, 0.5]))

    return work


def judge_deliveries(deliveries: Deliveries, base: Path, expected: list[Rows]) -> None:
    """expected: what the rows of the table may be."""
    kind = deliveries.kind
    table = pyhudi.open_table(str(base), options=kind.options)
    for batch in deliveries.stream(table):
        deliveries.commit(batch, deliveries.use(batch))
    positions = deliveries.committed
    assert len(positions) == len(set(positions)), f"committed twice: {positions}"
    steps = list(commit_steps(table.state, None))
    with_rows = {
        step.instants: step.time for step in steps if step.has_rows(table.state, changes=kind.cdc)
    }
    # Of several streams that begin with all rows, the first to commit is the consumer's. It may be
    # killed before it reports that.
    firsts = [each for each in deliveries.batches if not each.instants]
    firsts = [each for each in firsts if each.is_committed] or firsts
    since = max((each.position for each in firsts), default="")
    delivered = {each.instants for each in deliveries.batches}
    missed = {each for each, time in with_rows.items() if time > since and each not in delivered}
    if kind.is_cleaned:
        # Of a commit whose files were cleaned, a batch has the rows that are still current, if any.
        times = table.scan([COMMIT_TIME]).to_arrow()[COMMIT_TIME].to_pylist()
        missed = {each for each in missed if not set(times).isdisjoint(each)}
    assert not missed, f"{missed} were not delivered"
    # Commits that were read and then revoked or rolled back do not count.
    counted = {instant for step in steps for instant in step.instants}
    state: Rows = {}
    for delivery in sorted(deliveries.batches, key=lambda each: each.position):
        for row in delivery.rows:
            instant, after = row["ts_ms"] if kind.cdc else row[COMMIT_TIME], row
            if instant not in counted:
                continue
            if kind.cdc:
                after = row["after"] or row["before"]
            key = after["id"]
            if kind.cdc and row["op"] == "d":
                state.pop(key, None)
            else:
                state[key] = (after["city"], after["v"])
    if kind.cdc:
        assert state in expected, f"{state} is none of {expected}"
    else:
        assert any(state.items() >= rows.items() for rows in expected), f"{state}, {expected}"
