"""New file ids for buckets whose file groups a replace commit replaces.

A replaced file group stays replaced, even if it is written to later, so its bucket needs another
file id: a simple bucket any id with its number, a consistent-hashing bucket that of new hashing
metadata with the same ranges. This metadata has the instant of the replace commit, as in a resize,
and is valid once the commit is complete (`ConsistentBucketIndexUtils.loadMetadata`,
Hudi 0.15.0 and 1.2.0). Hudi writes none when it overwrites or deletes partitions (1.2.0), and then
loses or duplicates rows there. `bucket_lookup.py` and `consistent_hashing.py` decide which rows go
where.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyhudi.errors import CorruptTable
from pyhudi.index.protocol import IndexedTable
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.hashing_metadata import (
    HashingMetadata,
    HashingNodes,
    confirm_hashing_metadata,
    file_id_of,
    nodes_for_write,
    read_committed_hashing_metadata,
    remove_hashing_metadata,
    store_hashing_metadata,
)
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.table.participants import CommitParticipant, Rollback
from pyhudi.table.table_snapshot import TableSnapshot

NewFileIds = Mapping[str, Mapping[str, str]]
"""For each partition with new hashing metadata, the new file ids by the old ones."""


def replace_hashing_metadata(
    table: IndexedTable, replaced: Mapping[str, tuple[str, ...]], instant: str
) -> NewFileIds:
    """Store new hashing metadata for partitions whose file groups a commit replaces.

    replaced: all file groups of the partitions, by file id. The metadata is valid once the commit
    is complete. Does nothing without consistent hashing. Raises `CommitConflict` while a partition
    is being resized.
    """
    if not table.index.has_consistent_hashing:
        return {}
    replaced_ids = find_replaced_file_ids(table)
    new_ids: dict[str, Mapping[str, str]] = {}
    for partition, ids in replaced.items():
        nodes = nodes_for_write(table.storage, table.timeline, partition) or []
        unusable_ids = {*ids, *replaced_ids.get(partition, {})}
        if not unusable_ids.isdisjoint(file_id_of(prefix) for _, prefix in nodes):
            pairs = zip(nodes, store_new_nodes(table, partition, nodes, instant), strict=True)
            new_ids[partition] = {file_id_of(old[1]): file_id_of(new[1]) for old, new in pairs}
    return new_ids


def with_new_file_ids(groups: list[FileGroup], new_ids: NewFileIds) -> list[FileGroup]:
    """Return file groups to create, under the file ids of new hashing metadata."""
    return [replace(old, slice=replace(old.slice, file_id=_new_id(old, new_ids))) for old in groups]


def _new_id(group: FileGroup, new_ids: NewFileIds) -> str:
    slice_ = group.slice
    return new_ids.get(slice_.partition, {}).get(slice_.file_id, slice_.file_id)


class HashingMetadataParticipant(CommitParticipant):
    """Removes hashing metadata of writes that are rolled back or revoked."""

    def on_rollback(self, table: TableSnapshot, rollback: Rollback) -> None:
        """Remove the hashing metadata of the write."""
        remove_hashing_metadata(table.storage, rollback.target)

    def on_revoke(self, table: TableSnapshot, instant: str) -> None:
        """Remove the hashing metadata of the write."""
        remove_hashing_metadata(table.storage, instant)


def store_new_nodes(
    table: IndexedTable, partition: str, nodes: HashingNodes, instant: str
) -> HashingNodes:
    """Store hashing metadata of the same ranges with new file ids under an instant.

    Returns what is stored there, if another writer was faster.
    """
    current = read_committed_hashing_metadata(table.storage, table.timeline, partition)
    number, buckets = (current.sequence_number + 1, current.buckets) if current else (0, len(nodes))
    new = [(value, table.new_file_id().rpartition("-")[0]) for value, _ in nodes]
    metadata = HashingMetadata(new, number, buckets)
    return store_hashing_metadata(table.storage, partition, metadata, instant).nodes


def find_replaced_file_ids(table: IndexedTable) -> Mapping[str, Mapping[str, str]]:
    """Return the replaced file ids by partition path, with the instant of the replace commit."""
    ids_by_partition: dict[str, dict[str, str]] = {}
    view = FileSystemView(table.storage, table.config, table.timeline, ())
    for (partition, file_id), instant in view.replaced.items():
        ids_by_partition.setdefault(partition, {})[file_id] = instant
    return ids_by_partition


def usable_nodes(
    table: IndexedTable,
    partition: str,
    nodes: HashingNodes,
    live_ids: set[str],
    replaced: Mapping[str, str],
) -> HashingNodes:
    """Return the hash nodes to write by: the partition's, or new ones if all are replaced.

    live_ids: file ids of the partition's file groups. replaced: replaced ones, with their instants.
    Raises `CorruptTable` if a file group has no node, or only some of the nodes were replaced: a
    key would be in two file groups, or be lost.
    """
    ids = {file_id_of(prefix) for _, prefix in nodes}
    replace_instants = sorted(replaced[file_id] for file_id in ids if file_id in replaced)
    without_node = sorted(live_ids - ids)
    if without_node or (replace_instants and live_ids):
        example = without_node[0] if without_node else replace_instants[0]
        msg = (
            f"partition {partition!r} was overwritten without new hashing metadata: {example} does "
            "not match it"
        )
        raise CorruptTable(
            msg, hint="Apache Hudi leaves this state. Overwrite the partition with pyhudi."
        )
    if not replace_instants:
        return nodes
    new_nodes = store_new_nodes(table, partition, nodes, replace_instants[-1])
    # With log files only, Hudi 0.15 does not record that the hashing metadata is valid.
    confirm_hashing_metadata(table.storage, [partition], replace_instants[-1])
    return new_nodes
