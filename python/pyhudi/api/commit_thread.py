"""The thread of a group writer that commits the batches of its queue."""

from __future__ import annotations

import os
import threading
import weakref

from pyhudi.api.batch_queue import BatchQueue, CommitFuture, Entry
from pyhudi.api.table_handle import TableHandle
from pyhudi.clock import Clock
from pyhudi.config.log import logger
from pyhudi.config.write_options import WriteOptions
from pyhudi.errors import (
    AfterCommitError,
    CommitConflict,
    ConfigError,
    CorruptTable,
    HistoryUnavailable,
    LockTimeout,
    StorageError,
    TableNotFound,
)
from pyhudi.storage import threads
from pyhudi.txn.result import WriteResult
from pyhudi.write.group_commit import Batch, count_combinable, write_batches
from pyhudi.write.idempotency import SearchedCommits

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
WAIT_SECONDS = 1.0
"""Ctrl-C that arrives just before a wait does not end it: it is handled after this time."""


class CommitThread:
    """Commits batches until it is ended. It keeps itself alive, also without its writer."""

    def __init__(
        self, table: TableHandle, options: WriteOptions, queue: BatchQueue, clock: Clock
    ) -> None:
        self._table = table
        self._uri = table.storage.uri
        self._options = options
        self._queue = queue
        self._clock = clock
        self._process = os.getpid()
        self._failed: list[CommitFuture] = []
        self._searched = SearchedCommits()
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pyhudi-writer", daemon=True)
        threads.start(self._thread)
        _running.add(self)

    def is_current(self) -> bool:
        """Return whether this thread calls."""
        return threading.current_thread() is self._thread

    def is_forked(self) -> bool:
        """Return whether this process was forked from the one that has the thread."""
        return self._process != os.getpid()

    def check_process(self) -> None:
        """Raise `ConfigError` in a forked process."""
        if self.is_forked():
            msg = f"the writer belongs to process {self._process}, from which this one was forked"
            raise ConfigError(msg, hint="Create a writer in this process.")

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
            return count_combinable(self._table.config, self._options, batches)
        except Exception as error:  # noqa: BLE001  the thread must go on
            logger.warning("%s: batches are not combined: %s", self._uri, error)
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

    def end(self) -> None:
        """Wait until the batches submitted so far are committed, and end the thread."""
        self._queue.close()
        try:
            while not self._has_ended.wait(WAIT_SECONDS):
                pass
        except BaseException:  # such as a second Ctrl-C
            self._queue.cancel_all()
            raise
        _running.discard(self)

    def _pop_unobserved(self) -> list[BaseException]:
        """Return the errors that no caller has seen, once."""
        failed, self._failed = self._failed, []
        errors = [future.exception() for future in failed if not future.is_observed]
        return [error for error in errors if error is not None]

    def raise_unobserved(self) -> None:
        """Raise the error of a batch that no caller has seen."""
        for error in self._pop_unobserved():
            raise error

    def log_unobserved(self) -> None:
        """Log the errors that no caller has seen."""
        for error in self._pop_unobserved():
            logger.error("%s: a batch is not committed: %s", self._uri, error)


_running: weakref.WeakSet[CommitThread] = weakref.WeakSet()


def _close_all() -> None:
    """End the threads of this process before the interpreter exits."""
    for thread in [*_running]:
        if not thread.is_forked():
            thread.end()
            thread.log_unobserved()


threads.call_before_exit(_close_all)
