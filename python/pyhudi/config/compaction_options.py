"""The options of compaction, read once, with Hudi's names (`HoodieCompactionConfig`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.config.option_parsing import one_switch, parse_enum, parse_int
from pyhudi.errors import ConfigError, UnsupportedTableFeature

INLINE = "hoodie.compact.inline"
SCHEDULE_INLINE = "hoodie.compact.schedule.inline"
TRIGGER = "hoodie.compact.inline.trigger.strategy"
MAX_DELTA_COMMITS = "hoodie.compact.inline.max.delta.commits"
MAX_DELTA_SECONDS = "hoodie.compact.inline.max.delta.seconds"
STRATEGY = "hoodie.compaction.strategy"
TARGET_IO = "hoodie.compaction.target.io"
LOG_SIZE = "hoodie.compaction.logfile.size.threshold"
LOG_NUMBER = "hoodie.compaction.logfile.num.threshold"
TARGET_DAYS = "hoodie.compaction.daybased.target.partitions"
PARTITION_PATTERN = "hoodie.compaction.partition.path.regex"
COMPACTION_OPTIONS = (
    INLINE,
    SCHEDULE_INLINE,
    TRIGGER,
    MAX_DELTA_COMMITS,
    MAX_DELTA_SECONDS,
    STRATEGY,
    TARGET_IO,
    LOG_SIZE,
    LOG_NUMBER,
    TARGET_DAYS,
    PARTITION_PATTERN,
)
"""All options that `CompactionOptions.of` reads."""

LOG_FILE_SIZE = "LogFileSizeBasedCompactionStrategy"
LOG_FILE_NUMBER = "LogFileNumBasedCompactionStrategy"
BOUNDED_IO = "BoundedIOCompactionStrategy"
UNBOUNDED = "UnBoundedCompactionStrategy"
DAY_BASED = "DayBasedCompactionStrategy"
RECENT_DAYS = "BoundedPartitionAwareCompactionStrategy"
OLDER_DAYS = "UnBoundedPartitionAwareCompactionStrategy"
BY_PATTERN = "PartitionRegexBasedCompactionStrategy"
STRATEGIES = (
    LOG_FILE_SIZE,
    LOG_FILE_NUMBER,
    BOUNDED_IO,
    UNBOUNDED,
    DAY_BASED,
    RECENT_DAYS,
    OLDER_DAYS,
    BY_PATTERN,
)
_PACKAGE = "org.apache.hudi.table.action.compact.strategy."

NUM_COMMITS = "num_commits"
AFTER_LAST_REQUEST = "num_commits_after_last_request"
TIME_ELAPSED = "time_elapsed"
NUM_AND_TIME = "num_and_time"
NUM_OR_TIME = "num_or_time"
_TRIGGERS = (NUM_COMMITS, AFTER_LAST_REQUEST, TIME_ELAPSED, NUM_AND_TIME, NUM_OR_TIME)


@dataclass(frozen=True)
class CompactionOptions:
    """When a table is compacted, and which file groups."""

    inline: bool = False
    """Schedule and execute a compaction after each commit if it is due."""
    schedule_inline: bool = False
    """Only schedule a compaction after each commit if it is due."""
    trigger: str = NUM_COMMITS
    max_delta_commits: int = 5
    max_delta_seconds: int = 3600
    strategies: tuple[str, ...] = (LOG_FILE_SIZE,)
    """Class names without their package; each strategy selects from the result of the one
    before."""
    target_io_mib: int = 512_000
    log_size: int = 0
    log_number: int = 0
    target_days: int = 10
    partition_pattern: str = ""
    automatic: bool = True
    """Neither switch is set: file groups with far too many log files are compacted automatically, a
    few after some commits. Hudi does not compact them."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> CompactionOptions:
        """Read the options from `hoodie.…` names.

        Raises `ConfigError` for an invalid value, `UnsupportedTableFeature` for a strategy class
        that pyhudi does not support.
        """
        inline, scheduled = one_switch(options, INLINE, SCHEDULE_INLINE)
        return cls(
            inline,
            scheduled,
            parse_enum(options, TRIGGER, _TRIGGERS, cls.trigger),
            parse_int(options, MAX_DELTA_COMMITS, default=cls.max_delta_commits),
            parse_int(options, MAX_DELTA_SECONDS, default=cls.max_delta_seconds),
            strategies_of(options.get(STRATEGY, LOG_FILE_SIZE)),
            parse_int(options, TARGET_IO, default=cls.target_io_mib),
            parse_int(options, LOG_SIZE, default=cls.log_size, least=0),
            parse_int(options, LOG_NUMBER, default=cls.log_number, least=0),
            parse_int(options, TARGET_DAYS, default=cls.target_days),
            _pattern(options.get(PARTITION_PATTERN, "")),
            not options.keys() & {INLINE, SCHEDULE_INLINE},
        )


def strategies_of(text: str) -> tuple[str, ...]:
    """Return strategies by the names of their classes, separated by commas.

    The package may be omitted. Raises `UnsupportedTableFeature` for an unsupported class.
    """
    names = [name.strip().removeprefix(_PACKAGE) for name in text.split(",") if name.strip()]
    for name in names:
        if name not in STRATEGIES:
            msg = f"{STRATEGY} is {name}, which pyhudi does not support"
            raise UnsupportedTableFeature(msg, hint=f"One of {', '.join(STRATEGIES)}.")
    if not names:
        raise ConfigError(f"{STRATEGY} is empty", hint=f"One of {', '.join(STRATEGIES)}.")
    return tuple(names)


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ConfigError(f"{PARTITION_PATTERN} is not a regular expression: {error}") from error
    return text
