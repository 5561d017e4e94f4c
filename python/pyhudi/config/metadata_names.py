"""The metadata table's directory, and the names of its partitions."""

from __future__ import annotations

from pyhudi.config.property_names import METADATA_PARTITIONS
from pyhudi.errors import UnsupportedTableFeature

FOLDER = ".hoodie/metadata"
REBUILD_HINT = "Call rebuild_metadata() to rebuild it."
"""Hint for a damaged metadata table."""
FILES = "files"
RECORD_INDEX = "record_index"
COLUMN_STATS = "column_stats"
PARTITION_STATS = "partition_stats"
BLOOM_FILTERS = "bloom_filters"
ALL_PARTITIONS = "__all_partitions__"
"""The key of `files` whose record lists the data table's partitions."""
NO_PATH = "."
"""The partition path "" in keys."""
PROPERTIES = ".hoodie/hoodie.properties"
"""The metadata table's properties, relative to its own directory."""


def index_maintenance_error(name: str, reason: str) -> UnsupportedTableFeature:
    """Return the error for a partition that pyhudi cannot create or keep up to date."""
    return UnsupportedTableFeature(
        f"{METADATA_PARTITIONS} has {name}: {reason}",
        hint='Drop the index with table.drop_index; for "files" this removes the whole metadata '
        "table.",
    )


def index_creation_error(name: str, reason: str) -> UnsupportedTableFeature:
    """Return the error for a partition that a table cannot have."""
    return UnsupportedTableFeature(
        f"{METADATA_PARTITIONS} cannot have {name}: {reason}",
        hint="Create the index over supported columns.",
    )
