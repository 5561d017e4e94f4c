"""Runs one schedule of a small world on a copy of a table, and judges the result."""

from __future__ import annotations

import shutil
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pytest

from pyhudi.admin.restore import restore
from pyhudi.api.table import HudiTable
from pyhudi.config.lock_options import CONFLICT_RETRIES
from pyhudi.config.table_config import TableConfig
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import (
    AfterCommitError,
    AfterRollbackError,
    CommitConflict,
    CommitUnknown,
    HistoryUnavailable,
    LockTimeout,
    StorageError,
)
from pyhudi.metadata.index_request import IndexRequest
from pyhudi.schema.alter_changes import ChangeType
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline
from pyhudi.timeline.archive import Archive
from pyhudi.txn.heartbeat import UNSEEN_MS
from pyhudi.write import index_operations, update_delete, upsert
from pyhudi.write.alter import alter
from pyhudi.write.conflict_retries import retry_on_conflict
from pyhudi.write.table_opening import Handle
from tests.sim.counts import note_run
from tests.sim.history import Attempt, Effect, History, seen_in
from tests.sim.seed_runner import finish, judge, noting_what_stays
from tests.sim.small_world import (
    Call,
    HistoryDoesNotApply,
    Schedule,
    SmallWorld,
    SmallWorldClock,
    SmallWorldStorage,
)
from tests.sim.table_kinds import CITIES, Kind, to_arrow
from tests.sim.tasks import SERVICES
from tests.sim.world import Task, use_world_time

Operation: TypeAlias = Literal[
    "increment",
    "update",
    "update other row",
    "update other partition",
    "insert",
    "insert and read",
    "delete",
    "read",
    "compact",
    "cluster",
    "clean",
    "archive",
    "create index",
    "create index blocking",
    "drop index",
    "widen column",
    "restore",
]
"""What a task does: to row k0, to another row of its file, to a row of another partition, with a
new row, with all rows; or a table service, or to the table."""
ROWS = {"update": "k0", "update other row": "k2", "update other partition": "k1", "insert": "k4"}


@dataclass(frozen=True)
class SmallKind:
    """A table, and what each of the two tasks does once."""

    table: Kind
    operations: tuple[Operation, Operation]
    same_machine: bool = True
    """A task can see that the other one has crashed; otherwise only time shows it."""
    on_object_store: bool = False
    """Independent calls are sent together, as on an object store."""
    retries: int = 0

    def __str__(self) -> str:
        """The name of the world."""
        first, second = (operation.replace(" ", "-") for operation in self.operations)
        more = "-two-machines" * (not self.same_machine) + "-object-store" * self.on_object_store
        more += f"-{self.retries}-retries" if self.retries else ""
        return f"{self.table}-{first}-{second}{more}"

    @property
    def is_symmetric(self) -> bool:
        """Whether the tasks can be exchanged."""
        return self.operations[0] == self.operations[1]

    @property
    def options(self) -> dict[str, str]:
        """The options of both tasks."""
        return {**self.table.options, CONFLICT_RETRIES: str(self.retries)}


@dataclass(frozen=True)
class Outcome:
    """A run of a schedule."""

    schedule: Schedule
    calls: tuple[Call, ...]
    starts: tuple[int, ...]
    """For each deviation, the number of calls before it."""
    error: str = ""
    result: str = ""
    """What the tasks reported and what the readers saw; equal for equivalent schedules."""


def create_index(handle: Handle, clock: SmallWorldClock, *, concurrently: bool) -> object:
    """Add a record index."""
    request = IndexRequest("record_index")
    return index_operations.create_index(handle, request, clock, concurrently=concurrently)


def drop_index(handle: Handle, clock: SmallWorldClock) -> object:
    """Drop the record index."""
    return index_operations.drop_index(handle, "record_index", clock)


def widen_column(handle: Handle, clock: SmallWorldClock) -> object:
    """Change the type of the column `v` from int32 to int64."""
    return alter(handle, [ChangeType("v", pa.int64())], clock=clock)


def restore_first_commit(handle: Handle, clock: SmallWorldClock) -> object:
    """Restore the table to its first commit."""
    timeline = Timeline.load(handle.storage, TableConfig.load(handle.storage))
    return restore(handle, timeline.commits[0].requested, clock=clock)


TABLE_OPERATIONS: dict[str, Callable[[Handle, SmallWorldClock], object]] = {
    "create index": partial(create_index, concurrently=True),
    "create index blocking": partial(create_index, concurrently=False),
    "drop index": drop_index,
    "widen column": widen_column,
    "restore": restore_first_commit,
}


def play_schedule(
    kind: SmallKind, schedule: Schedule, start: Path, base: Path, *, is_strict: bool = True
) -> Outcome:
    """Run a schedule on a copy of a table, and return what happened.

    is_strict: a switch to a task that cannot go on is an error, instead of no switch. Raises
    `HistoryDoesNotApply` if a call of the schedule does not exist.
    """
    shutil.copytree(start, base)
    world = SmallWorld(schedule, is_strict=is_strict)
    error = result = ""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = _play(kind, world, base, patch)
        except HistoryDoesNotApply:
            raise
        except Exception:  # noqa: BLE001 - what is wrong is the result
            error = traceback.format_exc()
        finally:
            shutil.rmtree(base)
    if "HistoryDoesNotApply" in error:
        raise HistoryDoesNotApply(error)
    starts = tuple(world.starts[deviation] for deviation in schedule)
    return Outcome(schedule, tuple(world.calls), starts, error, result)


def _play(kind: SmallKind, world: SmallWorld, base: Path, patch: pytest.MonkeyPatch) -> str:
    world.has_prefetch = kind.on_object_store
    use_world_time(world, patch, same_machine=kind.same_machine)
    storage = Storage(str(base))
    config = TableConfig.load(storage)
    history = world.history = History(
        config, non_blocking=kind.table.non_blocking, first_rows=kind.table.first_rows
    )
    if "archive" in kind.operations:
        history.archive = lambda: Archive(storage, config)
    noting_what_stays(history, patch)
    for number, operation in enumerate(kind.operations):
        world.add(f"w{number}", _task(history, str(base), kind, operation, number))
    world.run()
    world.check_schedule_happened()
    note_run("schedules", kind, world.counts)
    calls, world.calls = world.calls, []
    assert not history.unexplained(), history.unexplained()
    for attempt in history.attempts:
        failed = attempt.said == "failed" and attempt.most == 1
        assert 0 <= attempt.published <= (0 if failed else attempt.most), attempt
        assert history.is_as_said(attempt), attempt
    # By then whatever died counts as dead, also what shows no heartbeat.
    world.now_ms += 900_000 + UNSEEN_MS
    stalled = any(task.has_stalled for task in world.tasks)
    finish(world, history, str(base), kind.table, {"k0": (CITIES[0], 9999)})
    judge(history, base, kind.table, stood_still=stalled)
    world.calls = calls
    reports = [(attempt.said, attempt.published) for attempt in history.attempts]
    return f"{reports} {[seen for seen, *_ in history.sights]} {history.ends()}"


def _task(
    history: History, uri: str, kind: SmallKind, operation: Operation, number: int
) -> Callable[[Task], None]:
    def work(task: Task) -> None:
        world = task.world
        assert isinstance(world, SmallWorld)
        clock = SmallWorldClock(world, task)
        storage = SmallWorldStorage(uri, world)
        if operation != "read":
            write(task, storage, clock)
        if operation in ("read", "insert and read"):
            first = len(history.moments) - 1
            table = HudiTable(storage, LocalEngine(1), kind.options)
            history.sights.append((seen_in(table.scan().to_arrow()), first, len(history.moments)))

    def write(task: Task, storage: SmallWorldStorage, clock: SmallWorldClock) -> None:
        effect, method = _method(operation, 100 + number, clock)
        attempt = Attempt(effect, most=9 if effect is dict else 1, by=task)
        history.doing[task.name] = attempt
        history.attempts.append(attempt)
        try:
            retry_on_conflict(Handle(storage, LocalEngine(1), kind.options), None, method, clock)
            attempt.said, attempt.had = "done", attempt.published
        except (CommitUnknown, AfterCommitError, AfterRollbackError) as error:
            task.world.log(f"ends with {error!r}")
        except (CommitConflict, LockTimeout, StorageError, HistoryUnavailable) as error:
            attempt.said = "failed"
            task.world.log(f"ends with {error!r}")

    return work


def _method(
    operation: Operation, value: int, clock: SmallWorldClock
) -> tuple[Effect, Callable[[Handle, Any], object]]:
    without_rows = SERVICES.get(operation) or TABLE_OPERATIONS.get(operation)
    if without_rows is not None:
        return dict, lambda handle, _: without_rows(handle, clock)
    if operation == "delete":
        keys = to_arrow({"k0": (CITIES[0], 0)}).select(["id", "city"])
        return (
            lambda rows: {key: row for key, row in rows.items() if key != "k0"},
            lambda handle, _: upsert.delete_keys(handle, keys, clock=clock),
        )
    if operation == "increment":
        return (
            lambda rows: {**rows, "k0": (rows["k0"][0], rows["k0"][1] + 1)},
            lambda handle, _: update_delete.update(
                handle, "id = 'k0'", {"v": "v + 1"}, clock=clock
            ),
        )
    key = ROWS[operation.removesuffix(" and read")]
    row = {key: (CITIES[int(key[1:]) % 2], value)}
    return (
        lambda rows: {**rows, **row},
        lambda handle, _: upsert.upsert(handle, to_arrow(row), clock=clock),
    )
