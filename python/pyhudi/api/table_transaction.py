"""Several changes as one commit: what `HudiTable.transaction` returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pyhudi.api.merge_builder import Merge
from pyhudi.clock import SystemClock
from pyhudi.config import argument_checks as arg
from pyhudi.config.hint_spelling import for_transactions, spell_hints
from pyhudi.engine.spark_loader import is_spark_frame
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.input.conform import read_table
from pyhudi.input.python_objects import by_column
from pyhudi.schema.statement_time import StatementTime
from pyhudi.txn.result import WriteResult
from pyhudi.write import merge, staged_merge
from pyhudi.write.merge_planning import MergeClause
from pyhudi.write.multi_statement import Delete, DeleteKeys, Insert, Statement, Update, Upsert
from pyhudi.write.table_opening import WritableTable
from pyhudi.write.write_context import WriteContext

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Self

_OVERWRITE = (
    "Delete the old rows with delete and add the new ones with insert or upsert; or call "
    "table.{} outside the transaction."
)
_REPLACING = {
    "overwrite": _OVERWRITE.format("overwrite"),
    "overwrite_partitions": _OVERWRITE.format("overwrite_partitions"),
    "delete_partitions": (
        "Use delete with a filter on the partition columns, or call table.delete_partitions "
        "outside the transaction."
    ),
}
"""The hints for methods of a table that end in a replacecommit."""


class TableTransaction:
    """Changes that become one commit at the end of a `with` block: see `HudiTable.transaction`.

    Its methods check their arguments and remember them; the table is unchanged until the block
    ends. Then they take effect in order, each one on the rows that the earlier ones left. If the
    block raises, nothing is written.
    """

    def __init__(
        self,
        handle: WritableTable,
        commit: Callable[[list[Statement]], WriteResult],
        report_error: Callable[[BaseException], None],
    ) -> None:
        self._context = WriteContext.open(handle, SystemClock())
        self._commit = commit
        self._report_error = report_error
        self._statements: list[Statement] = []
        self._is_open = False
        self._is_merge_waiting = False
        self._result: WriteResult | None = None

    @property
    def result(self) -> WriteResult:
        """The result of the commit, once the block has ended.

        Raises:
            ConfigError: the block has not ended, or it raised.
        """
        if self._result is None:
            msg = "the transaction is not committed"
            raise ConfigError(msg, hint="Use `result` after the end of the `with` block.")
        return self._result

    @arg.check_arguments()
    def upsert(self, data: Any) -> None:
        """Update the rows whose keys are in the table and insert the others.

        Args:
            data: rows with the table's columns, as in `HudiTable.upsert`, but no Spark DataFrame.
                They are read into memory.

        Raises:
            SchemaMismatch: the data do not match the table's schema or keys.
            UnsupportedTableFeature: rows are marked as deletes.
            ConfigError: an argument is wrong, or the block has ended.
        """
        self._add(Upsert(self._read(data)))

    @arg.check_arguments()
    def insert(self, data: Any) -> None:
        """Insert rows whose keys are not in the table.

        Unlike `HudiTable.insert` it looks their keys up, so the commit fails if the table has one
        of them. With `hoodie.datasource.insert.dup.policy=drop` it drops such rows instead.

        Args:
            data: rows, as in `upsert`.

        Raises:
            SchemaMismatch: the data do not match the table's schema or keys.
            ConfigError: an argument is wrong, or the block has ended.
        """
        self._add(Insert(self._read(data)))

    @arg.check_arguments()
    def delete_keys(self, keys: Any) -> None:
        """Delete all rows with these keys.

        Args:
            keys: as in `HudiTable.delete_keys`.

        Raises:
            SchemaMismatch: the keys do not match the table's key or partition columns.
            ConfigError: an argument is wrong, or the block has ended.
        """
        self._add(DeleteKeys(self._read(by_column(keys, self._context.config.record_key_fields))))

    @arg.check_arguments()
    def delete(self, where: Any) -> None:
        """Delete the rows that match a filter.

        Args:
            where: which rows, as in `HudiTable.delete`.

        Raises:
            SchemaMismatch: the filter does not match the table's schema.
            ConfigError: an argument is wrong, or the block has ended.
        """
        self._add(Delete(StatementTime().fix(where)))

    @arg.check_arguments()
    def update(self, where: Any, set: Mapping[str, Any]) -> None:  # noqa: A002 - SQL's word
        """Set new values in the rows that match a filter.

        Args:
            where: which rows, as in `HudiTable.update`.
            set: new values by column, as in `HudiTable.update`.

        Raises:
            SchemaMismatch: the filter or a value does not match the table's schema.
            ConfigError: an argument is wrong, or the block has ended.
        """
        time = StatementTime()
        self._add(Update(time.fix(where), time.fix_values(set)))

    @arg.check_arguments()
    def merge(self, source: Any, on: str | Sequence[str] | None = None) -> Merge[None]:
        """Return a builder that merges a source by record key; `execute` adds it to the commit.

        Args:
            source: rows, as in `HudiTable.merge`, but no Spark DataFrame. They are read into
                memory.
            on: as in `HudiTable.merge`.

        Returns:
            The builder, without clauses. All of its clauses see the rows that the changes before
            `execute` have left. A block that ends before `execute` raises `ConfigError`.

        Raises:
            ConfigError: `on` is not the record key, an argument is wrong, or the block has ended.
        """
        self._check_open()
        merge.check_on(self._context.config, (on,) if isinstance(on, str) else on and tuple(on))
        is_empty = isinstance(source, (list, tuple)) and not source
        rows = self._read([]) if is_empty else self._read(source, has_table_types=False)
        self._is_merge_waiting = True

        def add(clauses: tuple[MergeClause, ...]) -> None:
            if is_empty:  # Clauses cannot refer to columns of an empty list.
                clauses = tuple(clause for clause in clauses if clause.by_source)
            self._add(staged_merge.Merge(rows, clauses))
            self._is_merge_waiting = False

        return Merge(add)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Explain why a method that replaces file groups is missing."""
            if name in _REPLACING:
                raise UnsupportedTableFeature(
                    f"{name} cannot be part of a transaction: it replaces file groups, and a "
                    "commit of Hudi either does that or updates rows",
                    hint=_REPLACING[name],
                )
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self
            )

    def __enter__(self) -> Self:
        if self._is_open or self._result is not None:
            msg = "a transaction has one `with` block"
            raise ConfigError(msg, hint="Call `table.transaction()` again.")
        self._is_open = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_open = False
        if error is None and self._is_merge_waiting:
            error = ConfigError(
                "a merge of the transaction was not executed, so nothing is written",
                hint="Call execute() after the clauses of the merge.",
            )
            self._report_error(error)
            raise error
        if error is None:
            self._result = self._commit(self._statements)
        else:
            self._report_error(error)

    def _read(self, data: Any, *, has_table_types: bool = True) -> pa.Table:
        if is_spark_frame(data):
            msg = "a transaction takes no Spark DataFrame"
            raise ConfigError(msg, hint="Pass Arrow data, such as `frame.toArrow()`.")
        types = self._context.input_types if has_table_types else None
        return read_table(data, types, allow_missing_keys=has_table_types)

    def _check_open(self) -> None:
        if not self._is_open:
            msg = "the transaction is not open"
            raise ConfigError(msg, hint="Call its methods inside `with table.transaction() as tx:`")

    def _add(self, statement: Statement) -> None:
        self._check_open()
        with spell_hints(for_transactions):
            statement.check(self._context)
        self._statements.append(statement)
