"""The `hoodie.…` options that a table handle takes. What each means is said where it is read."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from pyhudi.errors import ConfigError
from pyhudi.txn.options import WRITE_OPTIONS

KNOWN_OPTIONS = frozenset(WRITE_OPTIONS)
"""Names and meanings are Hudi's. Reading has none so far."""


def check_options(options: Mapping[str, object] | None) -> dict[str, str]:
    """The options as text. Raises `ConfigError` for an unknown one, with the nearest known."""
    checked = {}
    for name, value in (options or {}).items():
        if name not in KNOWN_OPTIONS:
            near = difflib.get_close_matches(name, sorted(KNOWN_OPTIONS), n=1)
            raise ConfigError(
                f"the option {name!r} is not known",
                hint=f"Did you mean {near[0]}?" if near else "",
            )
        checked[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return checked
