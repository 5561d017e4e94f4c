"""One file group of the metadata table, as a task takes it to a worker. Asks nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyhudi import _native

if TYPE_CHECKING:
    from pyhudi.config import TableConfig
    from pyhudi.storage import Storage
    from pyhudi.timeline import Timeline
    from pyhudi.view.slices import FileSlice


@dataclass(frozen=True)
class MetadataGroup:
    """The newest slice of a file group, to be opened by itself."""

    storage: Storage
    """Of the metadata table."""
    base: str | None
    logs: tuple[str, ...]
    valid_instants: tuple[str, ...] | None
    timeline_start: str | None

    @classmethod
    def of(
        cls, storage: Storage, config: TableConfig, timeline: Timeline, newest: FileSlice
    ) -> MetadataGroup:
        """storage, config, timeline: the metadata table's."""
        checked = config.version.blocks_need_commit_check
        return cls(
            storage,
            newest.base.path if newest.base else None,
            tuple(log.path for log in newest.logs),
            tuple(one.requested for one in timeline.completed()) if checked else None,
            timeline.blocks_start if checked else None,
        )

    def open(self) -> _native.MetadataPartition:
        """Its records. Every key is looked for in this group, whatever its hash."""
        return _native.MetadataPartition(
            self.storage.native,
            [(self.base, self.logs)],
            valid_instants=self.valid_instants,
            timeline_start=self.timeline_start,
        )


def open_together(groups: Sequence[MetadataGroup]) -> _native.MetadataPartition:
    """The records of all file groups of a partition, in which keys are found by their hash."""
    first = groups[0]
    return _native.MetadataPartition(
        first.storage.native,
        [(group.base, group.logs) for group in groups],
        valid_instants=first.valid_instants,
        timeline_start=first.timeline_start,
    )
