"""A writer for many callers of one process: their batches share commits.

One thread per writer commits. Callers convert and check their batches in their own threads, and get
futures. `write/group_commit.py` decides which batches a commit may have; `batch_queue.py` holds
those that wait. [Decision 25](docs/decisions/0025-several-callers-share-a-commit.md) has the
reasons.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from concurrent.futures import Future, wait
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pyhudi.api.batch_queue import BatchQueue, Entry, Limits
from pyhudi.api.commit_future import CommitFuture
from pyhudi.api.table_handle import TableHandle
from pyhudi.clock import SystemClock
from pyhudi.config import argument_checks as arg
from pyhudi.config.log import logger
from pyhudi.errors import (
    AfterCommitError,
    CommitConflict,
    ConfigError,
    CorruptTable,
    HistoryUnavailable,
    LockTimeout,
    SchemaMismatch,
    StorageError,
    TableNotFound,
)
from pyhudi.schema.evolution import SchemaMode
from pyhudi.storage import threads
from pyhudi.txn.result import WriteResult
from pyhudi.write.group_commit import (
    Batch,
    Operation,
    convert_batch,
    count_combinable,
    write_batches,
)
from pyhudi.write.idempotency import SearchedCommits
from pyhudi.write.write_context import WriteContext

if TYPE_CHECKING:
    from typing_extensions import Self

_OF_ALL_BATCHES = (
    AfterCommitError,
    CommitConflict,
    CorruptTable,
    HistoryUnavailable,
    LockTimeout,
    StorageError,
    TableNotFound,
    Warning,
)
"""Errors that no single batch causes, or after which the commit may exist. A warning that the
program turned into an error may come after the commit."""
_WAIT_SECONDS = 1.0
"""Ctrl-C that arrives just before a wait does not end it: it is handled after this time."""


class GroupWriter:
    """Commits the batches of many callers together: see `HudiTable.writer`.

    Its methods can be called from any thread. Use it in a `with` block, or in `async with` on an
    event loop: at the end of the block it commits everything that was submitted, also after an
    exception or Ctrl-C. A writer that is still open when the interpreter exits does the same then.

    A batch is all in one commit or not at all. Batches are committed in the order in which they
    were submitted, with the result of one commit for each. An error of one batch fails its future
    only. If the process is killed, batches whose futures have no result may be missing.
    """

    def __init__(self, table: TableHandle, limits: Limits) -> None:
        clock = SystemClock()
        self._table = table
        self._clock = clock
        self._handle = table._writable()  # noqa: SLF001
        self._context = WriteContext.open(self._handle, clock)
        self._queue = BatchQueue(limits, clock)
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._pending: set[Future[WriteResult]] = set()
        self._failed: list[CommitFuture] = []
        self._searched = SearchedCommits()
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pyhudi-writer", daemon=True)
        threads.start(self._thread)
        _open_writers.add(self)

    @arg.check_arguments(
        schema_mode=arg.text,
        partial=arg.flag,
        commit_id=arg.optional(arg.name),
        timeout=arg.optional(arg.seconds),
    )
    def upsert(
        self,
        data: Any,
        *,
        schema_mode: SchemaMode = "strict",
        partial: bool = False,
        commit_id: str | None = None,
        timeout: float | None = None,
    ) -> CommitFuture:
        """Submit rows to upsert.

        It waits while batches of `max_bytes` wait for a commit, except in a thread that runs an
        event loop: there it raises `WriterTimeout`, and `upsert_async` waits.

        Args:
            data: rows, as in `HudiTable.upsert`, but no Spark DataFrame. They are read into memory.
            schema_mode: "strict" or "merge", as in `HudiTable.upsert`. With "merge" the batch has a
                commit of its own.
            partial: the data may leave out columns, as in `HudiTable.upsert`. The batch then has a
                commit of its own.
            commit_id: name that makes the batch idempotent, as in `HudiTable.upsert`, also if it
                was committed together with others.
            timeout: seconds to wait for room; None to wait without end.

        Returns:
            The future of the commit's result. You can await it.

        Raises:
            SchemaMismatch: the data do not match the table's schema or keys.
            UnsupportedTableFeature: the table does not support the operation.
            WriterTimeout: there was no room in time. The batch was not submitted.
            ConfigError: an argument is wrong, the writer is closed, or it belongs to another
                process.
        """
        options = _options(schema_mode=schema_mode, partial=partial)
        return self._submit("upsert", data, commit_id, timeout, options)

    @arg.check_arguments(
        schema_mode=arg.text,
        commit_id=arg.optional(arg.name),
        timeout=arg.optional(arg.seconds),
    )
    def insert(
        self,
        data: Any,
        *,
        schema_mode: SchemaMode = "strict",
        commit_id: str | None = None,
        timeout: float | None = None,
    ) -> CommitFuture:
        """Submit rows to insert; existing rows of their keys stay, as in `HudiTable.insert`.

        Args:
            data: rows, as in `upsert`.
            schema_mode: as in `upsert`.
            commit_id: as in `upsert`.
            timeout: as in `upsert`.

        Returns:
            The future of the commit's result. You can await it.

        Raises:
            SchemaMismatch: the data do not match the table's schema or keys.
            UnsupportedTableFeature: the table does not support the operation.
            WriterTimeout: there was no room in time. The batch was not submitted.
            ConfigError: an argument is wrong, the writer is closed, or it belongs to another
                process.
        """
        return self._submit("insert", data, commit_id, timeout, _options(schema_mode=schema_mode))

    @arg.check_arguments(commit_id=arg.optional(arg.name), timeout=arg.optional(arg.seconds))
    def delete_keys(
        self, keys: Any, *, commit_id: str | None = None, timeout: float | None = None
    ) -> CommitFuture:
        """Submit keys to delete.

        Args:
            keys: as in `HudiTable.delete_keys`.
            commit_id: as in `upsert`.
            timeout: as in `upsert`.

        Returns:
            The future of the commit's result. You can await it.

        Raises:
            SchemaMismatch: the keys do not match the table's key or partition columns.
            UnsupportedTableFeature: the table does not support the operation.
            WriterTimeout: there was no room in time. The batch was not submitted.
            ConfigError: an argument is wrong, the writer is closed, or it belongs to another
                process.
        """
        return self._submit("delete_keys", keys, commit_id, timeout, {})

    @arg.check_arguments(schema_mode=arg.text, partial=arg.flag, commit_id=arg.optional(arg.name))
    async def upsert_async(
        self,
        data: Any,
        *,
        schema_mode: SchemaMode = "strict",
        partial: bool = False,
        commit_id: str | None = None,
    ) -> WriteResult:
        """Upsert rows from an event loop, which is not blocked while the batch waits for room.

        Canceling the task withdraws the batch, unless its commit has begun. Batches that tasks
        submit concurrently are in no certain order.

        Args:
            data: as in `upsert`. Another thread converts them.
            schema_mode: as in `upsert`.
            partial: as in `upsert`.
            commit_id: as in `upsert`.

        Returns:
            The result of the commit that has the batch, as of `CommitFuture.result`.

        Raises:
            SchemaMismatch: the data do not match the table's schema or keys.
            UnsupportedTableFeature: the table does not support the operation.
            ConfigError: as in `upsert`.
            HudiError: the commit failed, as in `CommitFuture.result`.
        """
        options = _options(schema_mode=schema_mode, partial=partial)
        return await self._submit_async("upsert", data, commit_id, options)

    @arg.check_arguments(schema_mode=arg.text, commit_id=arg.optional(arg.name))
    async def insert_async(
        self, data: Any, *, schema_mode: SchemaMode = "strict", commit_id: str | None = None
    ) -> WriteResult:
        """Insert rows from an event loop: `insert` as `upsert_async` is for `upsert`.

        Args:
            data: as in `upsert`. Another thread converts them.
            schema_mode: as in `upsert`.
            commit_id: as in `upsert`.

        Returns:
            As of `upsert_async`.

        Raises:
            SchemaMismatch: the data do not match the table's schema or keys.
            UnsupportedTableFeature: the table does not support the operation.
            ConfigError: as in `upsert`.
            HudiError: the commit failed, as in `CommitFuture.result`.
        """
        return await self._submit_async(
            "insert", data, commit_id, _options(schema_mode=schema_mode)
        )

    @arg.check_arguments(commit_id=arg.optional(arg.name))
    async def delete_keys_async(self, keys: Any, *, commit_id: str | None = None) -> WriteResult:
        """Delete keys from an event loop: `delete_keys` as `upsert_async` is for `upsert`.

        Args:
            keys: as in `HudiTable.delete_keys`.
            commit_id: as in `upsert`.

        Returns:
            As of `upsert_async`.

        Raises:
            SchemaMismatch: the keys do not match the table's key or partition columns.
            UnsupportedTableFeature: the table does not support the operation.
            ConfigError: as in `upsert`.
            HudiError: the commit failed, as in `CommitFuture.result`.
        """
        return await self._submit_async("delete_keys", keys, commit_id, {})

    def flush(self) -> None:
        """Wait until the batches submitted so far are committed or have failed.

        They do not wait for other batches any more.

        Raises:
            HudiError: the error of a batch whose future was not asked for its result, so that no
                error goes unnoticed.
            ConfigError: the writer belongs to another process, or a callback of a future calls.
        """
        self._check_caller()
        with self._lock:
            pending = [*self._pending]
        with self._queue.hurry():
            while wait(pending, timeout=_WAIT_SECONDS).not_done:
                pass
        self._raise_unobserved()

    def close(self) -> None:
        """Commit the batches submitted so far, and end the writer.

        Ctrl-C cancels the batches whose commit has not begun. In a forked process it does nothing.

        Raises:
            HudiError: as of `flush`.
            ConfigError: a callback of a future calls.
        """
        if self._process != os.getpid():
            return
        self._check_caller()
        self._end()
        self._raise_unobserved()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None or self._process != os.getpid():
            self.close()
            return
        # The caller must see the error of the block.
        self._end()
        self._log_unobserved()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.__exit__, kind, error, trace)

    # --- submitting -------------------------------------------------------------------------------

    def _submit(
        self,
        operation: Operation,
        data: Any,
        commit_id: str | None,
        timeout: float | None,
        options: dict[str, Any],
    ) -> CommitFuture:
        self._check_process()
        entry = self._convert(operation, data, commit_id, options)
        blocks = threading.current_thread() is not self._thread and not _is_in_event_loop()
        return self._put(entry, blocks=blocks, timeout=timeout)

    async def _submit_async(
        self, operation: Operation, data: Any, commit_id: str | None, options: dict[str, Any]
    ) -> WriteResult:
        self._check_process()
        entry = await asyncio.to_thread(self._convert, operation, data, commit_id, options)
        return await self._put(entry, in_line=True)

    def _put(
        self,
        entry: Entry,
        *,
        blocks: bool = True,
        in_line: bool = False,
        timeout: float | None = None,
    ) -> CommitFuture:
        future = entry.future
        with self._lock:
            self._pending.add(future)
        # Not the future's own method: the caller has not observed it.
        Future.add_done_callback(future, self._forget)
        try:
            self._queue.put(entry, blocks=blocks, in_line=in_line, timeout=timeout)
        except BaseException:
            self._forget(future)
            raise
        return future

    def _forget(self, future: Future[WriteResult]) -> None:
        with self._lock:
            self._pending.discard(future)

    def _convert(
        self,
        operation: Operation,
        data: Any,
        commit_id: str | None,
        options: dict[str, Any],
    ) -> Entry:
        try:
            batch = convert_batch(self._context, operation, data, commit_id=commit_id, **options)
        except SchemaMismatch:
            # Another writer may have changed the columns.
            schema = self._context.schema.arrow
            self._context = WriteContext.open(self._handle, self._clock)
            if self._context.schema.arrow.equals(schema):
                raise
            batch = convert_batch(self._context, operation, data, commit_id=commit_id, **options)
        return Entry(batch, CommitFuture(batch.num_rows))

    def _check_process(self) -> None:
        if self._process != os.getpid():
            msg = f"the writer belongs to process {self._process}, from which this one was forked"
            raise ConfigError(msg, hint="Create a writer in this process.")

    def _check_caller(self) -> None:
        self._check_process()
        if threading.current_thread() is self._thread:
            msg = "a callback of a future waits for the writer, whose thread runs the callback"
            raise ConfigError(msg, hint="Wait in another thread.")

    # --- committing -------------------------------------------------------------------------------

    def _run(self) -> None:
        """Commit batches until the writer is closed. The body of the writer's thread."""
        try:
            while entries := self._queue.next_candidates():
                count = self._count_combinable([entry.batch for entry in entries])
                removed = self._queue.remove(count)
                self._commit(
                    [entry for entry in removed if entry.future.set_running_or_notify_cancel()]
                )
        finally:
            self._queue.close()
            self._queue.cancel_all()
            self._has_ended.set()

    def _count_combinable(self, batches: list[Batch]) -> int:
        try:
            return count_combinable(self._table.config, self._context.options, batches)
        except Exception as error:  # noqa: BLE001  the thread must go on
            logger.warning("%s: batches are not combined: %s", self._handle.storage.uri, error)
            return 1

    def _commit(self, entries: list[Entry]) -> None:
        """Commit batches together; if that fails by one of them, in halves."""
        if not entries:
            return
        repeated: dict[str, WriteResult] = {}
        batches = [entry.batch for entry in entries]
        started_ms = self._clock.ticks_ms()
        try:
            result = self._table._write(  # noqa: SLF001
                write_batches, False, batches, repeated, self._searched
            )
        except Exception as error:  # noqa: BLE001  the futures raise it
            if len(entries) > 1 and not isinstance(error, _OF_ALL_BATCHES):
                half = len(entries) // 2
                self._commit(entries[:half])
                self._commit(entries[half:])
                return
            self._fail(entries, error, repeated)
        except BaseException as error:
            self._fail(entries, error, repeated)
            raise
        else:
            self._queue.expect(len(entries), self._clock.ticks_ms() - started_ms)
            for entry in entries:
                entry.future.set_result(repeated.get(entry.batch.commit_id or "", result))

    def _fail(
        self, entries: list[Entry], error: BaseException, repeated: dict[str, WriteResult]
    ) -> None:
        for entry in entries:
            earlier = repeated.get(entry.batch.commit_id or "")
            if earlier is not None:
                entry.future.set_result(earlier)
                continue
            if not entry.future.is_observed:
                self._failed.append(entry.future)
            entry.future.set_exception(error)

    # --- ending -----------------------------------------------------------------------------------

    def _end(self) -> None:
        self._queue.close()
        try:
            while not self._has_ended.wait(_WAIT_SECONDS):
                pass
        except BaseException:  # such as a second Ctrl-C
            self._queue.cancel_all()
            raise
        _open_writers.discard(self)

    def _pop_unobserved(self) -> list[BaseException]:
        """Return the errors that no caller has seen, once."""
        failed, self._failed = self._failed, []
        errors = [future.exception() for future in failed if not future.is_observed]
        return [error for error in errors if error is not None]

    def _raise_unobserved(self) -> None:
        for error in self._pop_unobserved():
            raise error

    def _log_unobserved(self) -> None:
        for error in self._pop_unobserved():
            logger.error("%s: a batch is not committed: %s", self._handle.storage.uri, error)


def _options(*, schema_mode: SchemaMode, partial: bool = False) -> dict[str, Any]:
    """Return the arguments that differ from the defaults."""
    options: dict[str, Any] = {} if schema_mode == "strict" else {"schema_mode": schema_mode}
    return {**options, "partial": True} if partial else options


def _is_in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


_open_writers: weakref.WeakSet[GroupWriter] = weakref.WeakSet()


def _close_all() -> None:
    """Close the open writers of this process before the interpreter exits."""
    for writer in [*_open_writers]:
        if writer._process == os.getpid():  # noqa: SLF001
            writer._end()  # noqa: SLF001
            writer._log_unobserved()  # noqa: SLF001


# Functions of `atexit` run when thread pools accept no more tasks, which commits need. This one of
# the standard library's own thread pools runs earlier.
threading._register_atexit(_close_all)  # type: ignore[attr-defined]  # noqa: SLF001
