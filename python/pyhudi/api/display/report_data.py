"""All that the report page tells of a table, looked up once, in listings and timeline files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from pyhudi.admin.health import Health, look
from pyhudi.api.display.commit_summary import Commit, read_commits
from pyhudi.api.history import history
from pyhudi.cached_property import cached_property
from pyhudi.config.index_options import IndexOptions
from pyhudi.config.metadata_names import FOLDER
from pyhudi.errors import ConfigError, CorruptTable, HistoryUnavailable, UnsupportedTableFeature
from pyhudi.index.selection import choose
from pyhudi.metadata.index_definitions import IndexDefinition, index_definitions
from pyhudi.slices.file_groups import pending_clusterings, pending_compactions
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.slice_builder import GroupKey
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.staleness import check_listing_complete

if TYPE_CHECKING:  # The core is imported when the metadata table is looked at.
    from pyhudi.metadata.reader import MetadataTable

_DAMAGE = (CorruptTable, UnsupportedTableFeature, HistoryUnavailable, ConfigError)
"""What one part of the page may meet while the others can be shown."""
_HISTORY_ROWS = 60
_BEING_MADE = "hoodie.table.metadata.partitions.inflight"

Found = TypeVar("Found")


@dataclass
class IndexFacts:
    """A partition of the metadata table."""

    name: str
    state: str
    """ready, being made, or what is wrong with it."""
    files: int = 0
    log_files: int = 0
    bytes: int = 0
    definition: IndexDefinition | None = None


@dataclass
class Survey:
    """A table as the page shows it."""

    table: TableSnapshot
    commits: list[Commit] = field(default_factory=list)
    has_archive: bool = False
    """Whether commits have left the active timeline."""
    slices: list[FileSlice] = field(default_factory=list)
    partitions: list[str] = field(default_factory=list)
    waiting: Mapping[GroupKey, str] = field(default_factory=dict)
    health: Health | None = None
    indexes: list[IndexFacts] = field(default_factory=list)
    index: str = ""
    """What writers find keys by."""
    history: pa.Table | None = None
    problems: list[str] = field(default_factory=list)
    """Parts of the page that damage keeps from being shown."""

    @cached_property
    def operations(self) -> dict[str, str]:
        """Of the commits that were read, by requested time."""
        return {commit.instant.requested: commit.operation for commit in self.commits}


def collect_report_data(table: TableSnapshot) -> Survey:
    """Looks at a table."""
    found = Survey(table)
    view = FileSystemView(table.storage, table.config, table.timeline)

    def current() -> list[FileSlice]:
        slices = view.slices()
        check_listing_complete(table.storage, table.config, table.timeline)
        return slices

    def part(name: str, look_up: Callable[[], Found], default: Found) -> Found:
        try:
            return look_up()
        except _DAMAGE as error:
            found.problems.append(f"{name}: {error}")
            return default

    found.commits = part("commits", lambda: read_commits(table), [])
    found.has_archive = part("archive", lambda: not table.timeline.archive.is_empty, False)
    found.slices = part("file slices", current, [])
    found.partitions = part("partitions", lambda: view.partitions, [])
    found.waiting = part("plans", lambda: _waiting(table), {})
    found.health = part("health", lambda: look(table), None)
    found.indexes = part("metadata table", lambda: _indexes(table), [])
    found.index = part("index", lambda: _index(table), "")
    rows = part("history", lambda: history(table, _HISTORY_ROWS, None, archived=False), None)
    found.history = rows
    return found


def _waiting(table: TableSnapshot) -> dict[GroupKey, str]:
    compactions = dict.fromkeys(pending_compactions(table.timeline), "compaction")
    return {**dict.fromkeys(pending_clusterings(table.timeline), "clustering"), **compactions}


def _index(table: TableSnapshot) -> str:
    options = IndexOptions.of(table.options)
    return choose(table.storage, table.config, table.timeline, options).kind


def _indexes(table: TableSnapshot) -> list[IndexFacts]:
    names = table.config.metadata_partitions
    making = table.config.properties.get(_BEING_MADE, "").split(",")
    definitions = index_definitions(table.storage, table.config)
    found = {
        name: IndexFacts(name, state, definition=definitions.get(name))
        for state, held in (("being made", making), ("ready", names))
        for name in map(str.strip, held)
        if name
    }
    if not found:
        return []
    for entry in table.storage.list(FOLDER):
        name = entry.path.removeprefix(f"{FOLDER}/").split("/", 1)[0]
        facts = found.get(name)
        if facts is not None and not entry.name.startswith(".hoodie_partition_metadata"):
            facts.files += 1
            facts.log_files += ".log." in entry.name
            facts.bytes += entry.size
    _check(table, [facts for facts in found.values() if facts.state == "ready"])
    return sorted(found.values(), key=lambda facts: facts.name)


def _check(table: TableSnapshot, ready: list[IndexFacts]) -> None:
    """Says of partitions what is wrong with them, as readers would find it."""
    from pyhudi.metadata.reader import MetadataTable  # noqa: PLC0415 - it needs the core

    try:
        metadata = MetadataTable(table.storage, table.config, table.timeline)
    except CorruptTable as error:
        for facts in ready:
            facts.state = str(error)
        return
    for facts in ready:
        facts.state = _state(metadata, facts.name)


def _state(metadata: MetadataTable, name: str) -> str:
    try:
        metadata.check_groups(name)
    except CorruptTable as error:
        return str(error)
    return "ready"
