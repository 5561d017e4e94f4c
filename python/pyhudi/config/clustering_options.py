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
    check_only,
    custom,
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

    inline: bool = flag(INLINE, "cluster after commits if it is due", default=False)
    schedule_inline: bool = flag(
        SCHEDULE_INLINE, "plan a clustering after commits if it is due", default=False
    )
    max_commits: int = custom(
        _max_commits,
        option(
            (MAX_COMMITS, ASYNC_MAX_COMMITS),
            "commits until a clustering is due; the second if you only plan",
            default=4,
        ),
    )
    sort_columns: tuple[str, ...] = name_list(SORT_COLUMNS, "columns to sort by")
    layout: Layout | None = custom(
        _layout,
        option(
            LAYOUT,
            "or `zorder`, `hilbert`. Without the option, a plan's own layout",
            default="linear",
        ),
    )
    small_file_limit: int = integer(
        f"{_PLAN}small.file.limit",
        "cluster base files below this size",
        default=300 * 1024 * 1024,
        minimum=0,
    )
    max_group_bytes: int = integer(
        f"{_PLAN}max.bytes.per.group", "maximum bytes of a group", default=2 * 1024 * 1024 * 1024
    )
    max_groups: int = integer(
        f"{_PLAN}max.num.groups", "maximum groups of a plan, and of a partition in it", default=30
    )
    target_bytes: int = integer(
        f"{_PLAN}target.file.max.bytes",
        "approximate maximum size of new files",
        default=1024 * 1024 * 1024,
    )
    single_group: bool = flag(
        f"{_PLAN}single.group.clustering.enabled", "also rewrite a single file", default=True
    )
    selected: tuple[str, ...] = name_list(
        f"{_PLAN}partition.selected", "partition paths", displayed="all partitions"
    )
    pattern: str = pattern(
        f"{_PLAN}partition.regex.pattern",
        "a regular expression of partition paths",
        displayed="all partitions",
    )
    filter_mode: Filter = custom(
        _filter,
        option(
            FILTER_MODE, "or `RECENT_DAYS`, `SELECTED_PARTITIONS`, `DAY_ROLLING`", default="NONE"
        ),
        option(PLAN_CLASS, "Hudi's class, which may imply a filter mode"),
    )
    lookback: int = integer(
        f"{_PLAN}daybased.lookback.partitions",
        "partitions of `RECENT_DAYS`; 0: all",
        default=2,
        minimum=0,
    )
    skip_latest: int = integer(
        f"{_PLAN}daybased.skipfromlatest.partitions",
        "newest partitions to skip",
        default=0,
        minimum=0,
    )
    begin: str = text(f"{_PLAN}cluster.begin.partition", "first partition of `SELECTED_PARTITIONS`")
    end: str = text(f"{_PLAN}cluster.end.partition", "last partition of `SELECTED_PARTITIONS`")
    allows_updates: bool = custom(
        _allows_updates,
        option(
            UPDATES,
            f"or `{_ALLOW}`: writes may change files of a pending clustering",
            default=_REJECT,
        ),
    )
    drops_overtaken: bool = flag(
        "hoodie.clustering.rollback.pending.replacecommit.on.conflict",
        "a write cancels the plan that it conflicts with",
        default=False,
    )
    switches: None = check_only(partial(check_one_switch, first=INLINE, second=SCHEDULE_INLINE))
    runner: None = check_only(
        partial(parse_class, name=RUN_CLASS, supported=_RUNNERS, package=RUN_PACKAGE),
        option(RUN_CLASS, "Hudi's class"),
    )


def layout_of(name: str | None) -> Layout | None:
    """Return the layout of this name. Raises `ConfigError` for an unknown one."""
    if name is not None and name not in _LAYOUTS:
        raise ConfigError(f"layout is {name!r}", hint=f"Choose one of {', '.join(_LAYOUTS)}.")
    return cast("Layout | None", name)


@dataclass(frozen=True)
class ResizeOptions(OptionGroup):
    """Which buckets of a partition are split, and which are merged."""

    max_buckets: int = custom(
        lambda options: _bucket_bound(options, _MAX_BUCKETS, max),
        option(
            _MAX_BUCKETS,
            "a partition with this many buckets splits none",
            default="the number of buckets",
        ),
    )
    min_buckets: int = custom(
        lambda options: _bucket_bound(options, _MIN_BUCKETS, min),
        option(
            _MIN_BUCKETS,
            "a partition with this many buckets merges none",
            default="the number of buckets",
        ),
    )
    split_bytes: int = decimal(
        "hoodie.bucket.index.split.threshold",
        "a bucket above this many times the maximum file size is split",
        *POSITIVE,
        default=2.0,
    )
    merge_bytes: int = decimal(
        "hoodie.bucket.index.merge.threshold",
        "adjacent buckets up to this many times the maximum file size are merged",
        *POSITIVE,
        default=0.2,
    )

    @classmethod
    def of(cls, options: Mapping[str, str], extension: str | None = None) -> ResizeOptions:
        """Read the options as `OptionGroup.of`. extension: as in `WriteOptions.of`."""
        values = parse_fields(cls, options)
        largest = WriteOptions.of(options, extension).max_file_size
        sizes = {name: int(largest * values[name]) for name in ("split_bytes", "merge_bytes")}
        return cls(**{**values, **sizes})
