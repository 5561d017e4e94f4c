"""The instants that a listing of a timeline's directory has. An equal listing is parsed once."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import NamedTuple

from pyhudi.clock import Zone, format_instant
from pyhudi.config.actions import COMMIT_ACTIONS, COMPLETED_ACTION, Instant, State
from pyhudi.config.table_config import TableConfig
from pyhudi.storage.storage import Entries, Storage

_MAX_CACHED_FILES = 30_000
"""Maximum files of a timeline whose listing is cached, some 10 MB."""

_Key = tuple[str, str]


class InstantIndex:
    """The instants of a timeline by time and action. It never changes: timelines share it."""

    def __init__(self, files: Iterable[Instant]) -> None:
        """`files`: one entry for every file of the timeline."""
        by_key: dict[_Key, dict[int, Instant]] = {}
        for file in files:
            action = file.action
            key = (file.requested, COMPLETED_ACTION.get(action, action))
            states = by_key.get(key)
            if states is None:
                states = by_key[key] = {}
            states[file.state.rank] = file
        self.files = by_key
        """Every file, by rank of the state."""
        self.instants = tuple([states[max(states)] for _, states in sorted(by_key.items())])
        completed = State.COMPLETED
        self.completed = tuple([i for i in self.instants if i.state is completed])
        self.pending = tuple([i for i in self.instants if i.state is not completed])
        self.commits = select(self.completed, COMMIT_ACTIONS)
        self.committed = {instant.requested: instant for instant in self.commits}
        self.pending_times = frozenset(
            [i.requested for i in self.pending if i.completed_action in COMMIT_ACTIONS]
        )


def select(instants: tuple[Instant, ...], actions: Collection[str]) -> tuple[Instant, ...]:
    """Return the instants of some actions, all of them if none is given."""
    return tuple([i for i in instants if i.action in actions]) if actions else instants


class _Listing(NamedTuple):
    """A listing of a timeline's directory, and what it was parsed into."""

    entries: Entries
    timezone: Zone
    instants: InstantIndex
    other_entries: Entries


def parse_listing(
    storage: Storage, config: TableConfig, entries: Entries
) -> tuple[InstantIndex, Entries]:
    """Return the instants of a listing, and its other files.

    A commit lists the timeline several times: an equal listing is parsed once.
    """
    key = f"{storage.uri}/{config.layout.folder}"
    cached: _Listing | None = storage.listings.get(key)
    if cached and cached.entries == entries and cached.timezone == config.timezone:
        return cached.instants, cached.other_entries
    index, other_entries = _parse(config, entries)
    if len(entries) <= _MAX_CACHED_FILES:
        storage.listings[key] = _Listing(entries, config.timezone, index, other_entries)
    return index, other_entries


def _parse(config: TableConfig, entries: Entries) -> tuple[InstantIndex, Entries]:
    parse, start = config.layout.parse, len(config.layout.folder) + 1
    files: list[Instant] = []
    other_entries: Entries = []
    for entry in entries:
        parsed = parse(entry.path[start:])
        if parsed is None:
            other_entries.append(entry)
            continue
        if parsed.completed is None and parsed.is_completed:
            completed = _modification_instant(entry.modified_ms, config.timezone)
            parsed = replace(parsed, completed=completed)
        files.append(parsed)
    return InstantIndex(files), other_entries


def _modification_instant(modified_ms: int, zone: Zone) -> str:
    """Return the substitute for a completion time that is not in the name, as in Hudi 1.2.0."""
    return format_instant(modified_ms, zone)
