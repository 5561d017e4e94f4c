"""What a program can hear of pyhudi through Python's `logging`, all under the name `pyhudi`.

Nothing is set up here: without a handler of the program's own nothing is shown. INFO: what commits
did, and services after them. WARNING: what is a Python warning too. DEBUG: tries again and waits
for locks.
"""

from __future__ import annotations

import logging
import warnings

logger = logging.getLogger("pyhudi")
logger.addHandler(logging.NullHandler())


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns, as the caller of the function that this is called in; and logs it."""
    logger.warning(message)
    warnings.warn(message, category, stacklevel=3)
