"""A second writer at any change of a first one: reported writes are in the table."""

from __future__ import annotations

import multiprocessing
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.clock import Clock
from pyhudi.errors import CommitConflict, LockTimeout
from pyhudi.storage.storage import Storage
from pyhudi.testing import check_invariants
from pyhudi.write import upsert
from tests.sim.crash import CrashingStorage, Handle, leftovers, people
from tests.sim.interrupting_storage import MeetingStorage, StandingClock

OPTIONS = {
    "hoodie.bloom.index.filter.type": "SIMPLE",
    "hoodie.index.bloom.num_entries": "64",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.write.lock.wait_time_ms": "20",
    "hoodie.write.lock.client.num_retries": "0",
}
TABLES = [(6, "mor", True), (8, "mor", False), (9, "mor", True)]


@pytest.fixture(params=TABLES, ids=lambda one: f"v{one[0]}_{one[1]}{'_metadata' * one[2]}")
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Six rows in two partitions, two of them updated. With a metadata table: a record index."""
    version, kind, metadata = request.param
    base = tmp_path / "table"
    created = pyhudi.create_table(
        str(base),
        people([0], 0, 0).schema,
        key="id",
        partition_by="city",
        order_by="ts",
        type=kind,
        version=version,
        options={"hoodie.metadata.enable": str(metadata).lower()},
    )
    created.insert(people(range(6), 1, 10))
    created.upsert(people([2, 3], 2, 20))
    return base


BEFORE = {"k00": 1, "k01": 1, "k02": 2, "k03": 2, "k04": 1, "k05": 1}


def first(storage: Storage, clock: Clock | None = None) -> dict[str, int]:
    upsert.upsert(Handle(storage, OPTIONS), people([0, 1, 7, 8], 3, 60), clock=clock)
    return {"k00": 3, "k01": 3, "k07": 3, "k08": 3}


def second(storage: Storage, clock: Clock | None = None) -> dict[str, int]:
    upsert.upsert(Handle(storage, OPTIONS), people([0, 2, 8, 9], 4, 50), clock=clock)
    return {"k00": 4, "k02": 4, "k08": 4, "k09": 4}


def told(write: Callable[[], dict[str, int]]) -> dict[str, int]:
    """What a writer says it has written: nothing where it gave way, or the other had the lock."""
    try:
        return write()
    except (CommitConflict, LockTimeout):
        return {}


def changes_of(base: Path, tmp_path: Path) -> int:
    counting = CrashingStorage(str(shutil.copytree(base, tmp_path / "counted")))
    first(counting)
    shutil.rmtree(tmp_path / "counted")
    return counting.changes


def copies(base: Path, tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """A copy of the table for every change that the first writer makes."""
    changes = changes_of(base, tmp_path)
    assert changes > 8
    for n in range(1, changes + 1):
        copy = shutil.copytree(base, tmp_path / f"at{n}")
        yield n, copy
        shutil.rmtree(copy)


def assert_has(base: Path, wanted: dict[str, int], n: int) -> None:
    opened = pyhudi.open_table(str(base))
    rows = opened.scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["v"]) for row in rows) == sorted(wanted.items()), f"change {n}"
    opened.upsert(people([4, 11], 5, 70))
    rows = pyhudi.open_table(str(base)).scan().to_arrow().to_pylist()
    after = {**wanted, "k04": 5, "k11": 5}
    assert sorted((row["id"], row["v"]) for row in rows) == sorted(after.items()), f"change {n}"
    assert leftovers(base) == [], f"change {n}"
    check_invariants(pyhudi.open_table(base))


def test_concurrent_writer_at_each_step_loses_no_row(table: Path, tmp_path: Path) -> None:
    gave_way = set()
    for n, base in copies(table, tmp_path):
        theirs: dict[str, int] = {}

        def meet(base: Path = base, theirs: dict[str, int] = theirs) -> None:
            theirs.update(told(partial(second, Storage(str(base)))))

        ours = told(partial(first, MeetingStorage(str(base), n, meet)))
        gave_way.add((not ours, not theirs))
        assert_has(base, {**BEFORE, **theirs, **ours}, n)
    # While the first is at work, while it has the lock, and when it is done.
    assert gave_way == {(True, False), (False, True), (False, False)}


def test_stalled_writer_commits_or_aborts_without_losing_rows(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gave_way = set()
    for n, base in copies(table, tmp_path):
        with monkeypatch.context() as patch:
            clock = StandingClock(patch)

            def meet(base: Path = base, clock: StandingClock = clock) -> None:
                clock.stand_still(300_000)
                second(Storage(str(base)), clock)

            ours = told(partial(first, MeetingStorage(str(base), n, meet), clock))
        gave_way.add(not ours)
        wanted = {**BEFORE, "k00": 4, "k02": 4, "k08": 4, "k09": 4, **ours}
        assert_has(base, wanted, n)
    assert gave_way == {True, False}


def _upserts(uri: str, name: str, count: int, told: multiprocessing.Queue[tuple[str, int]]) -> None:
    for n in range(count):
        rows = pa.table(
            {
                "id": [f"{name}{n}", "shared"],
                "city": ["rome", "oslo"],
                "v": pa.array([n, n], pa.int32()),
                "ts": pa.array([n, n], pa.int64()),
            }
        )
        pyhudi.open_table(uri).upsert(rows)
        told.put((f"{name}{n}", n))


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_concurrent_processes_lose_no_row(tmp_path: Path, kind: Literal["cow", "mor"]) -> None:
    base = str(tmp_path / "table")
    pyhudi.create_table(
        base, people([0], 0, 0).schema, key="id", partition_by="city", order_by="ts", type=kind
    )
    context = multiprocessing.get_context("spawn")
    told: multiprocessing.Queue[tuple[str, int]] = context.Queue()
    processes = [
        context.Process(target=_upserts, args=(base, name, 5, told)) for name in ("a", "b")
    ]
    for process in processes:
        process.start()
    said = dict(told.get(timeout=200) for _ in range(10))
    for process in processes:
        process.join()
    rows = pyhudi.open_table(base).scan().to_arrow().to_pylist()
    assert {row["id"]: row["v"] for row in rows} == {**said, "shared": 4}
    assert len(rows) == 11
    check_invariants(pyhudi.open_table(base))
