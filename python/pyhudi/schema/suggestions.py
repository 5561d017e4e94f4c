"""The nearest known name, for "did you mean" hints. Names themselves always match exactly."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

_ALIKE = 0.5
"""Minimum similarity of two names, from 0 to 1."""


def closest_name(name: str, known: Sequence[str]) -> str | None:
    """Return the known name that differs only in case, else the most similar; None if none is."""
    same = [other for other in known if other.casefold() == name.casefold()]
    if len(same) == 1:
        return same[0]
    near = difflib.get_close_matches(name, known, n=1, cutoff=_ALIKE)
    return near[0] if near else None
