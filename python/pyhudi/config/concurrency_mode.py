"""Whether a table has several writers, and which one aborts (`WriteConcurrencyMode`, 1.2.0)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from pyhudi.errors import UnsupportedTableFeature

MODE = "hoodie.write.concurrency.mode"


class ConcurrencyMode(Enum):
    """How the writers of a table handle conflicts."""

    SINGLE_WRITER = "SINGLE_WRITER"
    """There is one writer, so there are no conflicts."""
    OPTIMISTIC = "OPTIMISTIC_CONCURRENCY_CONTROL"
    """The writer that completes second aborts, if both changed the same file groups."""
    NON_BLOCKING = "NON_BLOCKING_CONCURRENCY_CONTROL"
    """No writer aborts: writers append to the same buckets, and readers merge."""


def mode_of(options: Mapping[str, str]) -> ConcurrencyMode:
    """Read the mode from the options. Raises `UnsupportedTableFeature` for an unknown one."""
    text = options.get(MODE, ConcurrencyMode.OPTIMISTIC.value)
    try:
        return ConcurrencyMode(text.strip().upper())
    except ValueError as error:
        supported = ", ".join(mode.value for mode in ConcurrencyMode)
        raise UnsupportedTableFeature(
            f"{MODE} is {text!r}, which pyhudi does not support", hint=f"One of {supported}."
        ) from error
