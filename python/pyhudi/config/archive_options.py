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
"""Every option that `ArchiveOptions.of` reads."""


@dataclass(frozen=True)
class ArchiveOptions:
    """How many commits the active timeline keeps, and when the others leave it."""

    automatic: bool = True
    """After each commit what is due is archived."""
    least: int = 20
    """Commits that archiving leaves."""
    most: int = 30
    """Commits beyond which it begins."""
    history: HistoryOptions = field(default_factory=HistoryOptions)
    """How the archive's files are written."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> ArchiveOptions:
        """From `hoodie.…` options. Raises `ConfigError` for what is no value of theirs.

        So it does for a least number of commits that is not below the greatest. Raises
        `UnsupportedTableFeature` where saved commits alone were to stay: no reader of Hudi's would
        count what was archived behind them (0.15.0, 1.0.2, 1.2.0).
        """
        if parse_bool(options, BEYOND_SAVEPOINT, default=False):
            msg = (
                f"{BEYOND_SAVEPOINT}: Hudi's readers lose the rows of commits archived beyond "
                "a savepoint"
            )
            raise UnsupportedTableFeature(
                msg, hint="Call delete_savepoint() to let archiving continue."
            )
        least = parse_int(options, LEAST, default=cls.least)
        most = parse_int(options, MOST, default=cls.most)
        if most <= least:
            raise ConfigError(f"{MOST} is {most}, not more than {LEAST}, which is {least}")
        return cls(
            parse_bool(options, AUTOMATIC, default=cls.automatic),
            least,
            most,
            HistoryOptions.of(options),
        )

    def keeping(self, least: int | None, most: int | None) -> ArchiveOptions:
        """With other numbers of commits, as far apart where one is given alone. Raises as `of`."""
        between = self.most - self.least
        if least is None:
            least = self.least if most is None else max(most - between, 1)
        if most is None:
            most = least + between
        numbers = ArchiveOptions.of({LEAST: str(least), MOST: str(most)})
        return replace(self, least=numbers.least, most=numbers.most)
