"""The options of cleaning, archiving and partition TTL, read once, with Hudi's names.

Sources: `HoodieCleanConfig`, `HoodieArchivalConfig` and `HoodieTTLConfig` (1.2.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyhudi.config.option_parsing import (
    OptionGroup,
    check_only,
    custom,
    flag,
    integer,
    name_list,
    option,
    parse_bool,
    parse_enum,
    parse_fields,
    parse_int,
    refusal,
)
from pyhudi.errors import ConfigError, UnsupportedTableFeature

MIN_COMMITS = "hoodie.keep.min.commits"
MAX_COMMITS = "hoodie.keep.max.commits"
BEYOND_SAVEPOINT = "hoodie.archive.beyond.savepoint"
MERGED_FILES = "hoodie.timeline.compaction.batch.size"
MERGED_BYTES = "hoodie.timeline.compaction.target.file.max.bytes"
KEPT_MANIFESTS = "hoodie.timeline.manifest.retained.versions"


@dataclass(frozen=True)
class HistoryOptions(OptionGroup):
    """How the archive's files are written, merged and retained.

    Without a retained manifest, Hudi deletes the whole history; pyhudi raises `ConfigError`.
    """

    block_records: int = integer(
        "hoodie.commits.archival.batch", "records per block of archive logs (version 6)", default=10
    )
    merged_files: int = integer(
        MERGED_FILES,
        "archive files merged into one (versions 8 and 9); 1 disables merging",
        default=10,
    )
    merged_bytes: int = integer(
        MERGED_BYTES,
        "a merge above this size takes no more files. Hudi's default is 1048576000",
        default=64 << 20,
    )
    kept_manifests: int = integer(KEPT_MANIFESTS, "manifests that stay for readers", default=3)


def _check_savepoints(options: Mapping[str, str]) -> None:
    """Raise `UnsupportedTableFeature` for archiving beyond savepoints.

    No reader of Hudi (0.15.0, 1.0.2, 1.2.0) would count commits that were archived after a
    savepoint.
    """
    if parse_bool(options, BEYOND_SAVEPOINT, default=False):
        msg = (
            f"{BEYOND_SAVEPOINT}: Hudi's readers lose the rows of commits archived beyond "
            "a savepoint"
        )
        raise UnsupportedTableFeature(
            msg, hint="Call delete_savepoint() to let archiving continue."
        )


@dataclass(frozen=True)
class ArchiveOptions(OptionGroup):
    """How many commits stay on the active timeline, and when the others are archived."""

    automatic: bool = flag("hoodie.archive.automatic", "archive after commits", default=True)
    min_commits: int = integer(MIN_COMMITS, "commits that stay active", default=20)
    max_commits: int = integer(MAX_COMMITS, "archive if there are more commits", default=30)
    savepoints: None = check_only(
        _check_savepoints,
        option(BEYOND_SAVEPOINT, "true raises an error", default=False),
    )
    history: HistoryOptions = custom(HistoryOptions.of)
    """How the archive's files are written."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> ArchiveOptions:
        """Read the options as `OptionGroup.of`; the minimum must be below the maximum."""
        parsed = cls(**parse_fields(cls, options))
        min_commits, max_commits = parsed.min_commits, parsed.max_commits
        if max_commits <= min_commits:
            msg = f"{MAX_COMMITS} is {max_commits}, not more than {MIN_COMMITS} ({min_commits})"
            raise ConfigError(msg)
        return parsed

    def keeping(self, min_commits: int | None, max_commits: int | None) -> ArchiveOptions:
        """Return the options with other numbers of commits. Raises as `of`.

        If only one is passed, the other keeps its distance to it.
        """
        distance = self.max_commits - self.min_commits
        if min_commits is None:
            min_commits = (
                self.min_commits if max_commits is None else max(max_commits - distance, 1)
            )
        if max_commits is None:
            max_commits = min_commits + distance
        numbers = ArchiveOptions.of({MIN_COMMITS: str(min_commits), MAX_COMMITS: str(max_commits)})
        return replace(self, min_commits=numbers.min_commits, max_commits=numbers.max_commits)


KEEP_COMMITS = "KEEP_LATEST_COMMITS"
KEEP_HOURS = "KEEP_LATEST_BY_HOURS"
KEEP_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"
POLICIES = (KEEP_COMMITS, KEEP_HOURS, KEEP_VERSIONS)

_POLICY = ("hoodie.clean.policy", "hoodie.cleaner.policy")
_COMMITS = ("hoodie.clean.commits.retained", "hoodie.cleaner.commits.retained")
_HOURS = ("hoodie.clean.hours.retained", "hoodie.cleaner.hours.retained")
_VERSIONS = ("hoodie.clean.fileversions.retained", "hoodie.cleaner.fileversions.retained")
_FIELD = {KEEP_COMMITS: "commits", KEEP_HOURS: "hours", KEEP_VERSIONS: "versions"}
_RETENTION = {KEEP_COMMITS: _COMMITS, KEEP_HOURS: _HOURS, KEEP_VERSIONS: _VERSIONS}


def _policy(options: Mapping[str, str]) -> str:
    """Return the policy; without the option, the one whose retention alone is set, as in Hudi."""
    name = next((name for name in _POLICY if name in options), None)
    if name is not None:
        return parse_enum(options, name, POLICIES, KEEP_COMMITS)
    policies = [
        policy for policy, names in _RETENTION.items() if any(name in options for name in names)
    ]
    return policies[0] if len(policies) == 1 else KEEP_COMMITS


@dataclass(frozen=True)
class CleanOptions(OptionGroup):
    """The file slices that cleaning retains, and when it removes the others."""

    policy: str = custom(
        _policy, option(_POLICY, f"or `{KEEP_HOURS}`, `{KEEP_VERSIONS}`", default=KEEP_COMMITS)
    )
    commits: int = integer(_COMMITS, "commits to retain", default=10)
    hours: int = integer(
        _HOURS, "hours to retain. If you set no policy, this option selects its policy", default=24
    )
    versions: int = integer(
        _VERSIONS,
        "file slices of each file group to retain. This option selects its policy, too",
        default=3,
    )
    automatic: bool = flag(
        "hoodie.clean.automatic", "clean after commits if it is due", default=True
    )
    incremental: bool = flag(
        ("hoodie.clean.incremental.enabled", "hoodie.cleaner.incremental.mode"),
        "inspect only partitions that changed",
        default=True,
    )
    after_commits: int = integer(
        ("hoodie.clean.trigger.max.commits", "hoodie.clean.max.commits"),
        "commits between cleans. Hudi 1 cleans with each one",
        default=5,
    )

    def keeping(self, policy: str | None, retain: int | None) -> CleanOptions:
        """Return the options with another policy and its retention. Raises as `of`."""
        policy_option = {_POLICY[0]: policy or self.policy}
        new_policy = _policy(policy_option)
        if retain is None:
            return replace(self, policy=new_policy)
        counted = _RETENTION[new_policy]
        requested = CleanOptions.of({**policy_option, counted[0]: str(retain)})
        return replace(
            self, policy=new_policy, **{_FIELD[new_policy]: getattr(requested, _FIELD[new_policy])}
        )


TTL_STRATEGY = "hoodie.partition.ttl.management.strategy.type"
TTL_CLASS = "hoodie.partition.ttl.strategy.class"
TTL_DAYS = "hoodie.partition.ttl.strategy.days.retain"
BY_TIME = "keep_by_time"
BY_CREATION = "keep_by_creation_time"


def _by_creation(options: Mapping[str, str]) -> bool:
    return parse_enum(options, TTL_STRATEGY, (BY_TIME, BY_CREATION), BY_TIME) == BY_CREATION


def _days(options: Mapping[str, str]) -> int:
    forever = options.get(TTL_DAYS, "").strip() == "-1"
    return 0 if forever else parse_int(options, TTL_DAYS, default=0, minimum=0)


def _check_class(options: Mapping[str, str]) -> None:
    if options.get(TTL_CLASS):
        raise refusal(
            options, TTL_CLASS, f"{TTL_STRATEGY} is KEEP_BY_TIME or KEEP_BY_CREATION_TIME."
        )


@dataclass(frozen=True)
class TtlOptions(OptionGroup):
    """Which partitions are too old."""

    inline: bool = flag(
        "hoodie.partition.ttl.inline", "drop expired partitions after commits", default=False
    )
    by_creation: bool = custom(
        _by_creation,
        option(
            TTL_STRATEGY,
            "the age begins at a partition's last write; `KEEP_BY_CREATION_TIME`: at its creation",
            default="KEEP_BY_TIME",
        ),
    )
    days: int = custom(_days, option(TTL_DAYS, "days to retain; 0: forever", default=0))
    selected: tuple[str, ...] = name_list(
        "hoodie.partition.ttl.strategy.partition.selected",
        "partition paths",
        displayed="all partitions",
    )
    max_partitions: int = integer(
        "hoodie.partition.ttl.strategy.max.delete.partitions", "maximum per commit", default=1000
    )
    strategy: None = check_only(_check_class, option(TTL_CLASS, "a class raises an error"))
