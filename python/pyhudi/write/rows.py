"""Rows of a write, wherever they are: what every verb asks of them, and nothing about where.

They are in memory (`memory_rows.py`), in local files (`spilled_rows.py`) or in a Spark DataFrame
(`spark/write_rows.py`). A verb takes `Rows`, has them placed by what it means, and hands the
`AssignedRows` ones to `execute.py`, which plans with their counts alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.txn.conflicts import FileGroups
from pyhudi.write.file_assignment import Counts, PlannedFile
from pyhudi.write.row_counters import RowCounters
from pyhudi.write.row_sizes import Stretch
from pyhudi.write.write_context import WriteContext


class AssignedRows(Protocol):
    """Rows that know where they go: to file groups, or as new ones to partitions."""

    @property
    def context(self) -> WriteContext:
        """The table as the rows were placed in it, cleaned up."""
        ...

    @property
    def counts(self) -> Counts:
        """How many rows go where."""
        ...

    @property
    def kept_away(self) -> int:
        """Updates of keys in another partition than their own, which go there."""
        ...

    @property
    def known(self) -> int:
        """As of `RowCounters`, of rows that have none."""
        ...

    @property
    def cross_partition_duplicates(self) -> int:
        """As of `RowCounters`, of rows that have none."""
        ...

    @property
    def leaving_keys(self) -> Mapping[int, pa.Array[Any] | None]:
        """Keys to be deleted by number of the file group; None where they are not here."""
        ...

    @property
    def absent(self) -> pa.Table | None:
        """Keys that were looked for and not found: columns record key and partition path.

        Without the path where they were looked for in every partition. None where nobody has them
        all in memory.
        """
        ...

    @property
    def seen(self) -> FileGroups:
        """File groups with rows that were looked at, some of which may stay as they are."""
        ...

    def stretches(self) -> Mapping[str, Sequence[Stretch]]:
        """The new rows by partition path, in their order, with their bytes in base files."""
        ...

    def write(self, files: Sequence[PlannedFile], instant: str) -> Iterable[tuple[WriteStat, ...]]:
        """Writes the files, each with the rows that it takes."""
        ...


class Rows(Protocol):
    """Rows with record key and partition path, of which nobody knows yet where they go.

    The methods that place them read them to their end, so that bad ones are found; then the table
    is cleaned up after dead writers; then its index is asked. Each raises `CommitConflict` where
    another writer is alive, and what making keys raises.
    """

    @property
    def context(self) -> WriteContext:
        """The table, with the schema that the data lead to."""
        ...

    @property
    def tally(self) -> RowCounters | None:
        """What is counted of the data; None where that is not known."""
        ...

    def combine(self) -> Rows:
        """One row a key, by the table's merge rules."""
        ...

    def without_existing_keys(self, *, fail: bool) -> Rows:
        """Those whose keys the table lacks; see `existing_keys.py`.

        Raises `SchemaMismatch` for others where they shall `fail`.
        """
        ...

    def count_known(self) -> Rows:
        """The same rows, with those counted whose keys the table's record index has."""
        ...

    def fill_missing_columns(self) -> Rows:
        """Rows that may lack columns, as whole ones: see `partial_update.whole_rows`."""
        ...

    def for_upsert(self) -> AssignedRows:
        """Where the index has their keys."""
        ...

    def for_insert(self, order: tuple[str, ...] = (), *, whole: bool = False) -> AssignedRows:
        """Where rows go without a look for their keys, those that delete left out.

        order: of the rows of each file group, sorted as a `whole` or run by run.
        """
        ...

    def for_new_buckets(self) -> AssignedRows:
        """As `for_insert` under a bucket index, with all buckets of their partitions made anew.

        Partitions of which there are deletes alone are counted, too.
        """
        ...

    def for_new_files(
        self, order: tuple[str, ...] = (), *, whole: bool = False, counted: bool = True
    ) -> AssignedRows:
        """By partition, for files of new file groups alone; those that delete left out.

        Partitions of which there are deletes alone are counted, too. Arguments as of `for_insert`.
        counted: somebody wants to know what goes where; else each task may write what it has.
        """
        ...
