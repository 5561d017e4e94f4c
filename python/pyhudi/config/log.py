"""What a program can hear of pyhudi through Python's `logging`, all under the name `pyhudi`.

Nothing is set up here: without a handler of the program's own nothing is shown. INFO: what commits
did, and services after them. WARNING: what is a Python warning too. DEBUG: tries again and waits
for locks.
"""

from __future__ import annotations

import inspect
import logging
import warnings
from types import FrameType

logger = logging.getLogger("pyhudi")
logger.addHandler(logging.NullHandler())


_PASSED = ("pyhudi", "contextlib")
"""Packages whose lines are no caller's."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns, at the line from which pyhudi was called; and logs it."""
    logger.warning(message)
    frame, level = inspect.currentframe(), 0
    while frame is not None and _package(frame) in _PASSED:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level + 1)


def _package(frame: FrameType) -> str:
    name: str = frame.f_globals.get("__name__", "")
    return name.split(".", 1)[0]
