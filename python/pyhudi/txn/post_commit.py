"""The outcome of a commit, and the steps after it.

A failure of a later step is a warning, because the commit has already succeeded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyhudi.config.log import logger, warn
from pyhudi.errors import (
    AfterCommitError,
    AfterCommitWarning,
    CommitConflict,
    CommitUnknown,
    InterruptedAfterCommit,
    LockTimeout,
    retryable_conflict,
    without_hint,
)


@contextmanager
def warn_on_failure(
    uri: str,
    instant: str,
    what: str,
    until: str = "a later commit",
    on_error: Callable[[Exception], None] = lambda _: None,
) -> Iterator[None]:
    """Turn a failure of the block into a warning.

    instant: of the commit; "" for a step that can safely be repeated. what: the step that runs here
    or is left for later. on_error: gets the error before the warning. Raises
    `InterruptedAfterCommit` if the user interrupts it.
    """
    done = f"committed as {instant}" if instant else "done"
    try:
        yield
    except KeyboardInterrupt as error:
        if not instant:
            raise
        raise InterruptedAfterCommit(instant) from error
    except CommitConflict as error:
        # Usually another writer does the same: Hudi executes any clean that it finds.
        logger.info("%s: %s; %s aborted: %s", uri, done, what, error)
    except Exception as error:  # noqa: BLE001  an error would say that the act failed
        on_error(error)
        warn(
            f"{uri}: {done}; {what} after it is left to {until}: {without_hint(error)}",
            AfterCommitWarning,
        )


def try_step(uri: str, instant: str, step: Callable[[], None]) -> None:
    """Run a step that the next writer can repeat; a failure is a warning."""
    try:
        step()
    except Exception as error:  # noqa: BLE001 - an error would look like a failed commit
        cause = without_hint(error)
        warn(
            f"{uri}: committed as {instant}, but a post-commit step failed and is left to the "
            f"next writer: {cause}",
            AfterCommitWarning,
        )


def outcome_error(instant: str, error: Exception) -> CommitUnknown:
    """Return the error of a write that may be committed or not."""
    lost_lock = isinstance(error, LockTimeout)
    cause = "the table's lock was lost" if lost_lock else "the storage failed"
    return CommitUnknown(
        f"{cause} while {instant} was being committed: it may be committed or not",
        instant=instant,
    )


def raise_after_commit(instant: str, error: BaseException | None) -> None:
    """Raise the error of a write whose commit has succeeded before an exception."""
    if isinstance(error, KeyboardInterrupt):
        raise InterruptedAfterCommit(instant) from error
    if isinstance(error, Exception):
        raise AfterCommitError(
            f"committed as {instant}; a post-commit step failed: {error}", instant=instant
        ) from error


def rollback_error(action: str, instant: str) -> CommitConflict:
    """Return the error of a write that another writer rolled back."""
    return retryable_conflict(f"the {action} {instant} was rolled back by another writer")
