"""The options of indexes, read once. Names and defaults are Hudi's (`HoodieIndexConfig`, 1.2.0).

No table stores any of them: Hudi keeps them with the writer. Which index a table gets is
`index/selection.py`'s part.
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
"""Every option that `IndexOptions.of` reads."""

RECORD_INDEX = "RECORD_INDEX"
PARTITIONED_RECORD_INDEX = "RECORD_LEVEL_INDEX"
"""The record index with file groups of each data partition, as Hudi 1.1 and later call it."""

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
"""Types that a handle may have and a write refuses."""
_SAME = {"GLOBAL_RECORD_LEVEL_INDEX": RECORD_INDEX}


@dataclass(frozen=True)
class IndexOptions:
    """Which index a writer asks for, and how it works."""

    kind: str | None = None
    """In capitals, None to take what the table shows."""
    buckets: int = 256
    """File groups of a partition under a simple bucket index; those that a ring starts with."""
    bucket_fields: tuple[str, ...] = ()
    """Key fields that are hashed; none for all."""
    consistent: bool = False
    """The bucket index hashes onto a ring."""
    shares_buckets: bool = False
    """Writers make the same buckets, and append to them beside each other."""
    moves: frozenset[str] = frozenset((MOVE_SIMPLE, MOVE_BLOOM))
    """Those options that let a row move whose partition path changed."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> IndexOptions:
        """From `hoodie.…` options. Raises `ConfigError` for a value that Hudi does not know."""
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
    """The type of index that options name, in capitals; None where they name none.

    Raises `ConfigError` for one that Hudi does not know.
    """
    if INDEX_TYPE not in options:
        return None
    if options[INDEX_TYPE].strip().upper() in _HUDIS_ALONE:
        return options[INDEX_TYPE].strip().upper()
    kind = parse_enum(options, INDEX_TYPE, _KINDS, "")
    return _SAME.get(kind, kind)


_MOST_BUCKETS = 99999
"""More would make file ids that are not told from random ones."""
