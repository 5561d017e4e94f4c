"""A write's context on executors: what the driver planned, without access to the timeline.

Executors make and look up keys with the same functions as a local write, which use a context. This
one can be pickled: it lists nothing and creates no instants.
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
    groups_with_slices: tuple[tuple[FileGroup, FileSlice], ...] = ()
    """The file groups that may have the keys, each with the slice to read."""

    @classmethod
    def of(cls, context: WriteContext, partitions: Sequence[str] | None = ()) -> RemoteContext:
        """Return the context for executors.

        partitions: those whose file groups they need, None for all.
        """
        values = {field.name: getattr(context, field.name) for field in fields(WriteContext)}
        groups, slices = context.groups(partitions) if partitions != () else ([], [])
        groups_with_slices = tuple(zip(groups, slices, strict=True))
        values["selected_index"] = context.index
        return cls(**values, spec=context.key_spec(), groups_with_slices=groups_with_slices)

    def key_spec(self) -> KeySpec:
        """Return the driver's key specification."""
        if self.spec is None:
            raise AssertionError
        return self.spec

    def groups(self, partitions: Sequence[str] | None) -> tuple[list[FileGroup], list[Any]]:
        """Return file groups among those that the driver found."""
        selected = None if partitions is None else set(partitions)
        matches = [
            (group, slice_)
            for group, slice_ in self.groups_with_slices
            if selected is None or slice_.partition in selected
        ]
        return [group for group, _ in matches], [slice_ for _, slice_ in matches]
