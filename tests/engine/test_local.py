"""What only the embedded engine promises: bounded memory, and threads that go away."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi.engine import local
from pyhudi.engine.local import LocalEngine, choose_engine
from pyhudi.engine.protocol import Attempt
from pyhudi.errors import ConfigError
from pyhudi.storage.storage import Storage
from tests.engine import jobs
from tests.engine.faulty import FaultyEngine

pytestmark = pytest.mark.spark35

NUMBERS = pa.schema([("n", pa.int64())])
BATCH_ROWS = 1000
BATCH_BYTES = 8 * BATCH_ROWS


def numbers(first: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(range(first, first + BATCH_ROWS), pa.int64())], schema=NUMBERS)


class Maker:
    """Work that counts what it made, and how many tasks were at it at once."""

    def __init__(self, batches: int) -> None:
        self.batches = batches
        self.made = 0
        self.begun: list[int] = []
        self.open = 0
        self.most_open = 0
        self.closed = 0
        self.lock = threading.Lock()

    def __call__(self, task: int) -> Iterator[pa.RecordBatch]:
        with self.lock:
            self.begun.append(task)
            self.open += 1
            self.most_open = max(self.most_open, self.open)
        try:
            for part in range(self.batches):
                with self.lock:
                    self.made += 1
                yield numbers(task * 1_000_000 + part * BATCH_ROWS)
        finally:
            with self.lock:
                self.open -= 1
                self.closed += 1


def settled(value: object) -> None:
    """Waits until a maker makes nothing more."""
    assert isinstance(value, Maker)
    before = -1
    while before != value.made:
        before = value.made
        time.sleep(0.1)


def scan_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("pyhudi-scan")]


def wait_for_no_threads() -> None:
    deadline = time.monotonic() + 10
    while scan_threads() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert scan_threads() == []


def test_scan_bounds_memory_for_slow_consumer() -> None:
    maker = Maker(batches=50)
    engine = LocalEngine(3, look_ahead_bytes=10 * BATCH_BYTES)
    reader = engine.scan(maker, range(20), NUMBERS)
    for taken in range(1, 120):
        reader.read_next_batch()
        if taken % 40 == 0:
            settled(maker)
        # The budget, one batch a thread that was on its way, and the one that is urgent.
        assert maker.made - taken <= 10 + 3 + 1
    assert maker.most_open <= 3
    rest = reader.read_all()
    assert rest.num_rows == (20 * 50 - 119) * BATCH_ROWS
    assert maker.closed == 20
    wait_for_no_threads()


def test_scan_accepts_batch_above_budget() -> None:
    reader = LocalEngine(4, look_ahead_bytes=1).scan(Maker(batches=5), range(9), NUMBERS)
    assert reader.read_all().num_rows == 45 * BATCH_ROWS


def test_many_small_tasks_come_in_order() -> None:
    rows = LocalEngine(4).scan(Maker(batches=1), range(3000), NUMBERS).read_all()
    firsts = rows.column("n").to_pylist()[::BATCH_ROWS]
    assert firsts == [task * 1_000_000 for task in range(3000)]


def test_tasks_are_read_at_the_same_time() -> None:
    together = threading.Barrier(3)

    def work(task: int) -> Iterator[pa.RecordBatch]:
        together.wait(timeout=10)
        yield numbers(task)

    assert LocalEngine(3).scan(work, range(3), NUMBERS).read_all().num_rows == 3 * BATCH_ROWS


@pytest.mark.parametrize("threads", [1, 4])
def test_scan_stops_tasks_of_dropped_reader(threads: int) -> None:
    maker = Maker(batches=1000)
    reader = LocalEngine(threads, look_ahead_bytes=5 * BATCH_BYTES).scan(maker, range(99), NUMBERS)
    reader.read_next_batch()
    del reader
    gc.collect()
    wait_for_no_threads()
    assert maker.open == 0
    assert maker.made < 50


def test_scan_unclosed_reader_does_not_block_exit() -> None:
    program = (
        "from tests.engine import test_local as t\n"
        "from pyhudi.engine.local import LocalEngine\n"
        "reader = LocalEngine(4, look_ahead_bytes=1000).scan(t.Maker(99), range(99), t.NUMBERS)\n"
        "reader.read_next_batch()\n"
        "print('ended')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr


def test_scan_yields_rows_before_failure_and_starts_no_later_task() -> None:
    maker = Maker(batches=1)

    def work(task: int) -> Iterator[pa.RecordBatch]:
        if task == 3:
            raise LookupError("task 3")
        return maker(task)

    reader = LocalEngine(2).scan(work, range(500), NUMBERS)
    for _ in range(3):
        reader.read_next_batch()
    with pytest.raises(LookupError, match="task 3"):
        reader.read_next_batch()
    # The other thread goes on until the failure is seen, which takes time on a busy machine.
    assert max(maker.begun) < 250
    wait_for_no_threads()


def test_interrupt_of_consumer_stops_tasks() -> None:
    def work(task: int) -> Iterator[pa.RecordBatch]:
        yield numbers(task)
        raise KeyboardInterrupt

    reader = LocalEngine(2).scan(work, range(9), NUMBERS)
    with pytest.raises(KeyboardInterrupt):
        reader.read_all()
    wait_for_no_threads()


def test_interrupt_while_waiting_for_tasks_propagates() -> None:
    program = (
        "import _thread, threading, time\n"
        "from pyhudi.engine.local import LocalEngine\n"
        "begun, at_work = [], threading.Event()\n"
        "def work(task, attempt):\n"
        "    begun.append(task)\n"
        "    at_work.set()\n"
        "    time.sleep(0.5)\n"
        "def interrupt():\n"
        "    at_work.wait()\n"
        "    _thread.interrupt_main()\n"
        "threading.Thread(target=interrupt).start()\n"
        "try:\n"
        "    LocalEngine(2).run(work, range(100))\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', len(begun) < 10)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "interrupted True\n"), done.stderr


def test_failed_run_returns_after_running_tasks_end() -> None:
    ended = []

    def work(task: int, _attempt: Attempt) -> None:
        if task == 0:
            time.sleep(0.05)
            raise LookupError
        time.sleep(0.3)
        ended.append(task)

    with pytest.raises(LookupError):
        LocalEngine(2).run(work, range(50))
    assert ended == [1]


def test_single_thread_runs_in_calling_thread() -> None:
    def work(_task: int, _attempt: Attempt) -> int:
        return threading.get_ident()

    assert set(LocalEngine(1).run(work, range(5))) == {threading.get_ident()}


@pytest.mark.parametrize(
    "rows",
    [
        pa.table({"to": ["b", "a"], "n": [0, 1]}),
        pa.record_batch({"to": ["b", "a"], "n": [0, 1]}),
        pa.table({"to": ["b", "a"], "n": [0, 1]}).to_reader(),
        pa.table({"to": pa.array(["b", "a"], pa.large_string()), "n": [0, 1]}),
    ],
    ids=["table", "batch", "reader", "large strings"],
)
def test_any_arrow_data_can_be_exchanged(rows: object) -> None:
    results = LocalEngine(2).exchange(rows, "to", jobs.write_group)
    assert [value for value, _, _ in results] == ["a", "a", "b", "b"]


def test_exchange_of_spilled_rows_gives_same_results(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [f"r{n % 7}" for n in range(5000)]
    rows = pa.table({"to": pa.array(values, pa.large_string()), "n": range(5000)})
    wanted = LocalEngine(2).exchange(rows.to_reader(100), "to", jobs.write_group)
    monkeypatch.setattr(local, "_EXCHANGE_BYTES", 20_000)
    assert LocalEngine(2).exchange(rows.to_reader(100), "to", jobs.write_group) == wanted
    late = pa.concat_tables([rows, pa.table({"to": [None], "n": [1]}, rows.schema)])
    with pytest.raises(ValueError, match="'to' holds nulls"):
        LocalEngine(2).exchange(late, "to", jobs.write_group)


def test_local_engine_pickles() -> None:
    engine = pickle.loads(pickle.dumps(LocalEngine(3, look_ahead_bytes=7)))
    assert (engine.threads, engine.look_ahead_bytes) == (3, 7)


@pytest.mark.parametrize("wrong", [{"threads": 0}, {"threads": -1}, {"look_ahead_bytes": 0}])
def test_local_engine_refuses_zero_threads_and_zero_buffer(wrong: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        LocalEngine(**wrong)


def test_choose_engine_runs_small_calls_of_clusters_here(tmp_path: Path) -> None:
    class Cluster(FaultyEngine):
        small_call_bytes = 100

    cluster = Cluster(LocalEngine(1), lambda work: work)
    disk, bucket = Storage(str(tmp_path)), Storage("s3://bucket/t", {"region": "us-east-1"})
    assert choose_engine(cluster, disk, size=101) is cluster
    assert choose_engine(cluster, disk, files=201) is cluster
    here = choose_engine(cluster, disk, files=200, size=100)
    assert isinstance(here, LocalEngine)
    assert here.threads == LocalEngine().threads
    remote = choose_engine(cluster, bucket, size=100)
    assert isinstance(remote, LocalEngine)
    assert remote.threads > here.threads
    mine = LocalEngine(3)
    assert choose_engine(mine, disk, files=1000) is mine
    assert choose_engine(mine, bucket) is mine
    many = choose_engine(LocalEngine(), bucket, files=1000)
    assert isinstance(many, LocalEngine)
    assert many.threads == remote.threads
    large = LocalEngine()
    assert choose_engine(large, bucket, size=local.SMALL_CALL_BYTES + 1) is large
