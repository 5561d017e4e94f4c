"""An index that Apache Hudi has begun to make and not ended: taken back, as its indexer does.

While an index is being made, `hoodie.table.metadata.partitions.inflight` names it, and every writer
has to keep up to date what is there of it. pyhudi does not, so it writes nothing meanwhile. Hudi
carries out no indexing that it has begun once: where its writer died, the index has to go before it
can be made anew. It shows no heartbeat for all of an indexing (up to 1.2.0), so somebody has to say
that it is dead. Source: `RunIndexActionExecutor`, `HoodieIndexer` (Hudi 0.15.0, 1.0.2, 1.2.0).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pyhudi.clock import Clock
from pyhudi.config.actions import INDEXING, Instant
from pyhudi.config.metadata_names import FILES, FOLDER
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CommitConflict, CorruptTable
from pyhudi.metadata.index_definitions_file import change_definitions
from pyhudi.metadata.partition_types.registry import KINDS
from pyhudi.metadata.pending_operation import PendingOperation
from pyhudi.metadata.table_writer import clear_partitions, remove_metadata_table
from pyhudi.metadata.write_checks import BEING_MADE
from pyhudi.storage.storage import Storage
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline
from pyhudi.txn.heartbeat import live_instants
from pyhudi.write.async_indexing import remove_left
from pyhudi.write.write_context import Handle, open_for_change

_NAME = re.compile(r"\w+")
"""Of a partition of the metadata table, which is a folder."""


def take_back(handle: Handle, name: str, clock: Clock) -> tuple[str, ...]:
    """Takes an index back that Apache Hudi has not ended, with all that its indexing was to make.

    Gives what went, nothing where no such index has been begun. Each step can be done again: that
    the index is being made is what goes last. Raises `CommitConflict` where a heartbeat of the
    indexing is there.
    """
    with handle.guarded.critical_section():
        config = TableConfig.load(handle.storage, clock)
        timeline = Timeline.load(handle.storage, config)
        names = {name, *(kind.name + name for kind in KINDS if kind.has_names)}
        indexings = [found for found in _indexings(config, timeline) if names & {*found[1]}]
        begun = [part for part in config.properties.get(BEING_MADE, "").split(",") if part]
        planned = {partition for _, partitions in indexings for partition in partitions}
        gone = (planned - {*config.metadata_partitions}) | names.intersection(begun)
        if not (gone or indexings):
            return ()
        _check_dead(handle.storage, {instant.requested for instant, _ in indexings}, clock)
        properties = {key: text for key, text in config.properties.items() if key != BEING_MADE}
        table = open_for_change(handle, clock, TableConfig(properties))
        for instant, _ in indexings:
            remove_left(table, instant.requested)
        _remove_files(table, gone)
        left = [partition for partition in begun if partition not in gone]
        config.update(handle.storage, {BEING_MADE: ",".join(left)}, clock)
        return tuple(sorted(gone))


def _check_dead(storage: Storage, instants: set[str], clock: Clock) -> None:
    for beating in (storage, storage.below(FOLDER)):
        for instant in live_instants(beating, instants, clock):
            msg = f"another writer is executing the indexing {instant}"
            raise CommitConflict(
                msg, hint="Wait until it is done, or some minutes if it has failed."
            )


def _indexings(config: TableConfig, timeline: Timeline) -> Iterator[tuple[Instant, list[str]]]:
    """Those that are not complete, and what they were to make; of pyhudi's own there is none."""
    own = PendingOperation.of(config).by
    for instant in timeline.pending(INDEXING):
        if instant.requested != own:
            infos = (timeline.plan(instant) or {}).get("indexPartitionInfos") or ()
            found = [str(info["metadataPartitionPath"]) for info in infos]
            # What they name is deleted.
            if not all(map(_NAME.fullmatch, found)):
                msg = f"the indexing {instant.requested} builds {', '.join(found)}"
                raise CorruptTable(msg)
            yield instant, found


def _remove_files(table: TableSnapshot, gone: set[str]) -> None:
    if FILES in gone:
        remove_metadata_table(table.storage, table.guard)
        return
    change_definitions(table.storage, table.config, {}, removed=gone)
    clear_partitions(table.storage, gone, table.guard)
