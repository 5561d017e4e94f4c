"""The options of compaction and log compaction, read once, with Hudi's names.

Source: `HoodieCompactionConfig`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from pyhudi.config.option_parsing import (
    OptionGroup,
    check_one_switch,
    check_only,
    choice,
    custom,
    flag,
    integer,
    option,
    pattern,
)
from pyhudi.errors import ConfigError, UnsupportedTableFeature

INLINE = "hoodie.compact.inline"
SCHEDULE_INLINE = "hoodie.compact.schedule.inline"
STRATEGY = "hoodie.compaction.strategy"

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

MIN_LOG_FILES = 2
"""Minimum number of log files of a log compaction: fewer need no merge."""


def strategies_of(listed: str) -> tuple[str, ...]:
    """Return strategies by the names of their classes, separated by commas.

    The package may be omitted. Raises `UnsupportedTableFeature` for an unsupported class.
    """
    names = [name.strip().removeprefix(_PACKAGE) for name in listed.split(",") if name.strip()]
    for name in names:
        if name not in STRATEGIES:
            msg = f"{STRATEGY} is {name}, which pyhudi does not support"
            raise UnsupportedTableFeature(msg, hint=f"One of {', '.join(STRATEGIES)}.")
    if not names:
        raise ConfigError(f"{STRATEGY} is empty", hint=f"One of {', '.join(STRATEGIES)}.")
    return tuple(names)


@dataclass(frozen=True)
class CompactionOptions(OptionGroup):
    """When a table is compacted, and which file groups."""

    inline: bool = flag(
        INLINE,
        "compact after commits if it is due. If you set neither this nor the next option, "
        "pyhudi compacts file groups with "
        "[too many log files](../how-to/compact.md#compact-after-commits)",
        default=False,
    )
    schedule_inline: bool = flag(
        SCHEDULE_INLINE, "plan a compaction after commits if it is due", default=False
    )
    trigger: str = choice(
        "hoodie.compact.inline.trigger.strategy",
        f"or {', '.join(f'`{name.upper()}`' for name in _TRIGGERS[1:])}",
        _TRIGGERS,
        default=NUM_COMMITS,
        displayed=NUM_COMMITS.upper(),
    )
    max_delta_commits: int = integer(
        "hoodie.compact.inline.max.delta.commits", "commits until a compaction is due", default=5
    )
    max_delta_seconds: int = integer(
        "hoodie.compact.inline.max.delta.seconds", "seconds until a compaction is due", default=3600
    )
    strategies: tuple[str, ...] = custom(
        lambda options: strategies_of(options.get(STRATEGY, LOG_FILE_SIZE)),
        option(
            STRATEGY,
            "[which file groups](../how-to/compact.md) to compact; each of several classes "
            "selects from the result of the one before",
            default=LOG_FILE_SIZE,
        ),
    )
    target_io_mib: int = integer(
        "hoodie.compaction.target.io", "MiB per compaction", default=512_000
    )
    log_size: int = integer(
        "hoodie.compaction.logfile.size.threshold",
        "minimum bytes of log files",
        default=0,
        minimum=0,
    )
    log_number: int = integer(
        "hoodie.compaction.logfile.num.threshold",
        "minimum number of log files",
        default=0,
        minimum=0,
    )
    target_days: int = integer(
        "hoodie.compaction.daybased.target.partitions",
        "partitions of day-based strategies",
        default=10,
    )
    partition_pattern: str = pattern(
        "hoodie.compaction.partition.path.regex", "partitions of the regex strategy"
    )
    automatic: bool = custom(lambda options: not options.keys() & {INLINE, SCHEDULE_INLINE})
    """Neither switch is set: file groups with far too many log files are compacted automatically, a
    few after some commits. Hudi does not compact them."""
    switches: None = check_only(partial(check_one_switch, first=INLINE, second=SCHEDULE_INLINE))


@dataclass(frozen=True)
class LogCompactionOptions(OptionGroup):
    """When log files are merged with each other."""

    inline: bool = flag(
        "hoodie.log.compaction.inline", "merge log files after commits if it is due", default=False
    )
    min_log_files: int = integer(
        "hoodie.log.compaction.blocks.threshold",
        "minimum log files of a file group, and delta commits until it is due",
        default=5,
        minimum=MIN_LOG_FILES,
    )
