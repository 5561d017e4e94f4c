"""The batches that wait for a commit of a group writer, with the futures of their callers."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyhudi.clock import Clock
from pyhudi.config.formatting import size_text
from pyhudi.errors import ConfigError, WriterTimeout
from pyhudi.txn.result import WriteResult
from pyhudi.write.group_commit import Batch

_GRACE = 4
"""The next commit waits for this part of the last one's duration."""
_MAX_GRACE_MS = 1000


class CommitFuture(Future[WriteResult]):
    """The result of a batch, once it is committed: see `GroupWriter`.

    A `concurrent.futures.Future` that you can also await. All batches of a commit have the same
    result. Canceling works until the batch's commit begins, and withdraws the batch.
    """

    rows: int = 0
    """Number of rows or keys of the batch."""

    def __init__(self, rows: int = 0) -> None:
        super().__init__()
        self.rows = rows
        self.is_observed = False
        """Whether a caller has asked for the result, and so learns of an error."""

    def result(self, timeout: float | None = None) -> WriteResult:
        """Wait for the commit and return its result.

        Args:
            timeout: seconds to wait, after which `TimeoutError` is raised; None to wait until the
                batch is committed or fails.

        Returns:
            What the commit of the batch wrote: the counts are those of all of its batches.
            `was_written_before` if a commit has the batch's `commit_id` already.

        Raises:
            HudiError: the batch is not committed; the errors are those of the table's methods.
                After `CommitUnknown` it may be committed, after `AfterCommitError` it is.
        """
        self.is_observed = True
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the commit and return the error of the batch.

        Args:
            timeout: as in `result`.

        Returns:
            The error; None if the batch is committed.
        """
        self.is_observed = True
        return super().exception(timeout)

    def add_done_callback(self, fn: Callable[[Future[WriteResult]], Any]) -> None:
        """Call a function when the batch is committed, fails or is canceled.

        Args:
            fn: gets this future. It runs in the writer's thread, which commits nothing in that
                time, and must not wait for the writer.
        """
        self.is_observed = True
        super().add_done_callback(fn)

    def __await__(self) -> Generator[Any, None, WriteResult]:
        return asyncio.wrap_future(self).__await__()


@dataclass(eq=False)
class Entry:
    """A batch with the future of its caller."""

    batch: Batch
    future: CommitFuture
    is_admitted: threading.Event = field(default_factory=threading.Event)
    admitted_ms: int = 0


@dataclass(frozen=True)
class Limits:
    """The limits of one commit. A batch above rows or bytes has a commit of its own."""

    rows: int
    seconds: float | None
    """How long the first batch of a commit waits for others; None: see `BatchQueue.expect`."""
    bytes: int
    """It also limits the batches that wait."""


class BatchQueue:
    """Batches in arrival order. Beyond the limit of bytes, callers wait in line."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._changed = threading.Condition()
        self._queued: deque[Entry] = deque()
        self._rows = self._bytes = 0
        self._line: deque[Entry] = deque()
        self._hurrying = 0
        self._expected = 0
        self._committed_ms = 0
        self._grace_ms = 0.0
        self._is_closed = False

    def put(
        self, entry: Entry, *, blocks: bool = True, in_line: bool = False, timeout: float | None
    ) -> None:
        """Add a batch at the end.

        blocks: wait until there is room, at most `timeout` seconds. in_line: return immediately
        instead; the batch is admitted when there is room. Raises `WriterTimeout` without room, and
        `ConfigError` once the queue is closed.
        """
        with self._changed:
            if self._is_closed:
                raise ConfigError("the writer is closed", hint="Create another one.")
            if not self._line and self._has_room(entry):
                self._admit(entry)
                return
            if not blocks:
                raise self._timeout_error()
            self._line.append(entry)
        if in_line:
            return
        try:
            if entry.is_admitted.wait(timeout):
                return
        except BaseException:  # such as Ctrl-C
            self._leave_line(entry)
            raise
        if self._leave_line(entry):
            raise self._timeout_error()

    def _timeout_error(self) -> WriterTimeout:
        msg = f"batches of {size_text(self._bytes)} wait for a commit, and there is no room"
        return WriterTimeout(
            msg, hint="Wait for the futures of earlier batches, or raise max_bytes."
        )

    def _leave_line(self, entry: Entry) -> bool:
        """Take a batch out of the line; return whether it was still there."""
        with self._changed:
            if entry.is_admitted.is_set():
                return False
            self._line.remove(entry)
            return True

    def _has_room(self, entry: Entry) -> bool:
        return not self._queued or self._bytes + entry.batch.nbytes <= self._limits.bytes

    def _admit(self, entry: Entry) -> None:
        entry.admitted_ms = self._clock.ticks_ms()
        self._queued.append(entry)
        self._rows += entry.batch.num_rows
        self._bytes += entry.batch.nbytes
        entry.is_admitted.set()
        self._changed.notify_all()

    def next_candidates(self) -> list[Entry]:
        """Wait for the time of the next commit, and return the batches that it may have.

        They stay in the queue until `remove`. Empty once the queue is closed and has no batch.
        """
        with self._changed:
            while self._queued or not self._is_closed:
                ms = self._ms_to_commit() if self._queued else None
                if ms is not None and ms <= 0:
                    return self._candidates()
                self._changed.wait(None if ms is None else ms / 1000)
            return []

    def _ms_to_commit(self) -> float:
        is_full = self._rows >= self._limits.rows or self._bytes >= self._limits.bytes
        if is_full or self._line or self._hurrying or self._is_closed:
            return 0
        first_ms, seconds = self._queued[0].admitted_ms, self._limits.seconds
        if seconds is not None:
            return first_ms + seconds * 1000 - self._clock.ticks_ms()
        if len(self._queued) >= self._expected:
            return 0
        return max(first_ms, self._committed_ms) + self._grace_ms - self._clock.ticks_ms()

    def expect(self, count: int, took_ms: int) -> None:
        """Let the next commit wait for the callers whose batches are about to be confirmed.

        Most callers submit their next batch then. Without this, a commit would have those that wait
        already, and the next one the others: half as many each. Called before the futures have
        results.

        count: batches of the commit. took_ms: its duration, a quarter of which is the longest wait.
        """
        with self._changed:
            self._expected = count + len(self._queued) + len(self._line)
            self._committed_ms = self._clock.ticks_ms()
            self._grace_ms = min(took_ms / _GRACE, _MAX_GRACE_MS)

    def _candidates(self) -> list[Entry]:
        entries: list[Entry] = []
        rows = size = 0
        for entry in self._queued:
            rows, size = rows + entry.batch.num_rows, size + entry.batch.nbytes
            if entries and (rows > self._limits.rows or size > self._limits.bytes):
                break
            entries.append(entry)
        return entries

    def remove(self, count: int) -> list[Entry]:
        """Remove and return the first batches, and admit others from the line."""
        with self._changed:
            entries = [self._queued.popleft() for _ in range(count)]
            self._rows -= sum(entry.batch.num_rows for entry in entries)
            self._bytes -= sum(entry.batch.nbytes for entry in entries)
            while self._line and self._has_room(self._line[0]):
                self._admit(self._line.popleft())
            return entries

    @contextmanager
    def hurry(self) -> Iterator[None]:
        """Let no batch wait for others while the block runs."""
        with self._changed:
            self._hurrying += 1
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._hurrying -= 1

    def close(self) -> None:
        """Accept no more batches. Those in the queue and in the line stay."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def cancel_all(self) -> None:
        """Cancel the batches whose commit has not started."""
        with self._changed:
            entries = [*self._queued, *self._line]
        for entry in entries:
            entry.future.cancel()
