"""The simple bucket index: the hash of a key is the number of its file group in the partition.

There is no lookup. Only the writer's options contain the number of buckets and the hashed fields,
so the index first hashes stored keys by the options and checks that they are in these buckets.
Sources: `BucketIdentifier`, `HoodieSimpleBucketIndex` (Hudi 0.15.0, 1.2.0), Flink's
`BucketStreamWriteFunction`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.file_names import is_bucket
from pyhudi.config.index_options import BUCKET_FIELDS, BUCKETS, INDEX_TYPE
from pyhudi.config.lock_options import MODE
from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.engine.protocol import Attempt, Engine
from pyhudi.errors import ConfigError, CorruptTable, UnsupportedTableFeature
from pyhudi.index.detection import last_written
from pyhudi.index.key_reader import KeySource
from pyhudi.index.protocol import IndexedTable, TagResult
from pyhudi.index.replaced_buckets import find_replaced_file_ids
from pyhudi.slices.bucket_hash import KeyHash, key_hashes
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.tagged_rows import Tagged, flat, group_values, row_numbers
from pyhudi.slices.task_packing import engine_for_slices
from pyhudi.slices.write_tasks import FileGroup

_OTHER_SLICES = 4
"""The number of slices of other partitions to read if rows go to new partitions only."""
_SAMPLE_GROWTH = 8
ENOUGH_KEYS = 32
"""If keys of this many hashes are all in the bucket that a bucket count predicts, it is the right
count or a divisor of it. With another count, at least half would be in other buckets."""
_NUMBER_DIGITS = 8
_SHARED_ENDING = "-0000-0000-0000-000000000000-0"
"""The end of file ids that several writers create alike (Flink with non-blocking concurrency
control)."""


def tag(
    table: IndexedTable, rows: pa.Table, needs_group: pa.Array[Any], *, rewrite: bool = False
) -> TagResult:
    """Return the bucket of each row: an existing file group, or a new one.

    rows: columns record key and partition path. needs_group: for each row whether it may
    need a new file group; other rows are tagged only if theirs exists. rewrite: the write replaces
    the existing file groups, so all are new. Raises `ConfigError` if stored keys are in other
    buckets than the options predict.
    """
    partitions = rows.column(PARTITION_PATH).unique().to_pylist()
    groups, slices = table.groups(partitions)
    count = table.options.index.buckets
    existing = {} if rewrite else _by_bucket(groups, count)
    key_hash = detect_hash(
        table,
        slices,
        lambda key_hash, slice_, keys: in_bucket(key_hash, slice_, keys, count),
    )
    # A replaced file group cannot be written to again, so no file id may occur twice.
    in_logs = table.options.index.shares_buckets
    shared = in_logs or (any(is_shared(group.slice.file_id) for group in groups) and not rewrite)
    replaced_ids = find_replaced_file_ids(table) if shared else {}
    if in_logs and not rewrite:
        # A delete must also apply to a row that a concurrent earlier write may still add.
        needs_group = pa.repeat(pa.scalar(value=True), rows.num_rows)
    groups = [] if rewrite else groups

    def bucket_group(partition: str, bucket: int) -> FileGroup:
        file_id = new_file_id(bucket, table.new_file_id, shared=shared)
        if file_id in replaced_ids.get(partition, {}):
            if in_logs:
                msg = f"{MODE}: bucket {bucket} of partition {partition!r} was removed, and "
                msg = f"{msg}concurrent writers cannot agree on another name"
                raise UnsupportedTableFeature(msg, hint=f"Write to the bucket once without {MODE}.")
            file_id = new_file_id(bucket, table.new_file_id)
        return new_group(partition, file_id, by_log=in_logs)

    buckets = key_hash.buckets(flat(rows.column(RECORD_KEY)), count)
    return assign_to_buckets(rows, buckets, needs_group, groups, existing, bucket_group)


def bucket_of(file_id: str) -> int:
    """Return the bucket number in a file id."""
    return int(file_id[:_NUMBER_DIGITS])


def new_file_id(bucket: int, random: Callable[[], str], *, shared: bool = False) -> str:
    """Return the file id of a new bucket: its number replaces the first digits of a random id.

    shared: the rest is zeros, so that concurrent writers create the same id.
    """
    number = f"{bucket:0{_NUMBER_DIGITS}d}"
    return number + (_SHARED_ENDING if shared else random()[_NUMBER_DIGITS:])


def is_shared(file_id: str) -> bool:
    """Return whether several writers create this file id (non-blocking concurrency control)."""
    return file_id.endswith(_SHARED_ENDING)


def new_group(partition: str, file_id: str, *, by_log: bool = False) -> FileGroup:
    """Return a file group that has no file yet."""
    return FileGroup(FileSlice(partition, file_id, "", None), starts_with_log=by_log)


def _by_bucket(groups: Sequence[FileGroup], count: int) -> dict[tuple[str, int], int]:
    numbers: dict[tuple[str, int], int] = {}
    for number, group in enumerate(groups):
        slice_ = group.slice
        if not is_bucket(slice_.file_id):
            msg = f"file group {slice_.file_id} in partition {slice_.partition!r} is not a bucket"
            raise ConfigError(
                msg, hint=f"Set {INDEX_TYPE} to the index that the table was written with."
            )
        bucket = bucket_of(slice_.file_id)
        if bucket >= count:
            msg = f"{BUCKETS} is {count}, but the table has bucket {bucket}"
            raise ConfigError(msg, hint=f"Set {BUCKETS} to the value of the table's other writers.")
        if numbers.setdefault((slice_.partition, bucket), number) != number:
            msg = f"partition {slice_.partition!r} has two file groups of bucket {bucket}"
            raise CorruptTable(msg)
    return numbers


# --- keys on storage against the options ----------------------------------------------------------


@dataclass(frozen=True)
class SampleTask:
    """Read some keys of a slice."""

    source: KeySource
    slice: FileSlice


@dataclass(frozen=True)
class Sample:
    """Keys of a slice: all of them if they are fewer than `ENOUGH_KEYS`, else the first ones."""

    slice: FileSlice
    keys: pa.Array[Any]
    hashes: int
    """The number of distinct hashes of the keys."""


def sample_keys_of_slices(
    engine: Engine, source: KeySource, slices: Sequence[FileSlice], key_hash: KeyHash
) -> list[Sample]:
    """Return keys of one slice of each partition, and of more slices until there are enough hashes.

    The result has either `ENOUGH_KEYS` keys or keys of all slices of the partition.
    """
    remaining: dict[str, list[FileSlice]] = {}
    for slice_ in slices:
        remaining.setdefault(slice_.partition, []).append(slice_)
    hashes: Counter[str] = Counter()
    samples: list[Sample] = []
    slices_per_partition = 1
    while remaining:
        tasks = [
            SampleTask(source, slice_)
            for remaining_slices in remaining.values()
            for slice_ in remaining_slices[:slices_per_partition]
        ]
        reader = engine_for_slices(engine, source.storage, (task.slice for task in tasks))
        keys_by_task = reader.run(read_sample_keys, tasks, label="check buckets of keys")
        for task, keys in zip(tasks, keys_by_task, strict=True):
            distinct = pc.count_distinct(key_hash.hashes(keys)).as_py()
            samples.append(Sample(task.slice, keys, distinct))
            hashes[task.slice.partition] += distinct
        remaining = {
            partition: remaining_slices[slices_per_partition:]
            for partition, remaining_slices in remaining.items()
            if hashes[partition] < ENOUGH_KEYS and len(remaining_slices) > slices_per_partition
        }
        slices_per_partition *= _SAMPLE_GROWTH
    return samples


def read_sample_keys(task: SampleTask, _attempt: Attempt) -> pa.Array[Any]:
    """Return the first keys of the slice, from as many batches as it takes to have enough."""
    batches: list[pa.Array[Any]] = []
    for batch in task.source.keys_of(task.slice):
        batches.append(batch.column(0))
        if sum(map(len, batches)) >= ENOUGH_KEYS:
            break
    return pa.concat_arrays(batches) if batches else pa.array([], pa.string())


def in_bucket(key_hash: KeyHash, slice_: FileSlice, keys: pa.Array[Any], count: int) -> bool:
    """Return whether all keys of a slice belong to its bucket, for a number of buckets."""
    if not is_bucket(slice_.file_id):
        return False
    return _are_all_true(pc.equal(key_hash.buckets(keys, count), bucket_of(slice_.file_id)))


IsInBucket = Callable[[KeyHash, FileSlice, "pa.Array[Any]"], bool]


def detect_hash(
    table: IndexedTable, slices: Sequence[FileSlice], is_in_bucket: IsInBucket
) -> KeyHash:
    """Return the hash function under which the stored keys are in their buckets.

    The two hash functions of Hudi's releases differ for few keys. If the files do not show which,
    the one of the table version's release is used. is_in_bucket: whether all keys of a slice belong
    to its bucket. Raises `ConfigError` if keys of a partition do not: from 1.1 on each partition
    can have its own number of buckets.
    """
    if not slices:
        partitions = {partition for partition, _ in last_written(table.timeline)}
        slices = table.groups(sorted(partitions))[1][:_OTHER_SLICES] if partitions else []
    candidates = key_hashes(table.config, table.options.index)
    samples = sample_keys_of_slices(table.engine, table.key_source, slices, candidates[0])
    for key_hash in candidates:
        if all(is_in_bucket(key_hash, sample.slice, sample.keys) for sample in samples):
            return key_hash
    fields = ",".join(candidates[0].fields)
    msg = (
        f"{BUCKETS} is {table.options.index.buckets} and {BUCKET_FIELDS} is {fields}, but the "
        f"table's keys are in other buckets"
    )
    raise ConfigError(msg, hint="Set both to the values of the table's other writers.")


def _are_all_true(truths: pa.Array[Any]) -> bool:
    return bool(pc.all(truths, min_count=0).as_py())


# --- rows to file groups --------------------------------------------------------------------------


def assign_to_buckets(
    rows: pa.Table,
    buckets: pa.Array[Any],
    needs_group: pa.Array[Any],
    groups: Sequence[FileGroup],
    existing: dict[tuple[str, int], int],
    new_group: Callable[[str, int], FileGroup],
) -> TagResult:
    """Tag each row with the file group of its partition and bucket, which may be new.

    existing: numbers of existing groups by partition path and bucket.
    """
    all_groups = list(groups)
    parts: list[tuple[pa.Array[Any], int]] = []
    for partition, bucket, numbers in _by_partition_and_bucket(rows, buckets):
        number = existing.get((partition, bucket))
        if number is not None:
            parts.append((numbers, number))
            continue
        in_new_group = numbers.filter(needs_group.take(numbers))
        if len(in_new_group):
            parts.append((in_new_group, len(all_groups)))
            all_groups.append(new_group(partition, bucket))
    return TagResult(_concat_tags(parts), all_groups)


def _by_partition_and_bucket(
    rows: pa.Table, buckets: pa.Array[Any]
) -> Iterator[tuple[str, int, pa.Array[Any]]]:
    for partition, numbers in group_values(
        flat(rows.column(PARTITION_PATH)), row_numbers(rows.num_rows)
    ):
        for bucket, of_bucket in group_values(buckets.take(numbers), numbers):
            yield partition, bucket, of_bucket


def _concat_tags(parts: Sequence[tuple[pa.Array[Any], int]]) -> Tagged:
    numbers = [numbers for numbers, _ in parts]
    groups = [pa.repeat(pa.scalar(group, pa.int64()), len(rows)) for rows, group in parts]
    return Tagged(
        pa.concat_arrays(numbers) if numbers else pa.array([], pa.int64()),
        pa.concat_arrays(groups) if groups else pa.array([], pa.int64()),
    )
