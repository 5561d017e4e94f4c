"""The nearest known name, for "did you mean" hints. Names themselves always match exactly."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

_ALIKE = 0.5
"""Minimum similarity of two names, from 0 to 1."""


def closest_name(name: str, names: Sequence[str]) -> str | None:
    """Return the known name that differs only in case, else the most similar; None if none is."""
    same_but_case = [other for other in names if other.casefold() == name.casefold()]
    if len(same_but_case) == 1:
        return same_but_case[0]
    near = difflib.get_close_matches(name, names, n=1, cutoff=_ALIKE)
    return near[0] if near else None
