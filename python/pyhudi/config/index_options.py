"""The options of indexes, read once. Names and defaults are Hudi's (`HoodieIndexConfig`, 1.2.0).

No table stores any of them: in Hudi they belong to the writer. `index/selection.py` selects the
index of a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.config.concurrency_mode import ConcurrencyMode, mode_of
from pyhudi.config.option_parsing import parse_bool, parse_enum, parse_int

INDEX_TYPE = "hoodie.index.type"
BUCKETS = "hoodie.bucket.index.num.buckets"
BUCKET_FIELDS = "hoodie.bucket.index.hash.field"
BUCKET_ENGINE = "hoodie.index.bucket.engine"
MOVE_SIMPLE = "hoodie.simple.index.update.partition.path"
MOVE_BLOOM = "hoodie.bloom.index.update.partition.path"
MOVE_RECORD = "hoodie.record.index.update.partition.path"

INDEX_OPTIONS = (
    INDEX_TYPE,
    BUCKETS,
    BUCKET_FIELDS,
    BUCKET_ENGINE,
    MOVE_SIMPLE,
    MOVE_BLOOM,
    MOVE_RECORD,
)
"""All options that `IndexOptions.of` reads."""

RECORD_INDEX = "RECORD_INDEX"
PARTITIONED_RECORD_INDEX = "RECORD_LEVEL_INDEX"
"""The record index with file groups of each data partition, with its name of Hudi 1.1 and later."""

_MOVES = (MOVE_SIMPLE, MOVE_BLOOM, MOVE_RECORD)
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


@dataclass(frozen=True)
class IndexOptions:
    """The index that a writer requests, and its settings."""

    kind: str | None = None
    """Index type in capitals, None for the one that is detected from the table."""
    buckets: int = 256
    """File groups of a partition with a simple bucket index, or initial buckets with consistent
    hashing."""
    bucket_fields: tuple[str, ...] = ()
    """Key fields that are hashed; empty for all."""
    consistent: bool = False
    """Whether the bucket index uses consistent hashing."""
    shares_buckets: bool = False
    """Whether writers create the same buckets, and append to them concurrently."""
    moves: frozenset[str] = frozenset((MOVE_SIMPLE, MOVE_BLOOM))
    """The options that let a row move when its partition path changes."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> IndexOptions:
        """Read the options from `hoodie.…` names. Raises `ConfigError` for an unknown value."""
        fields = options.get(BUCKET_FIELDS, "").split(",")
        return cls(
            kind=index_kind(options),
            buckets=parse_int(options, BUCKETS, default=256, most=_MOST_BUCKETS),
            bucket_fields=tuple(name.strip() for name in fields if name.strip()),
            consistent=parse_enum(options, BUCKET_ENGINE, _ENGINES, "SIMPLE") == CONSISTENT,
            shares_buckets=mode_of(options) is ConcurrencyMode.NON_BLOCKING,
            moves=frozenset(
                name for name in _MOVES if parse_bool(options, name, default=name in cls.moves)
            ),
        )


def index_kind(options: Mapping[str, str]) -> str | None:
    """Return the index type that options name, in capitals; None if they name none.

    Raises `ConfigError` for a type that Hudi does not have.
    """
    if INDEX_TYPE not in options:
        return None
    if options[INDEX_TYPE].strip().upper() in _HUDIS_ALONE:
        return options[INDEX_TYPE].strip().upper()
    index_type = parse_enum(options, INDEX_TYPE, _KINDS, "")
    return _SAME.get(index_type, index_type)


_MOST_BUCKETS = 99999
"""More buckets would make file ids that look like random ones."""
