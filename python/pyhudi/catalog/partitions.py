"""Which partitions a catalog is to have: their values, and which came or went since it was told.

What counts is whether a partition has file groups now, not which commits were made meanwhile; only
where those are on the active timeline, no others are looked at. Source of the values: the
extractors of `org.apache.hudi.hive` (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from pyhudi.catalog.protocol import CatalogPartition
from pyhudi.errors import ConfigError
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.table import Table
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
    gone: Collection[tuple[str, ...]] | None,
) -> Changes:
    """The difference between a catalog and a table.

    there: all that the catalog has. live: what has data, of those that were looked at. gone: values
    of those without, None where all that are not live are gone.
    """
    known = {partition.values: partition for partition in there}
    wanted = {partition.values: partition for partition in live}
    lost = known.keys() - wanted.keys()
    if gone is not None:
        lost &= set(gone)
    return Changes(
        added=tuple(wanted[values] for values in sorted(wanted.keys() - known.keys())),
        moved=tuple(
            wanted[values]
            for values in sorted(wanted.keys() & known.keys())
            if place(wanted[values].location) != place(known[values].location)
        ),
        dropped=tuple(known[values] for values in sorted(lost)),
    )


def touched_since(table: Table, last: str, last_completed: str) -> set[str] | None:
    """The partitions that commits after the last one that a catalog knows have touched.

    None where that is not on the active timeline any more: what came after it cannot be told.
    """
    commits = table.timeline.commits
    if last not in {commit.requested for commit in commits}:
        return None
    found: set[str] = set()
    for commit in commits:
        if commit.requested > last or _completed(commit) > (last_completed or last):
            metadata = table.timeline.commit_metadata(commit)
            found.update(metadata.partition_to_write_stats)
            found.update(metadata.partition_to_replace_file_ids or ())
    return found


def live_paths(table: Table, among: Collection[str] | None) -> set[str]:
    """The partitions that have file groups; among: those that are looked at, None for all."""
    if among is not None and not among:
        return set()
    view = FileSystemView(table.storage, table.config, table.timeline, among)
    return {slice_.partition for slice_ in view.unmerged_slices()}


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


def _completed(commit: Instant) -> str:
    return commit.completed or commit.requested


def place(location: str) -> str:
    """A location without its scheme, which catalogs and their readers write in several ways."""
    if location.startswith("file:"):
        return "/" + location.removeprefix("file:").strip("/")
    return location.partition("://")[2].rstrip("/") or location.rstrip("/")
