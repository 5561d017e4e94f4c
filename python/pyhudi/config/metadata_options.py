"""Options for the partitions of a metadata table, read once.

Names are Hudi's (`HoodieMetadataConfig`, 1.2.0, and the older names that it still accepts),
defaults are those of the release that matches the table's version. They matter only when partitions
are created: existing ones are kept up to date whatever the options say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.config.index_options import PARTITIONED_RECORD_INDEX, RECORD_INDEX, parse_index_type
from pyhudi.config.option_parsing import (
    POSITIVE,
    OptionGroup,
    custom,
    decimal,
    flag,
    integer,
    name_list,
    option,
    parse_bool,
)
from pyhudi.errors import ConfigError

METADATA_ENABLE = "hoodie.metadata.enable"
COLUMN_STATS_ENABLE = "hoodie.metadata.index.column.stats.enable"
PARTITION_STATS_ENABLE = "hoodie.metadata.index.partition.stats.enable"
BLOOM_ENABLE = "hoodie.metadata.index.bloom.filter.enable"
RECORD_INDEX_ENABLE = (
    "hoodie.metadata.global.record.level.index.enable",
    "hoodie.metadata.record.index.enable",
)
PARTITIONED_RECORD_INDEX_ENABLE = "hoodie.metadata.record.level.index.enable"
"""A record index by data partition (Hudi 1.1 and later)."""
STATS_COLUMNS = "hoodie.metadata.index.column.stats.column.list"
MAX_STATS_COLUMNS = "hoodie.metadata.index.column.stats.max.columns.to.index"
COMPACT_AFTER = "hoodie.metadata.compact.max.delta.commits"

_RECORD_BYTES = 48
"""Bytes of a record index entry, as Hudi estimates them (`RECORD_INDEX_AVERAGE_RECORD_SIZE`)."""


def _record_index(options: Mapping[str, str]) -> bool | None:
    is_global = parse_bool(options, *RECORD_INDEX_ENABLE, default=None)
    if parse_index_type(options) == RECORD_INDEX and is_global is None:
        is_global = True
    by_partition = _by_partition(options)
    if by_partition and is_global:
        msg = f"{PARTITIONED_RECORD_INDEX_ENABLE} and {RECORD_INDEX_ENABLE[0]} are both true"
        raise ConfigError(msg, hint="Set only one of them: a table has one record index.")
    return by_partition or is_global


def _by_partition(options: Mapping[str, str]) -> bool | None:
    by_partition = parse_bool(options, PARTITIONED_RECORD_INDEX_ENABLE, default=None)
    if parse_index_type(options) == PARTITIONED_RECORD_INDEX and by_partition is None:
        return True
    return by_partition


@dataclass(frozen=True)
class MetadataOptions(OptionGroup):
    """The metadata table that a writer requests. None: the default of the table's version."""

    enable: bool | None = flag(
        METADATA_ENABLE,
        "create the metadata table with a new table, and use an existing one. If you set "
        "it to true, the next write creates a missing one",
        default=None,
        displayed="true",
    )
    column_stats: bool | None = flag(
        COLUMN_STATS_ENABLE, "column statistics", default=None, displayed="true, in version 6 false"
    )
    stats_columns: tuple[str, ...] = name_list(
        STATS_COLUMNS, "columns with statistics", displayed="the first columns"
    )
    max_stats_columns: int = integer(
        MAX_STATS_COLUMNS, "how many of the first columns; in version 6 all", default=32
    )
    partition_stats: bool | None = flag(
        PARTITION_STATS_ENABLE,
        "partition statistics, in partitioned tables with column statistics",
        default=None,
        displayed="true, in version 6 false",
    )
    bloom_filters: bool = flag(BLOOM_ENABLE, "bloom filters", default=False)
    record_index: bool | None = custom(
        _record_index,
        option(
            RECORD_INDEX_ENABLE,
            "a record index of the whole table",
            default="true in new tables with keys",
        ),
    )
    record_index_by_partition: bool | None = custom(
        _by_partition,
        option(
            PARTITIONED_RECORD_INDEX_ENABLE,
            "a record index per data partition (version 9)",
            default=False,
        ),
    )
    column_stats_groups: int = integer(
        "hoodie.metadata.index.column.stats.file.group.count",
        "file groups of column statistics",
        default=2,
    )
    partition_stats_groups: int = integer(
        "hoodie.metadata.index.partition.stats.file.group.count",
        "file groups of partition statistics",
        default=1,
    )
    bloom_groups: int = integer(
        "hoodie.metadata.index.bloom.filter.file.group.count",
        "file groups of bloom filters",
        default=4,
    )
    expression_groups: int = integer(
        "hoodie.metadata.index.expression.file.group.count",
        "file groups of an expression index",
        default=2,
    )
    min_record_groups: int = integer(
        (
            "hoodie.metadata.global.record.level.index.min.filegroup.count",
            "hoodie.metadata.record.index.min.filegroup.count",
        ),
        "minimum file groups of the record index",
        default=10,
    )
    max_record_groups: int = integer(
        (
            "hoodie.metadata.global.record.level.index.max.filegroup.count",
            "hoodie.metadata.record.index.max.filegroup.count",
        ),
        "maximum file groups of the record index",
        default=10000,
    )
    min_partitioned_groups: int = integer(
        "hoodie.metadata.record.level.index.min.filegroup.count",
        "minimum file groups per data partition",
        default=1,
    )
    max_partitioned_groups: int = integer(
        "hoodie.metadata.record.level.index.max.filegroup.count",
        "maximum file groups per data partition",
        default=10,
    )
    record_growth: float = decimal(
        "hoodie.metadata.record.index.growth.factor",
        "create file groups for this many times the keys",
        *POSITIVE,
        default=2.0,
    )
    record_group_bytes: int = integer(
        "hoodie.metadata.record.index.max.filegroup.size",
        "size that file groups are planned for",
        default=1 << 30,
    )
    compact_after: int = integer(
        COMPACT_AFTER, "compact the metadata table after this many delta commits", default=10
    )

    @property
    def for_new_table(self) -> bool:
        """Whether a new table gets a metadata table."""
        return self.enable is not False

    def record_groups(self, records: int) -> int:
        """Return the number of file groups of a record index (`estimateFileGroupCount`, 1.2.0)."""
        return self._estimate(records, self.min_record_groups, self.max_record_groups)

    def groups_per_partition(self, records: int) -> int:
        """Return the number of file groups of one data partition in a partitioned record index."""
        return self._estimate(records, self.min_partitioned_groups, self.max_partitioned_groups)

    def _estimate(self, records: int, minimum: int, maximum: int) -> int:
        expected = -(-records * self.record_growth // 1)
        return int(
            min(max(expected // (self.record_group_bytes // _RECORD_BYTES), minimum), maximum)
        )
