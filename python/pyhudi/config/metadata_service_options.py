"""Options of the metadata table's own services, read once. Names and defaults are Hudi's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.config.option_parsing import parse_int

SERVICES_ENABLED = "hoodie.table.services.enabled"
COMPACT_AFTER = "hoodie.metadata.compact.max.delta.commits"
SERVICE_OPTIONS = (SERVICES_ENABLED, COMPACT_AFTER)
"""The switch of all services after a commit, and all options that `ServiceOptions.of` reads."""


@dataclass(frozen=True)
class ServiceOptions:
    """When services of the metadata table are due; archiving has the data table's options."""

    compact_after: int = 10
    """Number of delta commits after which it is compacted."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> ServiceOptions:
        """Read the options from `hoodie.…` names. Raises `ConfigError` for a number below 1."""
        return cls(parse_int(options, COMPACT_AFTER, default=cls.compact_after))
