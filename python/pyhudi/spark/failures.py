"""Exceptions of tasks on their way from an executor to the driver.

Spark transfers only text, so an executor appends the pickled exception to the text and the driver
unpickles it: `except CorruptTable` works on every engine. If Spark cut the text, or the exception
cannot be pickled, the driver raises Spark's exception, whose text names the original.
"""

from __future__ import annotations

import base64
import binascii
import pickle
import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import cloudpickle

_MAX_BYTES = 16 * 1024
"""Maximum bytes; longer exceptions are transferred as text only."""
_PICKLED = re.compile(r"<pyhudi-error ([A-Za-z0-9+/=]+)>")


class TaskFailedError(Exception):
    """Raised by a task on an executor; its cause is the exception of the work."""


@contextmanager
def wrap_exceptions() -> Iterator[None]:
    """On an executor: append exceptions of the block to the text that Spark transfers."""
    try:
        yield
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        raise TaskFailedError(f"{message}\n{_encode_exception(error)}") from error


@contextmanager
def raise_original() -> Iterator[None]:
    """On the driver: raise the task's exception instead of Spark's, which becomes its cause."""
    try:
        yield
    except Exception as error:
        original = _find_exception(str(error))
        if original is None:
            raise
        raise original from error


def _encode_exception(error: Exception) -> str:
    try:
        packed = cloudpickle.dumps(error)
        pickle.loads(packed)  # noqa: S301 - some exceptions pickle but do not unpickle
    except Exception:  # noqa: BLE001 - the text suffices if an exception cannot be pickled
        return ""
    if len(packed) > _MAX_BYTES:
        return ""
    return f"<pyhudi-error {base64.b64encode(packed).decode()}>"


def _find_exception(message: str) -> Exception | None:
    match = _PICKLED.search(message)
    if match is None:
        return None
    try:
        original = pickle.loads(base64.b64decode(match[1]))  # noqa: S301  from our own executor
    except (binascii.Error, pickle.UnpicklingError, EOFError, ImportError, AttributeError):
        return None
    return original if isinstance(original, Exception) else None
