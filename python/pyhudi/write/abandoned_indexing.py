"""Cleanup of an index build that Apache Hudi started and did not finish, as its indexer does.

While an index is being built, `hoodie.table.metadata.partitions.inflight` names it, and every
writer has to maintain the existing part of it. pyhudi does not support that, so it does not write
to the table. Hudi does not continue an indexing that was started: if its writer failed, the
index has to be removed before it can be built again. An indexing has no heartbeat for all of its
duration (up to 1.2.0), so the user has to confirm that it failed. Source:
`RunIndexActionExecutor`, `HoodieIndexer` (Hudi 0.15.0, 1.0.2, 1.2.0).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pyhudi.clock import Clock
from pyhudi.config.actions import INDEXING, Instant
from pyhudi.config.metadata_names import FILES, FOLDER
from pyhudi.config.property_names import METADATA_PARTITIONS_INFLIGHT
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CommitConflict, CorruptTable
from pyhudi.metadata.index_definitions import change_definitions
from pyhudi.metadata.partition_types.registry import PARTITION_TYPES
from pyhudi.metadata.pending_operation import PendingOperation
from pyhudi.metadata.table_writer import clear_partitions, remove_metadata_table
from pyhudi.storage.storage import Storage
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline
from pyhudi.txn.heartbeat import live_instants
from pyhudi.write.async_indexing import remove_pending_indexing
from pyhudi.write.table_opening import Handle, open_for_change

_NAME = re.compile(r"\w+")
"""The name of a partition of the metadata table, which is a directory."""


def remove_abandoned_indexing(handle: Handle, name: str, clock: Clock) -> tuple[str, ...]:
    """Remove an index that Apache Hudi has not finished, with all partitions of its indexing.

    Returns the removed partitions, nothing if no such build was started. Each step can be repeated:
    the property that names the build is removed last. Raises `CommitConflict` if the indexing has a
    heartbeat.
    """
    with handle.lock_manager.critical_section():
        config = TableConfig.load(handle.storage, clock)
        timeline = Timeline.load(handle.storage, config)
        names = {
            name,
            *(index_type.name + name for index_type in PARTITION_TYPES if index_type.has_names),
        }
        indexings = [
            indexing for indexing in _indexings(config, timeline) if names & {*indexing[1]}
        ]
        inflight = [
            part
            for part in config.properties.get(METADATA_PARTITIONS_INFLIGHT, "").split(",")
            if part
        ]
        planned = {partition for _, partitions in indexings for partition in partitions}
        removed = (planned - {*config.metadata_partitions}) | names.intersection(inflight)
        if not (removed or indexings):
            return ()
        _check_not_running(handle.storage, {instant.requested for instant, _ in indexings}, clock)
        properties = {
            key: value
            for key, value in config.properties.items()
            if key != METADATA_PARTITIONS_INFLIGHT
        }
        table = open_for_change(handle, clock, TableConfig(properties))
        for instant, _ in indexings:
            remove_pending_indexing(table, instant.requested)
        _remove_files(table, removed)
        remaining = [partition for partition in inflight if partition not in removed]
        config.update(handle.storage, {METADATA_PARTITIONS_INFLIGHT: ",".join(remaining)}, clock)
        return tuple(sorted(removed))


def _check_not_running(storage: Storage, instants: set[str], clock: Clock) -> None:
    for storage_with_heartbeats in (storage, storage.below(FOLDER)):
        for instant in live_instants(storage_with_heartbeats, instants, clock):
            msg = f"another writer is executing the indexing {instant}"
            raise CommitConflict(
                msg, hint="Wait until it is done, or some minutes if it has failed."
            )


def _indexings(config: TableConfig, timeline: Timeline) -> Iterator[tuple[Instant, list[str]]]:
    """Yield pending indexings of other writers with the partitions that they build."""
    own_instant = PendingOperation.of(config).heartbeat
    for instant in timeline.pending(INDEXING):
        if instant.requested != own_instant:
            infos = (timeline.plan(instant) or {}).get("indexPartitionInfos") or ()
            partitions = [str(info["metadataPartitionPath"]) for info in infos]
            # Directories of these names are deleted.
            if not all(map(_NAME.fullmatch, partitions)):
                msg = f"the indexing {instant.requested} builds {', '.join(partitions)}"
                raise CorruptTable(msg)
            yield instant, partitions


def _remove_files(table: TableSnapshot, removed: set[str]) -> None:
    if FILES in removed:
        remove_metadata_table(table.storage, table.lock_manager)
        return
    change_definitions(table.storage, table.config, {}, removed=removed)
    clear_partitions(table.storage, removed, table.lock_manager)
