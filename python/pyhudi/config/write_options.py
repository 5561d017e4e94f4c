"""The write options that pyhudi supports, read once. Names and defaults are Hudi's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Literal

from pyhudi.config.file_names import BASE_EXTENSION, ORC_EXTENSION
from pyhudi.config.index_options import IndexOptions
from pyhudi.config.option_parsing import (
    OptionGroup,
    check_only,
    choice,
    custom,
    decimal,
    flag,
    integer,
    option,
    parse_bool,
    parse_enum,
    parse_fields,
    parse_int,
)

Codec = Literal["gzip", "snappy", "zstd", "lz4_raw", "uncompressed"]
InsertDuplicates = Literal["none", "drop", "fail"]
LogBlocks = Literal["avro", "parquet", "hfile"]
BloomType = Literal["DYNAMIC_V0", "SIMPLE"]

INSERT_SPLIT_SIZE = "hoodie.copyonwrite.insert.split.size"
AUTO_SPLIT = "hoodie.copyonwrite.insert.auto.split"
BLOOM_ENTRIES = "hoodie.index.bloom.num_entries"
COMBINE_INSERTS = "hoodie.combine.before.insert"
COMBINE_UPSERTS = "hoodie.combine.before.upsert"
INSERT_DUPLICATES = "hoodie.datasource.insert.dup.policy"
LOG_BLOCKS = "hoodie.logfile.data.block.format"
OLD_LISTS = "parquet.avro.write-old-list-structure"
"""A setting of Parquet for Java, which Hudi's writers read from Hadoop's configuration."""
ORC_CODEC = "hoodie.orc.compression.codec"
ORC_BLOCK_SIZE = "hoodie.orc.block.size"

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
_FILE_SIZE = 120 * 1024 * 1024
_INSERT_SPLIT_ROWS = 500_000


def _insert_split(options: Mapping[str, str]) -> int | None:
    """Return the rows of a new file, unless they follow from sizes (`UpsertPartitioner`, 1.2.0)."""
    rows = parse_int(options, INSERT_SPLIT_SIZE, default=_INSERT_SPLIT_ROWS)
    return None if parse_bool(options, AUTO_SPLIT, default=True) else rows


@dataclass(frozen=True)
class RowOptions(OptionGroup):
    """Which rows a write stores."""

    combine_upserts: bool = flag(
        COMBINE_UPSERTS, "combine rows of one key within the data", default=True
    )
    combine_inserts: bool = flag(
        COMBINE_INSERTS,
        "the same for insert, bulk_insert and the overwriting methods",
        default=False,
    )
    combine_deletes: bool = flag(
        "hoodie.combine.before.delete", "the same for deletes", default=True
    )
    insert_duplicates: InsertDuplicates = choice(
        INSERT_DUPLICATES,
        "what `insert` does with existing keys: `none`, `drop`, `fail`. Without the "
        "option, they are added with a warning",
        ("none", "drop", "fail"),
        default="none",
    )
    allow_duplicates: bool = flag(
        "hoodie.merge.allow.duplicate.on.inserts",
        "rows inserted into a small file do not replace rows of their key",
        default=True,
    )
    allow_empty_commit: bool = flag(
        "hoodie.allow.empty.commit",
        "commit even if you change nothing. Hudi's default is true",
        default=False,
    )


@dataclass(frozen=True)
class OrcOptions(OptionGroup):
    """The options that replace those of Parquet for ORC base files."""

    max_file_size: int = integer(
        "hoodie.orc.max.file.size", "for ORC, instead of Parquet's", default=_FILE_SIZE
    )
    row_group_bytes: int = integer(
        "hoodie.orc.stripe.size", "size of stripes", default=64 * 1024 * 1024
    )
    codec: Codec = custom(
        lambda options: _ORC_CODECS[parse_enum(options, ORC_CODEC, tuple(_ORC_CODECS), "zlib")],
        option(ORC_CODEC, "or `snappy`, `zstd`, `lz4`, `none`", default="zlib"),
    )
    block_size: None = check_only(
        lambda options: parse_int(options, ORC_BLOCK_SIZE, default=_FILE_SIZE),
        option(ORC_BLOCK_SIZE, "no effect", default=_FILE_SIZE),
    )


@dataclass(frozen=True)
class WriteOptions(RowOptions):
    """How files are sized and encoded. Sizes in bytes."""

    max_file_size: int = integer(
        "hoodie.parquet.max.file.size", "size of new base files", default=_FILE_SIZE
    )
    small_file_limit: int = integer(
        "hoodie.parquet.small.file.limit",
        "inserts fill base files below this size, also of ORC; 0 turns it off",
        default=100 * 1024 * 1024,
        minimum=0,
    )
    rewrite_factor: int = integer(
        "pyhudi.small.file.rewrite.factor",
        "inserts rewrite a file of at most this many times their bytes, or below 1 MiB; 0: "
        "any small file, as in Hudi",
        default=20,
        minimum=0,
    )
    small_slices_per_partition: int = integer(
        "hoodie.merge.small.file.group.candidates.limit",
        "small file groups per partition that take inserts (merge-on-read)",
        default=1,
        minimum=0,
    )
    record_size_estimate: int = integer(
        "hoodie.copyonwrite.record.size.estimate",
        "bytes per row, before a commit shows it",
        default=1024,
    )
    record_size_threshold: float = decimal(
        "hoodie.record.size.estimation.threshold",
        "a commit shows it if it wrote more than this many small-file limits",
        lambda value: 0 <= value < inf,
        "of at least 0",
        default=1.0,
    )
    insert_split_rows: int | None = custom(
        _insert_split,
        option(AUTO_SPLIT, "size new files by bytes", default=True),
        option(
            INSERT_SPLIT_SIZE,
            "rows per new file, if auto split is false",
            default=_INSERT_SPLIT_ROWS,
        ),
    )
    row_group_bytes: int = integer(
        "hoodie.parquet.block.size", "size of row groups", default=_FILE_SIZE
    )
    page_bytes: int = integer("hoodie.parquet.page.size", "size of pages", default=1024 * 1024)
    codec: Codec = choice(
        "hoodie.parquet.compression.codec",
        "or `gzip` (Hudi's default), `snappy`, `lz4_raw`, `uncompressed`; base files and "
        "Parquet log blocks. Readers before Spark 3 or Hive 4 may not support zstd",
        _CODECS,
        default="zstd",
    )
    """See `docs/decisions/0008-base-files-are-zstd.md`."""
    dictionary: bool = flag(
        "hoodie.parquet.dictionary.enabled", "dictionary encoding", default=True
    )
    old_lists: bool = flag(
        OLD_LISTS,
        "two-level lists; false allows [null elements](types.md#lists-with-null-elements)",
        default=True,
    )
    log_blocks: LogBlocks = choice(
        LOG_BLOCKS,
        "or `parquet`, in version 6 also `hfile`",
        ("avro", "parquet", "hfile"),
        default="avro",
    )
    log_block_bytes: int = integer(
        "hoodie.logfile.data.block.max.size", "size of a log block", default=256 * 1024 * 1024
    )
    log_file_bytes: int = integer(
        "hoodie.logfile.max.size",
        "a larger log file is followed by a new one",
        default=1024 * 1024 * 1024,
    )
    positions: bool = flag(
        "hoodie.write.record.positions",
        "log blocks store row positions in the base file (versions 8 and 9)",
        default=True,
    )
    bloom_entries: int = integer(
        BLOOM_ENTRIES,
        "keys of a bloom filter; without the option, filters of fewer keys fit these",
        default=60000,
    )
    bloom_by_keys: bool = custom(lambda options: BLOOM_ENTRIES not in options)
    """Size the filter of a file with fewer keys by them, unless the option sets the number."""
    bloom_fpp: float = decimal(
        "hoodie.index.bloom.fpp",
        "false positive rate",
        lambda value: 0 < value < 1,
        "between 0 and 1",
        default=1e-9,
    )
    bloom_max_entries: int = integer(
        "hoodie.bloom.index.filter.dynamic.max.entries",
        "maximum keys of a dynamic filter",
        default=100000,
    )
    bloom_type: BloomType = choice(
        "hoodie.bloom.index.filter.type",
        "or `SIMPLE`",
        ("DYNAMIC_V0", "SIMPLE"),
        default="DYNAMIC_V0",
    )
    index: IndexOptions = custom(IndexOptions.of)
    """How keys are found."""
    extension: str = BASE_EXTENSION
    """Extension of base files."""

    @property
    def null_elements(self) -> bool:
        """Whether lists may have null elements."""
        return not self.old_lists

    @classmethod
    def of(cls, options: Mapping[str, str], extension: str | None = None) -> WriteOptions:
        """Read the options as `OptionGroup.of`.

        extension: that of the table's base files, if it is known.
        """
        orc = parse_fields(OrcOptions, options)
        parsed = cls(**parse_fields(cls, options))
        if extension != ORC_EXTENSION:
            return parsed
        # ORC has one list format, and Hudi's readers number rows of Parquet only.
        return replace(
            parsed, **orc, extension=extension, dictionary=False, old_lists=False, positions=False
        )
