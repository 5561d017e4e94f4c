"""New file ids for buckets whose file groups a replace commit takes away.

What a replace commit took away stays away, whatever is written to it later. So a bucket that lives
on needs another file id: a simple one any with its number, one of a hash ring that of a new ring
with the same ranges. Such a ring bears the replace commit's instant, as that of a resize does, and
counts once that is complete (`ConsistentBucketIndexUtils.loadMetadata`, Hudi 0.15.0 and 1.2.0).
Hudi makes none when it overwrites or deletes partitions (1.2.0), and loses or doubles what it
writes there afterwards. Which rows go where is `bucket_lookup.py`'s and `consistent_hashing.py`'s
part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyhudi.errors import CorruptTable
from pyhudi.index.protocol import IndexedTable
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.hashing_metadata import Ring, file_id_of
from pyhudi.slices.hashing_metadata_files import (
    StoredRing,
    confirm_rings,
    forget_rings,
    put_ring,
    read_committed_ring,
    ring_to_write_by,
)
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.table.participants import CommitParticipant, Rollback
from pyhudi.table.table_snapshot import TableSnapshot

Renewed = Mapping[str, Mapping[str, str]]
"""For each partition with a new ring the new file ids by the old ones."""


def replace_hashing_metadata(
    table: IndexedTable, replaced: Mapping[str, tuple[str, ...]], instant: str
) -> Renewed:
    """Stores new rings for the partitions that lose file groups with the commit of an instant.

    replaced: all file groups of the partitions, by file id. They do not count before the commit.
    Without hash rings nothing is done. Raises `CommitConflict` while a ring is being resized.
    """
    if not table.index.has_rings:
        return {}
    gone = find_replaced_file_ids(table)
    renewed: dict[str, Mapping[str, str]] = {}
    for partition, ids in replaced.items():
        ring = ring_to_write_by(table.storage, table.timeline, partition) or []
        lost = {*ids, *gone.get(partition, {})}
        if not lost.isdisjoint(file_id_of(prefix) for _, prefix in ring):
            pairs = zip(ring, store_ring(table, partition, ring, instant), strict=True)
            renewed[partition] = {file_id_of(a[1]): file_id_of(b[1]) for a, b in pairs}
    return renewed


def in_place(groups: list[FileGroup], renewed: Renewed) -> list[FileGroup]:
    """File groups that are still to be made, under the file ids of new rings."""
    return [replace(old, slice=replace(old.slice, file_id=_new_id(old, renewed))) for old in groups]


def _new_id(group: FileGroup, renewed: Renewed) -> str:
    slice_ = group.slice
    return renewed.get(slice_.partition, {}).get(slice_.file_id, slice_.file_id)


class HashingMetadataParticipant(CommitParticipant):
    """Keeps rings of writes that are taken back from counting."""

    def on_rollback(self, table: TableSnapshot, rollback: Rollback) -> None:
        """Removes the rings of the write."""
        forget_rings(table.storage, rollback.target)

    def on_revoke(self, table: TableSnapshot, instant: str) -> None:
        """Removes the rings of the write."""
        forget_rings(table.storage, instant)


def store_ring(table: IndexedTable, partition: str, ring: Ring, instant: str) -> Ring:
    """A ring of the same ranges with new file ids, stored under an instant.

    Gives what is stored there, where another writer was faster.
    """
    known = read_committed_ring(table.storage, table.timeline, partition)
    number, buckets = (known.number + 1, known.buckets) if known else (0, len(ring))
    new = [(value, table.new_file_id().rpartition("-")[0]) for value, _ in ring]
    stored = StoredRing(new, number, buckets)
    return put_ring(table.storage, partition, stored, instant).nodes


def find_replaced_file_ids(table: IndexedTable) -> Mapping[str, Mapping[str, str]]:
    """File ids that replace commits took away, by partition path, with the commit's instant."""
    found: dict[str, dict[str, str]] = {}
    view = FileSystemView(table.storage, table.config, table.timeline, ())
    for (partition, file_id), instant in view.replaced.items():
        found.setdefault(partition, {})[file_id] = instant
    return found


def usable_ring(
    table: IndexedTable,
    partition: str,
    ring: Ring,
    live: set[str],
    gone: Mapping[str, str],
) -> Ring:
    """The ring to write to a partition by: its own, or a new one where all of it was taken away.

    live: file ids of the partition's file groups; gone: those that were taken away, with their
    instants. Raises `CorruptTable` where rows are beside the ring, or parts of it were taken away:
    a key would be in two file groups, or be lost.
    """
    ids = {file_id_of(prefix) for _, prefix in ring}
    lost = sorted(gone[file_id] for file_id in ids if file_id in gone)
    outside = sorted(live - ids)
    if outside or (lost and live):
        named = outside[0] if outside else lost[0]
        msg = (
            f"partition {partition!r} was overwritten without new hashing metadata: {named} does "
            "not match it"
        )
        raise CorruptTable(
            msg, hint="Apache Hudi leaves this state. Overwrite the partition with pyhudi."
        )
    if not lost:
        return ring
    new = store_ring(table, partition, ring, lost[-1])
    # Of log files alone Hudi 0.15 does not tell that the ring counts.
    confirm_rings(table.storage, [partition], lost[-1])
    return new
