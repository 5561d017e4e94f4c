"""The data of the report page, collected once from listings and timeline files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from pyhudi.admin.health import Health, assess_health
from pyhudi.api.history import history
from pyhudi.api.notebook_html.commit_summary import Commit, read_commits
from pyhudi.cached_property import cached_property
from pyhudi.config.formatting import names_text
from pyhudi.config.index_options import IndexOptions
from pyhudi.config.metadata_names import FOLDER
from pyhudi.config.property_names import METADATA_PARTITIONS_INFLIGHT
from pyhudi.errors import ConfigError, CorruptTable, HistoryUnavailable, UnsupportedTableFeature
from pyhudi.index.selection import choose
from pyhudi.metadata.index_definitions import IndexDefinition, index_definitions
from pyhudi.slices.file_groups import pending_clusterings, pending_compactions
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.slice_builder import GroupKey
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.staleness import check_listing_complete

if TYPE_CHECKING:  # The core is imported when the metadata table is read.
    from pyhudi.metadata.reader import MetadataTable

_DAMAGE = (CorruptTable, UnsupportedTableFeature, HistoryUnavailable, ConfigError)
"""Errors that one part of the page may raise while the other parts can still be shown."""
_HISTORY_ROWS = 60
_MAX_COLUMNS = 12

Found = TypeVar("Found")


@dataclass
class IndexFacts:
    """A partition of the metadata table."""

    name: str
    state: str
    """"ready", "being made", or what is wrong with it."""
    files: int = 0
    log_files: int = 0
    bytes: int = 0
    definition: IndexDefinition | None = None

    @property
    def columns(self) -> str:
        """Indexed columns, inside the function of an expression index."""
        definition = self.definition
        if definition is None:
            return ""
        names = names_text(definition.columns, _MAX_COLUMNS)
        is_plain = definition.function in ("", "identity", definition.index_type)
        return names if is_plain else f"{definition.function}({names})"


@dataclass
class ReportData:
    """The data of the page about a table."""

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
    """The index that writers use."""
    history: pa.Table | None = None
    problems: list[str] = field(default_factory=list)
    """Parts of the page that cannot be shown because of damage."""

    @cached_property
    def operations(self) -> dict[str, str]:
        """Operations of the commits that were read, by requested time."""
        return {commit.instant.requested: commit.operation for commit in self.commits}


def collect_report_data(table: TableSnapshot) -> ReportData:
    """Collect the data of a table."""
    data = ReportData(table)
    view = FileSystemView(table.storage, table.config, table.timeline)

    def current() -> list[FileSlice]:
        slices = list(view.slices())
        check_listing_complete(table.storage, table.config, table.timeline)
        return slices

    def part(name: str, collect: Callable[[], Found], default: Found) -> Found:
        try:
            return collect()
        except _DAMAGE as error:
            data.problems.append(f"{name}: {error}")
            return default

    data.commits = part("commits", lambda: read_commits(table), [])
    data.has_archive = part("archive", lambda: not table.timeline.archive.is_empty, False)
    data.slices = part("file slices", current, [])
    data.partitions = part("partitions", lambda: view.partitions, [])
    data.waiting = part("plans", lambda: _waiting(table), {})
    data.health = part("health", lambda: assess_health(table), None)
    data.indexes = part("metadata table", lambda: _indexes(table), [])
    data.index = part("index", lambda: _index(table), "")
    rows = part("history", lambda: history(table, _HISTORY_ROWS, None, archived=False), None)
    data.history = rows
    return data


def _waiting(table: TableSnapshot) -> dict[GroupKey, str]:
    compactions = dict.fromkeys(pending_compactions(table.timeline), "compaction")
    return {**dict.fromkeys(pending_clusterings(table.timeline), "clustering"), **compactions}


def _index(table: TableSnapshot) -> str:
    options = IndexOptions.of(table.options)
    return choose(table.storage, table.config, table.timeline, options).index_type


def _indexes(table: TableSnapshot) -> list[IndexFacts]:
    names = table.config.metadata_partitions
    making = table.config.properties.get(METADATA_PARTITIONS_INFLIGHT, "").split(",")
    definitions = index_definitions(table.storage, table.config)
    stats_by_name = {
        name: IndexFacts(name, state, definition=definitions.get(name))
        for state, partitions in (("being made", making), ("ready", names))
        for name in map(str.strip, partitions)
        if name
    }
    if not stats_by_name:
        return []
    for entry in table.storage.list(FOLDER):
        name = entry.path.removeprefix(f"{FOLDER}/").split("/", 1)[0]
        partition_stats = stats_by_name.get(name)
        if partition_stats is not None and not entry.name.startswith(".hoodie_partition_metadata"):
            partition_stats.files += 1
            partition_stats.log_files += ".log." in entry.name
            partition_stats.bytes += entry.size
    _check(
        table,
        [
            partition_stats
            for partition_stats in stats_by_name.values()
            if partition_stats.state == "ready"
        ],
    )
    return sorted(stats_by_name.values(), key=lambda partition_stats: partition_stats.name)


def _check(table: TableSnapshot, ready: list[IndexFacts]) -> None:
    """Set the state of each partition to the error that a reader would get, if there is one."""
    from pyhudi.metadata.reader import MetadataTable  # noqa: PLC0415 - it needs the core

    try:
        metadata = MetadataTable(table.storage, table.config, table.timeline)
    except CorruptTable as error:
        for partition_stats in ready:
            partition_stats.state = str(error)
        return
    for partition_stats in ready:
        partition_stats.state = _state(metadata, partition_stats.name)


def _state(metadata: MetadataTable, name: str) -> str:
    try:
        metadata.check_groups(name)
    except CorruptTable as error:
        return str(error)
    return "ready"
