"""The metadata table as a table that is written to: opened, its failed writes rolled back.

It is a merge-on-read table, so its timeline, file groups and rollbacks are those of any table.
Reading what it says is `table.py`'s part.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyhudi.config import TableConfig
from pyhudi.metadata.partitioned import check_numbers
from pyhudi.metadata.table import FOLDER, PROPERTIES, open_config
from pyhudi.storage import Storage
from pyhudi.timeline import Timeline
from pyhudi.timeline.instants import DELTA_COMMIT, ROLLBACK, Instant, State
from pyhudi.timeline.layout import META_FOLDER
from pyhudi.view.filesystem_view import FileSystemView

if TYPE_CHECKING:
    from pyhudi.plan.write import FileGroup
    from pyhudi.timeline import InstantGenerator
    from pyhudi.txn.rollback import RollbackContext

GroupsByPartition = dict[str, list["FileGroup"]]


@dataclass(frozen=True)
class OwnTable:
    """A metadata table at one moment."""

    storage: Storage
    config: TableConfig
    timeline: Timeline

    @classmethod
    def open(cls, data: Storage) -> OwnTable:
        """That of a data table. Raises `CorruptTable` when it is missing."""
        storage = data.below(FOLDER)
        config = open_config(storage)
        return cls(storage, config, Timeline.load(storage, config))

    def reloaded(self) -> OwnTable:
        """With the timeline of now."""
        return replace(self, timeline=Timeline.load(self.storage, self.config))

    def groups(self, partitions: Collection[str]) -> GroupsByPartition:
        """The file groups of its partitions, in the order in which the keys' hash counts them."""
        from pyhudi.txn.targets import file_groups  # noqa: PLC0415 - it imports planning

        view = FileSystemView(self.storage, self.config, self.timeline, set(partitions))
        found: GroupsByPartition = {name: [] for name in partitions}
        for group in file_groups(self.timeline, view.unmerged_slices(), view.slices()):
            found[group.slice.partition].append(group)
        for name, groups in found.items():
            groups.sort(key=lambda group: group.slice.file_id)
            check_numbers(name, groups)
        return found

    def observe(self, generator: InstantGenerator) -> None:
        """Makes later times greater than those of its timeline, which its services may have led on.

        Log files are placed by completion times: one that is smaller than a compaction's instant
        would put the file below it. Up to table version 6 the names of log files tell.
        """
        if self.timeline.completes_in_names:
            generator.observe(self.timeline)

    def find(self, time: str) -> Instant | None:
        """Its delta commit of an instant, in any state."""
        return self.timeline.find(time, DELTA_COMMIT)

    def context(self, data: RollbackContext) -> RollbackContext:
        """What its own rollbacks work with; instants come from the data table's source."""
        return replace(data, storage=self.storage, config=self.config)


def remove_metadata_table(data: Storage) -> None:
    """Takes all of a metadata table away; a reader at work never takes the rest for the whole.

    Without properties nobody opens it, and as long as there are instants it is known which files
    there must be.
    """
    data.delete(f"{FOLDER}/{PROPERTIES}")
    for folder in data.list_dir(FOLDER)[0]:
        if folder != f"{FOLDER}/{META_FOLDER}":
            data.delete_dir(folder)
    data.delete_dir(FOLDER)


def roll_back_delta_commit(own: OwnTable, data: RollbackContext, target: str, time: str) -> None:
    """Takes a delta commit back as the rollback `time`, be it pending, completed or not there.

    A completed one is made pending first, so that readers never miss files of it.
    """
    from pyhudi.txn import rollback  # noqa: PLC0415 - it calls this module

    context = own.context(data)
    begun = own.timeline.find(time, ROLLBACK)
    if begun is not None and begun.is_completed:
        return
    if own.find(target) is not None:
        own.config.layout.remove(own.storage, target, DELTA_COMMIT, State.COMPLETED)
        own = own.reloaded()
    if begun is not None:
        rollback.resume(context, own.timeline, begun)
        return
    instant = own.find(target)
    if instant is not None:
        rollback.roll_back(context, own.timeline, instant, time=time)
