"""The write options that pyhudi supports, read once. Names and defaults are Hudi's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Literal, cast

from pyhudi.config.file_names import BASE_EXTENSION, ORC_EXTENSION
from pyhudi.config.index_options import INDEX_OPTIONS, IndexOptions
from pyhudi.config.option_parsing import number, parse_bool, parse_enum, parse_int
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

WRITE_OPTIONS = (
    SMALL_FILE_LIMIT,
    REWRITE_FACTOR,
    MAX_FILE_SIZE,
    ROW_GROUP_SIZE,
    CODEC,
    RECORD_SIZE,
    RECORD_SIZE_THRESHOLD,
    INSERT_SPLIT_SIZE,
    AUTO_SPLIT,
    SMALL_SLICES,
    BLOOM_ENTRIES,
    BLOOM_FPP,
    BLOOM_MAX_ENTRIES,
    BLOOM_TYPE,
    PAGE_SIZE,
    DICTIONARY,
    LOG_BLOCK_SIZE,
    COMBINE_INSERTS,
    COMBINE_UPSERTS,
    COMBINE_DELETES,
    ALLOW_DUPLICATES,
    INSERT_DUPLICATES,
    *INDEX_OPTIONS,
    PARTITION_SPEC,
    SLASH_DATES,
    *TIME_OPTIONS,
    LOG_FILE_SIZE,
    LOG_BLOCKS,
    POSITIONS,
    ALLOW_EMPTY_COMMIT,
    OLD_LISTS,
    ORC_FILE_SIZE,
    STRIPE_SIZE,
    ORC_CODEC,
    ORC_BLOCK_SIZE,
)
"""All options that `WriteOptions.of` and `keys.key_spec` read."""

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

    small_file_limit: int = 100 * 1024 * 1024
    """Base files below this get inserts; 0 for none."""
    rewrite_factor: int = 20
    """A base file is rewritten to get inserts if it has at most this many times their bytes, or is
    tiny (`TINY`); 0 for every small file, as in Hudi."""
    max_file_size: int = 120 * 1024 * 1024
    row_group_bytes: int = 120 * 1024 * 1024
    codec: Codec = "zstd"
    """See `docs/decisions/0008-base-files-are-zstd.md`; Hudi's own default is gzip."""
    record_size_estimate: int = 1024
    """Bytes of a row, until a commit gives a better estimate."""
    record_size_threshold: float = 1.0
    """A commit gives an estimate if it wrote more than this many small-file limits."""
    insert_split_rows: int | None = None
    """Rows of a new file of inserts; None for as many as fit into the maximum file size."""
    small_slices_per_partition: int = 1
    """Merge-on-read: number of small file groups of a partition that get inserts."""
    bloom_entries: int = 60000
    bloom_by_keys: bool = True
    """Size the filter of a file with fewer keys by them, unless the option sets the number."""
    bloom_fpp: float = 1e-9
    bloom_max_entries: int = 100000
    bloom_type: BloomType = "DYNAMIC_V0"
    page_bytes: int = 1024 * 1024
    dictionary: bool = True
    log_block_bytes: int = 256 * 1024 * 1024
    combine_inserts: bool = False
    """Combine rows of one key within the data by the table's merge mode, also in bulk_insert and
    the overwriting methods."""
    combine_upserts: bool = True
    combine_deletes: bool = True
    allow_duplicates: bool = True
    """Rows inserted into a small file become additional rows of their keys (else: they are
    merged)."""
    insert_duplicates: InsertDuplicates = "none"
    """What happens to inserted rows whose keys are in the table; "none": no check."""
    index: IndexOptions = field(default_factory=IndexOptions)
    """How keys are found."""
    log_file_bytes: int = 1024 * 1024 * 1024
    """A log file above this is followed by another one."""
    log_blocks: LogBlocks = "avro"
    positions: bool = True
    """Log blocks record the rows of the base file that they update, if the version supports
    that."""
    allow_empty_commit: bool = False
    """A write that changes nothing makes a commit too. Hudi's own default is true."""
    old_lists: bool = True
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
        standard = cls()
        of_orc = _of_orc(options, standard)
        parsed = cls(
            small_file_limit=parse_int(
                options, SMALL_FILE_LIMIT, default=standard.small_file_limit, least=0
            ),
            rewrite_factor=parse_int(
                options, REWRITE_FACTOR, default=standard.rewrite_factor, least=0
            ),
            max_file_size=parse_int(options, MAX_FILE_SIZE, default=standard.max_file_size),
            row_group_bytes=parse_int(options, ROW_GROUP_SIZE, default=standard.row_group_bytes),
            codec=cast("Codec", parse_enum(options, CODEC, _CODECS, standard.codec)),
            record_size_estimate=parse_int(
                options, RECORD_SIZE, default=standard.record_size_estimate
            ),
            record_size_threshold=number(
                options,
                RECORD_SIZE_THRESHOLD,
                lambda value: 0 <= value < inf,
                "of at least 0",
                standard.record_size_threshold,
            ),
            insert_split_rows=_insert_split(options),
            small_slices_per_partition=parse_int(
                options, SMALL_SLICES, default=standard.small_slices_per_partition, least=0
            ),
            bloom_entries=parse_int(options, BLOOM_ENTRIES, default=standard.bloom_entries),
            bloom_by_keys=BLOOM_ENTRIES not in options,
            bloom_fpp=number(
                options,
                BLOOM_FPP,
                lambda value: 0 < value < 1,
                "between 0 and 1",
                standard.bloom_fpp,
            ),
            bloom_max_entries=parse_int(
                options, BLOOM_MAX_ENTRIES, default=standard.bloom_max_entries
            ),
            bloom_type=cast(
                "BloomType", parse_enum(options, BLOOM_TYPE, ("DYNAMIC_V0", "SIMPLE"), "DYNAMIC_V0")
            ),
            page_bytes=parse_int(options, PAGE_SIZE, default=standard.page_bytes),
            dictionary=parse_bool(options, DICTIONARY, default=standard.dictionary),
            log_block_bytes=parse_int(options, LOG_BLOCK_SIZE, default=standard.log_block_bytes),
            combine_inserts=parse_bool(options, COMBINE_INSERTS, default=standard.combine_inserts),
            combine_upserts=parse_bool(options, COMBINE_UPSERTS, default=standard.combine_upserts),
            combine_deletes=parse_bool(options, COMBINE_DELETES, default=standard.combine_deletes),
            allow_duplicates=parse_bool(
                options, ALLOW_DUPLICATES, default=standard.allow_duplicates
            ),
            insert_duplicates=cast(
                "InsertDuplicates",
                parse_enum(options, INSERT_DUPLICATES, ("none", "drop", "fail"), "none"),
            ),
            index=IndexOptions.of(options),
            log_file_bytes=parse_int(options, LOG_FILE_SIZE, default=standard.log_file_bytes),
            log_blocks=cast(
                "LogBlocks", parse_enum(options, LOG_BLOCKS, ("avro", "parquet", "hfile"), "avro")
            ),
            positions=parse_bool(options, POSITIONS, default=standard.positions),
            allow_empty_commit=parse_bool(
                options, ALLOW_EMPTY_COMMIT, default=standard.allow_empty_commit
            ),
            old_lists=parse_bool(options, OLD_LISTS, default=standard.old_lists),
        )
        return replace(parsed, **of_orc) if extension == ORC_EXTENSION else parsed


def _of_orc(options: Mapping[str, str], standard: WriteOptions) -> dict[str, Any]:
    """Return the options that differ for ORC base files; `SMALL_FILE_LIMIT` applies to both.

    ORC has one list format. Positions have no use: Hudi's readers number rows of Parquet only.
    """
    codec = parse_enum(options, ORC_CODEC, tuple(_ORC_CODECS), "zlib")
    parse_int(options, ORC_BLOCK_SIZE, default=standard.max_file_size)
    return {
        "extension": ORC_EXTENSION,
        "max_file_size": parse_int(options, ORC_FILE_SIZE, default=standard.max_file_size),
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
