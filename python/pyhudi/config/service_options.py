"""The options of the metadata table's own services, read once. Names and defaults are Hudi's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.config.option_values import whole_number
from pyhudi.errors import ConfigError

SERVICES_ENABLED = "hoodie.table.services.enabled"
COMPACT_AFTER = "hoodie.metadata.compact.max.delta.commits"
KEEP_COMMITS = "hoodie.keep.min.commits"
ARCHIVE_AFTER = "hoodie.keep.max.commits"
SERVICE_OPTIONS = (SERVICES_ENABLED, COMPACT_AFTER, KEEP_COMMITS, ARCHIVE_AFTER)
"""The switch of all services after a commit, and every option that `ServiceOptions.of` reads."""


@dataclass(frozen=True)
class ServiceOptions:
    """When services of the metadata table are due."""

    compact_after: int = 10
    """Delta commits after which it is compacted."""

    keep_commits: int = 20
    """Commits of the data table that archiving leaves; the metadata table keeps one more."""
    archive_after: int = 30
    """Commits beyond which is archived, likewise."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> ServiceOptions:
        """From `hoodie.…` options. Raises `ConfigError` for what is no number from 1 on.

        So it does for a least number of commits that is not below the greatest.
        """
        keep = whole_number(options, KEEP_COMMITS, default=cls.keep_commits)
        most = whole_number(options, ARCHIVE_AFTER, default=cls.archive_after)
        if most <= keep:
            raise ConfigError(
                f"{ARCHIVE_AFTER} is {most}, not more than {KEEP_COMMITS}, which is {keep}"
            )
        compact_after = whole_number(options, COMPACT_AFTER, default=cls.compact_after)
        return cls(compact_after, keep, most)
