"""The options of the metadata table's own services, read once. Names and defaults are Hudi's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.option_values import whole_number

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
        return cls(whole_number(options, COMPACT_AFTER, default=cls.compact_after))
