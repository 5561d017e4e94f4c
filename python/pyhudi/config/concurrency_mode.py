"""Whether a table has many writers, and which of two gives way (`WriteConcurrencyMode`, 1.2.0)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from pyhudi.errors import UnsupportedTableFeature

MODE = "hoodie.write.concurrency.mode"


class ConcurrencyMode(Enum):
    """How the writers of a table keep out of each other's way."""

    SINGLE_WRITER = "SINGLE_WRITER"
    """Not at all: there is one."""
    OPTIMISTIC = "OPTIMISTIC_CONCURRENCY_CONTROL"
    """Who completes second gives way, if both changed the same."""
    NON_BLOCKING = "NON_BLOCKING_CONCURRENCY_CONTROL"
    """Nobody gives way: writers append to the same buckets, and readers merge."""


def mode_of(options: Mapping[str, str]) -> ConcurrencyMode:
    """From `hoodie.…` options. Raises `UnsupportedTableFeature` for another one."""
    text = options.get(MODE, ConcurrencyMode.OPTIMISTIC.value)
    try:
        return ConcurrencyMode(text.strip().upper())
    except ValueError as error:
        known = ", ".join(mode.value for mode in ConcurrencyMode)
        raise UnsupportedTableFeature(
            f"{MODE} is {text!r}, which pyhudi does not support", hint=f"One of {known}."
        ) from error
