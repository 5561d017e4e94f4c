"""Post-commit steps. A failure here is a warning, because the commit has already succeeded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
