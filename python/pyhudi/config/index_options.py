"""The options of indexes, read once. Names and defaults are Hudi's (`HoodieIndexConfig`, 1.2.0).

No table stores any of them: in Hudi they belong to the writer. `index/selection.py` selects the
index of a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.config.lock_options import ConcurrencyMode, mode_of
from pyhudi.config.option_parsing import (
    OptionGroup,
    custom,
    integer,
    name_list,
    option,
    parse_bool,
    parse_enum,
)

INDEX_TYPE = "hoodie.index.type"
BUCKETS = "hoodie.bucket.index.num.buckets"
BUCKET_FIELDS = "hoodie.bucket.index.hash.field"
BUCKET_ENGINE = "hoodie.index.bucket.engine"
UPDATE_PATH_SIMPLE = "hoodie.simple.index.update.partition.path"
UPDATE_PATH_BLOOM = "hoodie.bloom.index.update.partition.path"
UPDATE_PATH_RECORD = "hoodie.record.index.update.partition.path"

RECORD_INDEX = "RECORD_INDEX"
PARTITIONED_RECORD_INDEX = "RECORD_LEVEL_INDEX"
"""The record index with file groups of each data partition, with its name of Hudi 1.1 and later."""

_UPDATE_PATH_OPTIONS = (UPDATE_PATH_SIMPLE, UPDATE_PATH_BLOOM, UPDATE_PATH_RECORD)
CONSISTENT = "CONSISTENT_HASHING"
_ENGINES = ("SIMPLE", CONSISTENT)
_KINDS = (
    "SIMPLE",
    "GLOBAL_SIMPLE",
    "BLOOM",
    "GLOBAL_BLOOM",
    "BUCKET",
    RECORD_INDEX,
    "GLOBAL_RECORD_LEVEL_INDEX",
    PARTITIONED_RECORD_INDEX,
)
_HUDIS_ALONE = ("HBASE", "INMEMORY", "FLINK_STATE")
"""Types that a handle may have and that writes do not support."""
_SAME = {"GLOBAL_RECORD_LEVEL_INDEX": RECORD_INDEX}
_MAX_BUCKETS = 99999
"""More buckets would make file ids that look like random ones."""


def parse_index_type(options: Mapping[str, str]) -> str | None:
    """Return the index type that options name, in capitals; None if they name none.

    Raises `ConfigError` for a type that Hudi does not have.
    """
    if INDEX_TYPE not in options:
        return None
    if options[INDEX_TYPE].strip().upper() in _HUDIS_ALONE:
        return options[INDEX_TYPE].strip().upper()
    index_type = parse_enum(options, INDEX_TYPE, _KINDS, "")
    return _SAME.get(index_type, index_type)


_UPDATE_PATH_DEFAULTS = frozenset((UPDATE_PATH_SIMPLE, UPDATE_PATH_BLOOM))


def _update_path_options(options: Mapping[str, str]) -> frozenset[str]:
    return frozenset(
        name
        for name in _UPDATE_PATH_OPTIONS
        if parse_bool(options, name, default=name in _UPDATE_PATH_DEFAULTS)
    )


@dataclass(frozen=True)
class IndexOptions(OptionGroup):
    """The index that a writer requests, and its settings."""

    index_type: str | None = custom(
        parse_index_type, option(INDEX_TYPE, "how writes find keys", default="what the table shows")
    )
    """Index type in capitals, None for the one that is detected from the table."""
    buckets: int = integer(
        BUCKETS,
        "buckets per partition; with consistent hashing, initial buckets",
        default=256,
        maximum=_MAX_BUCKETS,
    )
    bucket_fields: tuple[str, ...] = name_list(
        BUCKET_FIELDS, "key columns to hash", displayed="all key columns"
    )
    consistent: bool = custom(
        lambda options: parse_enum(options, BUCKET_ENGINE, _ENGINES, "SIMPLE") == CONSISTENT,
        option(BUCKET_ENGINE, f"or `{CONSISTENT}`", default="SIMPLE"),
    )
    shares_buckets: bool = custom(lambda options: mode_of(options) is ConcurrencyMode.NON_BLOCKING)
    """Whether writers create the same buckets, and append to them concurrently."""
    updates_partition_path: frozenset[str] = custom(
        _update_path_options,
        option(
            UPDATE_PATH_SIMPLE,
            "rows move to a new partition path under `GLOBAL_SIMPLE`",
            default=True,
        ),
        option(UPDATE_PATH_BLOOM, "the same under `GLOBAL_BLOOM`", default=True),
        option(UPDATE_PATH_RECORD, "the same under a record index", default=False),
    )
    """The options that let a row move when its partition path changes."""
