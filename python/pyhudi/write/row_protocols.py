"""The rows of a write before and after assignment to file groups, wherever they are stored.

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

    @property
    def counts(self) -> Counts:
        """The number of rows by target."""

    @property
    def kept_in_partition(self) -> int:
        """Number of updates that stay in the partition of the stored row."""

    @property
    def inserted_duplicates(self) -> int:
        """See `RowCounters`; for rows without counters."""

    @property
    def cross_partition_duplicates(self) -> int:
        """See `RowCounters`; for rows without counters."""

    @property
    def deleted_keys(self) -> Mapping[int, pa.Array[Any] | None]:
        """Keys to delete by file group number; None if they are in another process."""

    @property
    def missing_keys(self) -> pa.Table | None:
        """Keys that the table does not have: columns record key and partition path.

        Without the path if they were looked up in every partition. None if they are not in memory.
        """

    @property
    def groups_read(self) -> FileGroups:
        """File groups whose rows were read to decide what changes."""

    def row_ranges(self) -> Mapping[str, Sequence[RowRange]]:
        """Return ranges of the new rows by partition path, with their bytes in base files."""

    def write(self, files: Sequence[PlannedFile], instant: str) -> Iterable[tuple[WriteStat, ...]]:
        """Write the files with their assigned rows."""


class UnassignedRows(Protocol):
    """Rows with record key and partition path, not yet assigned to files.

    A method that assigns rows first reads all of them, so invalid rows raise before anything
    changes. Then it recovers the table from failed writers and queries the index. It raises
    `CommitConflict` if another writer is active, and the errors of key generation.
    """

    @property
    def context(self) -> WriteContext:
        """The table with its schema after the write."""

    @property
    def counters(self) -> RowCounters | None:
        """The counters of the input rows; None if these are not counted."""

    def combine(self) -> UnassignedRows:
        """Combine the rows of each key by the table's merge rules."""

    def without_existing_keys(self, *, fail: bool) -> UnassignedRows:
        """Keep only rows whose keys the table does not have; see `duplicate_policy.py`.

        Raises `SchemaMismatch` for an existing key if `fail` is set.
        """

    def count_existing_keys(self) -> UnassignedRows:
        """Count rows whose keys are in the table's record index; return all rows."""

    def fill_missing_columns(self) -> UnassignedRows:
        """Fill missing columns; see `partial_update.whole_rows`."""

    def for_upsert(self) -> AssignedRows:
        """Assign rows to the file groups in which the index finds their keys."""

    def for_insert(self, order: tuple[str, ...] = (), *, is_global: bool = False) -> AssignedRows:
        """Assign rows without looking up their keys; delete rows are dropped.

        order: columns that sort the rows of each file group. is_global: sort all of them, not only
        each run of rows in memory.
        """

    def for_new_buckets(self) -> AssignedRows:
        """Assign rows to new buckets, which replace all buckets of their partitions.

        Partitions with only delete rows are included.
        """

    def for_new_files(
        self, order: tuple[str, ...] = (), *, is_global: bool = False, counted: bool = True
    ) -> AssignedRows:
        """Assign rows by partition, for new file groups only; delete rows are dropped.

        Partitions with only delete rows are included. For the other arguments see `for_insert`.
        counted: whether the caller needs counts; if not, each task may write its own rows.
        """
