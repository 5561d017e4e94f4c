"""Which partitions a catalog is to have: their values, and which came or went since it was told.

What counts is whether a partition has file groups now, not which commits were made meanwhile; only
where those are on the active timeline, no others are looked at. Source of the values: the
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
    """What is to be done to a table's partitions in a catalog."""

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
    """The difference between a catalog and a table.

    there: all that the catalog has. live: what has data, of those that were looked at. among:
    values that were looked at, None for all.
    """
    known = {partition.values: partition for partition in there}
    wanted = {partition.values: partition for partition in live}
    lost = known.keys() - wanted.keys()
    if among is not None:
        lost &= set(among)
    return Changes(
        added=tuple(wanted[values] for values in sorted(wanted.keys() - known.keys())),
        moved=tuple(
            wanted[values]
            for values in sorted(wanted.keys() & known.keys())
            if not same_place(wanted[values].location, known[values].location)
        ),
        dropped=tuple(known[values] for values in sorted(lost)),
    )


def partitions_changed_since(
    table: TableSnapshot, last: str, last_completed: str
) -> set[str] | None:
    """The partitions that commits after the last one that a catalog knows have touched.

    None where that is not on the active timeline any more: what came after it cannot be told.
    """
    commits = table.timeline.commits
    if last not in {commit.requested for commit in commits}:
        return None
    found: set[str] = set()
    for commit in commits:
        if commit.requested > last or _completion_time(commit) > (last_completed or last):
            metadata = table.timeline.commit_metadata(commit)
            found.update(metadata.partition_to_write_stats)
            found.update(metadata.partition_to_replace_file_ids or ())
    return found


def live_paths(table: TableSnapshot, among: Collection[str] | None) -> set[str]:
    """The partitions that have file groups; among: those that are looked at, None for all."""
    if among is not None and not among:
        return set()
    view = FileSystemView(table.storage, table.config, table.timeline, among)
    return {slice_.partition for slice_ in view.iter_newest_slices()}


def folders_of(
    there: Iterable[CatalogPartition], values: Collection[tuple[str, ...]], base: str
) -> set[str]:
    """The paths below a table's location that a catalog has for some values."""
    below = f"{_path(base)}/"
    places = (_path(each.location) for each in there if each.values in values)
    found = {path.removeprefix(below) for path in places if path.startswith(below)}
    # What others have set may be no folder of a table.
    return {path for path in found if not {"", ".", ".."} & set(path.split("/"))}


def check_apart(paths: Mapping[str, tuple[str, ...]]) -> None:
    """Raises `UnsupportedTableFeature` for two paths of the same values."""
    seen: dict[tuple[str, ...], str] = {}
    for path, values in sorted(paths.items()):
        other = seen.setdefault(values, path)
        if other != path:
            raise UnsupportedTableFeature(
                f"the partitions {other!r} and {path!r}, which a catalog cannot tell apart",
                hint="Use one spelling of the partition's value.",
            )


def values_of(path: str, fields: tuple[str, ...], extractor: str) -> tuple[str, ...]:
    """The values of a partition's path as they are in a catalog: as text, and not decoded."""
    if extractor == "HiveStylePartitionValueExtractor":
        found = tuple(path.split("=")[1:])
        if len(found) != 1:
            raise _no(path, fields)
        return found
    if extractor == "MultiPartKeysValueExtractor":
        found = tuple(part.split("=", 1)[-1] for part in path.split("/"))
        if len(found) != len(fields):
            raise _no(path, fields)
        return found
    # Folders of one value are those of a date with slashes, which Hudi writes with hyphens.
    return (path.replace("/", "-"),)


def extractor_of(fields: tuple[str, ...], *, hive_style: bool) -> str:
    """The class that Hudi takes where none is named."""
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


def same_place(one: str, other: str) -> bool:
    """Whether two locations are one; catalogs and their readers write schemes in several ways."""
    places = _place(one), _place(other)
    is_hdfs = one.startswith("hdfs:") and other.startswith("hdfs:")
    # HDFS without a server is that of the reader's configuration.
    if is_hdfs and any(place.startswith("/") for place in places):
        return _path(one) == _path(other)
    return places[0] == places[1]


def _place(location: str) -> str:
    """A location without its scheme: the server or bucket, and the path."""
    rest = re.sub(r"^[a-zA-Z][\w+.-]*:(?=/)", "", location)
    server, _, path = rest[2:].partition("/") if rest.startswith("//") else ("", "", rest)
    return f"{server}/{path.strip('/')}"


def _path(location: str) -> str:
    return "/" + _place(location).partition("/")[2]
