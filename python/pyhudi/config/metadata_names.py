"""The metadata table's folder, and the names of its partitions."""

from __future__ import annotations

from pyhudi.config.property_names import METADATA_PARTITIONS
from pyhudi.errors import UnsupportedTableFeature

FOLDER = ".hoodie/metadata"
MAKE_ANEW = "Call rebuild_metadata() to rebuild it."
"""What helps where it is damaged."""
FILES = "files"
RECORD_INDEX = "record_index"
COLUMN_STATS = "column_stats"
PARTITION_STATS = "partition_stats"
BLOOM_FILTERS = "bloom_filters"
ALL_PARTITIONS = "__all_partitions__"
"""The key of `files` under which the data table's partitions are named."""
NO_PATH = "."
"""How the partition path "" is called in keys."""
PROPERTIES = ".hoodie/hoodie.properties"
"""Its own, relative to its folder."""


def not_kept(name: str, reason: str) -> UnsupportedTableFeature:
    """The error for a partition that pyhudi cannot make or keep up to date."""
    return UnsupportedTableFeature(
        f"{METADATA_PARTITIONS} has {name}: {reason}",
        hint='Take the index away with table.drop_index, which for "files" takes all of the '
        "metadata table away.",
    )


def not_made(name: str, reason: str) -> UnsupportedTableFeature:
    """The error for a partition that a table is not to get."""
    return UnsupportedTableFeature(
        f"{METADATA_PARTITIONS} cannot have {name}: {reason}",
        hint="Create the index over supported columns.",
    )
