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
    checked,
    choice,
    decimal,
    flag,
    integer,
    option,
    parse_bool,
    parse_enum,
    parse_fields,
    parse_int,
    parsed,
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
        COMBINE_UPSERTS, default=True, meaning="combine rows of one key within the data"
    )
    combine_inserts: bool = flag(
        COMBINE_INSERTS,
        default=False,
        meaning="the same for insert, bulk_insert and the overwriting methods",
    )
    combine_deletes: bool = flag(
        "hoodie.combine.before.delete", default=True, meaning="the same for deletes"
    )
    insert_duplicates: InsertDuplicates = choice(
        INSERT_DUPLICATES,
        ("none", "drop", "fail"),
        default="none",
        meaning="what `insert` does with existing keys: `none`, `drop`, `fail`. Without the "
        "option, they are added with a warning",
    )
    allow_duplicates: bool = flag(
        "hoodie.merge.allow.duplicate.on.inserts",
        default=True,
        meaning="rows inserted into a small file do not replace rows of their key",
    )
    allow_empty_commit: bool = flag(
        "hoodie.allow.empty.commit",
        default=False,
        meaning="commit even if you change nothing. Hudi's default is true",
    )


@dataclass(frozen=True)
class OrcOptions(OptionGroup):
    """The options that replace those of Parquet for ORC base files."""

    max_file_size: int = integer(
        "hoodie.orc.max.file.size", default=_FILE_SIZE, meaning="for ORC, instead of Parquet's"
    )
    row_group_bytes: int = integer(
        "hoodie.orc.stripe.size", default=64 * 1024 * 1024, meaning="size of stripes"
    )
    codec: Codec = parsed(
        lambda options: _ORC_CODECS[parse_enum(options, ORC_CODEC, tuple(_ORC_CODECS), "zlib")],
        option(ORC_CODEC, default="zlib", meaning="or `snappy`, `zstd`, `lz4`, `none`"),
        default="gzip",
    )
    block_size: None = checked(
        lambda options: parse_int(options, ORC_BLOCK_SIZE, default=_FILE_SIZE),
        option(ORC_BLOCK_SIZE, default=_FILE_SIZE, meaning="no effect"),
    )


@dataclass(frozen=True)
class WriteOptions(RowOptions):
    """How files are sized and encoded. Sizes in bytes."""

    max_file_size: int = integer(
        "hoodie.parquet.max.file.size", default=_FILE_SIZE, meaning="size of new base files"
    )
    small_file_limit: int = integer(
        "hoodie.parquet.small.file.limit",
        default=100 * 1024 * 1024,
        least=0,
        meaning="inserts fill base files below this size, also of ORC; 0 turns it off",
    )
    rewrite_factor: int = integer(
        "pyhudi.small.file.rewrite.factor",
        default=20,
        least=0,
        meaning="inserts rewrite a file of at most this many times their bytes, or below 1 MiB; 0: "
        "any small file, as in Hudi",
    )
    small_slices_per_partition: int = integer(
        "hoodie.merge.small.file.group.candidates.limit",
        default=1,
        least=0,
        meaning="small file groups per partition that take inserts (merge-on-read)",
    )
    record_size_estimate: int = integer(
        "hoodie.copyonwrite.record.size.estimate",
        default=1024,
        meaning="bytes per row, before a commit shows it",
    )
    record_size_threshold: float = decimal(
        "hoodie.record.size.estimation.threshold",
        lambda value: 0 <= value < inf,
        "of at least 0",
        default=1.0,
        meaning="a commit shows it if it wrote more than this many small-file limits",
    )
    insert_split_rows: int | None = parsed(
        _insert_split,
        option(AUTO_SPLIT, default=True, meaning="size new files by bytes"),
        option(
            INSERT_SPLIT_SIZE,
            default=_INSERT_SPLIT_ROWS,
            meaning="rows per new file, if auto split is false",
        ),
        default=None,
    )
    row_group_bytes: int = integer(
        "hoodie.parquet.block.size", default=_FILE_SIZE, meaning="size of row groups"
    )
    page_bytes: int = integer(
        "hoodie.parquet.page.size", default=1024 * 1024, meaning="size of pages"
    )
    codec: Codec = choice(
        "hoodie.parquet.compression.codec",
        _CODECS,
        default="zstd",
        meaning="or `gzip` (Hudi's default), `snappy`, `lz4_raw`, `uncompressed`; base files and "
        "Parquet log blocks. Readers before Spark 3 or Hive 4 may not support zstd",
    )
    """See `docs/decisions/0008-base-files-are-zstd.md`."""
    dictionary: bool = flag(
        "hoodie.parquet.dictionary.enabled", default=True, meaning="dictionary encoding"
    )
    old_lists: bool = flag(
        OLD_LISTS,
        default=True,
        meaning="two-level lists; false allows [null elements](types.md#lists-with-null-elements)",
    )
    log_blocks: LogBlocks = choice(
        LOG_BLOCKS,
        ("avro", "parquet", "hfile"),
        default="avro",
        meaning="or `parquet`, in version 6 also `hfile`",
    )
    log_block_bytes: int = integer(
        "hoodie.logfile.data.block.max.size",
        default=256 * 1024 * 1024,
        meaning="size of a log block",
    )
    log_file_bytes: int = integer(
        "hoodie.logfile.max.size",
        default=1024 * 1024 * 1024,
        meaning="a larger log file is followed by a new one",
    )
    positions: bool = flag(
        "hoodie.write.record.positions",
        default=True,
        meaning="log blocks store row positions in the base file (versions 8 and 9)",
    )
    bloom_entries: int = integer(
        BLOOM_ENTRIES,
        default=60000,
        meaning="keys of a bloom filter; without the option, filters of fewer keys fit these",
    )
    bloom_by_keys: bool = parsed(lambda options: BLOOM_ENTRIES not in options, default=True)
    """Size the filter of a file with fewer keys by them, unless the option sets the number."""
    bloom_fpp: float = decimal(
        "hoodie.index.bloom.fpp",
        lambda value: 0 < value < 1,
        "between 0 and 1",
        default=1e-9,
        meaning="false positive rate",
    )
    bloom_max_entries: int = integer(
        "hoodie.bloom.index.filter.dynamic.max.entries",
        default=100000,
        meaning="maximum keys of a dynamic filter",
    )
    bloom_type: BloomType = choice(
        "hoodie.bloom.index.filter.type",
        ("DYNAMIC_V0", "SIMPLE"),
        default="DYNAMIC_V0",
        meaning="or `SIMPLE`",
    )
    index: IndexOptions = parsed(IndexOptions.of, default=IndexOptions())
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
