"""The metadata table's folder, and the names of its partitions."""

from __future__ import annotations

FOLDER = ".hoodie/metadata"
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
