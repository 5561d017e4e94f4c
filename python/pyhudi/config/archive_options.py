"""The options of archiving, read once (`HoodieArchivalConfig`, 1.2.0)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyhudi.config.archive_file_options import HISTORY_OPTIONS, HistoryOptions
from pyhudi.config.option_parsing import parse_bool, parse_int
from pyhudi.errors import ConfigError, UnsupportedTableFeature

AUTOMATIC = "hoodie.archive.automatic"
LEAST = "hoodie.keep.min.commits"
MOST = "hoodie.keep.max.commits"
BEYOND_SAVEPOINT = "hoodie.archive.beyond.savepoint"
ARCHIVE_OPTIONS = (AUTOMATIC, LEAST, MOST, BEYOND_SAVEPOINT, *HISTORY_OPTIONS)
"""All options that `ArchiveOptions.of` reads."""


@dataclass(frozen=True)
class ArchiveOptions:
    """How many commits stay on the active timeline, and when the others are archived."""

    automatic: bool = True
    """Archive after each commit if archiving is due."""
    least: int = 20
    """Commits that stay on the timeline."""
    most: int = 30
    """Number of commits above which archiving begins."""
    history: HistoryOptions = field(default_factory=HistoryOptions)
    """How the archive's files are written."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> ArchiveOptions:
        """Read the options from `hoodie.…` names. Raises `ConfigError` for an invalid value.

        The minimum number of commits must be below the maximum. Raises `UnsupportedTableFeature`
        for archiving beyond savepoints: no reader of Hudi (0.15.0, 1.0.2, 1.2.0) would count
        commits that were archived after a savepoint.
        """
        if parse_bool(options, BEYOND_SAVEPOINT, default=False):
            msg = (
                f"{BEYOND_SAVEPOINT}: Hudi's readers lose the rows of commits archived beyond "
                "a savepoint"
            )
            raise UnsupportedTableFeature(
                msg, hint="Call delete_savepoint() to let archiving continue."
            )
        minimum = parse_int(options, LEAST, default=cls.least)
        maximum = parse_int(options, MOST, default=cls.most)
        if maximum <= minimum:
            raise ConfigError(f"{MOST} is {maximum}, not more than {LEAST}, which is {minimum}")
        return cls(
            parse_bool(options, AUTOMATIC, default=cls.automatic),
            minimum,
            maximum,
            HistoryOptions.of(options),
        )

    def keeping(self, least: int | None, most: int | None) -> ArchiveOptions:
        """Return the options with other numbers of commits. Raises as `of`.

        If only one is passed, the other keeps its distance to it.
        """
        distance = self.most - self.least
        if least is None:
            least = self.least if most is None else max(most - distance, 1)
        if most is None:
            most = least + distance
        numbers = ArchiveOptions.of({LEAST: str(least), MOST: str(most)})
        return replace(self, least=numbers.least, most=numbers.most)
