"""Patterns of `LIKE` and `ILIKE` in Arrow's terms.

Arrow's own function takes the beginning or end of many patterns literally, with their escapes, and
skips a backslash before any character. So patterns with a backslash become regular expressions
here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyhudi.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow.compute as pc
else:
    from pyhudi.schema import lazy_compute as pc

_PART = re.compile(r"\\([%_\\])|([^\\])", re.DOTALL)
_WILD = {"%": ".*", "_": "."}
_SIGNS = frozenset(".?+*^$\\[]{}()|")
"""Characters with a meaning in regular expressions."""


def matching(pattern: str, *, ignore_case: bool = False) -> tuple[str, pc.MatchSubstringOptions]:
    """Return the Arrow function that matches a pattern, and its options.

    Raises `ConfigError` for a backslash that escapes nothing, as Spark does.
    """
    if "\\" not in pattern:
        return "match_like", pc.MatchSubstringOptions(pattern, ignore_case=ignore_case)
    parts = list(_PART.finditer(pattern))
    if sum(len(part[0]) for part in parts) < len(pattern):
        raise ConfigError(
            f"LIKE {pattern!r}: a backslash may only precede %, _ and \\",
            hint="Write two backslashes for one.",
        )
    signs = [_WILD.get(part[2]) or _literal(part[1] or part[2]) for part in parts]
    regex = f"(?s)^{''.join(signs)}$"
    return "match_substring_regex", pc.MatchSubstringOptions(regex, ignore_case=ignore_case)


def _literal(character: str) -> str:
    return f"\\{character}" if character in _SIGNS else character
