"""The options of cleaning, read once (`HoodieCleanConfig`, 1.2.0), by either release's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyhudi.config.option_parsing import parse_bool, parse_enum, parse_int

KEEP_COMMITS = "KEEP_LATEST_COMMITS"
KEEP_HOURS = "KEEP_LATEST_BY_HOURS"
KEEP_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"
POLICIES = (KEEP_COMMITS, KEEP_HOURS, KEEP_VERSIONS)

AUTOMATIC = "hoodie.clean.automatic"
_POLICY = ("hoodie.clean.policy", "hoodie.cleaner.policy")
_COMMITS = ("hoodie.clean.commits.retained", "hoodie.cleaner.commits.retained")
_HOURS = ("hoodie.clean.hours.retained", "hoodie.cleaner.hours.retained")
_VERSIONS = ("hoodie.clean.fileversions.retained", "hoodie.cleaner.fileversions.retained")
_INCREMENTAL = ("hoodie.clean.incremental.enabled", "hoodie.cleaner.incremental.mode")
_TRIGGER = ("hoodie.clean.trigger.max.commits", "hoodie.clean.max.commits")
CLEAN_OPTIONS = (
    AUTOMATIC,
    *_POLICY,
    *_COMMITS,
    *_HOURS,
    *_VERSIONS,
    *_INCREMENTAL,
    *_TRIGGER,
)
"""Every option that `CleanOptions.of` reads. Of two names the second is that of Hudi 0.15."""


@dataclass(frozen=True)
class CleanOptions:
    """What of a table's past stays, and when the rest goes."""

    policy: str = KEEP_COMMITS
    commits: int = 10
    """Of KEEP_LATEST_COMMITS: the files of so many commits stay."""
    hours: int = 24
    """Of KEEP_LATEST_BY_HOURS: those of the commits of so many hours."""
    versions: int = 3
    """Of KEEP_LATEST_FILE_VERSIONS: so many slices of each file group."""
    automatic: bool = True
    """After each commit what is due is cleaned."""
    incremental: bool = True
    """Only partitions are looked at that were written to since the last clean."""
    after_commits: int = 5
    """Commits since the last clean that make the next one due; in Hudi 1, which each one pays."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> CleanOptions:
        """From `hoodie.…` options. Raises `ConfigError` for what is no value of theirs.

        Without a policy the one is meant whose retention alone is given, as in Hudi.
        """
        return cls(
            _policy(options),
            parse_int(options, *_COMMITS, default=cls.commits),
            parse_int(options, *_HOURS, default=cls.hours),
            parse_int(options, *_VERSIONS, default=cls.versions),
            parse_bool(options, AUTOMATIC, default=cls.automatic),
            parse_bool(options, *_INCREMENTAL, default=cls.incremental),
            parse_int(options, *_TRIGGER, default=cls.after_commits),
        )

    def keeping(self, policy: str | None, retain: int | None) -> CleanOptions:
        """With another policy, and so much of what it counts. Raises as `of`."""
        given = {_POLICY[0]: policy or self.policy}
        chosen = _policy(given)
        if retain is None:
            return replace(self, policy=chosen)
        counted = _RETENTION[chosen]
        asked = CleanOptions.of({**given, counted[0]: str(retain)})
        return replace(self, policy=chosen, **{_FIELD[chosen]: getattr(asked, _FIELD[chosen])})


_FIELD = {KEEP_COMMITS: "commits", KEEP_HOURS: "hours", KEEP_VERSIONS: "versions"}
_RETENTION = {KEEP_COMMITS: _COMMITS, KEEP_HOURS: _HOURS, KEEP_VERSIONS: _VERSIONS}


def _policy(options: Mapping[str, str]) -> str:
    name = next((name for name in _POLICY if name in options), None)
    if name is not None:
        return parse_enum(options, name, POLICIES, KEEP_COMMITS)
    given = [
        policy for policy, names in _RETENTION.items() if any(name in options for name in names)
    ]
    return given[0] if len(given) == 1 else KEEP_COMMITS
