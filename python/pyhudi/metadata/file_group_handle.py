"""A handle to a file group of the metadata table: the files that a task opens on a worker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pyhudi import _native
from pyhudi.config.file_names import file_name_of, parse_base_name, parse_log_name
from pyhudi.config.table_config import TableConfig
from pyhudi.slices.file_slice import FileSlice
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline


@dataclass(frozen=True)
class FileGroupHandle:
    """The files of the newest slice of a file group. A worker opens them without a listing."""

    storage: Storage
    """The metadata table's storage."""
    base: str | None
    logs: tuple[str, ...]
    valid_instants: tuple[str, ...] | None
    timeline_start: str | None

    @property
    def instants(self) -> Iterator[str]:
        """Return the instants in the names of its files."""
        base = None if self.base is None else parse_base_name(file_name_of(self.base), "hfile")
        if base is not None:
            yield base.instant
        for path in self.logs:
            log = parse_log_name(file_name_of(path))
            if log is not None:
                yield log.instant

    def open(self) -> _native.MetadataPartition:
        """Open its records. Every key is looked up in this group, whatever its hash."""
        return _native.MetadataPartition(
            self.storage.native,
            [(self.base, self.logs)],
            valid_instants=self.valid_instants,
            timeline_start=self.timeline_start,
        )


def handles_of(
    storage: Storage, config: TableConfig, timeline: Timeline, slices: Iterable[FileSlice]
) -> list[FileGroupHandle]:
    """Return the file groups of slices. storage, config, timeline: the metadata table's."""
    needs_commit_check = config.version.blocks_need_commit_check
    valid_instants = (
        tuple(instant.requested for instant in timeline.filter_completed())
        if needs_commit_check
        else None
    )
    timeline_start = timeline.blocks_start if needs_commit_check else None
    return [
        FileGroupHandle(
            storage,
            slice_.base.path if slice_.base else None,
            tuple(log.path for log in slice_.logs),
            valid_instants,
            timeline_start,
        )
        for slice_ in slices
    ]


def open_groups(groups: Sequence[FileGroupHandle]) -> _native.MetadataPartition:
    """Open the records of all file groups of a partition, in which a hash locates each key."""
    first = groups[0]
    return _native.MetadataPartition(
        first.storage.native,
        [(group.base, group.logs) for group in groups],
        valid_instants=first.valid_instants,
        timeline_start=first.timeline_start,
    )
