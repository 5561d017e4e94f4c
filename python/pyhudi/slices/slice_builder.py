"""File groups of a view and of plans, as plain data.

The core groups files and finds the slices of a group (`rust/files`), for all groups of a table at
once. Here are the objects of one group, which few callers need.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyhudi.slices.file_slice import (
    BaseFile,
    FileParts,
    FileSlice,
    LogFile,
    LogFiles,
    SliceParts,
    log_file,
)

if TYPE_CHECKING:
    from pyhudi import _native

GroupKey = tuple[str, str]
"""Partition path and file id."""


@dataclass(frozen=True, slots=True)
class GroupFiles:
    """All files of one file group, committed or not."""

    partition: str
    file_id: str
    bases: list[BaseFile] = field(default_factory=list)
    logs: list[LogFile] = field(default_factory=list)

    @property
    def key(self) -> GroupKey:
        """The key of the group."""
        return (self.partition, self.file_id)


class FileGroups(Mapping[GroupKey, GroupFiles]):
    """File groups by key, in its order. The objects of a group are made when it is asked for."""

    def __init__(self, native: _native.FileGroups, *, appended: bool) -> None:
        """`appended`: whether commits append to existing log files."""
        self.native = native
        self._appended = appended

    def __len__(self) -> int:
        return len(self.native)

    def __iter__(self) -> Iterator[GroupKey]:
        return iter(self.native.keys())

    def __contains__(self, key: object) -> bool:
        return isinstance(key, tuple) and self.native.has_group(*key)

    def __getitem__(self, key: GroupKey) -> GroupFiles:
        parts = self.native.files(*key)
        if parts is None:
            raise KeyError(key)
        group = GroupFiles(*key)
        for file in parts:
            if file[4] is None:
                group.bases.append(base_file(*key, file))
            else:
                group.logs.append(log_file(*key, file, appended=self._appended))
        return group


def base_file(partition: str, file_id: str, parts: FileParts) -> BaseFile:
    """Return a base file from its parts in the core."""
    name, instant, write_token, size, _, _ = parts
    return BaseFile(partition, name, file_id, instant, write_token, size)


def file_slice(parts: SliceParts, *, appended: bool) -> FileSlice:
    """Return a file slice from its parts in the core."""
    partition, file_id, instant, base, logs = parts
    return FileSlice(
        partition,
        file_id,
        instant,
        None if base is None else base_file(partition, file_id, base),
        LogFiles(partition, file_id, logs, appended=appended) if logs else (),
    )


def groups_of_plan(plan: Mapping[str, Any] | None) -> Iterator[GroupKey]:
    """Return the file groups in a plan of a compaction or clustering; none for other plans."""
    slices = records_of_plan(plan)
    return ((slice_["partitionPath"] or "", slice_["fileId"]) for slice_ in slices)


def records_of_plan(plan: Mapping[str, Any] | None) -> Iterator[Mapping[str, Any]]:
    """Yield the file slices in a plan of a compaction or clustering, as records."""
    plan = plan or {}
    yield from plan.get("operations") or ()
    for group in (plan.get("clusteringPlan") or {}).get("inputGroups") or ():
        yield from group.get("slices") or ()
