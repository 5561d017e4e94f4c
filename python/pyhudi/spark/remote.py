"""A table as one write's executors see it: what the driver found, and no look at the timeline.

Keys are made and looked up on executors by the same functions as in an embedded write. They ask a
session, and this is one that travels: it lists nothing and makes no instants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import pyarrow as pa

from pyhudi.index.protocol import Index
from pyhudi.schema.conform import conform, data_schema
from pyhudi.schema.record_keys import KeySpec, add_keys
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.write.partial_update import partial_rows
from pyhudi.write.write_context import Session


@dataclass(frozen=True)
class RemoteSession(Session):
    """A session that can be pickled. Its engine is one thread of the task that uses it."""

    choice: Index | None = None
    spec: KeySpec | None = None
    found: tuple[tuple[FileGroup, FileSlice], ...] = ()
    """The file groups that keys may be in, each with the slice that is read."""

    @classmethod
    def of(cls, session: Session, partitions: Sequence[str] | None = ()) -> RemoteSession:
        """What executors need. partitions: those whose file groups they need, None for all."""
        given = {field.name: getattr(session, field.name) for field in fields(Session)}
        groups, slices = session.groups(partitions) if partitions != () else ([], [])
        found = tuple(zip(groups, slices, strict=True))
        return cls(**given, choice=session.index, spec=session.key_spec(), found=found)

    @cached_property
    def index(self) -> Index:
        """As the driver chose it."""
        if self.choice is None:
            raise AssertionError
        return self.choice

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

    def keyed(self, rows: pa.Table, mode: str, instant: str | None, place: tuple[int, int]) -> Any:
        """As `with_keys` of what `evolved` gives.

        mode: the schema mode, or "partial" for rows with some of the columns. instant, place: as
        `add_keys` takes them.
        """
        if mode == "partial":
            return partial_rows(self, self._rows(rows))
        _, rows = self.evolved(rows, mode)
        rows = conform(self._rows(rows), data_schema(self.schema.arrow))
        return add_keys(rows, self.key_spec(), instant=instant, place=place)
