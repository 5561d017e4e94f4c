"""Methods of a table handle that change existing rows: delete, update, merge; SQL statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyhudi.api.operation_events import as_lazy_operation, as_operation, report_error
from pyhudi.api.table_handle import TableHandle
from pyhudi.config import argument_checks as arg
from pyhudi.errors import ConfigError

if TYPE_CHECKING:  # Opening and reading a table needs none of it.
    import pyarrow as pa

    from pyhudi.api.merge_builder import Merge
    from pyhudi.api.progress import Progress
    from pyhudi.api.table import HudiTable
    from pyhudi.api.table_transaction import TableTransaction
    from pyhudi.config.memory_size import MemorySize
    from pyhudi.txn.result import WriteResult


class DmlOperations(TableHandle):
    """DML of `HudiTable`: delete, update and merge of rows that exist; SQL statements."""

    @arg.check_arguments()
    @as_operation
    def delete_keys(
        self,
        keys: Any,
        *,
        memory_limit: MemorySize | None = None,
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

    @arg.check_arguments()
    @as_operation
    def delete(
        self,
        where: Any,
        *,
        memory_limit: MemorySize | None = None,
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
        from pyhudi.schema.statement_time import StatementTime  # noqa: PLC0415 - as below
        from pyhudi.write import update_delete  # noqa: PLC0415 - not needed for reading

        return self._write(
            update_delete.delete,
            progress,
            StatementTime(self.state.clock).fix(where),
            memory_limit=memory_limit,
            commit_metadata=commit_metadata,
            commit_id=commit_id,
        )

    @arg.check_arguments()
    @as_operation
    def update(
        self,
        where: Any,
        set: Mapping[str, Any] | None = None,  # noqa: A002 - SQL's word
        *,
        memory_limit: MemorySize | None = None,
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
        from pyhudi.schema.statement_time import StatementTime  # noqa: PLC0415 - as below
        from pyhudi.write import update_delete  # noqa: PLC0415 - not needed for reading

        if set is None:
            raise ConfigError(
                "update needs `set`, the new values by column, after `where`",
                hint="""Such as update("id = 'a'", {"note": "'hello world'"}): values are SQL, """
                "in which text takes single quotes.",
            )
        time = StatementTime(self.state.clock)
        return self._write(
            update_delete.update,
            progress,
            time.fix(where),
            time.fix_values(set),
            memory_limit=memory_limit,
            commit_metadata=commit_metadata,
            commit_id=commit_id,
        )

    @arg.check_arguments()
    @as_lazy_operation
    def merge(
        self,
        source: Any,
        on: str | Sequence[str] | None = None,
        *,
        commit_metadata: Mapping[str, str] | None = None,
        commit_id: str | None = None,
        progress: Progress = False,
        memory_limit: MemorySize | None = None,
    ) -> Merge[WriteResult]:
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

    @arg.check_arguments()
    @as_lazy_operation
    def transaction(
        self,
        *,
        commit_metadata: Mapping[str, str] | None = None,
        commit_id: str | None = None,
        progress: Progress = False,
        memory_limit: MemorySize | None = None,
    ) -> TableTransaction:
        """Return a transaction, which makes several changes in one commit.

            with table.transaction() as tx:
                tx.delete("day = '2026-11-30'")
                tx.upsert(rows)
            tx.result

        The changes take effect in order, all or none of them, when the block ends. A conflict with
        another writer runs all of them again, on the latest snapshot. The rows that they change
        must fit in memory.

        Args:
            commit_metadata: as in `upsert`.
            commit_id: as in `upsert`.
            progress: as in `upsert`.
            memory_limit: bytes, as in `upsert`.

        Returns:
            The transaction, for a `with` block. The end of the block raises what the methods of
            the table raise.

        Raises:
            UnsupportedTableFeature: pyhudi does not write to the table.
            ConfigError: an argument is wrong, or the handle was opened as of an earlier time.
        """
        from pyhudi.api.table_transaction import TableTransaction  # noqa: PLC0415 - as above
        from pyhudi.write import multi_statement  # noqa: PLC0415 - not needed for reading

        commit = partial(
            self._write,
            multi_statement.transaction,
            progress,
            commit_metadata=commit_metadata,
            commit_id=commit_id,
            memory_limit=memory_limit,
        )
        return TableTransaction(
            self._writable(), commit, partial(report_error, self, "transaction")
        )

    @arg.check_arguments()
    @as_lazy_operation
    def sql(
        self, statement: str, tables: Mapping[str, Any] | None = None
    ) -> pa.Table | WriteResult | HudiTable | None:
        """Run one SQL statement, in which the table is called `t` or by its own name.

        A query reads the handle's snapshot; a statement that changes the table uses the current
        one.

        Args:
            statement: the statement, as in `pyhudi.sql`.
            tables: other tables by name, as in `pyhudi.sql`.

        Returns:
            The rows of a query, the result of a write: see `pyhudi.sql`.

        Raises:
            ConfigError: the statement is incomplete, names an unknown table, or a value of it is
                wrong; or it needs DuckDB, which is not installed.
            UnsupportedTableFeature: the statement needs something that pyhudi or the table does not
                support.
            SchemaMismatch: columns or values do not match the table.
            CommitConflict: a pending operation rules the write out, or another writer changed the
                same file groups.
        """
        # The package is above this one: it creates and drops tables.
        session = import_module("pyhudi.sql_statements.session")
        result: pa.Table | WriteResult | HudiTable | None
        result = session.sql_on_table(self, statement, tables)
        return result
