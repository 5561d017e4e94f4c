"""The builder of a merge: clauses, then `execute`.

`write/merge.py` runs the merge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pyarrow.compute as pc

from pyhudi.config import argument_checks as arg
from pyhudi.config.formatting import count_text
from pyhudi.errors import ConfigError
from pyhudi.schema.statement_time import StatementTime
from pyhudi.write.merge_planning import MergeClause

if TYPE_CHECKING:
    from typing_extensions import Self

Result = TypeVar("Result")
"""A `WriteResult`, or None in a transaction."""


@dataclass(frozen=True)
class Merge(Generic[Result]):
    """A merge of a source into a table by record key; nothing happens before `execute`.

    Every method adds a clause and returns a new builder. pyhudi tries the clauses for matched rows
    (whose key is in the table), those for the other rows of the source, and those for the other
    rows of the table in the order in which you add them. The first clause whose `where` is true
    decides; pyhudi ignores rows for which none is true.
    `where` and values are SQL or pyarrow expressions, in which `source.name` is a column of the
    source and `target.name` a column of the table. Values that are not strings are literals.
    """

    run: Callable[[tuple[MergeClause, ...]], Result]
    """Executes the merge, or adds it to a transaction."""
    clauses: tuple[MergeClause, ...] = ()

    def __repr__(self) -> str:
        return f"<Merge: {count_text(len(self.clauses), 'clause')}, not executed>"

    @arg.check_arguments()
    def when_matched_update(
        self, values: Mapping[str, Any], *, where: str | pc.Expression | None = None
    ) -> Self:
        """Update columns of the matched row in the table.

        Args:
            values: new values by column; key and partition columns cannot be set.
            where: condition on matched rows; None for all.

        Returns:
            A builder with the clause.

        Raises:
            ConfigError: there are no values.
        """
        return self._with("update", where, values)

    def when_matched_update_all(self, *, where: str | pc.Expression | None = None) -> Self:
        """Update all columns of the matched row that the source has.

        Args:
            where: condition on matched rows; None for all.

        Returns:
            A builder with the clause.
        """
        return self._with("update", where, None)

    def when_matched_delete(self, *, where: str | pc.Expression | None = None) -> Self:
        """Delete the matched row from the table.

        Args:
            where: condition on matched rows; None for all.

        Returns:
            A builder with the clause.
        """
        return self._with("delete", where, None)

    @arg.check_arguments()
    def when_not_matched_insert(
        self, values: Mapping[str, Any], *, where: str | pc.Expression | None = None
    ) -> Self:
        """Insert a row of these values, with the key of the source row and null in other columns.

        Args:
            values: values by column of the table.
            where: condition on source rows; None for all. It can use columns of the source only.

        Returns:
            A builder with the clause.

        Raises:
            ConfigError: there are no values.
        """
        return self._with("insert", where, values)

    def when_not_matched_insert_all(self, *, where: str | pc.Expression | None = None) -> Self:
        """Insert the source row, with null in columns that it does not have.

        Args:
            where: condition on source rows; None for all. It can use columns of the source only.

        Returns:
            A builder with the clause.
        """
        return self._with("insert", where, None)

    @arg.check_arguments()
    def when_not_matched_by_source_update(
        self, values: Mapping[str, Any], *, where: str | pc.Expression | None = None
    ) -> Self:
        """Update columns of the table's rows that have no row in the source.

        Args:
            values: new values by column, without columns of the source; key and partition columns
                cannot be set.
            where: condition on these rows; None for all.

        Returns:
            A builder with the clause.

        Raises:
            ConfigError: there are no values.
        """
        return self._with("update", where, values, by_source=True)

    def when_not_matched_by_source_delete(
        self, *, where: str | pc.Expression | None = None
    ) -> Self:
        """Delete the table's rows that have no row in the source.

        Args:
            where: condition on these rows; None for all, so an empty source deletes every row.

        Returns:
            A builder with the clause.
        """
        return self._with("delete", where, None, by_source=True)

    def execute(self) -> Result:
        """Run the merge in one commit, or in that of its transaction.

        Returns:
            What the commit wrote. If no clause applies to a row, there is no commit. In a
            transaction: None.

        Raises:
            ConfigError: there is no clause, or a clause cannot be executed.
            SchemaMismatch: the source has no key columns or has a key twice, values do not match
                their columns, or a file has several rows of a key and the clauses do not delete all
                of them.
            UnsupportedTableFeature: pyhudi does not write to the table, or its merge rules would
                keep the stored value instead of a new one.
            CommitConflict: a pending operation rules the write out, or another writer changed the
                same file groups.
        """
        if not self.clauses:
            msg = "the merge has no clause"
            raise ConfigError(msg, hint="Add when_matched_... or when_not_matched_... first.")
        time = StatementTime()
        fixed = [
            replace(
                clause,
                where=time.fix(clause.where),
                values=None if clause.values is None else time.fix_values(clause.values),
            )
            for clause in self.clauses
        ]
        return self.run(tuple(fixed))

    def _with(
        self,
        action: str,
        where: str | pc.Expression | None,
        values: Mapping[str, Any] | None,
        *,
        by_source: bool = False,
    ) -> Self:
        if values is not None and not values:
            raise ConfigError("a clause sets no column")
        return replace(self, clauses=(*self.clauses, MergeClause(action, where, values, by_source)))
