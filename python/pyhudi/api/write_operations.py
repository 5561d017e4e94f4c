"""The verbs of a table handle that write. Thin: every verb is one call to who does it."""

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
"""Whether to draw a bar in a terminal, or what to call at each step."""


class WritingVerbs:
    """What `HudiTable` can do to its table.

    Where a verb writes it can also raise what `upsert` raises of locks, storage and work after the
    commit.
    """

    @property
    def config(self) -> TableConfig:
        """The table's properties."""
        raise NotImplementedError

    @property
    def state(self) -> TableSnapshot:
        """What reads of the handle are planned from."""
        raise NotImplementedError

    @property
    def _known(self) -> TableConfig:
        """The table's properties when the handle looked last."""
        raise NotImplementedError

    def _reload(self, instant: str = "") -> None:
        """Has the handle look at the table after an act, which stands if that fails."""
        raise NotImplementedError

    def _writable(self) -> WritableTable:
        """The handle, if it may write."""
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
        """Replaces rows whose keys the table has, adds the others, in one commit.

        Rows of one key among the data are combined first. Under a record index a row whose
        partition column changed stays in the partition that has its key, with a
        `PartitionChangeWarning`: `hoodie.record.index.update.partition.path` decides. An exception,
        Ctrl-C among them, rolls the write back.

        Args:
            data: Arrow data or a stream of it, a data frame, a list of dicts, another input of
                docs/reference/write-inputs.md, or a Spark DataFrame, whose session does the work.
            schema_mode: "strict" wants the table's columns, "merge" gives the table new ones and
                wider numbers, and nulls to columns that the data lack; the same for every piece of
                a stream, by its schema.
            partial: the data may lack columns, which rows of the table then keep, and which are
                null in new rows.
            memory_limit: bytes, a quarter of the machine's memory by default; larger data are read
                as a stream and go through local files. With a Spark DataFrame it is for each task,
                512 MiB by default.
            commit_metadata: texts by name that the commit says besides (Hudi's extra metadata),
                which `history` shows; with some a write that changes nothing is a commit too.
            commit_id: the write is made once under this name, however often it is asked for: where
                a commit of the timeline has it, that one's result is given back. Older commits
                are read for it, archived ones too.
            progress: True draws a bar in a terminal, if `rich` is installed; a function is called
                with a `pyhudi.Step` at each step.

        Returns:
            What was written. Data without rows make no commit.

        Raises:
            SchemaMismatch: the data do not fit the table's schema or keys.
            UnsupportedTableFeature: pyhudi does not write to the table.
            CommitConflict: it must not write to it now, or another writer changed the same file
                groups.
            LockTimeout: the table's lock could not be had in time.
            AfterCommitError: the write is committed; something after it failed.
            StorageError: storage fails; `CommitUnknown` where it may be committed all the same.
            ConfigError: an argument is wrong, or the handle was opened as of an earlier time.
        """
        from pyhudi.write import upsert  # noqa: PLC0415 - reading needs none of it

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
        """Adds rows, and changes none that are there, in one commit.

        A row whose key the table has stands beside the row that has it; where the table has a
        record index, a `DuplicateKeyWarning` counts such rows. The option
        `hoodie.datasource.insert.dup.policy` decides: "drop" leaves out rows whose keys the table
        has, "fail" raises `SchemaMismatch`, "none" adds them without a look. Rows of one key among
        the data are not compared.

        Args:
            data: rows, as `upsert` takes them.
            schema_mode: "strict" or "merge", as in `upsert`.
            memory_limit: bytes, as in `upsert`.
            commit_metadata: as in `upsert`.
            commit_id: as in `upsert`.
            progress: as in `upsert`.

        Returns:
            What was written. Data without rows make no commit.

        Raises:
            SchemaMismatch: the data do not fit the table's schema or keys.
            UnsupportedTableFeature: pyhudi does not write to the table.
            CommitConflict: it must not write to it now, or another writer changed the same file
                groups.
            ConfigError: an argument is wrong, or the handle was opened as of an earlier time.
        """
        from pyhudi.write import upsert  # noqa: PLC0415 - reading needs none of it

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
        """Adds rows to new files, and changes none that are there, in one commit.

        A row whose key the table has stands beside the row that has it: bring the same data twice,
        and every row is there twice. Where the table has a record index, a `DuplicateKeyWarning`
        counts such rows, unless `hoodie.datasource.insert.dup.policy` is given. Under a bucket
        index rows go to their buckets, where they meet rows of their keys.

        Args:
            data: rows, as `upsert` takes them.
            sort: "none", "partition" (each run of rows that is in memory at once) or "global" (all
                rows of a partition).
            sort_columns: what is sorted by; the record key by default.
            schema_mode: "strict" or "merge", as in `upsert`.
            memory_limit: bytes, as in `upsert`.
            commit_metadata: as in `upsert`.
            commit_id: as in `upsert`.
            progress: as in `upsert`.

        Returns:
            What was written. Data without rows make no commit.

        Raises:
            SchemaMismatch: the data do not fit the table's schema or keys.
            UnsupportedTableFeature: pyhudi does not write to the table.
            CommitConflict: it must not write to it now, or another writer changed the same file
                groups.
            ConfigError: an argument is wrong, or the handle was opened as of an earlier time.
        """
        from pyhudi.write import upsert  # noqa: PLC0415 - reading needs none of it

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
        """Removes the rows with the given keys, all of a key, in one commit.

        Args:
            keys: rows with the table's key columns and, to look in their partitions only, all
                partition columns; or a list, array or series of values, where the key has one
                column.
            memory_limit: bytes, as in `upsert`.
            commit_metadata: as in `upsert`.
            commit_id: as in `upsert`.
            progress: as in `upsert`.

        Returns:
            What was written. Keys that the table lacks, or none, make no commit.

        Raises:
            SchemaMismatch: the data do not fit the table's schema or keys.
            UnsupportedTableFeature: pyhudi does not write to the table.
            CommitConflict: it must not write to it now, or another writer changed the same file
                groups.
            ConfigError: an argument is wrong, or the handle was opened as of an earlier time.
        """
        from pyhudi.input.python_objects import by_column  # noqa: PLC0415 - as below
        from pyhudi.write import upsert  # noqa: PLC0415 - reading needs none of it

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
        """Removes the rows that a filter finds, in one commit.

        Columns are compared as they are stored, partition columns as a scan has them.

        Args:
            where: which rows, as in `scan`.
            memory_limit: bytes, as in `upsert`.
            commit_metadata: as in `upsert`.
            commit_id: as in `upsert`.
            progress: as in `upsert`.

        Returns:
            What was written. A filter that finds no row makes no commit.

        Raises:
            SchemaMismatch: the filter does not fit the table's schema, or does not find all
                of several rows of a key that are in one file.
            UnsupportedTableFeature: pyhudi does not write to the table.
            CommitConflict: it must not write to it now, or another writer changed the same file
                groups.
            ConfigError: an argument is wrong, or the handle was opened as of an earlier time.
        """
        from pyhudi.write import update_delete  # noqa: PLC0415 - reading needs none of it

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
        """Gives the rows that a filter finds new values, in one commit.

        A smaller value of an ordering column makes the row lose, as in an upsert. The filter sees
        partition columns as a scan has them, expressions see every column as it is stored.

        Args:
            where: which rows, as in `scan`.
            set: by column a SQL expression over the table's columns as text (`"fare * 2"`,
                `"'text'"`), a pyarrow expression, or a value that is no text. Key and partition
                columns cannot be set.
            memory_limit: bytes, as in `upsert`.
            commit_metadata: as in `upsert`.
            commit_id: as in `upsert`.
            progress: as in `upsert`.

        Returns:
            What was written. A filter that finds no row makes no commit.

        Raises:
            SchemaMismatch: the filter or a value does not fit the table's schema, or a row is
                found whose file has another one of its key.
            UnsupportedTableFeature: pyhudi does not write to the table, or its rules keep what is
                stored in the place of a value.
            CommitConflict: it must not write to it now, or another writer changed the same file
                groups.
            ConfigError: an argument is wrong, or the handle was opened as of an earlier time.
        """
        from pyhudi.write import update_delete  # noqa: PLC0415 - reading needs none of it

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
        """Puts the data in place of all rows of the table, in one commit.

        Older states stay readable until a cleaner removes their files.

        Args:
            data: rows, as `upsert` takes them.
            schema_mode: "strict" or "merge", as in `upsert`.
            memory_limit: bytes, as in `upsert`.
            commit_metadata: as in `upsert`.
            commit_id: as in `upsert`.
            progress: as in `upsert`.

        Returns:
            What was written. Data without rows empty the table; where it is empty, they make no
            commit.

        Raises:
            SchemaMismatch: the data do not fit the table's schema or keys.
            UnsupportedTableFeature: pyhudi does not write to the table.
            CommitConflict: it must not write to it now, or another writer changed the same file
                groups.
            ConfigError: an argument is wrong, or the handle was opened as of an earlier time.
        """
        from pyhudi.write import overwrite  # noqa: PLC0415 - reading needs none of it

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
        """Puts the data in place of all rows of the partitions that they are in, in one commit.

        Args:
            data: rows, as `upsert` takes them.
            schema_mode: "strict" or "merge", as in `upsert`.
            memory_limit: bytes, as in `upsert`.
            commit_metadata: as in `upsert`.
            commit_id: as in `upsert`.
            progress: as in `upsert`.

        Returns:
            What was written. Data without rows name no partition, and make no commit.

        Raises:
            SchemaMismatch: the data do not fit the table's schema or keys.
            UnsupportedTableFeature: pyhudi does not write to the table.
            CommitConflict: it must not write to it now, or another writer changed the same file
                groups.
            ConfigError: an argument is wrong, or the handle was opened as of an earlier time.
        """
        from pyhudi.write import overwrite  # noqa: PLC0415 - reading needs none of it

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
        """Removes all rows of some partitions, in one commit.

        Args:
            partitions: a list of partition paths, or of mappings of every partition column to its
                value, or, where there is one column, of its values that are no text; or a filter on
                partition columns, as `scan` takes it.
            commit_metadata: as in `upsert`.
            commit_id: as in `upsert`.

        Returns:
            What was written.

        Raises:
            SchemaMismatch: the filter or a value does not fit the partition columns.
            UnsupportedTableFeature: pyhudi does not write to the table.
            CommitConflict: it must not write to it now, or another writer changed the same file
                groups.
            ConfigError: an argument is wrong, or the handle was opened as of an earlier time.
        """
        from pyhudi.write import overwrite  # noqa: PLC0415 - reading needs none of it

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
        """A builder that merges a source into the table by record key; `execute` carries it out.

            table.merge(source).when_matched_update({"fare": "source.fare"})
                .when_not_matched_insert_all().execute()

        Args:
            source: rows with the table's key and partition columns, one a key; other columns need
                not be the table's.
            on: the record key's columns, for those who want to say so; nothing else can be matched
                by, so it is no condition.
            commit_metadata: as in `upsert`.
            commit_id: as in `upsert`.
            progress: as in `upsert`.
            memory_limit: bytes, as in `upsert`. Keys of rows to delete must fit in memory.

        Returns:
            The builder, without clauses.

        Raises:
            ConfigError: `on` is not the record key, or an argument is of another kind.
        """
        from pyhudi.api.merge_builder import Merge  # noqa: PLC0415 - reading needs none of it
        from pyhudi.write import merge  # noqa: PLC0415 - reading needs none of it

        named = (on,) if isinstance(on, str) else on and tuple(on)
        merge.check_on(self.config, named)
        write = partial(
            self._write,
            merge.merge,
            progress,
            source,
            on=named,
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
        """A builder that changes the table's columns; `execute` carries the changes out.

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
        from pyhudi.api.alter_builder import Alter  # noqa: PLC0415 - reading needs none of it
        from pyhudi.write.alter import alter  # noqa: PLC0415 - reading needs none of it

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
        from pyhudi.admin.inline_services import after_commit  # noqa: PLC0415 - reading needs none of it
        from pyhudi.api.progress import with_commit_metadata, with_progress  # noqa: PLC0415 - likewise
        from pyhudi.txn.post_commit import warn_on_failure  # noqa: PLC0415 - likewise
        from pyhudi.write.conflict_retries import retry_on_conflict  # noqa: PLC0415 - likewise
        from pyhudi.write.idempotency import find_commit_by_id  # noqa: PLC0415 - likewise

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
        with handle.guarded.release_later():
            with low_memory_mode(how.get("memory_limit")):
                result = retry_on_conflict(handle, given, write)
            with warn_on_failure(table.storage.uri, result.instant, "what is due"):
                self._reload(result.instant)
                # Up to table version 6 it is the completed file's modification time.
                shown = self.state.timeline.completion_time(result.instant)
                result = replace(result, completion=shown or result.completion)
                handle.guarded.finish_release()
                if result.committed and after_commit(table, lambda: self.state, result.instant):
                    self._reload(result.instant)
        return result
