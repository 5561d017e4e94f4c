"""The partitions that a catalog must have: their values, and the changes since the last sync.

A partition counts if it has file groups now, whatever commits did since the last sync. If those
commits are on the active timeline, only their partitions are checked. Source of the values: the
extractors of `org.apache.hudi.hive` (Hudi 1.2.0).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from pyhudi.catalog.protocol import CatalogPartition
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Instant


@dataclass(frozen=True)
class Changes:
    """The changes to make to a table's partitions in a catalog."""

    added: tuple[CatalogPartition, ...] = ()
    moved: tuple[CatalogPartition, ...] = ()
    dropped: tuple[CatalogPartition, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.moved or self.dropped)


def changes(
    there: Iterable[CatalogPartition],
    live: Iterable[CatalogPartition],
    among: Collection[tuple[str, ...]] | None,
) -> Changes:
    """Return the difference between a catalog and a table.

    there: all partitions of the catalog. live: partitions with data, among the checked ones. among:
    values of the checked partitions, None for all.
    """
    stored = {partition.values: partition for partition in there}
    expected = {partition.values: partition for partition in live}
    lost = stored.keys() - expected.keys()
    if among is not None:
        lost &= set(among)
    return Changes(
        added=tuple(expected[values] for values in sorted(expected.keys() - stored.keys())),
        moved=tuple(
            expected[values]
            for values in sorted(expected.keys() & stored.keys())
            if not same_place(expected[values].location, stored[values].location)
        ),
        dropped=tuple(stored[values] for values in sorted(lost)),
    )


def partitions_changed_since(
    table: TableSnapshot, last: str, last_completed: str
) -> set[str] | None:
    """Return the partitions that commits changed after the last commit that a catalog has recorded.

    None if that commit has left the active timeline: later changes are then unknown.
    """
    commits = table.timeline.commits
    if last not in {commit.requested for commit in commits}:
        return None
    changed: set[str] = set()
    for commit in commits:
        if commit.requested > last or _completion_time(commit) > (last_completed or last):
            metadata = table.timeline.commit_metadata(commit)
            changed.update(metadata.partition_to_write_stats)
            changed.update(metadata.partition_to_replace_file_ids or ())
    return changed


def live_paths(table: TableSnapshot, among: Collection[str] | None) -> set[str]:
    """Return the partitions that have file groups. among: the partitions to check, None for all."""
    if among is not None and not among:
        return set()
    view = FileSystemView(table.storage, table.config, table.timeline, among)
    return {slice_.partition for slice_ in view.iter_newest_slices()}


def folders_of(
    there: Iterable[CatalogPartition], values: Collection[tuple[str, ...]], base: str
) -> set[str]:
    """Return the paths below a table's location that a catalog has for some values."""
    below = f"{_path(base)}/"
    locations = (_path(each.location) for each in there if each.values in values)
    paths = {path.removeprefix(below) for path in locations if path.startswith(below)}
    # Another writer may have set a location that is not a partition of the table.
    return {path for path in paths if not {"", ".", ".."} & set(path.split("/"))}


def check_apart(paths: Mapping[str, tuple[str, ...]]) -> None:
    """Raise `UnsupportedTableFeature` if two paths have the same values."""
    seen: dict[tuple[str, ...], str] = {}
    for path, values in sorted(paths.items()):
        other = seen.setdefault(values, path)
        if other != path:
            raise UnsupportedTableFeature(
                f"the partitions {other!r} and {path!r}, which a catalog cannot tell apart",
                hint="Use one spelling of the partition's value.",
            )


def values_of(path: str, fields: tuple[str, ...], extractor: str) -> tuple[str, ...]:
    """Return the values of a partition's path in a catalog: as text, and not decoded."""
    if extractor == "HiveStylePartitionValueExtractor":
        values = tuple(path.split("=")[1:])
        if len(values) != 1:
            raise _no(path, fields)
        return values
    if extractor == "MultiPartKeysValueExtractor":
        values = tuple(part.split("=", 1)[-1] for part in path.split("/"))
        if len(values) != len(fields):
            raise _no(path, fields)
        return values
    # Several directories for one value are a date with slashes, which Hudi writes with hyphens.
    return (path.replace("/", "-"),)


def extractor_of(fields: tuple[str, ...], *, hive_style: bool) -> str:
    """Return the class that Hudi uses if none is named."""
    if len(fields) > 1:
        return "MultiPartKeysValueExtractor"
    return "HiveStylePartitionValueExtractor" if hive_style else "SinglePartPartitionValueExtractor"


def _no(path: str, fields: tuple[str, ...]) -> ConfigError:
    return ConfigError(
        f"the partition {path!r} does not give a value for each of {', '.join(fields)}",
        hint="Name the class by hoodie.datasource.hive_sync.partition_extractor_class.",
    )


def _completion_time(commit: Instant) -> str:
    return commit.completed or commit.requested


def same_place(first: str, second: str) -> bool:
    """Return whether two locations are the same; programs write their schemes differently."""
    places = _place(first), _place(second)
    is_hdfs = first.startswith("hdfs:") and second.startswith("hdfs:")
    # HDFS without a server means the server of the reader's configuration.
    if is_hdfs and any(place.startswith("/") for place in places):
        return _path(first) == _path(second)
    return places[0] == places[1]


def _place(location: str) -> str:
    """Return a location without its scheme: the server or bucket, and the path."""
    rest = re.sub(r"^[a-zA-Z][\w+.-]*:(?=/)", "", location)
    server, _, path = rest[2:].partition("/") if rest.startswith("//") else ("", "", rest)
    return f"{server}/{path.strip('/')}"


def _path(location: str) -> str:
    return "/" + _place(location).partition("/")[2]
