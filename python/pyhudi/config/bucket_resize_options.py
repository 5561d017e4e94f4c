"""Options of splitting and merging consistent-hashing buckets (`HoodieIndexConfig`, 1.2.0)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.config.index_options import IndexOptions
from pyhudi.config.option_parsing import number, parse_int
from pyhudi.config.write_options import WriteOptions

MAX_BUCKETS = "hoodie.bucket.index.max.num.buckets"
MIN_BUCKETS = "hoodie.bucket.index.min.num.buckets"
SPLIT_THRESHOLD = "hoodie.bucket.index.split.threshold"
MERGE_THRESHOLD = "hoodie.bucket.index.merge.threshold"
RESIZE_OPTIONS = (MAX_BUCKETS, MIN_BUCKETS, SPLIT_THRESHOLD, MERGE_THRESHOLD)
"""All options that `ResizeOptions.of` reads, except those of the index and of writes."""


@dataclass(frozen=True)
class ResizeOptions:
    """Which buckets of a partition are split, and which are merged."""

    most: int
    """Number of buckets of a partition above which none is split."""
    fewest: int
    """Number of buckets of a partition below which none are merged."""
    split_bytes: int
    """A larger bucket is split."""
    merge_bytes: int
    """Adjacent buckets of at most this size are merged, up to about this size together."""

    @classmethod
    def of(cls, options: Mapping[str, str], extension: str | None = None) -> ResizeOptions:
        """Read the options from `hoodie.…` names.

        The numbers of buckets default to the initial one, as in Hudi. Bounds that exclude the
        initial number are moved to it, as Hudi does. Raises `ConfigError` for an invalid value.

        extension: as in `WriteOptions.of`.
        """
        first = IndexOptions.of(options).buckets
        largest = WriteOptions.of(options, extension).max_file_size
        split = number(options, SPLIT_THRESHOLD, _is_share, "above 0", 2.0)
        merge = number(options, MERGE_THRESHOLD, _is_share, "above 0", 0.2)
        return cls(
            max(first, parse_int(options, MAX_BUCKETS, default=first)),
            min(first, parse_int(options, MIN_BUCKETS, default=first)),
            int(largest * split),
            int(largest * merge),
        )


def _is_share(value: float) -> bool:
    return 0 < value < float("inf")
