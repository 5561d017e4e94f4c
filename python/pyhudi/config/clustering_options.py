"""The options of clustering, read once, with Hudi's names (`HoodieClusteringConfig`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from pyhudi.config.option_parsing import one_switch, parse_bool, parse_enum, parse_int
from pyhudi.errors import ConfigError, UnsupportedTableFeature

Layout = Literal["linear", "zorder", "hilbert"]
Filter = Literal["NONE", "RECENT_DAYS", "SELECTED_PARTITIONS", "DAY_ROLLING"]

INLINE = "hoodie.clustering.inline"
SCHEDULE_INLINE = "hoodie.clustering.schedule.inline"
MAX_COMMITS = "hoodie.clustering.inline.max.commits"
ASYNC_MAX_COMMITS = "hoodie.clustering.async.max.commits"
UPDATES = "hoodie.clustering.updates.strategy"
DROP_ON_CONFLICT = "hoodie.clustering.rollback.pending.replacecommit.on.conflict"
PLAN_CLASS = "hoodie.clustering.plan.strategy.class"
RUN_CLASS = "hoodie.clustering.execution.strategy.class"
LAYOUT = "hoodie.layout.optimize.strategy"
FILTER_MODE = "hoodie.clustering.plan.partition.filter.mode"
_PLAN = "hoodie.clustering.plan.strategy."
SORT_COLUMNS = f"{_PLAN}sort.columns"
SMALL_FILE_LIMIT = f"{_PLAN}small.file.limit"
MAX_GROUP_BYTES = f"{_PLAN}max.bytes.per.group"
MAX_GROUPS = f"{_PLAN}max.num.groups"
TARGET_BYTES = f"{_PLAN}target.file.max.bytes"
SINGLE_GROUP = f"{_PLAN}single.group.clustering.enabled"
SELECTED = f"{_PLAN}partition.selected"
PATTERN = f"{_PLAN}partition.regex.pattern"
LOOKBACK = f"{_PLAN}daybased.lookback.partitions"
SKIP_LATEST = f"{_PLAN}daybased.skipfromlatest.partitions"
BEGIN = f"{_PLAN}cluster.begin.partition"
END = f"{_PLAN}cluster.end.partition"
CLUSTERING_OPTIONS = (
    INLINE,
    SCHEDULE_INLINE,
    MAX_COMMITS,
    ASYNC_MAX_COMMITS,
    UPDATES,
    DROP_ON_CONFLICT,
    PLAN_CLASS,
    RUN_CLASS,
    LAYOUT,
    FILTER_MODE,
    SORT_COLUMNS,
    SMALL_FILE_LIMIT,
    MAX_GROUP_BYTES,
    MAX_GROUPS,
    TARGET_BYTES,
    SINGLE_GROUP,
    SELECTED,
    PATTERN,
    LOOKBACK,
    SKIP_LATEST,
    BEGIN,
    END,
)
"""All options that `ClusteringOptions.of` reads."""

RUN_PACKAGE = "org.apache.hudi.client.clustering.run.strategy."
_PLAN_PACKAGE = "org.apache.hudi.client.clustering.plan.strategy."
_UPDATE_PACKAGE = "org.apache.hudi.client.clustering.update.strategy."
_FILTERS = ("NONE", "RECENT_DAYS", "SELECTED_PARTITIONS", "DAY_ROLLING")
_PLANNERS: Mapping[str, Filter | None] = {
    "SparkSizeBasedClusteringPlanStrategy": None,
    "JavaSizeBasedClusteringPlanStrategy": None,
    "FlinkSizeBasedClusteringPlanStrategy": None,
    "SparkRecentDaysClusteringPlanStrategy": "RECENT_DAYS",
    "JavaRecentDaysClusteringPlanStrategy": "RECENT_DAYS",
    "SparkSelectedPartitionsClusteringPlanStrategy": "SELECTED_PARTITIONS",
    "SparkConsistentBucketClusteringPlanStrategy": None,
    "FlinkConsistentBucketClusteringPlanStrategy": None,
}
"""Partition filters by plan strategy class: older classes imply a filter.

Consistent-hashing buckets are split and merged whatever class is named.
"""
_RUNNERS = (
    "SparkSortAndSizeExecutionStrategy",
    "JavaSortAndSizeExecutionStrategy",
    "SparkConsistentBucketClusteringExecutionStrategy",
    "SingleSparkJobConsistentHashingExecutionStrategy",
)
_LAYOUTS = ("linear", "zorder", "hilbert")
_ALLOW = "SparkAllowUpdateStrategy"
_UPDATES = (
    "SparkRejectUpdateStrategy",
    _ALLOW,
    # Hudi then writes to the old and the new buckets; aborting on conflict is equivalent.
    "SparkConsistentBucketDuplicateUpdateStrategy",
)


@dataclass(frozen=True)
class ClusteringOptions:
    """When a table is clustered, which part of it and how. Sizes in bytes."""

    inline: bool = False
    """Schedule and execute a clustering after each commit if it is due."""
    schedule_inline: bool = False
    """Only schedule a clustering after each commit if it is due."""
    max_commits: int = 4
    """Commits since the last clustering that make the next one due."""
    sort_columns: tuple[str, ...] = ()
    layout: Layout | None = None
    """Layout of a new plan; None for that of the plan, else linear."""
    small_file_limit: int = 300 * 1024 * 1024
    """Base files below this are clustered."""
    max_group_bytes: int = 2 * 1024 * 1024 * 1024
    max_groups: int = 30
    """Maximum number of groups of one plan, and of one partition in it."""
    target_bytes: int = 1024 * 1024 * 1024
    """Approximate maximum size of the files that are written."""
    single_group: bool = True
    """Also rewrite groups of one file that would become one file."""
    selected: tuple[str, ...] = ()
    """Paths of the partitions to consider; empty for all."""
    pattern: str = ""
    filter_mode: Filter = "NONE"
    lookback: int = 2
    """Number of partitions to consider; 0 for all."""
    skip_latest: int = 0
    begin: str = ""
    end: str = ""
    allows_updates: bool = False
    """Writers may change file groups with a pending clustering."""
    drops_overtaken: bool = False
    """A writer that does so cancels the plan."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> ClusteringOptions:
        """Read the options from `hoodie.…` names.

        Raises `ConfigError` for an invalid value, `UnsupportedTableFeature` for a strategy class
        that pyhudi does not support.
        """
        inline, scheduled = one_switch(options, INLINE, SCHEDULE_INLINE)
        _parse_class(options, RUN_CLASS, RUN_PACKAGE, _RUNNERS)
        return cls(
            inline,
            scheduled,
            parse_int(
                options, ASYNC_MAX_COMMITS if scheduled else MAX_COMMITS, default=cls.max_commits
            ),
            _names(options, SORT_COLUMNS),
            _layout(options),
            parse_int(options, SMALL_FILE_LIMIT, default=cls.small_file_limit, least=0),
            parse_int(options, MAX_GROUP_BYTES, default=cls.max_group_bytes),
            parse_int(options, MAX_GROUPS, default=cls.max_groups),
            parse_int(options, TARGET_BYTES, default=cls.target_bytes),
            parse_bool(options, SINGLE_GROUP, default=cls.single_group),
            _names(options, SELECTED),
            _pattern(options.get(PATTERN, "")),
            _filter(options),
            parse_int(options, LOOKBACK, default=cls.lookback, least=0),
            parse_int(options, SKIP_LATEST, default=cls.skip_latest, least=0),
            options.get(BEGIN, ""),
            options.get(END, ""),
            _parse_class(options, UPDATES, _UPDATE_PACKAGE, _UPDATES) == _ALLOW,
            parse_bool(options, DROP_ON_CONFLICT, default=cls.drops_overtaken),
        )


def layout_of(name: str | None) -> Layout | None:
    """Return the layout of this name. Raises `ConfigError` for an unknown one."""
    if name is not None and name not in _LAYOUTS:
        raise ConfigError(f"layout is {name!r}", hint=f"One of {', '.join(_LAYOUTS)}.")
    return cast("Layout | None", name)


def _parse_class(
    options: Mapping[str, str], name: str, package: str, supported: tuple[str, ...]
) -> str:
    """Return the class that an option names, without its package; "" if it names none."""
    class_name = options.get(name, "").strip().removeprefix(package)
    if class_name and class_name not in supported:
        msg = f"{name} is {class_name}, which pyhudi does not support"
        raise UnsupportedTableFeature(msg, hint=f"One of {', '.join(supported)}.")
    return class_name


def _names(options: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in options.get(name, "").split(",") if part.strip())


def _layout(options: Mapping[str, str]) -> Layout | None:
    if LAYOUT not in options:
        return None
    return cast("Layout", parse_enum(options, LAYOUT, _LAYOUTS, ""))


def _filter(options: Mapping[str, str]) -> Filter:
    by_class = _PLANNERS.get(_parse_class(options, PLAN_CLASS, _PLAN_PACKAGE, tuple(_PLANNERS)))
    return cast("Filter", parse_enum(options, FILTER_MODE, _FILTERS, by_class or "NONE"))


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ConfigError(f"{PATTERN} is not a regular expression: {error}") from error
    return text
