"""One file group of the metadata table, as a task takes it to a worker. Asks nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyhudi import _native

if TYPE_CHECKING:
    from pyhudi.storage import Storage


@dataclass(frozen=True)
class MetadataGroup:
    """The newest slice of a file group, to be opened by itself."""

    storage: Storage
    """Of the metadata table."""
    base: str | None
    logs: tuple[str, ...]
    valid_instants: tuple[str, ...] | None
    timeline_start: str | None

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
