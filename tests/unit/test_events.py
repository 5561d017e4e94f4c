"""Events: what a listener learns of operations, locks, services, retries and requests."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import aio, events
from pyhudi.clock import SystemClock
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.storage.storage import Storage
from pyhudi.txn.locks.storage_lock import StorageLock
from tests.helpers.interference import interfere_once

OPTIONS: dict[str, Any] = {"hoodie.metadata.enable": False}
E = TypeVar("E", bound=events.Event)


def rows(*ids: str, v: int = 1) -> pa.Table:
    return pa.table({"id": ids, "v": pa.array([v] * len(ids), pa.int64())})


def make(base: Path, data: Any, options: dict[str, Any] | None = None, **more: Any) -> Any:
    options = {**OPTIONS, **(options or {})}
    return pyhudi.create_table(base, data, key="id", order_by="v", options=options, **more)


@pytest.fixture
def ended() -> Iterator[list[events.Event]]:
    """The events of the test, in the order of their ends."""
    ended: list[events.Event] = []
    with events.listen(ended.append):
        yield ended


def of_type(ended: list[events.Event], kind: type[E]) -> list[E]:
    return [event for event in ended if isinstance(event, kind)]


def operations(ended: list[events.Event]) -> list[str]:
    return [event.name for event in of_type(ended, events.Operation)]


def test_write_is_an_operation_with_its_parts(tmp_path: Path, ended: list[events.Event]) -> None:
    table = make(tmp_path, rows("a", "b"))
    ended.clear()
    result = table.upsert(rows("b", "c", v=2))
    (operation,) = of_type(ended, events.Operation)
    assert ended[-1] is operation
    assert (operation.name, operation.table, operation.uri) == ("upsert", table.name, table.uri)
    assert (operation.rows_inserted, operation.rows_updated, operation.rows_deleted) == (1, 1, 0)
    assert (operation.files_written, operation.bytes_written) == (1, result.bytes_written)
    assert (operation.instant, operation.error) == (result.instant, None)
    (commit,) = of_type(ended, events.Commit)
    assert (commit.action, commit.instant, commit.parent) == ("commit", result.instant, operation)
    waits, holds = of_type(ended, events.LockWait), of_type(ended, events.LockHold)
    assert len(waits) == len(holds) >= 2
    assert all(part.operation is operation for part in (*waits, *holds))
    assert 0 < commit.seconds < sum(hold.seconds for hold in holds) < operation.seconds
    assert operation.requests["write"].bytes_sent > result.bytes_written
    assert "list" in operation.requests


def test_methods_are_operations_by_name(tmp_path: Path, ended: list[events.Event]) -> None:
    table = make(tmp_path, rows("a", "b"), type="mor")
    table.delete_keys(["a"])
    table.update("id = 'b'", {"v": "v + 1"})
    table.merge(rows("c")).when_not_matched_insert_all().execute()
    with table.transaction() as transaction:
        transaction.upsert(rows("d"))
    table.alter().add_column("w", pa.int32()).execute()
    with table.writer() as writer:
        writer.upsert(pa.table({"id": ["e"], "v": [1], "w": pa.array([1], pa.int32())}))
    table.savepoint()
    table.compact()
    table.clean()
    table.archive()
    assert operations(ended) == [
        "create_table",
        "delete_keys",
        "update",
        "merge",
        "transaction",
        "alter",
        "group_commit",
        "savepoint",
        "compact",
        "clean",
        "archive",
    ]
    compaction = next(e for e in of_type(ended, events.Operation) if e.name == "compact")
    assert compaction.files_written == 1


def test_reads_are_operations_with_their_rows(tmp_path: Path, ended: list[events.Event]) -> None:
    table = make(tmp_path, rows("a", "b"))
    start = table.upsert(rows("c")).position
    ended.clear()
    table.to_arrow()
    table.scan(where="id = 'a'").to_arrow()
    table.head(1)
    table.get(["a", "c", "nobody"])
    table.count()
    table.incremental(start=start).to_arrow()
    table.diff(start, start).to_arrow()
    reads = of_type(ended, events.Operation)
    assert [(read.name, read.rows_read) for read in reads] == [
        ("scan", 3),
        ("scan", 1),
        ("scan", 1),
        ("get", 2),
        ("count", 0),
        ("incremental", 0),
        ("diff", 0),
    ]
    assert reads[0].requests["read"].bytes_received > 0


def test_stream_of_rows_is_an_operation_until_it_is_closed(
    tmp_path: Path, ended: list[events.Event]
) -> None:
    """A reader that is dropped, even before the first batch, ends the event."""
    table = make(tmp_path, rows("a", "b"))
    ended.clear()
    reader = table.to_reader()
    assert ended == []
    del reader
    (read,) = of_type(ended, events.Operation)
    assert (read.rows_read, read.error) == (0, None)
    reader = table.to_reader()
    table.upsert(rows("c"))
    assert reader.read_all().num_rows == 2
    assert operations(ended) == ["scan", "upsert", "scan"]
    assert all(event.parent is None for event in of_type(ended, events.Operation))


def test_failed_operation_has_the_error(tmp_path: Path, ended: list[events.Event]) -> None:
    table = make(tmp_path, rows("a"))
    ended.clear()
    with pytest.raises(SchemaMismatch) as raised:
        table.upsert(pa.table({"id": ["a"], "nothing": [1]}))
    (operation,) = of_type(ended, events.Operation)
    assert operation.error is raised.value
    assert operation.instant == ""


def test_failed_read_has_the_error(tmp_path: Path, ended: list[events.Event]) -> None:
    table = make(tmp_path, rows("a"))
    scan = table.scan()
    (name,) = scan.plan()["base_file"].to_pylist()
    (tmp_path / name).write_bytes(b"damage")
    ended.clear()
    with pytest.raises(pyhudi.CorruptTable) as raised:
        scan.to_arrow()
    (read,) = of_type(ended, events.Operation)
    assert type(read.error) is type(raised.value)


def test_conflict_retry_is_counted_by_its_operation(
    tmp_path: Path, ended: list[events.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path, rows("a", "b"))
    other = pyhudi.open_table(tmp_path, options=OPTIONS)
    interfere_once(monkeypatch, lambda: other.upsert(rows("a", v=5)))
    ended.clear()
    table.upsert(rows("a", v=7))
    (retry,) = of_type(ended, events.ConflictRetry)
    assert retry.attempt == 2
    assert isinstance(retry.error, pyhudi.CommitConflict)
    operation = next(e for e in of_type(ended, events.Operation) if e is retry.operation)
    assert (operation.name, operation.conflict_retries, operation.error) == ("upsert", 1, None)
    assert len([e for e in of_type(ended, events.Commit) if e.operation is operation]) == 2


def test_lock_wait_lasts_until_the_other_writer_releases_the_lock(
    tmp_path: Path, ended: list[events.Event]
) -> None:
    table = make(tmp_path, rows("a"))
    lock = StorageLock(Storage(str(tmp_path)), SystemClock(), validity_ms=60_000, renew_ms=6_000)
    assert lock.acquire(1000)
    ended.clear()
    begun: list[events.Event] = []
    waits = threading.Event()

    def on_begin(event: events.Event) -> None:
        begun.append(event)
        if isinstance(event, events.LockWait):
            waits.set()

    with events.listen(lambda _: None, on_begin=on_begin):
        writer = threading.Thread(target=table.upsert, args=(rows("b"),))
        writer.start()
        assert waits.wait(20)
        assert of_type(ended, events.LockWait) == []
        threading.Event().wait(0.3)
        lock.release()
        writer.join()
    wait, *_ = of_type(ended, events.LockWait)
    assert 0.3 <= wait.seconds < 20
    assert wait in begun
    assert isinstance(begun[0], events.Operation)


def test_lock_timeout_is_the_error_of_the_wait(tmp_path: Path, ended: list[events.Event]) -> None:
    table = make(tmp_path, rows("a"), {"hoodie.write.lock.wait_time_ms": 100})
    lock = StorageLock(Storage(str(tmp_path)), SystemClock(), validity_ms=60_000, renew_ms=6_000)
    assert lock.acquire(1000)
    ended.clear()
    with pytest.raises(pyhudi.LockTimeout):
        table.upsert(rows("b"))
    lock.release()
    assert isinstance(of_type(ended, events.LockWait)[0].error, pyhudi.LockTimeout)
    assert of_type(ended, events.LockHold) == []
    assert isinstance(of_type(ended, events.Operation)[0].error, pyhudi.LockTimeout)


def test_service_after_a_commit_is_part_of_the_write(
    tmp_path: Path, ended: list[events.Event]
) -> None:
    compacts = {"hoodie.compact.inline": True, "hoodie.compact.inline.max.delta.commits": 1}
    table = make(tmp_path, rows("a"), compacts, type="mor")
    ended.clear()
    result = table.upsert(rows("a", v=2))
    (service,) = of_type(ended, events.Service)
    (operation,) = of_type(ended, events.Operation)
    assert (service.name, service.instant) == ("compaction", result.instant)
    assert service.parent is operation
    assert (service.files_written, service.error) == (1, None)
    assert [commit.parent for commit in of_type(ended, events.Commit)] == [operation, service]


def test_service_in_the_background_has_no_parent(tmp_path: Path, ended: list[events.Event]) -> None:
    compacts = {
        "hoodie.compact.inline": True,
        "hoodie.compact.inline.max.delta.commits": 1,
        "pyhudi.table.services.mode": "background",
    }
    table = make(tmp_path, rows("a"), compacts, type="mor")
    table.finish_services()
    ended.clear()
    table.upsert(rows("a", v=2))
    table.finish_services()
    (service,) = of_type(ended, events.Service)
    assert (service.name, service.parent, service.operation) == ("compaction", None, None)


def test_failed_service_has_the_error(
    tmp_path: Path, ended: list[events.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    compacts = {"hoodie.compact.inline": True, "hoodie.compact.inline.max.delta.commits": 1}
    table = make(tmp_path, rows("a"), compacts, type="mor")

    def fail(*_: object, **__: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr("pyhudi.admin.run_service.compact", fail)
    ended.clear()
    with pytest.warns(pyhudi.AfterCommitWarning, match="no space"):
        table.upsert(rows("a", v=2))
    (service,) = of_type(ended, events.Service)
    assert isinstance(service.error, OSError)
    assert of_type(ended, events.Operation)[0].error is None


def test_listener_that_raises_breaks_no_commit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its first exception is logged, with a traceback, and no later one."""
    table = make(tmp_path, rows("a"))
    calls: Counter[str] = Counter()

    def fail(event: events.Event) -> None:
        calls[type(event).__name__] += 1
        raise ValueError("a defect of the listener")

    with events.listen(fail, on_begin=fail), caplog.at_level(logging.DEBUG, "pyhudi"):
        table.upsert(rows("b"))
        table.upsert(rows("c"))
        assert table.to_arrow().num_rows == 3
    assert (calls["Operation"], calls["Commit"]) == (6, 4)
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert record.exc_info is not None
    assert "a listener failed" in record.getMessage()


def test_listener_may_write_to_a_table(tmp_path: Path) -> None:
    """Its own operations are no events, so it does not call itself."""
    table, log = make(tmp_path / "t", rows("a")), make(tmp_path / "log", rows("first"))
    names: list[str] = []

    def write(event: events.Event) -> None:
        if isinstance(event, events.Operation):
            names.append(event.name)
            log.upsert(rows(event.instant))

    with events.listen(write):
        result = table.upsert(rows("b"))
    assert names == ["upsert"]
    assert sorted(log.to_arrow()["id"].to_pylist()) == sorted(["first", result.instant])


def test_closed_listener_gets_no_events(tmp_path: Path) -> None:
    ended: list[events.Event] = []
    with events.listen(ended.append) as listener:
        table = make(tmp_path, rows("a"))
    assert listener.is_closed
    before = len(ended)
    assert before > 0
    table.upsert(rows("b"))
    assert len(ended) == before


def test_operation_of_asyncio_is_an_event(tmp_path: Path, ended: list[events.Event]) -> None:
    make(tmp_path, rows("a"))

    async def run() -> None:
        table = await aio.open_table(tmp_path, options=OPTIONS)
        await asyncio.gather(table.upsert(rows("b")), table.upsert(rows("c")))

    ended.clear()
    asyncio.run(run())
    assert operations(ended) == ["upsert", "upsert"]
    assert {type(event.parent) for event in of_type(ended, events.Commit)} == {events.Operation}


def test_storage_requests_are_counted_without_a_listener(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    before = events.storage_requests()
    storage.put("a", b"12345")
    assert storage.read("a") == b"12345"
    storage.list()
    storage.head("a")
    storage.delete("a")
    now = {kind: total.since(before[kind]) for kind, total in events.storage_requests().items()}
    assert now == {
        "read": (1, 0, 5, 0, 0),
        "head": (1, 0, 0, 0, 0),
        "list": (1, 0, 0, 0, 0),
        "write": (1, 5, 0, 0, 0),
        "delete": (1, 0, 0, 0, 0),
        "other": (0, 0, 0, 0, 0),
    }


def test_events_cost_few_calls_without_a_listener(tmp_path: Path) -> None:
    """The number of Python calls of the module, and no event is created."""
    table = make(tmp_path, rows("a"))
    calls: Counter[str] = Counter()

    def count(frame: FrameType, moment: str, _: object) -> None:
        if moment == "call" and frame.f_code.co_filename == events.__file__:
            calls[frame.f_code.co_name] += 1

    def watch(work: Any) -> Counter[str]:
        calls.clear()
        sys.setprofile(count)
        try:
            work()
        finally:
            sys.setprofile(None)
        return Counter(calls)

    of_write = watch(lambda: table.upsert(rows("b")))
    assert set(of_write) == {"observe", "begin", "is_observed"}
    assert sum(of_write.values()) <= 16
    assert sum(watch(table.to_arrow).values()) <= 2
    assert sum(watch(lambda: table.get(["a"])).values()) <= 1


def test_import_of_pyhudi_loads_no_events() -> None:
    code = (
        "import sys, pyhudi; print([name for name in sys.modules"
        " if name in ('pyhudi.events', 'pyhudi.telemetry') or name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_listen_takes_functions_only() -> None:
    with pytest.raises(ConfigError, match="not None"):
        events.listen(None)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="not 5"):
        events.listen(print, on_begin=5)  # type: ignore[arg-type]
