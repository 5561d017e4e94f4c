"""Points in time as callers give them, and a table as it was at one. The only place that knows.

What is planned against the result is ordinary planning: nothing else knows that time was cut.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pyhudi.errors import ConfigError, HistoryUnavailable

if TYPE_CHECKING:
    from pyhudi.plan.read import TableState

_EARLIEST = re.compile("earliest|0+", re.IGNORECASE)
_INSTANT = re.compile(r"\d{14,}", re.ASCII)


def instant_of(moment: str) -> str:
    """The instant that a caller named. Raises `ConfigError` for what is none."""
    if not _INSTANT.fullmatch(moment):
        raise ConfigError(f"{moment!r} is not an instant", hint="Give yyyyMMddHHmmssSSS.")
    return moment


def bound_of(moment: str | None) -> str | None:
    """The end of a range; None, "earliest" and zeros are the open end."""
    if moment is None or _EARLIEST.fullmatch(moment):
        return None
    return instant_of(moment)


def state_as_of(state: TableState, moment: str) -> TableState:
    """The table as it was, with the columns that it has now.

    Raises `HistoryUnavailable` for a time before the active timeline.
    """
    instant = instant_of(moment)
    first = state.timeline.first_active
    if first is None or instant < first:
        raise HistoryUnavailable(
            f"the table as of {instant} is no longer known: the timeline starts at {first}",
        )
    return replace(state, timeline=state.timeline.until(instant))


def archived_end(state: TableState) -> str | None:
    """A time that no archived commit is later than, None when nothing was archived."""
    folder = state.config.history_folder
    entries = state.storage.list_dir(folder)[1]
    archived = any(entry.size and not entry.name.startswith("_") for entry in entries)
    return state.timeline.first_active if archived else None
