"""Task that writes one new consistent-hashing bucket from slices of old buckets.

A bucket that is split is read once for each of its new buckets. Nothing is planned here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from pyhudi.config.meta_columns import RECORD_KEY
from pyhudi.engine.protocol import Attempt
from pyhudi.slices.bucket_hash import KeyHash
from pyhudi.slices.clustering_task import ClusterTask, write_sorted
from pyhudi.slices.hashing_metadata import HashRange
from pyhudi.slices.read import open_slice
from pyhudi.slices.read_tasks import ReadTask
from pyhudi.timeline.commit_metadata import WriteStat


@dataclass(frozen=True)
class BucketTask:
    """Write the rows of old buckets that belong to a new bucket."""

    rows: ClusterTask
    """A task for one file group, whatever its size."""
    group: int
    """Its group's number in the plan."""
    hash_range: HashRange | None
    """The new bucket's hash range; None if it gets all rows."""
    hashing: KeyHash


@dataclass(frozen=True)
class WrittenBucket:
    """The result of one task."""

    group: int
    read: int
    """Rows of the old buckets."""
    stats: tuple[WriteStat, ...]
    """Empty for a bucket without rows, which gets no file."""


def write_bucket(task: BucketTask, attempt: Attempt) -> WrittenBucket:
    """Write the rows of one new bucket, and keep their commit times."""
    hash_range = task.hash_range
    chosen = None if hash_range is None else partial(_rows_in_range, hash_range, task.hashing)
    stats, read = write_sorted(task.rows, attempt, chosen)
    return WrittenBucket(task.group, read, stats)


def _rows_in_range(
    hash_range: HashRange, hashing: KeyHash, rows: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        yield batch.filter(hash_range.contains(hashing.consistent_hashes(batch.column(RECORD_KEY))))


@dataclass(frozen=True)
class ProbeTask:
    """Read some keys of an old bucket."""

    read: ReadTask
    """Reads the key column."""
    hash_range: HashRange
    """The old bucket's hash range."""
    methods: tuple[KeyHash, ...]


def matching_hashes(task: ProbeTask, _attempt: Attempt) -> tuple[KeyHash, ...]:
    """Return the hash methods that match a batch of the bucket's keys."""
    batch = next(iter(open_slice(task.read)), None)
    if batch is None:
        return task.methods
    keys = batch.column(RECORD_KEY)
    return tuple(
        method
        for method in task.methods
        if not task.hash_range.contains(method.consistent_hashes(keys)).false_count
    )
