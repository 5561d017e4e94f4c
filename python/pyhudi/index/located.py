"""What an index needs to know of a table, and what it answers. No rules here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from pyhudi.config.merge_mode import BuiltInMode
from pyhudi.config.table_config import TableConfig
from pyhudi.config.write_options import WriteOptions
from pyhudi.engine.protocol import Engine
from pyhudi.index.choice import IndexChoice
from pyhudi.index.key_source import KeySource
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.read_tasks import TableState
from pyhudi.slices.tagged import Tagged
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline

NOWHERE = Tagged(pa.array([], pa.int64()), pa.array([], pa.int64()))


class IndexedTable(Protocol):
    """A table as one write sees it: `txn.session.Session`."""

    @property
    def engine(self) -> Engine:
        """What runs the tasks."""
        ...

    @property
    def storage(self) -> Storage:
        """Where the table lies."""
        ...

    @property
    def config(self) -> TableConfig:
        """The table's properties."""
        ...

    @property
    def timeline(self) -> Timeline:
        """The timeline that the write builds on."""
        ...

    @property
    def options(self) -> WriteOptions:
        """The writer's options."""
        ...

    @property
    def merge_mode(self) -> BuiltInMode | None:
        """How records of one key are merged."""
        ...

    @property
    def index(self) -> IndexChoice:
        """How keys are found."""
        ...

    @property
    def key_source(self) -> KeySource:
        """How the keys of the table's files are read."""
        ...

    def combined(self, rows: pa.Table) -> pa.Table:
        """One row a key, by the table's merge rules."""
        ...

    def groups(self, partitions: Sequence[str] | None) -> tuple[list[FileGroup], list[FileSlice]]:
        """File groups of partitions (None for all), and of each the slice that is read."""
        ...

    def state(self) -> TableState:
        """The table as a scan sees it."""
        ...

    def new_file_id(self) -> str:
        """A file id that no file has."""
        ...


@dataclass(frozen=True)
class Located:
    """Where incoming rows are, or are to go."""

    tagged: Tagged
    groups: list[FileGroup]
    """What the numbers in `tagged` stand for. Some may be groups that are still to be made."""


def group_numbers(groups: Sequence[FileGroup]) -> Mapping[tuple[str, str], int]:
    """The number of each group by partition path and file id."""
    return {(one.slice.partition, one.slice.file_id): n for n, one in enumerate(groups)}
