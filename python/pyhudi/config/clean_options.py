"""Options of cleaning, read once (`HoodieCleanConfig`, 1.2.0), under the names of both releases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyhudi.config.option_parsing import flag, integer, option_names, parse_enum, parse_fields

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


@dataclass(frozen=True)
class CleanOptions:
    """What of a table's past is retained, and when the rest is removed."""

    policy: str = KEEP_COMMITS
    commits: int = integer(*_COMMITS, default=10)
    """Commits whose files stay, under KEEP_LATEST_COMMITS."""
    hours: int = integer(*_HOURS, default=24)
    """Hours whose commits keep their files, under KEEP_LATEST_BY_HOURS."""
    versions: int = integer(*_VERSIONS, default=3)
    """File slices of each file group that stay, under KEEP_LATEST_FILE_VERSIONS."""
    automatic: bool = flag(AUTOMATIC, default=True)
    """Clean after each commit if a clean is due."""
    incremental: bool = flag(*_INCREMENTAL, default=True)
    """Check only partitions that were written to since the last clean."""
    after_commits: int = integer(*_TRIGGER, default=5)
    """Commits since the last clean that make the next one due; the default is 1 in Hudi, where each
    commit pays for it."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> CleanOptions:
        """Read the options from `hoodie.…` names. Raises `ConfigError` for an invalid value.

        Without a policy, the policy whose retention alone is set applies, as in Hudi.
        """
        return cls(policy=_policy(options), **parse_fields(cls, options))

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


_FIELD = {KEEP_COMMITS: "commits", KEEP_HOURS: "hours", KEEP_VERSIONS: "versions"}
_RETENTION = {KEEP_COMMITS: _COMMITS, KEEP_HOURS: _HOURS, KEEP_VERSIONS: _VERSIONS}


def _policy(options: Mapping[str, str]) -> str:
    name = next((name for name in _POLICY if name in options), None)
    if name is not None:
        return parse_enum(options, name, POLICIES, KEEP_COMMITS)
    policies = [
        policy for policy, names in _RETENTION.items() if any(name in options for name in names)
    ]
    return policies[0] if len(policies) == 1 else KEEP_COMMITS


CLEAN_OPTIONS = (*_POLICY, *option_names(CleanOptions))
"""All options that `CleanOptions.of` reads. Of two names, the second is that of Hudi 0.15."""
