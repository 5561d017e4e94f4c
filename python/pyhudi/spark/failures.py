"""Exceptions of tasks on their way from an executor to the driver.

Spark carries only text. So an executor appends the pickled exception to its text, and the driver
takes it out again: `except CorruptTable` works on every engine. When the text was cut on the way,
or the exception cannot be pickled, Spark's own exception stays, which names the original.
"""

from __future__ import annotations

import base64
import binascii
import pickle
import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import cloudpickle

_LIMIT = 16 * 1024
"""Bytes; longer exceptions travel as text alone."""
_CARRIED = re.compile(r"<pyhudi-error ([A-Za-z0-9+/=]+)>")


class TaskFailedError(Exception):
    """What a task raises on an executor in place of the exception of its work (its cause)."""


@contextmanager
def wrap_exceptions() -> Iterator[None]:
    """On an executor: makes exceptions of the block fit to travel."""
    try:
        yield
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        raise TaskFailedError(f"{text}\n{_luggage(error)}") from error


@contextmanager
def raise_original() -> Iterator[None]:
    """On the driver: raises the exception of the task in place of Spark's, which is its cause."""
    try:
        yield
    except Exception as error:
        original = _find_exception(str(error))
        if original is None:
            raise
        raise original from error


def _luggage(error: Exception) -> str:
    try:
        packed = cloudpickle.dumps(error)
        pickle.loads(packed)  # noqa: S301  some exceptions pickle and do not come back
    except Exception:  # noqa: BLE001  whatever a strange exception does here, its text is enough
        return ""
    if len(packed) > _LIMIT:
        return ""
    return f"<pyhudi-error {base64.b64encode(packed).decode()}>"


def _find_exception(text: str) -> Exception | None:
    match = _CARRIED.search(text)
    if match is None:
        return None
    try:
        original = pickle.loads(base64.b64decode(match[1]))  # noqa: S301  from our own executor
    except (binascii.Error, pickle.UnpicklingError, EOFError, ImportError, AttributeError):
        return None
    return original if isinstance(original, Exception) else None
