"""The interface of a write's rows, independent of where they are stored.

They are in memory (`memory_rows.py`), in local files (`spilled_rows.py`) or in a Spark DataFrame
(`spark/write_rows.py`). An operation takes `UnassignedRows`, has them assigned by its semantics,
and passes the `AssignedRows` to `execute.py`, which plans with their counts alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.txn.conflicts import FileGroups
from pyhudi.write.file_assignment import Counts, PlannedFile
from pyhudi.write.row_counters import RowCounters
from pyhudi.write.row_sizes import RowRange
from pyhudi.write.write_context import WriteContext


class AssignedRows(Protocol):
    """Rows assigned to file groups, or as new rows to partitions."""

    @property
    def context(self) -> WriteContext:
        """The recovered table in which the rows were assigned."""
        ...

    @property
    def counts(self) -> Counts:
        """The number of rows by target."""
        ...

    @property
    def kept_in_partition(self) -> int:
        """Updates whose key is in another partition than their own, and which are written there."""
        ...

    @property
    def inserted_duplicates(self) -> int:
        """As in `RowCounters`, for rows without counters."""
        ...

    @property
    def cross_partition_duplicates(self) -> int:
        """As in `RowCounters`, for rows without counters."""
        ...

    @property
    def deleted_keys(self) -> Mapping[int, pa.Array[Any] | None]:
        """Keys to delete by file group number; None if they are in another process."""
        ...

    @property
    def missing_keys(self) -> pa.Table | None:
        """Keys that were looked up and not found: columns record key and partition path.

        Without the path if they were looked up in every partition. None if they are not all in
        memory.
        """
        ...

    @property
    def seen(self) -> FileGroups:
        """File groups with rows that were read, some of which may stay unchanged."""
        ...

    def row_ranges(self) -> Mapping[str, Sequence[RowRange]]:
        """Return the new rows by partition path, in their order, with their bytes in base files."""
        ...

    def write(self, files: Sequence[PlannedFile], instant: str) -> Iterable[tuple[WriteStat, ...]]:
        """Write the files, each with the rows assigned to it."""
        ...


class UnassignedRows(Protocol):
    """Rows with record key and partition path, not yet assigned to files.

    The methods that assign them first read them to their end, so that invalid rows raise; then
    recover the table from failed writers; then use its index. Each raises `CommitConflict` if
    another writer is active, and the errors of key generation.
    """

    @property
    def context(self) -> WriteContext:
        """The table, with the schema that the data leads to."""
        ...

    @property
    def counters(self) -> RowCounters | None:
        """The counters of the data; None if it is not counted."""
        ...

    def combine(self) -> UnassignedRows:
        """Combine the rows of each key by the table's merge rules."""
        ...

    def without_existing_keys(self, *, fail: bool) -> UnassignedRows:
        """Keep only rows whose keys the table does not have; see `existing_keys.py`.

        Raises `SchemaMismatch` for an existing key if `fail` is set.
        """
        ...

    def count_existing_keys(self) -> UnassignedRows:
        """Count the rows whose keys the table's record index has, and return all rows."""
        ...

    def fill_missing_columns(self) -> UnassignedRows:
        """Fill missing columns: see `partial_update.whole_rows`."""
        ...

    def for_upsert(self) -> AssignedRows:
        """Assign rows to the file groups in which the index finds their keys."""
        ...

    def for_insert(self, order: tuple[str, ...] = (), *, whole: bool = False) -> AssignedRows:
        """Assign rows without looking up their keys; delete rows are dropped.

        order: sort columns for the rows of each file group, sorted as a `whole` or run by run.
        """
        ...

    def for_new_buckets(self) -> AssignedRows:
        """Assign as `for_insert` under a bucket index, with new buckets in all their partitions.

        Partitions with only delete rows are included.
        """
        ...

    def for_new_files(
        self, order: tuple[str, ...] = (), *, whole: bool = False, counted: bool = True
    ) -> AssignedRows:
        """Assign rows by partition, for new file groups only; delete rows are dropped.

        Partitions with only delete rows are included. Arguments as for `for_insert`. counted: the
        caller needs the counts; otherwise each task may write its own rows.
        """
        ...
