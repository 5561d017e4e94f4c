"""Methods of a table handle that write. Each method is one call to another module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from pyhudi.config import argument_checks as arg
from pyhudi.config.table_config import TableConfig
from pyhudi.engine.memory_pool import low_memory_mode
from pyhudi.engine.protocol import Step
from pyhudi.engine.spark_loader import is_spark_frame, spark
from pyhudi.errors import ConfigError
from pyhudi.table.table_snapshot import TableSnapshot

if TYPE_CHECKING:  # Opening and reading a table needs none of it.
    from pyhudi.api.alter_builder import Alter
    from pyhudi.api.merge_builder import Merge
    from pyhudi.schema.evolution import SchemaMode
    from pyhudi.txn.result import WriteResult
    from pyhudi.write.sort_modes import SortMode
    from pyhudi.write.write_context import WritableTable

Progress: TypeAlias = "bool | Callable[[Step], None]"
"""True to draw a bar in a terminal, or a function to call at each step."""


class WritingVerbs:
    """Write methods of `HudiTable`.

    Methods that write can also raise what `upsert` raises for locks, storage and steps after the
    commit.
    """

    @property
    def config(self) -> TableConfig:
        """The table's properties."""
        raise NotImplementedError

    @property
    def state(self) -> TableSnapshot:
        """The snapshot that reads of the handle use."""
        raise NotImplementedError

    @property
    def _known(self) -> TableConfig:
        """The table's properties when the handle was last loaded."""
        raise NotImplementedError

    def _reload(self, instant: str = "") -> None:
        """Reload the handle after an operation, which stays successful if reloading fails."""
        raise NotImplementedError

    def _writable(self) -> WritableTable:
        """Return the handle if it may write."""
        raise NotImplementedError

    @arg.check_arguments(
        schema_mode=arg.text,
        partial=arg.flag,
        memory_limit=arg.optional(arg.whole),
        progress=arg.progress,
        commit_id=arg.optional(arg.name),
    )
    def upsert(
        self,
        data: Any,
        *,
        schema_mode: SchemaMode = "strict",
        partial: bool = False,
        memory_limit: int | None = None,
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
            memory_limit=memory_limit,
            commit_metadata=commit_metadata,
            commit_id=commit_id,
        )

    @arg.check_arguments(
        schema_mode=arg.text,
        memory_limit=arg.optional(arg.whole),
        progress=arg.progress,
        commit_id=arg.optional(arg.name),
    )
    def insert(
        self,
        data: Any,
        *,
        schema_mode: SchemaMode = "strict",
        memory_limit: int | None = None,
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
            memory_limit=memory_limit,
            commit_metadata=commit_metadata,
            commit_id=commit_id,
        )

    @arg.check_arguments(
        sort=arg.text,
        sort_columns=arg.names,
        schema_mode=arg.text,
        memory_limit=arg.optional(arg.whole),
        progress=arg.progress,
        commit_id=arg.optional(arg.name),
    )
    def bulk_insert(
        self,
        data: Any,
        *,
        sort: SortMode = "none",
        sort_columns: Sequence[str] = (),
        schema_mode: SchemaMode = "strict",
        memory_limit: int | None = None,
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
            memory_limit=memory_limit,
            commit_metadata=commit_metadata,
            commit_id=commit_id,
        )

    @arg.check_arguments(
        memory_limit=arg.optional(arg.whole),
        progress=arg.progress,
        commit_id=arg.optional(arg.name),
    )
    def delete_keys(
        self,
        keys: Any,
        *,
        memory_limit: int | None = None,
        commit_metadata: Mapping[str, str] | None = None,
        commit_id: str | None = None,
        progress: Progress = False,
    ) -> WriteResult:
        """Delete all rows with these keys, in one commit.

        Args:
            keys: rows with the table's key columns and, to search only their partitions, all
                partition columns; or a list, array or series of values, if the key has one column.
            memory_limit: bytes, as in `upsert`.
            commit_metadata: as in `upsert`.
            commit_id: as in `upsert`.
            progress: as in `upsert`.

        Returns:
            What was written. If no key is in the table, there is no commit.

        Raises:
            SchemaMismatch: the data do not match the table's schema or keys.
            UnsupportedTableFeature: pyhudi does not write to the table.
            CommitConflict: a pending operation rules the write out, or another writer changed the
                same file groups.
            ConfigError: an argument is wrong, or the handle was opened as of an earlier time.
        """
        from pyhudi.input.python_objects import by_column  # noqa: PLC0415 - as below
        from pyhudi.write import upsert  # noqa: PLC0415 - not needed for reading

        return self._write(
            upsert.delete_keys,
            progress,
            by_column(keys, self.config.record_key_fields),
            memory_limit=memory_limit,
            commit_metadata=commit_metadata,
            commit_id=commit_id,
        )

    @arg.check_arguments(
        memory_limit=arg.optional(arg.whole),
        progress=arg.progress,
        commit_id=arg.optional(arg.name),
    )
    def delete(
        self,
        where: Any,
        *,
        memory_limit: int | None = None,
        commit_metadata: Mapping[str, str] | None = None,
        commit_id: str | None = None,
        progress: Progress = False,
    ) -> WriteResult:
        """Delete the rows that match a filter, in one commit.

        The filter compares stored values; for partition columns, the values of a scan.

        Args:
            where: which rows, as in `scan`.
            memory_limit: bytes, as in `upsert`.
            commit_metadata: as in `upsert`.
            commit_id: as in `upsert`.
            progress: as in `upsert`.

        Returns:
            What was written. If no row matches, there is no commit.

        Raises:
            SchemaMismatch: the filter does not match the table's schema, or matches only some of
                several rows of a key that are in one file.
            UnsupportedTableFeature: pyhudi does not write to the table.
            CommitConflict: a pending operation rules the write out, or another writer changed the
                same file groups.
            ConfigError: an argument is wrong, or the handle was opened as of an earlier time.
        """
        from pyhudi.write import update_delete  # noqa: PLC0415 - not needed for reading

        return self._write(
            update_delete.delete,
            progress,
            where,
            memory_limit=memory_limit,
            commit_metadata=commit_metadata,
            commit_id=commit_id,
        )

    @arg.check_arguments(
        set=arg.optional(arg.by_name),
        memory_limit=arg.optional(arg.whole),
        progress=arg.progress,
        commit_id=arg.optional(arg.name),
    )
    def update(
        self,
        where: Any,
        set: Mapping[str, Any] | None = None,  # noqa: A002 - SQL's word
        *,
        memory_limit: int | None = None,
        commit_metadata: Mapping[str, str] | None = None,
        commit_id: str | None = None,
        progress: Progress = False,
    ) -> WriteResult:
        """Update the rows that match a filter, in one commit.

        A smaller value of an ordering column makes the new row lose, as in an upsert. The filter
        uses the values of a scan for partition columns; expressions use the stored value of every
        column.

        Args:
            where: which rows, as in `scan`.
            set: new values by column: a SQL expression over the table's columns as a string (`"fare
                * 2"`, `"'text'"`), a pyarrow expression, or a value that is not a string. Key and
                partition columns cannot be set.
            memory_limit: bytes, as in `upsert`.
            commit_metadata: as in `upsert`.
            commit_id: as in `upsert`.
            progress: as in `upsert`.

        Returns:
            What was written. If no row matches, there is no commit.

        Raises:
            SchemaMismatch: the filter or a value does not match the table's schema, or the file of
                a matching row has another row of its key.
            UnsupportedTableFeature: pyhudi does not write to the table, or its merge rules would
                keep the stored value instead of a new one.
            CommitConflict: a pending operation rules the write out, or another writer changed the
                same file groups.
            ConfigError: an argument is wrong, or the handle was opened as of an earlier time.
        """
        from pyhudi.write import update_delete  # noqa: PLC0415 - not needed for reading

        if set is None:
            raise ConfigError(
                "update needs `set`, the new values by column, after `where`",
                hint="""Such as update("id = 'a'", {"note": "'hello world'"}): values are SQL, """
                "in which text takes single quotes.",
            )
        return self._write(
            update_delete.update,
            progress,
            where,
            set,
            memory_limit=memory_limit,
            commit_metadata=commit_metadata,
            commit_id=commit_id,
        )

    @arg.check_arguments(
        schema_mode=arg.text,
        memory_limit=arg.optional(arg.whole),
        progress=arg.progress,
        commit_id=arg.optional(arg.name),
    )
    def overwrite(
        self,
        data: Any,
        *,
        schema_mode: SchemaMode = "strict",
        memory_limit: int | None = None,
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

    @arg.check_arguments(
        schema_mode=arg.text,
        memory_limit=arg.optional(arg.whole),
        progress=arg.progress,
        commit_id=arg.optional(arg.name),
    )
    def overwrite_partitions(
        self,
        data: Any,
        *,
        schema_mode: SchemaMode = "strict",
        memory_limit: int | None = None,
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

    @arg.check_arguments(commit_id=arg.optional(arg.name))
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
        from pyhudi.write import overwrite  # noqa: PLC0415 - not needed for reading

        return self._write(
            overwrite.delete_partitions,
            progress=False,
            given=partitions,
            commit_metadata=commit_metadata,
            commit_id=commit_id,
        )

    @arg.check_arguments(
        on=arg.optional(arg.name_or_names),
        progress=arg.progress,
        memory_limit=arg.optional(arg.whole),
        commit_id=arg.optional(arg.name),
    )
    def merge(
        self,
        source: Any,
        on: str | Sequence[str] | None = None,
        *,
        commit_metadata: Mapping[str, str] | None = None,
        commit_id: str | None = None,
        progress: Progress = False,
        memory_limit: int | None = None,
    ) -> Merge:
        """Return a builder that merges a source into the table by record key; `execute` runs it.

            table.merge(source).when_matched_update({"fare": "source.fare"})
                .when_not_matched_insert_all().execute()

        Args:
            source: rows with the table's key and partition columns, one for each key; other columns
                may differ from the table's.
            on: the record key's columns, to state them explicitly; rows can be matched by them
                only, so this is not a condition.
            commit_metadata: as in `upsert`.
            commit_id: as in `upsert`.
            progress: as in `upsert`.
            memory_limit: bytes, as in `upsert`. Keys of rows to delete must fit in memory.

        Returns:
            The builder, without clauses.

        Raises:
            ConfigError: `on` is not the record key, or an argument has the wrong type.
        """
        from pyhudi.api.merge_builder import Merge  # noqa: PLC0415 - not needed for reading
        from pyhudi.write import merge  # noqa: PLC0415 - not needed for reading

        key_columns = (on,) if isinstance(on, str) else on and tuple(on)
        merge.check_on(self.config, key_columns)
        write = partial(
            self._write,
            merge.merge,
            progress,
            source,
            on=key_columns,
            commit_metadata=commit_metadata,
            commit_id=commit_id,
            memory_limit=memory_limit,
        )
        return Merge(write)

    @arg.check_arguments(commit_id=arg.optional(arg.name))
    def alter(
        self,
        *,
        commit_metadata: Mapping[str, str] | None = None,
        commit_id: str | None = None,
    ) -> Alter:
        """Return a builder that changes the table's columns; `execute` applies the changes.

            table.alter().rename_column("fare", "price").add_column("tip", pa.float64()).execute()

        Columns get ids with the first such change, and keep them: no file is rewritten, and older
        files are read by the ids. Apache Hudi reads and writes such a table with
        `hoodie.schema.on.read.enable=true`.

        Args:
            commit_metadata: as in `upsert`.
            commit_id: as in `upsert`.

        Returns:
            The builder, without changes.

        Raises:
            ConfigError: an argument is wrong.
        """
        from pyhudi.api.alter_builder import Alter  # noqa: PLC0415 - not needed for reading
        from pyhudi.write.alter import alter  # noqa: PLC0415 - not needed for reading

        return Alter(
            partial(
                self._write,
                alter,
                False,  # noqa: FBT003 - one file, no progress
                commit_metadata=commit_metadata,
                commit_id=commit_id,
            )
        )

    def _write(
        self,
        verb: Callable[..., WriteResult],
        progress: Progress,
        given: Any,
        *more: Any,
        commit_metadata: Mapping[str, str] | None = None,
        commit_id: str | None = None,
        **how: Any,
    ) -> WriteResult:
        from pyhudi.admin.inline_services import after_commit  # noqa: PLC0415 - not needed for reading
        from pyhudi.api.progress import with_commit_metadata, with_progress  # noqa: PLC0415 - as above
        from pyhudi.txn.post_commit import warn_on_failure  # noqa: PLC0415 - as above
        from pyhudi.write.conflict_retries import retry_on_conflict  # noqa: PLC0415 - as above
        from pyhudi.write.idempotency import find_commit_by_id  # noqa: PLC0415 - as above

        def write(handle: WritableTable, given: Any) -> WriteResult:
            done = None if commit_id is None else find_commit_by_id(handle, commit_id)
            if done is not None:
                return done
            if is_spark_frame(given):
                at_work = spark("session_engine").on_session(handle, given, verb.__name__)
            else:
                at_work = with_progress(handle, progress)
            with at_work as table:
                return verb(table, given, *more, **how)

        table = self._writable()
        handle = with_commit_metadata(table, self._known, commit_metadata, commit_id)
        with handle.lock_manager.release_later():
            with low_memory_mode(how.get("memory_limit")):
                result = retry_on_conflict(handle, given, write)
            with warn_on_failure(table.storage.uri, result.instant, "post-commit work"):
                self._reload(result.instant)
                # Up to table version 6, this is the modification time of the completed file.
                shown = self.state.timeline.completion_time(result.instant)
                result = replace(result, completion=shown or result.completion)
                handle.lock_manager.finish_release()
                if result.committed and after_commit(table, lambda: self.state, result.instant):
                    self._reload(result.instant)
        return result
