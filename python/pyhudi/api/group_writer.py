"""A writer for many callers of one process: their batches share commits.

Callers convert and check their batches in their own threads, and get futures. `batch_queue.py`
holds the batches that wait, `commit_thread.py` commits them, and `write/group_commit.py` decides
which of them a commit may have.
[Decision 25](docs/decisions/0025-several-callers-share-a-commit.md) has the reasons.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future, wait
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pyhudi.api.background_services import BackgroundServices
from pyhudi.api.batch_queue import BatchQueue, CommitFuture, Entry, Limits
from pyhudi.api.commit_thread import WAIT_SECONDS, CommitThread
from pyhudi.api.table_handle import TableHandle
from pyhudi.clock import SystemClock
from pyhudi.config import argument_checks as arg
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.schema.evolution import SchemaMode
from pyhudi.txn.result import WriteResult
from pyhudi.write.group_commit import Operation, convert_batch
from pyhudi.write.write_context import WriteContext

if TYPE_CHECKING:
    from typing_extensions import Self


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
        self._clock = clock
        self._handle = table._writable()  # noqa: SLF001
        self._context = WriteContext.open(self._handle, clock)
        self._queue = BatchQueue(limits, clock)
        self._lock = threading.Lock()
        self._pending: set[Future[WriteResult]] = set()
        self._table = table
        self._thread = CommitThread(table, self._context.options, self._queue, clock)

    @arg.check_arguments()
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

    @arg.check_arguments()
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

    @arg.check_arguments()
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

    @arg.check_arguments()
    async def upsert_async(
        self,
        data: Any,
        *,
        schema_mode: SchemaMode = "strict",
        partial: bool = False,
        commit_id: str | None = None,
    ) -> WriteResult:
        """Upsert rows from an event loop, which is not blocked while the batch waits for room.

        Canceling the task withdraws the batch, unless its commit has started. Batches that tasks
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

    @arg.check_arguments()
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

    @arg.check_arguments()
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
            while wait(pending, timeout=WAIT_SECONDS).not_done:
                pass
        self._thread.raise_unobserved()

    def close(self) -> None:
        """Commit the batches submitted so far, and end the writer.

        It also waits for table services that run in the background. Ctrl-C cancels the batches
        whose commit has not started. In a forked process it does nothing.

        Raises:
            HudiError: as of `flush`; or a service in the background failed, and all batches are
                committed.
            ConfigError: a callback of a future calls.
        """
        if self._thread.is_forked():
            return
        self._check_caller()
        self._thread.end()
        self._thread.raise_unobserved()
        BackgroundServices.finish_of(self._table)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None or self._thread.is_forked():
            self.close()
            return
        # The caller must see the error of the block.
        self._thread.end()
        self._thread.log_unobserved()

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
        self._thread.check_process()
        entry = self._convert(operation, data, commit_id, options)
        blocks = not self._thread.is_current() and not _is_in_event_loop()
        return self._put(entry, blocks=blocks, timeout=timeout)

    async def _submit_async(
        self, operation: Operation, data: Any, commit_id: str | None, options: dict[str, Any]
    ) -> WriteResult:
        self._thread.check_process()
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

    def _check_caller(self) -> None:
        self._thread.check_process()
        if self._thread.is_current():
            msg = "a callback of a future waits for the writer, whose thread runs the callback"
            raise ConfigError(msg, hint="Wait in another thread.")


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
