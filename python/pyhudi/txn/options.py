"""The write options that pyhudi honours, read once. Names and defaults are Hudi's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from pyhudi.errors import ConfigError

Codec = Literal["gzip", "snappy", "zstd", "lz4_raw", "uncompressed"]

SMALL_FILE_LIMIT = "hoodie.parquet.small.file.limit"
MAX_FILE_SIZE = "hoodie.parquet.max.file.size"
ROW_GROUP_SIZE = "hoodie.parquet.block.size"
CODEC = "hoodie.parquet.compression.codec"
RECORD_SIZE = "hoodie.copyonwrite.record.size.estimate"
SMALL_SLICES = "hoodie.merge.small.file.group.candidates.limit"
BLOOM_ENTRIES = "hoodie.index.bloom.num_entries"
BLOOM_FPP = "hoodie.index.bloom.fpp"
BLOOM_MAX_ENTRIES = "hoodie.bloom.index.filter.dynamic.max.entries"
LOG_BLOCK_SIZE = "hoodie.logfile.data.block.max.size"

WRITE_OPTIONS = (
    SMALL_FILE_LIMIT,
    MAX_FILE_SIZE,
    ROW_GROUP_SIZE,
    CODEC,
    RECORD_SIZE,
    SMALL_SLICES,
    BLOOM_ENTRIES,
    BLOOM_FPP,
    BLOOM_MAX_ENTRIES,
    LOG_BLOCK_SIZE,
)
"""Every option that `WriteOptions.of` reads."""

_CODECS = ("gzip", "snappy", "zstd", "lz4_raw", "uncompressed")


@dataclass(frozen=True)
class WriteOptions:
    """How files are sized and encoded. Sizes in bytes."""

    small_file_limit: int = 100 * 1024 * 1024
    """A base file below this takes inserts; 0 means none does."""
    max_file_size: int = 120 * 1024 * 1024
    row_group_bytes: int = 120 * 1024 * 1024
    codec: Codec = "gzip"
    record_size_estimate: int = 1024
    """Bytes of a row while no commit tells better."""
    small_slices_per_partition: int = 1
    """Merge-on-read: so many small file groups of a partition take inserts."""
    bloom_entries: int = 60000
    bloom_fpp: float = 1e-9
    bloom_max_entries: int = 100000
    log_block_bytes: int = 256 * 1024 * 1024

    @classmethod
    def of(cls, options: Mapping[str, str]) -> WriteOptions:
        """From `hoodie.…` options; others than `WRITE_OPTIONS` are not looked at.

        Raises `ConfigError` for a value that is no number, negative, or no codec.
        """
        standard = cls()
        return cls(
            small_file_limit=_number(options, SMALL_FILE_LIMIT, standard.small_file_limit, 0),
            max_file_size=_number(options, MAX_FILE_SIZE, standard.max_file_size),
            row_group_bytes=_number(options, ROW_GROUP_SIZE, standard.row_group_bytes),
            codec=_codec(options),
            record_size_estimate=_number(options, RECORD_SIZE, standard.record_size_estimate),
            small_slices_per_partition=_number(
                options, SMALL_SLICES, standard.small_slices_per_partition, 0
            ),
            bloom_entries=_number(options, BLOOM_ENTRIES, standard.bloom_entries),
            bloom_fpp=_fraction(options, BLOOM_FPP, standard.bloom_fpp),
            bloom_max_entries=_number(options, BLOOM_MAX_ENTRIES, standard.bloom_max_entries),
            log_block_bytes=_number(options, LOG_BLOCK_SIZE, standard.log_block_bytes),
        )


def _number(options: Mapping[str, str], name: str, default: int, least: int = 1) -> int:
    text = options.get(name)
    if text is None:
        return default
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        msg = f"{name} is {text!r}, not a whole number of at least {least}"
        raise ConfigError(msg)
    return value


def _fraction(options: Mapping[str, str], name: str, default: float) -> float:
    text = options.get(name)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        msg = f"{name} is {text!r}, not a number between 0 and 1"
        raise ConfigError(msg)
    return value


def _codec(options: Mapping[str, str]) -> Codec:
    text = options.get(CODEC, "gzip").lower()
    if text not in _CODECS:
        msg = f"{CODEC} is {text!r}"
        raise ConfigError(msg, hint=f"One of {', '.join(_CODECS)}.")
    return cast("Codec", text)
