"""Messages of pyhudi through Python's `logging`, all under the logger `pyhudi`.

Nothing is configured here: without a handler of the program, nothing is printed. INFO: what commits
and services after them did. WARNING: everything that is also a Python warning. DEBUG: retries and
waiting for locks.
"""

from __future__ import annotations

import inspect
import logging
import warnings
from types import FrameType

logger = logging.getLogger("pyhudi")
logger.addHandler(logging.NullHandler())


_PASSED = ("pyhudi", "contextlib")
"""Packages whose frames do not belong to the caller."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Log a warning, and raise it at the line that called pyhudi."""
    logger.warning(message)
    frame, level = inspect.currentframe(), 0
    while frame is not None and _package(frame) in _PASSED:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level + 1)


def _package(frame: FrameType) -> str:
    name: str = frame.f_globals.get("__name__", "")
    return name.split(".", 1)[0]
