"""The options of the metadata table's own services, read once. Names and defaults are Hudi's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.errors import ConfigError

COMPACT_AFTER = "hoodie.metadata.compact.max.delta.commits"
SERVICE_OPTIONS = (COMPACT_AFTER,)
"""Every option that `ServiceOptions.of` reads."""


@dataclass(frozen=True)
class ServiceOptions:
    """When services of the metadata table are due."""

    compact_after: int = 10
    """Delta commits after which it is compacted."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> ServiceOptions:
        """From `hoodie.…` options. Raises `ConfigError` for what is no number from 1 on."""
        text = options.get(COMPACT_AFTER, str(cls.compact_after))
        if not text.isdecimal() or int(text) < 1:
            raise ConfigError(f"{COMPACT_AFTER} is {text!r}, not a whole number from 1 on")
        return cls(int(text))
