"""The future of a batch that a group writer commits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any

from pyhudi.txn.result import WriteResult


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
