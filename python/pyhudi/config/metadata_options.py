"""Options for the partitions of a metadata table, read once.

Names are Hudi's (`HoodieMetadataConfig`, 1.2.0, and the older names that it still accepts),
defaults are those of the release that matches the table's version. They matter only when partitions
are created: existing ones are kept up to date whatever the options say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from pyhudi.config.index_options import PARTITIONED_RECORD_INDEX, RECORD_INDEX, index_kind
from pyhudi.config.option_parsing import decimal, flag, integer, option_names, parse_fields
from pyhudi.errors import ConfigError

METADATA_ENABLE = "hoodie.metadata.enable"
"""Whether a new table gets a metadata table, and an existing one is used: true by default. If it is
set to true, the next write creates missing partitions."""
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
MOST_STATS_COLUMNS = "hoodie.metadata.index.column.stats.max.columns.to.index"
COLUMN_STATS_GROUPS = "hoodie.metadata.index.column.stats.file.group.count"
PARTITION_STATS_GROUPS = "hoodie.metadata.index.partition.stats.file.group.count"
BLOOM_GROUPS = "hoodie.metadata.index.bloom.filter.file.group.count"
LEAST_RECORD_GROUPS = (
    "hoodie.metadata.global.record.level.index.min.filegroup.count",
    "hoodie.metadata.record.index.min.filegroup.count",
)
MOST_RECORD_GROUPS = (
    "hoodie.metadata.global.record.level.index.max.filegroup.count",
    "hoodie.metadata.record.index.max.filegroup.count",
)
LEAST_PARTITIONED_GROUPS = "hoodie.metadata.record.level.index.min.filegroup.count"
MOST_PARTITIONED_GROUPS = "hoodie.metadata.record.level.index.max.filegroup.count"
EXPRESSION_GROUPS = "hoodie.metadata.index.expression.file.group.count"
RECORD_GROWTH = "hoodie.metadata.record.index.growth.factor"
RECORD_GROUP_BYTES = "hoodie.metadata.record.index.max.filegroup.size"

_RECORD_BYTES = 48
"""Bytes of a record index entry, as Hudi estimates them (`RECORD_INDEX_AVERAGE_RECORD_SIZE`)."""


@dataclass(frozen=True)
class MetadataOptions:
    """What a writer requests of a metadata table. None: the default of the table's version."""

    enable: bool | None = flag(METADATA_ENABLE, default=None)
    column_stats: bool | None = flag(COLUMN_STATS_ENABLE, default=None)
    partition_stats: bool | None = flag(PARTITION_STATS_ENABLE, default=None)
    bloom_filters: bool = flag(BLOOM_ENABLE, default=False)
    record_index: bool | None = flag(*RECORD_INDEX_ENABLE, default=None)
    record_index_by_partition: bool | None = flag(PARTITIONED_RECORD_INDEX_ENABLE, default=None)
    """Whether a record index is one by data partition."""
    stats_columns: tuple[str, ...] = ()
    """Columns with statistics; if empty, the first ones that can have statistics."""
    most_stats_columns: int = integer(MOST_STATS_COLUMNS, default=32)
    column_stats_groups: int = integer(COLUMN_STATS_GROUPS, default=2)
    """Number of file groups; also the following fields."""
    partition_stats_groups: int = integer(PARTITION_STATS_GROUPS, default=1)
    bloom_groups: int = integer(BLOOM_GROUPS, default=4)
    least_record_groups: int = integer(*LEAST_RECORD_GROUPS, default=10)
    most_record_groups: int = integer(*MOST_RECORD_GROUPS, default=10000)
    least_partitioned_groups: int = integer(LEAST_PARTITIONED_GROUPS, default=1)
    """For each data partition."""
    most_partitioned_groups: int = integer(MOST_PARTITIONED_GROUPS, default=10)
    expression_groups: int = integer(EXPRESSION_GROUPS, default=2)
    record_growth: float = decimal(
        RECORD_GROWTH, lambda value: 0 < value < inf, "above 0", default=2.0
    )
    """Factor of key growth that the record index is sized for."""
    record_group_bytes: int = integer(RECORD_GROUP_BYTES, default=1 << 30)

    @classmethod
    def of(cls, options: Mapping[str, str]) -> MetadataOptions:
        """Read the options from `hoodie.…` names. Raises `ConfigError` for an invalid value."""
        values = parse_fields(cls, options)
        record_index = values["record_index"]
        if index_kind(options) == RECORD_INDEX:
            record_index = True if record_index is None else record_index
        by_partition = values["record_index_by_partition"]
        if index_kind(options) == PARTITIONED_RECORD_INDEX:
            by_partition = True if by_partition is None else by_partition
        if by_partition and not record_index:
            record_index = True
        elif by_partition:
            msg = f"{PARTITIONED_RECORD_INDEX_ENABLE} and {RECORD_INDEX_ENABLE[0]} are both true"
            raise ConfigError(msg, hint="A table has one record index: choose.")
        columns = options.get(STATS_COLUMNS, "").split(",")
        return cls(
            **{**values, "record_index": record_index, "record_index_by_partition": by_partition},
            stats_columns=tuple(name.strip() for name in columns if name.strip()),
        )

    @property
    def for_new_table(self) -> bool:
        """Whether a new table gets a metadata table."""
        return self.enable is not False

    def record_groups(self, records: int) -> int:
        """Return the number of file groups of a record index (`estimateFileGroupCount`, 1.2.0)."""
        return self._estimate(records, self.least_record_groups, self.most_record_groups)

    def groups_per_partition(self, records: int) -> int:
        """Return the number of file groups of one data partition in a partitioned record index."""
        return self._estimate(records, self.least_partitioned_groups, self.most_partitioned_groups)

    def _estimate(self, records: int, minimum: int, maximum: int) -> int:
        expected = -(-records * self.record_growth // 1)
        return int(
            min(max(expected // (self.record_group_bytes // _RECORD_BYTES), minimum), maximum)
        )


METADATA_OPTIONS = (*option_names(MetadataOptions), STATS_COLUMNS)
"""All options that `MetadataOptions.of` reads."""
