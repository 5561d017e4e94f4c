"""The name that a caller may have meant, for errors. Names themselves always match exactly."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

_ALIKE = 0.5
"""How much of two names has to be the same, of 1."""


def closest_name(name: str, known: Sequence[str]) -> str | None:
    """The one known name that differs in case only, else the one most alike; None where none is."""
    same = [other for other in known if other.casefold() == name.casefold()]
    if len(same) == 1:
        return same[0]
    near = difflib.get_close_matches(name, known, n=1, cutoff=_ALIKE)
    return near[0] if near else None
