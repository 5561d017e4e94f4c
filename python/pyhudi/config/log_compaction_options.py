"""The options of log compaction, read once, as Hudi names them (`HoodieCompactionConfig`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.config.option_parsing import parse_bool, parse_int

INLINE = "hoodie.log.compaction.inline"
BLOCKS = "hoodie.log.compaction.blocks.threshold"
LOG_COMPACTION_OPTIONS = (INLINE, BLOCKS)
"""Every option that `LogCompactionOptions.of` reads."""


LEAST = 2
"""Fewer log files need not be merged with each other."""


@dataclass(frozen=True)
class LogCompactionOptions:
    """When log files are merged with each other."""

    inline: bool = False
    """After each commit that makes it due."""
    least: int = 5
    """Log files of a file group from which they are, and delta commits after which it is due."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> LogCompactionOptions:
        """From `hoodie.…` options. Raises `ConfigError` for a value that is none."""
        return cls(
            parse_bool(options, INLINE, default=False),
            parse_int(options, BLOCKS, default=cls.least, least=LEAST),
        )
