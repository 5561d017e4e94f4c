"""The options of clustering, read once, with Hudi's names (`HoodieClusteringConfig`).

`ResizeOptions` are those of splitting and merging consistent-hashing buckets
(`HoodieIndexConfig`, 1.2.0).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal, cast

from pyhudi.config.index_options import IndexOptions
from pyhudi.config.option_parsing import (
    POSITIVE,
    OptionGroup,
    check_one_switch,
    checked,
    decimal,
    flag,
    integer,
    name_list,
    option,
    parse_bool,
    parse_class,
    parse_enum,
    parse_fields,
    parse_int,
    parsed,
    pattern,
    text,
)
from pyhudi.config.write_options import WriteOptions
from pyhudi.errors import ConfigError

Layout = Literal["linear", "zorder", "hilbert"]
Filter = Literal["NONE", "RECENT_DAYS", "SELECTED_PARTITIONS", "DAY_ROLLING"]

INLINE = "hoodie.clustering.inline"
SCHEDULE_INLINE = "hoodie.clustering.schedule.inline"
MAX_COMMITS = "hoodie.clustering.inline.max.commits"
ASYNC_MAX_COMMITS = "hoodie.clustering.async.max.commits"
UPDATES = "hoodie.clustering.updates.strategy"
PLAN_CLASS = "hoodie.clustering.plan.strategy.class"
RUN_CLASS = "hoodie.clustering.execution.strategy.class"
LAYOUT = "hoodie.layout.optimize.strategy"
FILTER_MODE = "hoodie.clustering.plan.partition.filter.mode"
_PLAN = "hoodie.clustering.plan.strategy."
SORT_COLUMNS = f"{_PLAN}sort.columns"

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
_REJECT = "SparkRejectUpdateStrategy"
_ALLOW = "SparkAllowUpdateStrategy"
_UPDATES = (
    _REJECT,
    _ALLOW,
    # Hudi then writes to the old and the new buckets; aborting on conflict is equivalent.
    "SparkConsistentBucketDuplicateUpdateStrategy",
)


_MAX_BUCKETS = "hoodie.bucket.index.max.num.buckets"
_MIN_BUCKETS = "hoodie.bucket.index.min.num.buckets"


def _bucket_bound(options: Mapping[str, str], name: str, outer: Callable[[int, int], int]) -> int:
    """Return a bound; one that excludes the initial number is moved to it, as Hudi does."""
    first = IndexOptions.of(options).buckets
    return outer(first, parse_int(options, name, default=first))


def _max_commits(options: Mapping[str, str]) -> int:
    scheduled = parse_bool(options, SCHEDULE_INLINE, default=False)
    return parse_int(options, ASYNC_MAX_COMMITS if scheduled else MAX_COMMITS, default=4)


def _layout(options: Mapping[str, str]) -> Layout | None:
    return cast("Layout", parse_enum(options, LAYOUT, _LAYOUTS, "")) if LAYOUT in options else None


def _filter(options: Mapping[str, str]) -> Filter:
    planner = parse_class(options, PLAN_CLASS, tuple(_PLANNERS), package=_PLAN_PACKAGE)
    return cast(
        "Filter", parse_enum(options, FILTER_MODE, _FILTERS, _PLANNERS.get(planner) or "NONE")
    )


def _allows_updates(options: Mapping[str, str]) -> bool:
    return parse_class(options, UPDATES, _UPDATES, package=_UPDATE_PACKAGE) == _ALLOW


@dataclass(frozen=True)
class ClusteringOptions(OptionGroup):
    """When a table is clustered, which part of it and how. Sizes in bytes."""

    inline: bool = flag(INLINE, default=False, meaning="cluster after commits if it is due")
    schedule_inline: bool = flag(
        SCHEDULE_INLINE, default=False, meaning="plan a clustering after commits if it is due"
    )
    max_commits: int = parsed(
        _max_commits,
        option(
            MAX_COMMITS,
            ASYNC_MAX_COMMITS,
            default=4,
            meaning="commits until a clustering is due; the second if you only plan",
        ),
        default=4,
    )
    sort_columns: tuple[str, ...] = name_list(SORT_COLUMNS, meaning="columns to sort by")
    layout: Layout | None = parsed(
        _layout,
        option(
            LAYOUT,
            default="linear",
            meaning="or `zorder`, `hilbert`. Without the option, a plan's own layout",
        ),
        default=None,
    )
    small_file_limit: int = integer(
        f"{_PLAN}small.file.limit",
        default=300 * 1024 * 1024,
        least=0,
        meaning="cluster base files below this size",
    )
    max_group_bytes: int = integer(
        f"{_PLAN}max.bytes.per.group",
        default=2 * 1024 * 1024 * 1024,
        meaning="maximum bytes of a group",
    )
    max_groups: int = integer(
        f"{_PLAN}max.num.groups",
        default=30,
        meaning="maximum groups of a plan, and of a partition in it",
    )
    target_bytes: int = integer(
        f"{_PLAN}target.file.max.bytes",
        default=1024 * 1024 * 1024,
        meaning="approximate maximum size of new files",
    )
    single_group: bool = flag(
        f"{_PLAN}single.group.clustering.enabled",
        default=True,
        meaning="also rewrite a single file",
    )
    selected: tuple[str, ...] = name_list(
        f"{_PLAN}partition.selected", shown="all partitions", meaning="partition paths"
    )
    pattern: str = pattern(
        f"{_PLAN}partition.regex.pattern",
        shown="all partitions",
        meaning="a regular expression of partition paths",
    )
    filter_mode: Filter = parsed(
        _filter,
        option(
            FILTER_MODE,
            default="NONE",
            meaning="or `RECENT_DAYS`, `SELECTED_PARTITIONS`, `DAY_ROLLING`",
        ),
        option(PLAN_CLASS, meaning="Hudi's class, which may imply a filter mode"),
        default="NONE",
    )
    lookback: int = integer(
        f"{_PLAN}daybased.lookback.partitions",
        default=2,
        least=0,
        meaning="partitions of `RECENT_DAYS`; 0: all",
    )
    skip_latest: int = integer(
        f"{_PLAN}daybased.skipfromlatest.partitions",
        default=0,
        least=0,
        meaning="newest partitions to skip",
    )
    begin: str = text(
        f"{_PLAN}cluster.begin.partition", meaning="first partition of `SELECTED_PARTITIONS`"
    )
    end: str = text(
        f"{_PLAN}cluster.end.partition", meaning="last partition of `SELECTED_PARTITIONS`"
    )
    allows_updates: bool = parsed(
        _allows_updates,
        option(
            UPDATES,
            default=_REJECT,
            meaning=f"or `{_ALLOW}`: writes may change files of a pending clustering",
        ),
        default=False,
    )
    drops_overtaken: bool = flag(
        "hoodie.clustering.rollback.pending.replacecommit.on.conflict",
        default=False,
        meaning="a write cancels the plan that it conflicts with",
    )
    switches: None = checked(partial(check_one_switch, first=INLINE, second=SCHEDULE_INLINE))
    runner: None = checked(
        partial(parse_class, name=RUN_CLASS, supported=_RUNNERS, package=RUN_PACKAGE),
        option(RUN_CLASS, meaning="Hudi's class"),
    )


def layout_of(name: str | None) -> Layout | None:
    """Return the layout of this name. Raises `ConfigError` for an unknown one."""
    if name is not None and name not in _LAYOUTS:
        raise ConfigError(f"layout is {name!r}", hint=f"One of {', '.join(_LAYOUTS)}.")
    return cast("Layout | None", name)


@dataclass(frozen=True)
class ResizeOptions(OptionGroup):
    """Which buckets of a partition are split, and which are merged."""

    most: int = parsed(
        lambda options: _bucket_bound(options, _MAX_BUCKETS, max),
        option(
            _MAX_BUCKETS,
            default="the number of buckets",
            meaning="a partition with this many buckets splits none",
        ),
        default=IndexOptions.buckets,
    )
    fewest: int = parsed(
        lambda options: _bucket_bound(options, _MIN_BUCKETS, min),
        option(
            _MIN_BUCKETS,
            default="the number of buckets",
            meaning="a partition with this many buckets merges none",
        ),
        default=IndexOptions.buckets,
    )
    split_bytes: int = decimal(
        "hoodie.bucket.index.split.threshold",
        *POSITIVE,
        default=2.0,
        meaning="a bucket above this many times the maximum file size is split",
    )
    merge_bytes: int = decimal(
        "hoodie.bucket.index.merge.threshold",
        *POSITIVE,
        default=0.2,
        meaning="adjacent buckets up to this many times the maximum file size are merged",
    )

    @classmethod
    def of(cls, options: Mapping[str, str], extension: str | None = None) -> ResizeOptions:
        """Read the options as `OptionGroup.of`. extension: as in `WriteOptions.of`."""
        values = parse_fields(cls, options)
        largest = WriteOptions.of(options, extension).max_file_size
        sizes = {name: int(largest * values[name]) for name in ("split_bytes", "merge_bytes")}
        return cls(**{**values, **sizes})
