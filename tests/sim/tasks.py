"""Tasks of a simulated history: writes and services that a seed chooses, and reads."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

from pyhudi.admin import run_service
from pyhudi.admin.inline_services import after_commit
from pyhudi.api.table import HudiTable
from pyhudi.api.table_handle import load_snapshot
from pyhudi.config.clustering_options import ClusteringOptions
from pyhudi.config.compaction_options import CompactionOptions, LogCompactionOptions
from pyhudi.config.retention_options import ArchiveOptions, CleanOptions
from pyhudi.config.table_config import TableConfig
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import (
    AfterCommitError,
    CommitConflict,
    CommitUnknown,
    ConfigError,
    HistoryUnavailable,
    LockTimeout,
    StorageError,
)
from pyhudi.metadata.index_request import IndexRequest
from pyhudi.services.clustering import ClusteringRequest
from pyhudi.services.log_compaction import LogCompactionRequest
from pyhudi.services.table_compaction import CompactionRequest
from pyhudi.txn.lock_manager import TableLockManager
from pyhudi.write import index_operations, overwrite, update_delete, upsert
from pyhudi.write.conflict_retries import retry_on_conflict
from pyhudi.write.group_commit import (
    Operation,
    convert_batch,
    count_combinable,
    write_batches,
)
from pyhudi.write.merge import merge
from pyhudi.write.merge_planning import MergeClause
from pyhudi.write.multi_statement import Delete, Statement, Update, Upsert, transaction
from pyhudi.write.table_opening import Handle
from pyhudi.write.write_context import WriteContext
from tests.sim.history import Attempt, Effect, History, seen_in
from tests.sim.table_kinds import CITIES, Kind, to_arrow
from tests.sim.world import Task, World, WorldClock, WorldStorage


def verbs(
    world: World, task: Task, number: int, table: Kind
) -> tuple[Effect, Callable[[Handle, Any], object]]:
    """Some verb with arguments of the seed's, and what it does to rows."""
    choose = world.random
    clock = WorldClock(world, task)
    value = 100 * (number + 1) + world.tasks.index(task)
    city = choose.choice(CITIES)
    # A key's city is given with it, so that it is in one partition only.
    keys = choose.sample(range(8), choose.randint(1, 3))
    some = {f"k{n}": (CITIES[n % 2], value) for n in keys}
    known = ["upsert"] * 4 + ["insert", "delete"] + [*table.services]
    # A clean removes something every other time at most.
    known += ["clean"] * 3 if table.is_cleaned else []
    known += ["group"] * 8 if table.group_commits else []
    changing = ["update", "where", "put", "merge", "transaction", "transaction"]
    kind = choose.choice(known if table.non_blocking else [*known, *changing])
    world.log(f"{kind} {value} of {some} or {city}")
    if kind in SERVICES:
        return dict, lambda handle, _: SERVICES[kind](handle, clock)
    if kind == "group":
        return group(task, number, value)
    if kind == "upsert":
        return lambda rows: {**rows, **some}, lambda handle, _: upsert.upsert(
            handle, to_arrow(some), clock=clock
        )
    if kind == "insert":
        new = {f"{task.name}{number}": (city, value)}
        return lambda rows: {**rows, **new}, lambda handle, _: upsert.insert(
            handle, to_arrow(new), clock=clock
        )
    if kind == "delete":
        # Without the city they are looked for in both; that is refused where none gives way.
        named = ["id"] if number and not table.non_blocking else ["id", "city"]
        return lambda rows: {k: v for k, v in rows.items() if k not in some}, (
            lambda handle, _: upsert.delete_keys(handle, to_arrow(some).select(named), clock=clock)
        )
    limit = choose.choice([1, 150, 250])
    if kind == "update":
        return lambda rows: {
            k: (c, value) if c == city and v < limit else (c, v) for k, (c, v) in rows.items()
        }, lambda handle, _: update_delete.update(
            handle, f"city = '{city}' AND v < {limit}", {"v": str(value)}, clock=clock
        )
    if kind == "where":
        return lambda rows: {k: (c, v) for k, (c, v) in rows.items() if v >= limit}, (
            lambda handle, _: update_delete.delete(handle, f"v < {limit}", clock=clock)
        )
    if kind == "transaction":
        return several(some, city, limit, clock)
    if kind == "put":
        mine = {k: row for k, row in some.items() if row[0] == city} or {
            f"{task.name}{number}": (city, value)
        }
        return lambda rows: {
            **{k: row for k, row in rows.items() if row[0] != city},
            **mine,
        }, lambda handle, _: overwrite.overwrite_partitions(handle, to_arrow(mine), clock=clock)
    clauses = [
        MergeClause("update", "v < 200", {"v": "source.v"}),
        MergeClause("insert"),
    ]
    return lambda rows: {
        **rows,
        **{k: row for k, row in some.items() if k not in rows or rows[k][1] < 200},
    }, lambda handle, _: merge(handle, to_arrow(some), clauses, clock=clock)


def several(
    some: dict[str, tuple[str, int]], city: str, limit: int, clock: WorldClock
) -> tuple[Effect, Callable[[Handle, Any], object]]:
    """A transaction whose statements see each other's rows."""
    statements: list[Statement] = [
        Update(f"city = '{city}'", {"v": "v + 1"}),
        Delete(f"v < {limit}"),
        Upsert(to_arrow(some)),
        Update(f"city = '{city}' AND v >= {limit}", {"v": "v + 1"}),
    ]

    def effect(rows: dict[str, tuple[str, int]]) -> dict[str, tuple[str, int]]:
        rows = {k: (c, v + (c == city)) for k, (c, v) in rows.items()}
        rows = {k: (c, v) for k, (c, v) in rows.items() if v >= limit}
        rows = {**rows, **some}
        return {k: (c, v + (c == city and v >= limit)) for k, (c, v) in rows.items()}

    return effect, lambda handle, _: transaction(handle, statements, clock=clock)


def group(task: Task, number: int, value: int) -> tuple[Effect, Callable[[Handle, Any], object]]:
    """Batches of several callers in one commit, as many of them as may be in it."""
    choose, clock = task.world.random, WorldClock(task.world, task)
    operation = choose.choice(GROUP_OPERATIONS)
    given: list[dict[str, tuple[str, int]]] = []
    for caller in range(choose.randint(2, 4)):
        keys = choose.sample(range(8), choose.randint(1, 3))
        given.append({f"k{n}": (CITIES[n % 2], value + caller) for n in keys})
        if operation == "insert":
            given[-1] = {f"{task.name}{number}{caller}": (choose.choice(CITIES), value)}
    ids = [f"{task.name}/{number}/{caller}" for caller in range(len(given))]

    def write(handle: Handle, _: Any) -> object:
        context = WriteContext.open(handle, clock)
        batches = [
            convert_batch(context, operation, to_arrow(rows), commit_id=commit_id)
            for rows, commit_id in zip(given, ids, strict=True)
        ]
        # The keys of a caller, each in one city, may always be in one commit.
        assert count_combinable(context.config, context.options, batches) == len(batches)
        return write_batches(handle, batches, clock=clock)

    def effect(rows: dict[str, tuple[str, int]]) -> dict[str, tuple[str, int]]:
        for batch in given:
            if operation == "delete_keys":
                rows = {key: row for key, row in rows.items() if key not in batch}
            else:
                rows = {**rows, **batch}
        return rows

    return effect, write


GROUP_OPERATIONS: tuple[Operation, ...] = ("upsert", "upsert", "insert", "delete_keys")


def compacted(handle: Handle, clock: WorldClock) -> object:
    return run_service.compact(handle, CompactionRequest(), CompactionOptions(), clock=clock)


def logs_compacted(handle: Handle, clock: WorldClock) -> object:
    some = LogCompactionOptions(min_log_files=2)
    return run_service.log_compact(handle, LogCompactionRequest(), some, clock=clock)


def clustered(handle: Handle, clock: WorldClock) -> object:
    joining = ClusteringOptions(single_group=False)
    if "hoodie.index.bucket.engine" in handle.options and clock.now_ms() % 2:
        merging = {"hoodie.bucket.index.split.threshold": "1000"}
        handle = replace(handle, options={**handle.options, **merging})
    return run_service.cluster(handle, ClusteringRequest(), joining, clock=clock)


RETAINED = 1
"""The number of commits that a clean retains."""


def cleaned(handle: Handle, clock: WorldClock) -> object:
    return run_service.clean(handle, CleanOptions(commits=RETAINED), clock=clock)


def archived(handle: Handle, clock: WorldClock) -> object:
    return run_service.archive(handle, ArchiveOptions(min_commits=1, max_commits=2), clock=clock)


def indexed(handle: Handle, clock: WorldClock) -> object:
    """Makes an index beside the others, or takes it away."""
    name = INDEXES[clock.now_ms() % len(INDEXES)]
    try:
        return index_operations.create_index(handle, IndexRequest(name), clock, concurrently=True)
    except ConfigError:
        # Others may take it away just then.
        with contextlib.suppress(ConfigError):
            index_operations.drop_index(handle, name, clock)
        return None


INDEXES = ("record_index", "record_index", "column_stats", "bloom_filters")

SERVICES = {
    "compact": compacted,
    "log_compact": logs_compacted,
    "cluster": clustered,
    "index": indexed,
    "clean": cleaned,
    "archive": archived,
}


def writes(history: History, uri: str, kind: Kind, count: int) -> Callable[[Task], None]:
    def work(task: Task) -> None:
        world, clock = task.world, WorldClock(task.world, task)
        storage = WorldStorage(uri, world)
        known = TableConfig.load(storage, clock)
        for number in range(count):
            if world.odds.stall and world.random.random() < 0.3:
                world.sleep(world.random.randint(0, 300))
            effect, verb = verbs(world, task, number, kind)
            attempt = Attempt(effect, most=9 if effect is dict else 1, by=task)
            history.doing[task.name] = attempt
            history.attempts.append(attempt)
            handle = Handle(storage, LocalEngine(1), kind.options, previous_config=known)
            try:
                with (
                    releasing_later(handle, clock)
                    if world.has_deferred_release
                    else nullcontext(handle) as one
                ):
                    retry_on_conflict(one, None, verb, clock)
                attempt.said, attempt.had = "done", attempt.published
            except (CommitUnknown, AfterCommitError) as error:
                world.log(f"ends with {error!r}")
            except (CommitConflict, LockTimeout, StorageError, HistoryUnavailable) as error:
                attempt.said = "failed"
                world.log(f"ends with {error!r}")

    return work


def serves(history: History, uri: str, kind: Kind) -> Callable[[Task], None]:
    """What the thread of a handle does whose services run in the background."""

    def work(task: Task) -> None:
        world, clock = task.world, WorldClock(task.world, task)
        storage, options = WorldStorage(uri, world), {**kind.options, **DUE}
        for _ in range(8):
            attempt = Attempt(dict, most=9, by=task)
            history.doing[task.name] = attempt
            history.attempts.append(attempt)
            handle = Handle(storage, LocalEngine(1), options)
            ran = after_commit(handle, lambda: load_snapshot(storage, options, None), "", clock)
            attempt.said, attempt.had = "done", attempt.published
            world.sleep(world.random.randint(0, 50 if ran else 200))

    return work


DUE = {
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.clean.max.commits": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}
"""Makes services due after nearly each commit."""


@contextmanager
def releasing_later(handle: Handle, clock: WorldClock) -> Iterator[Handle]:
    """The handle as a verb of `HudiTable` has it, on storage that is far away."""
    locked_handle = Handle.of(handle, clock)
    assert isinstance(locked_handle.lock_manager, TableLockManager)
    locked_handle.lock_manager._has_threads = True
    with locked_handle.lock_manager.release_later():
        yield locked_handle


def reads(history: History, uri: str, kind: Kind) -> Callable[[Task], None]:
    def work(task: Task) -> None:
        for _ in range(2):
            first = len(history.moments) - 1
            storage = WorldStorage(uri, task.world)
            try:
                found = HudiTable(storage, LocalEngine(1), kind.options).scan().to_arrow()
            except (StorageError, HistoryUnavailable):
                continue
            history.sights.append((seen_in(found), first, len(history.moments)))

    return work
