"""Many callers of one process share the commits of a writer."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.api.batch_queue import BatchQueue, Entry, Limits
from pyhudi.clock import SystemClock
from pyhudi.config.actions import Instant
from pyhudi.errors import (
    CommitConflict,
    CommitUnknown,
    ConfigError,
    SchemaMismatch,
    StorageError,
    UnsupportedTableFeature,
    WriterTimeout,
)
from pyhudi.timeline.archive import Archive
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.txn.transaction import Transaction
from pyhudi.write.group_commit import Batch
from tests.helpers import group_writer_process
from tests.helpers.group_writer_process import ROWS
from tests.helpers.table_builder import SMALL, TableBuilder

TABLE = TableBuilder(
    {"id": (pa.string(), str), "v": (pa.int64(), 1)}, options=SMALL, metadata=False
)
LONG = 60.0
"""Seconds that batches wait for others, unless a test has them committed earlier."""


@pytest.fixture
def table(tmp_path: Path) -> pyhudi.HudiTable:
    return TABLE.make(tmp_path / "t")


def values(table: pyhudi.HudiTable) -> dict[str, int]:
    rows = table.refresh().scan().to_arrow().to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row["v"] for row in rows}


def commits(table: pyhudi.HudiTable) -> int:
    return len(table.refresh().history())


def wait_until(condition: Callable[[], bool]) -> None:
    """For what other threads do, and show by no event."""
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.001)


class Ticks(SystemClock):
    """A clock that a test moves."""

    ms = 0

    def ticks_ms(self) -> int:
        return self.ms


class Rows:
    """A batch, as a queue sees it."""

    num_rows = nbytes = 1


class Gate:
    """Stops the commits of a table until it is opened."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()

    def wait(self) -> None:
        self.reached.set()
        assert self.opened.wait(60)


@contextmanager
def stopped_commits(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate, enter = Gate(), Transaction.__enter__

    def entered(txn: Transaction) -> Transaction:
        gate.wait()
        return enter(txn)

    monkeypatch.setattr(Transaction, "__enter__", entered)
    try:
        yield gate
    finally:
        gate.opened.set()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    with stopped_commits(monkeypatch) as gate:
        yield gate


class TestCommits:
    def test_batches_of_threads_share_commits(self, table: pyhudi.HudiTable, gate: Gate) -> None:
        with table.writer(max_seconds=0) as writer:
            first = writer.upsert(TABLE.rows("a"))
            assert gate.reached.wait(60)
            results: list[Any] = []

            def call(key: str) -> None:
                results.append(writer.upsert(TABLE.rows(key)).result())

            callers = [threading.Thread(target=call, args=(key,)) for key in "bcdefg"]
            for caller in callers:
                caller.start()
            wait_until(lambda: len(writer._pending) == 7)
            gate.opened.set()
            for caller in callers:
                caller.join()
        assert values(table) == dict.fromkeys("abcdefg", 1)
        assert {result.instant for result in results} != {first.result().instant}
        assert (len({result.instant for result in results}), commits(table)) == (1, 2)
        assert results[0].rows_inserted == 6

    def test_batches_keep_the_order_of_submission(self, table: pyhudi.HudiTable) -> None:
        with table.writer(max_seconds=LONG) as writer:
            writer.upsert(TABLE.rows("ab", v=1))
            writer.upsert(TABLE.rows("b", v=2))
            writer.delete_keys(["a"])
            writer.upsert(TABLE.rows("c", v=3))
            writer.delete_keys(["b"])
            writer.upsert(TABLE.rows("ab", v=4))
        assert values(table) == {"a": 4, "b": 4, "c": 3}
        assert commits(table) == 5

    def test_limit_of_rows_begins_a_commit(self, table: pyhudi.HudiTable) -> None:
        with table.writer(max_rows=4, max_seconds=LONG) as writer:
            futures = [writer.upsert(TABLE.rows(ids)) for ids in ("ab", "cd", "efghij", "k")]
            instants = [future.result(60).instant for future in futures[:3]]
            assert instants[0] == instants[1] != instants[2]
        assert commits(table) == 3

    def test_first_batch_waits_for_others_as_long_as_max_seconds(
        self, table: pyhudi.HudiTable
    ) -> None:
        with table.writer(max_seconds=0.3) as writer:
            futures = [writer.insert(TABLE.rows(key)) for key in "ab"]
            assert {future.result(60).rows_inserted for future in futures} == {2}

    def test_commit_waits_for_callers_of_the_last_one(self) -> None:
        clock, batch = Ticks(), cast("Batch", Rows())
        queue = BatchQueue(Limits(100, None, 100), clock)

        def put() -> None:
            queue.put(Entry(batch, pyhudi.CommitFuture()), timeout=None)

        put()
        assert queue._ms_to_commit() == 0
        assert len(queue.remove(1)) == 1
        put()
        # The caller of the first batch is about to submit another one.
        queue.expect(1, took_ms=100)
        clock.ms += 5
        assert queue._ms_to_commit() == 20
        put()
        assert queue._ms_to_commit() == 0
        queue.remove(2)
        queue.expect(2, took_ms=100)
        clock.ms += 60_000
        put()
        assert queue._ms_to_commit() == 25

    def test_future_knows_rows_of_its_batch(self, table: pyhudi.HudiTable) -> None:
        with table.writer() as writer:
            assert writer.upsert(TABLE.rows("abc")).rows == 3
            assert writer.upsert([{"id": "d", "v": 1}]).rows == 1

    def test_handle_reads_rows_of_group_commit(self, table: pyhudi.HudiTable) -> None:
        with table.writer() as writer:
            writer.upsert(TABLE.rows("a")).result()
            assert table.count() == 1

    def test_table_with_generated_keys_takes_inserts(self, tmp_path: Path) -> None:
        table = TABLE.make(tmp_path / "t", key=None)
        with table.writer(max_seconds=LONG) as writer:
            futures = [writer.insert(TABLE.rows("aa")) for _ in range(3)]
            with pytest.raises(UnsupportedTableFeature, match="recordkey"):
                writer.upsert(TABLE.rows("a"))
        assert (futures[0].result().rows_inserted, table.refresh().count()) == (6, 6)

    def test_partial_and_merged_schemas_have_commits_of_their_own(
        self, table: pyhudi.HudiTable
    ) -> None:
        more = TABLE.rows("c").append_column("w", pa.array([7]))
        with table.writer(max_seconds=LONG) as writer:
            writer.upsert(TABLE.rows("ab"))
            writer.upsert({"id": ["a"]}, partial=True)
            writer.upsert(more, schema_mode="merge")
            writer.flush()
            # The writer's view of the columns is refreshed.
            writer.upsert(more.set_column(0, "id", pa.array(["d"])))
        assert table.refresh().scan(where="w = 7").count() == 2
        assert values(table) == dict.fromkeys("abcd", 1)
        assert commits(table) == 4


class TestCommitIds:
    def test_retry_of_a_batch_is_found(self, table: pyhudi.HudiTable) -> None:
        with table.writer(max_seconds=LONG) as writer:
            futures = [writer.insert(TABLE.rows(key), commit_id=f"job/{key}") for key in "abc"]
        instant = futures[0].result().instant
        again = pyhudi.open_table(table.uri)
        for key in "abc":
            result = again.insert(TABLE.rows(key), commit_id=f"job/{key}")
            assert (result.was_written_before, result.instant) == (True, instant)
        with table.writer(max_seconds=LONG) as writer:
            old, new = (writer.insert(TABLE.rows(key), commit_id=f"job/{key}") for key in "bd")
        assert (old.result().was_written_before, old.result().instant) == (True, instant)
        assert (new.result().was_written_before, new.result().rows_inserted) == (False, 1)
        assert values(table) == dict.fromkeys("abcd", 1)

    def test_batch_with_one_id_submitted_twice_is_written_once(
        self, table: pyhudi.HudiTable
    ) -> None:
        with table.writer(max_seconds=LONG) as writer:
            futures = [writer.insert(TABLE.rows("a"), commit_id="one") for _ in range(2)]
        assert [future.result().was_written_before for future in futures] == [False, True]
        assert values(table) == {"a": 1}

    def test_writer_that_commits_an_id_concurrently_is_found(
        self, table: pyhudi.HudiTable, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The group has searched the timeline already, and conflicts under the lock."""
        other = pyhudi.open_table(table.uri)
        with stopped_commits(monkeypatch) as gate, table.writer(max_seconds=LONG) as writer:
            futures = [writer.insert(TABLE.rows(key), commit_id=key) for key in "abc"]
            flush = threading.Thread(target=writer.flush)
            flush.start()
            assert gate.reached.wait(60)
            monkeypatch.undo()
            other.insert(TABLE.rows("b"), commit_id="b")
            gate.opened.set()
            flush.join()
        assert [future.result().was_written_before for future in futures] == [False, True, False]
        assert values(table) == dict.fromkeys("abc", 1)

    def test_archived_group_commit_is_found(self, table: pyhudi.HudiTable) -> None:
        with table.writer(max_seconds=LONG) as writer:
            future, _ = [writer.insert(TABLE.rows(key), commit_id=key) for key in "ab"]
        for number in range(6):
            table.upsert(TABLE.rows("z", v=number))
        table.clean(retain=1)
        table.archive(min_commits=2, max_commits=3)
        active = {commit.requested for commit in table.refresh().state.timeline.commits}
        assert future.result().instant not in active
        assert table.insert(TABLE.rows("a"), commit_id="a").was_written_before

    def test_writer_reads_each_archived_commit_once(
        self, table: pyhudi.HudiTable, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in range(6):
            table.upsert(TABLE.rows("z", v=number), commit_id=str(number))
        table.clean(retain=1)
        table.archive(min_commits=2, max_commits=3)
        reads: list[str] = []
        read = Archive.commit_metadata

        def note(archive: Archive, instant: Instant) -> CommitMetadata:
            reads.append(instant.requested)
            return read(archive, instant)

        monkeypatch.setattr(Archive, "commit_metadata", note)
        with table.writer() as writer:
            writer.upsert(TABLE.rows("a"), commit_id="a").result()
            archived = len(reads)
            assert archived
            writer.upsert(TABLE.rows("b"), commit_id="b").result()
            assert len(reads) == archived
            assert writer.upsert(TABLE.rows("z"), commit_id="0").result().was_written_before
            assert writer.upsert(TABLE.rows("a"), commit_id="a").result().was_written_before
        assert values(table)["z"] == 5


class TestErrors:
    def test_bad_batch_fails_in_the_thread_of_its_caller(self, table: pyhudi.HudiTable) -> None:
        with table.writer(max_seconds=LONG) as writer:
            good = writer.upsert(TABLE.rows("a"))
            with pytest.raises(SchemaMismatch, match="no record key"):
                writer.upsert({"id": [None], "v": [1]})
            with pytest.raises(SchemaMismatch, match="no column 'w'"):
                writer.upsert({"id": ["b"], "v": [1], "w": [1]})
            with pytest.raises(SchemaMismatch, match="key column"):
                writer.delete_keys({"v": [1]})
            with pytest.raises(ConfigError, match="commit_id"):
                writer.upsert(TABLE.rows("a"), commit_id="")
        assert good.result().rows_inserted == 1

    def test_error_of_one_batch_fails_its_future_only(self, tmp_path: Path) -> None:
        options = {"hoodie.datasource.insert.dup.policy": "fail"}
        table = TABLE.make(tmp_path / "t", first="x", options=options)
        with table.writer(max_seconds=LONG) as writer:
            futures = [writer.insert(TABLE.rows(ids)) for ids in ("a", "b", "cx", "d", "e")]
            with pytest.raises(SchemaMismatch, match="'x'"):
                writer.flush()
        errors = [future.exception() for future in futures]
        assert [type(error) for error in errors if error] == [SchemaMismatch]
        assert "'x'" in str(errors[2])
        assert values(table) == dict.fromkeys("abdex", 1)

    @pytest.mark.parametrize(
        "error",
        [
            StorageError("the disk is gone"),
            CommitUnknown("perhaps", instant="20260101000000000"),
            CommitConflict("always"),
        ],
    )
    def test_error_of_the_table_fails_all_batches_of_the_commit(
        self, error: Exception, table: pyhudi.HudiTable, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        attempts = []

        def fail(txn: Transaction) -> None:
            attempts.append(txn)
            raise error

        with table.writer(max_seconds=LONG) as writer:
            monkeypatch.setattr(Transaction, "__enter__", fail)
            futures = [writer.upsert(TABLE.rows(key)) for key in "abc"]
            with pytest.raises(type(error)):
                writer.flush()
            monkeypatch.undo()
            # The writer goes on.
            assert writer.upsert(TABLE.rows("d")).rows == 1
        assert [future.exception() for future in futures] == [error] * 3
        assert len(attempts) == 1
        assert values(table) == {"d": 1}

    def test_error_that_no_caller_has_seen_is_raised_at_the_end(
        self, table: pyhudi.HudiTable, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(_txn: Transaction) -> None:
            raise StorageError("the disk is gone")

        writer = table.writer(max_seconds=0)
        monkeypatch.setattr(Transaction, "__enter__", fail)
        future = writer.upsert(TABLE.rows("a"))
        with pytest.raises(StorageError, match="disk is gone"):
            writer.close()
        writer.close()
        assert isinstance(future.exception(), StorageError)

    def test_warning_that_is_an_error_does_not_repeat_the_commit(self, tmp_path: Path) -> None:
        table = TABLE.make(tmp_path / "t", first="a", index="RECORD_INDEX", metadata=True)
        with table.writer(max_seconds=LONG) as writer:
            futures = [writer.insert(TABLE.rows(key)) for key in "ab"]
            with warnings.catch_warnings():
                warnings.simplefilter("error", pyhudi.DuplicateKeyWarning)
                with pytest.raises(pyhudi.DuplicateKeyWarning):
                    writer.flush()
        assert all(future.exception() for future in futures)
        assert table.refresh().count() == 3


class TestRoom:
    def test_caller_waits_for_room(self, table: pyhudi.HudiTable, gate: Gate) -> None:
        with table.writer(max_bytes=1, max_seconds=0) as writer:
            writer.upsert(TABLE.rows("a"))
            assert gate.reached.wait(60)
            writer.upsert(TABLE.rows("b"))
            with pytest.raises(WriterTimeout, match="no room"):
                writer.upsert(TABLE.rows("c"), timeout=0.01)
            waiting = threading.Thread(target=lambda: writer.upsert(TABLE.rows("d")))
            waiting.start()
            wait_until(lambda: bool(writer._queue._line))
            gate.opened.set()
            waiting.join()
        assert values(table) == dict.fromkeys("abd", 1)

    def test_event_loop_is_not_blocked(self, table: pyhudi.HudiTable, gate: Gate) -> None:
        async def submit(writer: pyhudi.GroupWriter) -> list[pyhudi.WriteResult]:
            first = writer.upsert(TABLE.rows("a"))
            assert await asyncio.to_thread(gate.reached.wait, 60)
            second = writer.upsert(TABLE.rows("b"))
            with pytest.raises(WriterTimeout):
                writer.upsert(TABLE.rows("c"))
            tasks = [asyncio.create_task(writer.upsert_async(TABLE.rows(key))) for key in "de"]
            withdrawn = asyncio.create_task(writer.insert_async(TABLE.rows("f")))
            await asyncio.to_thread(wait_until, lambda: len(writer._queue._line) == 3)
            withdrawn.cancel()
            with pytest.raises(asyncio.CancelledError):
                await withdrawn
            gate.opened.set()
            return [await first, await second, *await asyncio.gather(*tasks)]

        with table.writer(max_bytes=1, max_seconds=0) as writer:
            results = asyncio.run(submit(writer))
        assert all(result.committed for result in results)
        assert values(table) == dict.fromkeys("abde", 1)

    def test_async_methods_return_results(self, table: pyhudi.HudiTable) -> None:
        async def write() -> list[int]:
            async with table.writer() as writer:
                inserted = await writer.insert_async(TABLE.rows("ab"))
                updated = await writer.upsert_async(TABLE.rows("b", v=2), commit_id="x")
                deleted = await writer.delete_keys_async(["a"])
                writer.upsert(TABLE.rows("c"))
            return [inserted.rows_inserted, updated.rows_updated, deleted.rows_deleted]

        assert asyncio.run(write()) == [2, 1, 1]
        assert values(table) == {"b": 2, "c": 1}


class TestEnd:
    def test_canceled_batch_is_not_written(self, table: pyhudi.HudiTable) -> None:
        with table.writer(max_seconds=LONG) as writer:
            futures = [writer.upsert(TABLE.rows(key)) for key in "ab"]
            assert futures[0].cancel()
        with pytest.raises(CancelledError):
            futures[0].result()
        assert not futures[1].cancel()
        assert values(table) == {"b": 1}

    def test_block_that_raises_commits_what_was_submitted(self, table: pyhudi.HudiTable) -> None:
        def fail() -> None:
            with table.writer(max_seconds=LONG) as writer:
                writer.upsert(TABLE.rows("a"))
                raise ValueError("of the caller")

        with pytest.raises(ValueError, match="of the caller"):
            fail()
        assert values(table) == {"a": 1}

    def test_closed_writer_takes_no_batch(self, table: pyhudi.HudiTable) -> None:
        writer = table.writer()
        writer.close()
        with pytest.raises(ConfigError, match="closed"):
            writer.upsert(TABLE.rows("a"))
        writer.flush()

    def test_callback_must_not_wait_for_the_writer(self, table: pyhudi.HudiTable) -> None:
        errors: list[Exception] = []

        def catch(method: Callable[[], None]) -> None:
            with pytest.raises(ConfigError, match="callback") as caught:
                method()
            errors.append(caught.value)

        with table.writer(max_seconds=LONG) as writer:
            future = writer.upsert(TABLE.rows("a"))
            future.add_done_callback(lambda _: catch(writer.flush))
            future.add_done_callback(lambda _: catch(writer.close))
        assert len(errors) == 2

    def test_second_interrupt_cancels_what_waits(
        self, table: pyhudi.HudiTable, gate: Gate, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        writer = table.writer(max_seconds=0)
        first = writer.upsert(TABLE.rows("a"))
        assert gate.reached.wait(60)
        second = writer.upsert(TABLE.rows("b"))

        def interrupt() -> None:
            wait_until(lambda: writer._queue._is_closed)
            # The main thread waits a moment later.
            time.sleep(0.05)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            writer.close()
        thread.join()
        gate.opened.set()
        writer.close()
        assert first.result().committed
        assert second.cancelled()
        assert values(table) == {"a": 1}

    @pytest.mark.parametrize(
        ("given", "error"),
        [
            ({"max_rows": 0}, "at least 1"),
            ({"max_bytes": 0}, "at least 1"),
            ({"max_seconds": -1}, "max_seconds is -1"),
            ({"max_seconds": float("nan")}, "max_seconds"),
            ({"max_rows": "1"}, "max_rows is '1'"),
        ],
    )
    def test_limits_are_checked(
        self, given: dict[str, Any], error: str, table: pyhudi.HudiTable
    ) -> None:
        with pytest.raises(ConfigError, match=error):
            table.writer(**given)

    def test_handle_of_an_earlier_time_has_no_writer(self, table: pyhudi.HudiTable) -> None:
        instant = table.upsert(TABLE.rows("a")).instant
        with pytest.raises(ConfigError, match="read-only"):
            pyhudi.open_table(table.uri, as_of=instant).writer()

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    def test_forked_process_cannot_use_the_writer(self, table: pyhudi.HudiTable) -> None:
        with table.writer(max_seconds=LONG) as writer:
            writer.upsert(TABLE.rows("a"))
            child = os.fork()
            if not child:
                status = 1
                try:
                    writer.upsert(TABLE.rows("b"))
                except ConfigError:
                    writer.close()
                    status = 0
                finally:
                    os._exit(status)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert values(table) == {"a": 1}


PROCESS = TableBuilder(
    {"id": (pa.string(), str), "city": (pa.string(), "rome"), "v": (pa.int64(), 1)},
    partition_by="city",
    options=SMALL,
)


def start(base: Path, how: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", group_writer_process.__name__, str(base), how]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )


@pytest.mark.slow
class TestProcesses:
    def test_open_writer_is_flushed_when_the_interpreter_exits(self, tmp_path: Path) -> None:
        table = PROCESS.make(tmp_path / "t")
        process = start(tmp_path / "t", "exit")
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")
        assert table.refresh().count() == group_writer_process.CALLERS * ROWS
        assert commits(table) == 1

    def test_interrupted_block_is_flushed(self, tmp_path: Path) -> None:
        table = PROCESS.make(tmp_path / "t")
        process = start(tmp_path / "t", "interrupt")
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert errors.rstrip().endswith("KeyboardInterrupt")
        assert table.refresh().count() == group_writer_process.CALLERS * ROWS

    @pytest.mark.parametrize(("kind", "lines"), [("cow", 30), ("mor", 41)])
    def test_killed_process_loses_only_unconfirmed_batches(
        self, kind: Any, lines: int, tmp_path: Path
    ) -> None:
        table = PROCESS.make(tmp_path / "t", kind=kind)
        process = start(tmp_path / "t", "forever")
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(lines)]
        process.kill()
        rest, errors = process.communicate(timeout=60)
        assert not errors
        said += [line for line in rest.splitlines(keepends=True) if line.endswith("\n")]
        confirmed = {line.split()[1] for line in said if line.startswith("confirmed")}
        submitted = {line.split()[1] for line in said if line.startswith("submitted")}
        assert confirmed
        # It rolls back what the process has left.
        table.refresh().upsert(PROCESS.rows(["last"]))
        ids: list[str] = table.scan(["id"]).to_arrow()["id"].to_pylist()
        assert len(ids) == len({*ids})
        names = [name.rsplit("/", 1)[0] for name in ids if "/" in name]
        assert confirmed <= {*names} <= submitted
        assert all(names.count(name) == ROWS for name in names)
        # A retry by its id writes no batch twice.
        with table.writer(max_seconds=LONG) as writer:
            futures = {
                name: writer.insert(group_writer_process.batch(name), commit_id=name)
                for name in submitted
            }
        before = {name for name, future in futures.items() if future.result().was_written_before}
        assert before == {*names}
        assert table.count() == len(submitted) * ROWS + 1
        assert not table.check(deep=True).findings


def test_writer_frees_memory_of_committed_batches(table: pyhudi.HudiTable) -> None:
    with table.writer(max_seconds=0) as writer:
        writer.upsert(TABLE.rows("a")).result()
        writer.flush()
        assert (writer._queue._bytes, writer._queue._rows, writer._pending) == (0, 0, set())
