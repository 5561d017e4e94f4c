"""A table as one write's executors see it: what the driver found, and no look at the timeline.

Keys are made and looked up on executors by the same functions as in an embedded write. They ask a
context, and this is one that travels: it lists nothing and makes no instants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from pyhudi.schema.key_generator import KeySpec
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.write.write_context import WriteContext


@dataclass(frozen=True)
class RemoteContext(WriteContext):
    """A context that can be pickled. Its engine is one thread of the task that uses it."""

    spec: KeySpec | None = None
    found: tuple[tuple[FileGroup, FileSlice], ...] = ()
    """The file groups that keys may be in, each with the slice that is read."""

    @classmethod
    def of(cls, context: WriteContext, partitions: Sequence[str] | None = ()) -> RemoteContext:
        """What executors need. partitions: those whose file groups they need, None for all."""
        given = {field.name: getattr(context, field.name) for field in fields(WriteContext)}
        groups, slices = context.groups(partitions) if partitions != () else ([], [])
        found = tuple(zip(groups, slices, strict=True))
        given["chosen"] = context.index
        return cls(**given, spec=context.key_spec(), found=found)

    def key_spec(self) -> KeySpec:
        """As the driver found it."""
        if self.spec is None:
            raise AssertionError
        return self.spec

    def groups(self, partitions: Sequence[str] | None) -> tuple[list[FileGroup], list[Any]]:
        """Of those that the driver found."""
        wanted = None if partitions is None else set(partitions)
        found = [
            (group, slice_)
            for group, slice_ in self.found
            if wanted is None or slice_.partition in wanted
        ]
        return [group for group, _ in found], [slice_ for _, slice_ in found]
