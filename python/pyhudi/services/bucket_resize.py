"""Resize of consistent-hashing buckets by split and merge, as a type of clustering.

A plan replaces nodes of the hashing metadata. Its executor writes the new buckets, then new hashing
metadata that is valid with the commit. The rest is like any clustering (`clustering.py`). No bucket
is resized while a write is pending, since Hudi's writers may not know of the plan. Sources:
`BaseConsistentHashingBucketClusteringPlanStrategy`,
`HoodieSparkConsistentBucketIndex`, `SparkConsistentBucketClusteringExecutionStrategy` (Hudi 0.15.0,
1.0.2, 1.2.0).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from pyhudi.config.actions import COMMIT, DELTA_COMMIT
from pyhudi.config.clustering_options import ClusteringOptions, ResizeOptions
from pyhudi.config.index_options import BUCKET_ENGINE, BUCKET_FIELDS, CONSISTENT, IndexOptions
from pyhudi.config.meta_columns import RECORD_KEY
from pyhudi.config.property_names import META_FIELDS
from pyhudi.errors import ConfigError, CorruptTable, UnsupportedTableFeature, retryable_conflict
from pyhudi.services.bucket_resize_strategy import choose_resizes
from pyhudi.services.clustering_strategy import GroupChoice
from pyhudi.slices.bucket_hash import KeyHash, key_hashes
from pyhudi.slices.bucket_resize_task import (
    BucketTask,
    ProbeTask,
    WrittenBucket,
    matching_hashes,
    write_bucket,
)
from pyhudi.slices.clustering_plan import ClusteringPlan, PlannedGroup
from pyhudi.slices.clustering_task import ClusterTask
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.hashing_metadata import (
    HashingMetadata,
    HashingNodes,
    confirm_hashing_metadata,
    file_id_of,
    has_consistent_hashing,
    hash_range_of,
    overwrite_hashing_metadata,
    read_committed_hashing_metadata,
    replace_nodes,
)
from pyhudi.slices.read_tasks import ScanRequest, merge_rule, slice_tasks
from pyhudi.table.participants import Commit, CommitParticipant
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.txn.transaction import Transaction

_SAMPLED_SLICES = 4
_ANY_SIZE = 1 << 62
"""File size limit, since a bucket is one file of any size."""


def check_table(table: TableSnapshot) -> None:
    """Raise `UnsupportedTableFeature` for a consistent-hashing table that cannot be resized."""
    if not has_consistent_hashing(table.storage):
        return
    if not table.config.is_merge_on_read:
        msg = f"{BUCKET_ENGINE} is {CONSISTENT}: pyhudi splits and merges buckets of MOR only"
        raise UnsupportedTableFeature(msg)
    if not table.config.populate_meta_fields:
        msg = f"{META_FIELDS} is false: rows do not show their bucket"
        raise UnsupportedTableFeature(msg, hint="Cluster this table with Apache Hudi.")


# --- planning -------------------------------------------------------------------------------------


def reason_to_wait(table: TableSnapshot) -> str:
    """Return why buckets cannot be resized now; "" if they can."""
    writes = table.timeline.pending(COMMIT, DELTA_COMMIT)
    return f"no buckets are split or merged while {writes[0]} is pending" if writes else ""


def choose_buckets(
    table: TableSnapshot,
    free: Iterable[FileSlice],
    options: ClusteringOptions,
    selected: Collection[str],
) -> GroupChoice:
    """Choose splits and merges. free: slices without a pending service.

    selected: partitions to choose from.
    """
    by_partition: dict[str, list[FileSlice]] = {}
    for slice_ in free:
        by_partition.setdefault(slice_.partition, []).append(slice_)
    bounds = ResizeOptions.of(table.options, table.config.base_extension)
    groups: list[PlannedGroup] = []
    missing: set[str] = set()
    for partition in sorted(by_partition):
        metadata = read_committed_hashing_metadata(table.storage, table.timeline, partition)
        if metadata is None:
            continue
        resizes = choose_resizes(by_partition[partition], metadata, bounds, table.clock.uuid)
        room = options.max_groups - len(groups) if partition in selected else 0
        groups += resizes[:room]
        missing |= {partition} if len(resizes) > room else set()
    return GroupChoice(tuple(groups), tuple(sorted(missing)))


# --- execution ------------------------------------------------------------------------------------


def find_changed_hashing(table: TableSnapshot, plan: ClusteringPlan) -> str:
    """Describe a change of hashing metadata since the plan, or return ""."""
    for partition, groups in plan.resized.items():
        metadata = read_committed_hashing_metadata(table.storage, table.timeline, partition)
        if metadata is None or {group.sequence_number for group in groups} != {
            metadata.sequence_number
        }:
            return f"partition {partition!r} has other hashing metadata"
    return ""


def write_buckets(
    table: TableSnapshot,
    plan: ClusteringPlan,
    groups: Sequence[ClusterTask],
    stage: int,
    label: str,
) -> list[WriteStat]:
    """Write the new buckets of a plan.

    groups: for each group the task that would join its rows. stage: of the engine call. Raises
    `ConfigError` if keys are not in the buckets that the options determine.
    """
    if not all(group.children for group in plan.groups):
        msg = f"{BUCKET_ENGINE} is {CONSISTENT}, and a clustering's plan has file groups without it"
        raise UnsupportedTableFeature(msg, hint="Cancel the plan with rollback().")
    old_nodes = {
        partition: _read_hashing_metadata(table, partition).nodes for partition in plan.resized
    }
    hashing = _determine_hash(table, plan, old_nodes)
    new_nodes = {
        partition: _resize_nodes(old_nodes[partition], groups, partition)
        for partition, groups in plan.resized.items()
    }
    tasks = [
        BucketTask(
            replace(task, file_ids=child.prefix, target_bytes=_ANY_SIZE),
            number,
            hash_range_of(new_nodes[group.partition], child.value) if _is_split(group) else None,
            hashing,
        )
        for number, (group, task) in enumerate(zip(plan.groups, groups, strict=True))
        for child in group.children
        if child.prefix is not None
    ]
    written = table.engine.run(write_bucket, tasks, stage=stage, label=label)
    _check_all_written(plan, written, hashing)
    return [stat for bucket in written for stat in bucket.stats]


def store_new_hashing_metadata(
    txn: Transaction, table: TableSnapshot, plan: ClusteringPlan
) -> None:
    """Make the transaction of a plan store the new hashing metadata."""
    txn.participants.append(_NewHashingMetadata(plan))
    if table.config.version.confirms_hashing_metadata:
        txn.on_completed(lambda: confirm_hashing_metadata(table.storage, plan.resized, txn.instant))


@dataclass(frozen=True)
class _NewHashingMetadata(CommitParticipant):
    """Stores the new hashing metadata of a plan; it is valid once its commit is complete."""

    plan: ClusteringPlan

    def before_complete(self, table: TableSnapshot, commit: Commit) -> Mapping[str, str]:
        """Raise `CommitConflict` if the hashing metadata of a partition changed concurrently."""
        changed = find_changed_hashing(table, self.plan)
        if changed:
            raise retryable_conflict(f"{changed}: another writer changed it concurrently")
        for partition, groups in self.plan.resized.items():
            metadata = _read_hashing_metadata(table, partition)
            nodes = _resize_nodes(metadata.nodes, groups, partition)
            new = HashingMetadata(nodes, metadata.sequence_number + 1, metadata.buckets)
            overwrite_hashing_metadata(table.storage, partition, new, commit.instant)
        return {}


def _read_hashing_metadata(table: TableSnapshot, partition: str) -> HashingMetadata:
    metadata = read_committed_hashing_metadata(table.storage, table.timeline, partition)
    if metadata is None:
        msg = (
            f"partition {partition!r} has no hashing metadata, and a clustering splits its buckets"
        )
        raise CorruptTable(msg)
    return metadata


def _resize_nodes(
    nodes: HashingNodes, groups: Iterable[PlannedGroup], partition: str
) -> HashingNodes:
    children = chain.from_iterable(group.children for group in groups)
    try:
        return replace_nodes(nodes, children)
    except KeyError as error:
        msg = f"a clustering replaces hash node {error} of {partition!r}, which has no such node"
        raise CorruptTable(msg) from error


def _is_split(group: PlannedGroup) -> bool:
    return sum(child.prefix is not None for child in group.children) > 1


# --- buckets of keys ------------------------------------------------------------------------------


def _determine_hash(
    table: TableSnapshot, plan: ClusteringPlan, nodes_by_partition: Mapping[str, HashingNodes]
) -> KeyHash:
    """Return the hash function by which the keys of files are in their buckets.

    If several match, it is that of the table version's release.
    """
    hashes = key_hashes(table.config, IndexOptions.of(table.options))
    split = [slice_ for group in plan.groups if _is_split(group) for slice_ in group.slices]
    reads = slice_tasks(
        table, ScanRequest((RECORD_KEY,)), split[:_SAMPLED_SLICES], merge_rule(table)
    )
    tasks = []
    for read in reads:
        nodes = nodes_by_partition[read.slice.partition]
        values = [v for v, prefix in nodes if file_id_of(prefix) == read.slice.file_id]
        if not values:
            msg = f"a clustering splits {read.slice.file_id}, which is not a bucket"
            raise CorruptTable(msg)
        tasks.append(ProbeTask(read, hash_range_of(nodes, values[0]), hashes))
    matching_by_task = table.engine.run(matching_hashes, tasks, label="check buckets of keys")
    for key_hash in hashes:
        if all(key_hash in matching for matching in matching_by_task):
            return key_hash
    raise _wrong_buckets_error(hashes[0])


def _check_all_written(
    plan: ClusteringPlan, written: Iterable[WrittenBucket], hashing: KeyHash
) -> None:
    """Check that each row of the old buckets is in a new bucket."""
    missing_rows: dict[int, int] = {}
    for bucket in written:
        rows = sum(stat.num_writes for stat in bucket.stats)
        missing_rows[bucket.group] = missing_rows.get(bucket.group, bucket.read) - rows
    if any(missing_rows.values()) or len(missing_rows) != len(plan.groups):
        raise _wrong_buckets_error(hashing)


def _wrong_buckets_error(hashing: KeyHash) -> ConfigError:
    msg = (
        f"{BUCKET_FIELDS} is {','.join(hashing.fields)}, but the table's keys are in other buckets"
    )
    return ConfigError(msg, hint="Set it as the table's other writers do.")
