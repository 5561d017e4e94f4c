"""The write options that pyhudi supports, read once. Names and defaults are Hudi's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Literal

from pyhudi.config.file_names import BASE_EXTENSION, ORC_EXTENSION
from pyhudi.config.index_options import INDEX_OPTIONS, IndexOptions
from pyhudi.config.option_parsing import (
    choice,
    decimal,
    flag,
    integer,
    option_names,
    parse_bool,
    parse_enum,
    parse_fields,
    parse_int,
)
from pyhudi.config.property_names import PARTITION_SPEC, SLASH_DATES
from pyhudi.config.timestamp_keygen_options import TIME_OPTIONS

Codec = Literal["gzip", "snappy", "zstd", "lz4_raw", "uncompressed"]
InsertDuplicates = Literal["none", "drop", "fail"]
LogBlocks = Literal["avro", "parquet", "hfile"]
BloomType = Literal["DYNAMIC_V0", "SIMPLE"]

SMALL_FILE_LIMIT = "hoodie.parquet.small.file.limit"
REWRITE_FACTOR = "pyhudi.small.file.rewrite.factor"
MAX_FILE_SIZE = "hoodie.parquet.max.file.size"
ROW_GROUP_SIZE = "hoodie.parquet.block.size"
CODEC = "hoodie.parquet.compression.codec"
RECORD_SIZE = "hoodie.copyonwrite.record.size.estimate"
RECORD_SIZE_THRESHOLD = "hoodie.record.size.estimation.threshold"
INSERT_SPLIT_SIZE = "hoodie.copyonwrite.insert.split.size"
AUTO_SPLIT = "hoodie.copyonwrite.insert.auto.split"
SMALL_SLICES = "hoodie.merge.small.file.group.candidates.limit"
BLOOM_ENTRIES = "hoodie.index.bloom.num_entries"
BLOOM_FPP = "hoodie.index.bloom.fpp"
BLOOM_MAX_ENTRIES = "hoodie.bloom.index.filter.dynamic.max.entries"
BLOOM_TYPE = "hoodie.bloom.index.filter.type"
PAGE_SIZE = "hoodie.parquet.page.size"
DICTIONARY = "hoodie.parquet.dictionary.enabled"
LOG_BLOCK_SIZE = "hoodie.logfile.data.block.max.size"
COMBINE_INSERTS = "hoodie.combine.before.insert"
COMBINE_UPSERTS = "hoodie.combine.before.upsert"
COMBINE_DELETES = "hoodie.combine.before.delete"
ALLOW_DUPLICATES = "hoodie.merge.allow.duplicate.on.inserts"
INSERT_DUPLICATES = "hoodie.datasource.insert.dup.policy"
LOG_FILE_SIZE = "hoodie.logfile.max.size"
LOG_BLOCKS = "hoodie.logfile.data.block.format"
POSITIONS = "hoodie.write.record.positions"
ALLOW_EMPTY_COMMIT = "hoodie.allow.empty.commit"
OLD_LISTS = "parquet.avro.write-old-list-structure"
"""A setting of Parquet for Java, which Hudi's writers read from Hadoop's configuration."""
ORC_FILE_SIZE = "hoodie.orc.max.file.size"
STRIPE_SIZE = "hoodie.orc.stripe.size"
ORC_CODEC = "hoodie.orc.compression.codec"
ORC_BLOCK_SIZE = "hoodie.orc.block.size"
"""Block size of a file system, which nothing here depends on."""

TINY = 1024 * 1024
"""Size of a base file that inserts may always rewrite, however few they are."""

_CODECS = ("zstd", "snappy", "gzip", "lz4_raw", "uncompressed")
_ORC_CODECS: Mapping[str, Codec] = {
    "zlib": "gzip",
    "snappy": "snappy",
    "zstd": "zstd",
    "lz4": "lz4_raw",
    "none": "uncompressed",
}
"""Codecs by their names in ORC (`CompressionKind`)."""


@dataclass(frozen=True)
class WriteOptions:
    """How files are sized and encoded. Sizes in bytes."""

    small_file_limit: int = integer(SMALL_FILE_LIMIT, default=100 * 1024 * 1024, least=0)
    """Base files below this get inserts; 0 for none."""
    rewrite_factor: int = integer(REWRITE_FACTOR, default=20, least=0)
    """A base file is rewritten to get inserts if it has at most this many times their bytes, or is
    tiny (`TINY`); 0 for every small file, as in Hudi."""
    max_file_size: int = integer(MAX_FILE_SIZE, default=120 * 1024 * 1024)
    row_group_bytes: int = integer(ROW_GROUP_SIZE, default=120 * 1024 * 1024)
    codec: Codec = choice(CODEC, _CODECS, default="zstd")
    """See `docs/decisions/0008-base-files-are-zstd.md`; Hudi's own default is gzip."""
    record_size_estimate: int = integer(RECORD_SIZE, default=1024)
    """Bytes of a row, until a commit gives a better estimate."""
    record_size_threshold: float = decimal(
        RECORD_SIZE_THRESHOLD, lambda value: 0 <= value < inf, "of at least 0", default=1.0
    )
    """A commit gives an estimate if it wrote more than this many small-file limits."""
    insert_split_rows: int | None = None
    """Rows of a new file of inserts; None for as many as fit into the maximum file size."""
    small_slices_per_partition: int = integer(SMALL_SLICES, default=1, least=0)
    """Merge-on-read: number of small file groups of a partition that get inserts."""
    bloom_entries: int = integer(BLOOM_ENTRIES, default=60000)
    bloom_by_keys: bool = True
    """Size the filter of a file with fewer keys by them, unless the option sets the number."""
    bloom_fpp: float = decimal(
        BLOOM_FPP, lambda value: 0 < value < 1, "between 0 and 1", default=1e-9
    )
    bloom_max_entries: int = integer(BLOOM_MAX_ENTRIES, default=100000)
    bloom_type: BloomType = choice(BLOOM_TYPE, ("DYNAMIC_V0", "SIMPLE"), default="DYNAMIC_V0")
    page_bytes: int = integer(PAGE_SIZE, default=1024 * 1024)
    dictionary: bool = flag(DICTIONARY, default=True)
    log_block_bytes: int = integer(LOG_BLOCK_SIZE, default=256 * 1024 * 1024)
    combine_inserts: bool = flag(COMBINE_INSERTS, default=False)
    """Combine rows of one key within the data by the table's merge mode, also in bulk_insert and
    the overwriting methods."""
    combine_upserts: bool = flag(COMBINE_UPSERTS, default=True)
    combine_deletes: bool = flag(COMBINE_DELETES, default=True)
    allow_duplicates: bool = flag(ALLOW_DUPLICATES, default=True)
    """Rows inserted into a small file become additional rows of their keys (else: they are
    merged)."""
    insert_duplicates: InsertDuplicates = choice(
        INSERT_DUPLICATES, ("none", "drop", "fail"), default="none"
    )
    """What happens to inserted rows whose keys are in the table; "none": no check."""
    index: IndexOptions = field(default_factory=IndexOptions)
    """How keys are found."""
    log_file_bytes: int = integer(LOG_FILE_SIZE, default=1024 * 1024 * 1024)
    """A log file above this is followed by another one."""
    log_blocks: LogBlocks = choice(LOG_BLOCKS, ("avro", "parquet", "hfile"), default="avro")
    positions: bool = flag(POSITIONS, default=True)
    """Log blocks record the rows of the base file that they update, if the version supports
    that."""
    allow_empty_commit: bool = flag(ALLOW_EMPTY_COMMIT, default=False)
    """A write that changes nothing makes a commit too. Hudi's own default is true."""
    old_lists: bool = flag(OLD_LISTS, default=True)
    """Lists in Parquet have two levels, Hudi's default, which does not allow null elements."""
    extension: str = BASE_EXTENSION
    """Extension of base files."""

    @property
    def null_elements(self) -> bool:
        """Whether lists may have null elements."""
        return not self.old_lists

    @classmethod
    def of(cls, options: Mapping[str, str], extension: str | None = None) -> WriteOptions:
        """Read the options from `hoodie.…` names; options outside `WRITE_OPTIONS` are ignored.

        Raises `ConfigError` for a value that is not a number, is negative, or is not allowed.

        extension: that of the table's base files, if it is known.
        """
        of_orc = _of_orc(options)
        parsed = cls(
            **parse_fields(cls, options),
            insert_split_rows=_insert_split(options),
            bloom_by_keys=BLOOM_ENTRIES not in options,
            index=IndexOptions.of(options),
        )
        return replace(parsed, **of_orc) if extension == ORC_EXTENSION else parsed


def _of_orc(options: Mapping[str, str]) -> dict[str, Any]:
    """Return the options that differ for ORC base files; `SMALL_FILE_LIMIT` applies to both.

    ORC has one list format. Positions have no use: Hudi's readers number rows of Parquet only.
    """
    largest = WriteOptions.max_file_size
    codec = parse_enum(options, ORC_CODEC, tuple(_ORC_CODECS), "zlib")
    parse_int(options, ORC_BLOCK_SIZE, default=largest)
    return {
        "extension": ORC_EXTENSION,
        "max_file_size": parse_int(options, ORC_FILE_SIZE, default=largest),
        "row_group_bytes": parse_int(options, STRIPE_SIZE, default=_STRIPE_BYTES),
        "codec": _ORC_CODECS[codec],
        "dictionary": False,
        "old_lists": False,
        "positions": False,
    }


def _insert_split(options: Mapping[str, str]) -> int | None:
    """Return the rows of a new file, unless they follow from sizes (`UpsertPartitioner`, 1.2.0)."""
    rows = parse_int(options, INSERT_SPLIT_SIZE, default=_INSERT_SPLIT_ROWS)
    return None if parse_bool(options, AUTO_SPLIT, default=True) else rows


_INSERT_SPLIT_ROWS = 500_000
_STRIPE_BYTES = 64 * 1024 * 1024

WRITE_OPTIONS = (
    *option_names(WriteOptions),
    INSERT_SPLIT_SIZE,
    AUTO_SPLIT,
    *INDEX_OPTIONS,
    PARTITION_SPEC,
    SLASH_DATES,
    *TIME_OPTIONS,
    ORC_FILE_SIZE,
    STRIPE_SIZE,
    ORC_CODEC,
    ORC_BLOCK_SIZE,
)
"""All options that `WriteOptions.of` and `keys.key_spec` read."""
