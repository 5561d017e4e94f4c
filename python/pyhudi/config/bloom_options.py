"""Bloom filters of an expression index: the options of its definition.

Names and meanings: `HoodieExpressionIndex.BLOOM_FILTER_CONFIG_MAPPING`, defaults of
`HoodieStorageConfig` (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_SIMPLE = "SIMPLE"
_DYNAMIC = "DYNAMIC_V0"

FILTER_OPTIONS = frozenset({"filtertype", "numentries", "fpp", "maxentries"})


@dataclass(frozen=True)
class FilterOptions:
    """Type and size of bloom filters."""

    simple: bool = False
    """Whether the type is SIMPLE, else DYNAMIC_V0."""
    entries: int = 60000
    fpp: float = 1e-9
    max_entries: int = 100000

    @classmethod
    def of(cls, options: Mapping[str, str]) -> FilterOptions:
        """Read options that `refusal` accepts."""
        return cls(
            simple=options.get("filtertype", _DYNAMIC).upper() == _SIMPLE,
            entries=int(options.get("numentries", "60000")),
            fpp=float(options.get("fpp", "1e-9")),
            max_entries=int(options.get("maxentries", "100000")),
        )

    @staticmethod
    def refusal(options: Mapping[str, str]) -> str | None:
        """Return what is wrong with the options of a filter; None if they are valid."""
        filter_type = options.get("filtertype", _DYNAMIC)
        if filter_type.upper() not in (_SIMPLE, _DYNAMIC):
            return f"its filtertype is {filter_type}"
        for name in ("numentries", "maxentries"):
            text = options.get(name, "1")
            if not (text.isascii() and text.isdecimal() and 0 < int(text) < 1 << 31):
                return f"its {name} is {text}"
        text = options.get("fpp", "0.1")
        try:
            rate = float(text)
        except ValueError:
            rate = 0.0
        return None if 0 < rate < 1 else f"its fpp is {text}"
