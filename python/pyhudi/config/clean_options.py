"""Options of cleaning, read once (`HoodieCleanConfig`, 1.2.0).

Of two names, the second is that of Hudi 0.15.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyhudi.config.option_parsing import OptionGroup, custom, flag, integer, option, parse_enum

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
    """What of a table's past is retained, and when the rest is removed."""

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
