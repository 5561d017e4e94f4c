"""What follows an act that stands: its caller must not take a failure of it for one of the act."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyhudi.config.log import logger, warn
from pyhudi.errors import (
    AfterCommitWarning,
    CommitConflict,
    InterruptedAfterCommit,
    without_hint,
)


@contextmanager
def warn_on_failure(
    uri: str, instant: str, what: str, until: str = "a later commit"
) -> Iterator[None]:
    """Makes a warning of what goes wrong.

    instant: of the commit; "" for an act that does no harm when it is done again. what: is done
    here, or waits. Raises `InterruptedAfterCommit` where the user interrupts it.
    """
    done = f"committed as {instant}" if instant else "done"
    try:
        yield
    except KeyboardInterrupt as error:
        if not instant:
            raise
        raise InterruptedAfterCommit(instant) from error
    except CommitConflict as error:
        # Most often that one does the same: Hudi carries out whatever clean it finds.
        logger.info("%s: %s; %s aborted: %s", uri, done, what, error)
    except Exception as error:  # noqa: BLE001  an error would say that the act failed
        warn(
            f"{uri}: {done}; {what} after it is left to {until}: {without_hint(error)}",
            AfterCommitWarning,
        )
