"""Methods of a table handle that write rows: inserts, upserts, overwrites."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyhudi.api.operation_events import as_lazy_operation, as_operation
from pyhudi.api.table_handle import TableHandle
from pyhudi.config import argument_checks as arg
from pyhudi.errors import ConfigError

if TYPE_CHECKING:  # Opening and reading a table needs none of it.
    from pyhudi.api.group_writer import GroupWriter
    from pyhudi.api.progress import Progress
    from pyhudi.api.table import HudiTable
    from pyhudi.config.memory_size import MemorySize
    from pyhudi.schema.evolution import SchemaMode
    from pyhudi.txn.result import WriteResult
    from pyhudi.write.sort_modes import SortMode


class WriteOperations(TableHandle):
    """Write methods of `HudiTable`: inserts, upserts, overwrites.

    Methods that write can also raise what `upsert` raises for locks, storage and steps after the
    commit.
    """

    @arg.check_arguments(rejected=arg.check_table)
    @as_operation
    def upsert(
        self,
        data: Any,
        *,
        schema_mode: SchemaMode = "strict",
        partial: bool = False,
        rejected: str | os.PathLike[str] | HudiTable | None = None,
        memory_limit: MemorySize | None = None,
        commit_metadata: Mapping[str, str] | None = None,
        commit_id: str | None = None,
        progress: Progress = False,
    ) -> WriteResult:
        """Update the rows whose keys are in the table and insert the others, in one commit.

        Rows of the data with the same key are combined first. With a record index, a row whose
        partition column changed stays in the partition that has its key, with a
        `PartitionChangeWarning`; `hoodie.record.index.update.partition.path` changes that. An
        exception, including Ctrl-C, rolls the write back.

        Args:
            data: Arrow data or a stream of it, a data frame, a list of dicts, another input of
                docs/reference/write-inputs.md, or a Spark DataFrame, whose session runs the write.
            schema_mode: "strict" requires the table's columns. "merge" adds new columns to the
                table, widens numbers, and writes nulls for columns that the data do not have; all
                batches of a stream follow its schema.
            partial: the data may leave out columns, which keep their values in existing rows and
                are null in new rows.
            rejected: another table, or its location, for the rows that break a constraint, have
                null where the table requires a value, or have wrong values in generated columns;
                the others are committed. pyhudi creates the table if it does not exist, with the
                columns of this one, `_rejected_reason` and `_rejected_instant`. With a `commit_id`,
                a repeated write stores no row twice. By default a row that breaks a rule raises.
            memory_limit: bytes, a quarter of the machine's memory by default; larger data are read
                as a stream and spilled to local files. For a Spark DataFrame it applies to each
                task, 512 MiB by default.
            commit_metadata: strings by name to store in the commit (Hudi's extra metadata), which
                `history` returns; with some, a write that changes nothing makes a commit too.
            commit_id: name that makes the write idempotent: if a commit of the timeline has it
                already, nothing is written and that commit's result is returned. pyhudi reads older
                commits for it, including archived ones.
            progress: True draws a bar in a terminal if `rich` is installed; a function is called
                with a `pyhudi.Step` at each step.

        Returns:
            What was written. Data without rows make no commit.

        Raises:
            SchemaMismatch: the data do not match the table's schema or keys.
            UnsupportedTableFeature: pyhudi does not write to the table.
            CommitConflict: a pending operation rules the write out, or another writer changed the
                same file groups.
            LockTimeout: the table's lock was not free in time.
            AfterCommitError: the write is committed; a later step failed.
            StorageError: the storage fails; `CommitUnknown` if the write may be committed all the
                same.
            ConfigError: an argument is wrong, or the handle was opened as of an earlier time.
        """
        from pyhudi.write import upsert  # noqa: PLC0415 - not needed for reading

        return self._write(
            upsert.upsert,
            progress,
            data,
            schema_mode=schema_mode,
            partial=partial,
            rejected=rejected,
            memory_limit=memory_limit,
            commit_metadata=commit_metadata,
            commit_id=commit_id,
        )

    @arg.check_arguments(rejected=arg.check_table)
    @as_operation
    def insert(
        self,
        data: Any,
        *,
        schema_mode: SchemaMode = "strict",
        rejected: str | os.PathLike[str] | HudiTable | None = None,
        memory_limit: MemorySize | None = None,
        commit_metadata: Mapping[str, str] | None = None,
        commit_id: str | None = None,
        progress: Progress = False,
    ) -> WriteResult:
        """Insert rows without changing existing ones, in one commit.

        A row whose key is already in the table becomes a second row of that key; with a record
        index, a `DuplicateKeyWarning` counts such rows. The option
        `hoodie.datasource.insert.dup.policy` decides: "drop" skips rows whose keys are in the
        table, "fail" raises `SchemaMismatch`, "none" inserts them without a check. Rows of the data
        are not compared with each other.

        Args:
            data: rows, as in `upsert`.
            schema_mode: "strict" or "merge", as in `upsert`.
            rejected: as in `upsert`.
            memory_limit: bytes, as in `upsert`.
            commit_metadata: as in `upsert`.
            commit_id: as in `upsert`.
            progress: as in `upsert`.

        Returns:
            What was written. Data without rows make no commit.

        Raises:
            SchemaMismatch: the data do not match the table's schema or keys.
            UnsupportedTableFeature: pyhudi does not write to the table.
            CommitConflict: a pending operation rules the write out, or another writer changed the
                same file groups.
            ConfigError: an argument is wrong, or the handle was opened as of an earlier time.
        """
        from pyhudi.write import upsert  # noqa: PLC0415 - not needed for reading

        return self._write(
            upsert.insert,
            progress,
            data,
            schema_mode=schema_mode,
            rejected=rejected,
            memory_limit=memory_limit,
            commit_metadata=commit_metadata,
            commit_id=commit_id,
        )

    @arg.check_arguments(rejected=arg.check_table)
    @as_operation
    def bulk_insert(
        self,
        data: Any,
        *,
        sort: SortMode = "none",
        sort_columns: Sequence[str] = (),
        schema_mode: SchemaMode = "strict",
        rejected: str | os.PathLike[str] | HudiTable | None = None,
        memory_limit: MemorySize | None = None,
        commit_metadata: Mapping[str, str] | None = None,
        commit_id: str | None = None,
        progress: Progress = False,
    ) -> WriteResult:
        """Insert rows into new files without changing existing ones, in one commit.

        A row whose key is already in the table becomes a second row of that key: if you insert the
        same data twice, every row is there twice. With a record index, a `DuplicateKeyWarning`
        counts such rows, unless `hoodie.datasource.insert.dup.policy` is set. With a bucket index,
        rows go to their buckets, and join existing rows of their keys there.

        Args:
            data: rows, as in `upsert`.
            sort: "none", "partition" (sort each batch of rows that is in memory) or "global" (sort
                all rows of a partition).
            sort_columns: columns to sort by; the record key by default.
            schema_mode: "strict" or "merge", as in `upsert`.
            rejected: as in `upsert`.
            memory_limit: bytes, as in `upsert`.
            commit_metadata: as in `upsert`.
            commit_id: as in `upsert`.
            progress: as in `upsert`.

        Returns:
            What was written. Data without rows make no commit.

        Raises:
            SchemaMismatch: the data do not match the table's schema or keys.
            UnsupportedTableFeature: pyhudi does not write to the table.
            CommitConflict: a pending operation rules the write out, or another writer changed the
                same file groups.
            ConfigError: an argument is wrong, or the handle was opened as of an earlier time.
        """
        from pyhudi.write import upsert  # noqa: PLC0415 - not needed for reading

        return self._write(
            upsert.bulk_insert,
            progress,
            data,
            sort=sort,
            sort_columns=sort_columns,
            schema_mode=schema_mode,
            rejected=rejected,
            memory_limit=memory_limit,
            commit_metadata=commit_metadata,
            commit_id=commit_id,
        )

    @arg.check_arguments()
    @as_operation
    def overwrite(
        self,
        data: Any,
        *,
        schema_mode: SchemaMode = "strict",
        memory_limit: MemorySize | None = None,
        commit_metadata: Mapping[str, str] | None = None,
        commit_id: str | None = None,
        progress: Progress = False,
    ) -> WriteResult:
        """Replace all rows of the table with the data, in one commit.

        Earlier snapshots stay readable until a cleaner removes their files.

        Args:
            data: rows, as in `upsert`.
            schema_mode: "strict" or "merge", as in `upsert`.
            memory_limit: bytes, as in `upsert`.
            commit_metadata: as in `upsert`.
            commit_id: as in `upsert`.
            progress: as in `upsert`.

        Returns:
            What was written. Data without rows empty the table; if it is empty already, they make
            no commit.

        Raises:
            SchemaMismatch: the data do not match the table's schema or keys.
            UnsupportedTableFeature: pyhudi does not write to the table.
            CommitConflict: a pending operation rules the write out, or another writer changed the
                same file groups.
            ConfigError: an argument is wrong, or the handle was opened as of an earlier time.
        """
        from pyhudi.write import overwrite  # noqa: PLC0415 - not needed for reading

        return self._write(
            overwrite.overwrite,
            progress,
            data,
            schema_mode=schema_mode,
            memory_limit=memory_limit,
            commit_metadata=commit_metadata,
            commit_id=commit_id,
        )

    @arg.check_arguments()
    @as_operation
    def overwrite_partitions(
        self,
        data: Any,
        *,
        schema_mode: SchemaMode = "strict",
        memory_limit: MemorySize | None = None,
        commit_metadata: Mapping[str, str] | None = None,
        commit_id: str | None = None,
        progress: Progress = False,
    ) -> WriteResult:
        """Replace all rows of the partitions of the data with the data, in one commit.

        Args:
            data: rows, as in `upsert`.
            schema_mode: "strict" or "merge", as in `upsert`.
            memory_limit: bytes, as in `upsert`.
            commit_metadata: as in `upsert`.
            commit_id: as in `upsert`.
            progress: as in `upsert`.

        Returns:
            What was written. Data without rows have no partition, and make no commit.

        Raises:
            SchemaMismatch: the data do not match the table's schema or keys.
            UnsupportedTableFeature: pyhudi does not write to the table.
            CommitConflict: a pending operation rules the write out, or another writer changed the
                same file groups.
            ConfigError: an argument is wrong, or the handle was opened as of an earlier time.
        """
        from pyhudi.write import overwrite  # noqa: PLC0415 - not needed for reading

        return self._write(
            overwrite.overwrite_partitions,
            progress,
            data,
            schema_mode=schema_mode,
            memory_limit=memory_limit,
            commit_metadata=commit_metadata,
            commit_id=commit_id,
        )

    @arg.check_arguments()
    @as_operation
    def delete_partitions(
        self,
        partitions: Any,
        *,
        commit_metadata: Mapping[str, str] | None = None,
        commit_id: str | None = None,
    ) -> WriteResult:
        """Delete all rows of some partitions, in one commit.

        Args:
            partitions: a list of partition paths; of mappings from every partition column to its
                value; or, if there is one column, of its values that are not strings. Or a filter
                on partition columns, as in `scan`.
            commit_metadata: as in `upsert`.
            commit_id: as in `upsert`.

        Returns:
            What was written.

        Raises:
            SchemaMismatch: the filter or a value does not match the partition columns.
            UnsupportedTableFeature: pyhudi does not write to the table.
            CommitConflict: a pending operation rules the write out, or another writer changed the
                same file groups.
            ConfigError: an argument is wrong, or the handle was opened as of an earlier time.
        """
        from pyhudi.schema.statement_time import StatementTime  # noqa: PLC0415 - as below
        from pyhudi.write import overwrite  # noqa: PLC0415 - not needed for reading

        return self._write(
            overwrite.delete_partitions,
            False,  # noqa: FBT003 - nothing to show
            StatementTime(self.state.clock).fix(partitions),
            commit_metadata=commit_metadata,
            commit_id=commit_id,
        )

    @arg.check_arguments()
    @as_lazy_operation
    def writer(
        self,
        *,
        max_rows: int = 1_000_000,
        max_seconds: float | None = None,
        max_bytes: int = 128 * 1024 * 1024,
    ) -> GroupWriter:
        """Return a writer that commits the batches of many callers together.

            with table.writer() as w:
                result = w.upsert(rows).result()

        Callers in any thread submit batches and get futures. Batches that arrive during a commit
        are in the next one. The table's rows are the same as if each batch had been committed
        alone, in the order of submission.

        Args:
            max_rows: maximum number of rows of a commit; a larger batch has a commit of its own.
            max_seconds: how long the first batch of a commit waits for others. A larger value makes
                fewer and larger commits. None: until as many batches wait as callers had some at
                the last commit, at most a quarter of the time that it took.
            max_bytes: maximum size of the batches of a commit in memory, and of those that wait for
                the next one; beyond it, callers wait. A larger batch is accepted if none waits.

        Returns:
            The writer, which is open until its `close` or the end of its `with` block.

        Raises:
            UnsupportedTableFeature: pyhudi does not write to the table.
            ConfigError: an argument is wrong, or the handle was opened as of an earlier time.
            StorageError: the storage fails.
        """
        from pyhudi.api.batch_queue import Limits  # noqa: PLC0415 - not needed for reading
        from pyhudi.api.group_writer import GroupWriter  # noqa: PLC0415 - as above

        if self._validators:
            msg = "a writer has no validators: a commit has the batches of many callers"
            raise ConfigError(msg, hint="Call upsert of the handle with validators instead.")
        if max_rows < 1 or max_bytes < 1:
            raise ConfigError("max_rows and max_bytes of a writer must be at least 1")
        return GroupWriter(self, Limits(max_rows, max_seconds, max_bytes))
