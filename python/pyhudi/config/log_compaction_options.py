"""The options of log compaction, read once, with Hudi's names (`HoodieCompactionConfig`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.config.option_parsing import flag, integer, option_names, parse_fields

INLINE = "hoodie.log.compaction.inline"
BLOCKS = "hoodie.log.compaction.blocks.threshold"


LEAST = 2
"""Minimum number of log files: fewer need no merge."""


@dataclass(frozen=True)
class LogCompactionOptions:
    """When log files are merged with each other."""

    inline: bool = flag(INLINE, default=False)
    """Run after each commit that makes a log compaction due."""
    least: int = integer(BLOCKS, default=5, least=LEAST)
    """Minimum number of log files of a file group, and delta commits that make a log compaction
    due."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> LogCompactionOptions:
        """Read the options from `hoodie.…` names. Raises `ConfigError` for an invalid value."""
        return cls(**parse_fields(cls, options))


LOG_COMPACTION_OPTIONS = option_names(LogCompactionOptions)
"""All options that `LogCompactionOptions.of` reads."""
