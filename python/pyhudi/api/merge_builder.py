"""The builder of a merge: clauses, then `execute`.

What they do is `write/merge.py`'s part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow.compute as pc

from pyhudi.config import argument_checks as arg
from pyhudi.config.formatting import count_text
from pyhudi.errors import ConfigError
from pyhudi.txn.result import WriteResult
from pyhudi.write.merge_planning import MergeClause


@dataclass(frozen=True)
class Merge:
    """A merge of a source into a table by record key; nothing happens before `execute`.

    Every clause gives a new builder. Clauses for matched rows (those whose key the table has) are
    tried in the order they were added, and so are those for the others; of those whose `where`
    holds the first one decides, and a row that none decides is left alone. `where` and values are
    SQL expressions (or pyarrow expressions) in which `source.name` is a column of the source and
    `target.name` one of the table; values that are no text are taken as they are.
    """

    run: Callable[[tuple[MergeClause, ...]], WriteResult]
    """What carries it out."""
    clauses: tuple[MergeClause, ...] = ()

    def __repr__(self) -> str:
        return f"<Merge: {count_text(len(self.clauses), 'clause')}, not executed>"

    @arg.check_arguments(values=arg.by_name)
    def when_matched_update(
        self, values: Mapping[str, Any], *, where: str | pc.Expression | None = None
    ) -> Merge:
        """Gives columns of the table's row new values.

        Args:
            values: by column, none of the key or the partition.
            where: for which matched rows; None for all.

        Returns:
            A builder with the clause.

        Raises:
            ConfigError: there are no values.
        """
        return self._with("update", where, values)

    def when_matched_update_all(self, *, where: str | pc.Expression | None = None) -> Merge:
        """Gives the table's row the values of all columns that the source has.

        Args:
            where: for which matched rows; None for all.

        Returns:
            A builder with the clause.
        """
        return self._with("update", where, None)

    def when_matched_delete(self, *, where: str | pc.Expression | None = None) -> Merge:
        """Removes the table's row.

        Args:
            where: for which matched rows; None for all.

        Returns:
            A builder with the clause.
        """
        return self._with("delete", where, None)

    @arg.check_arguments(values=arg.by_name)
    def when_not_matched_insert(
        self, values: Mapping[str, Any], *, where: str | pc.Expression | None = None
    ) -> Merge:
        """Adds a row of these values, null in other columns, with the key of the source's row.

        Args:
            values: by column of the table.
            where: for which rows of the source; None for all. It can look at the source alone.

        Returns:
            A builder with the clause.

        Raises:
            ConfigError: there are no values.
        """
        return self._with("insert", where, values)

    def when_not_matched_insert_all(self, *, where: str | pc.Expression | None = None) -> Merge:
        """Adds the source's row, null in columns that it lacks.

        Args:
            where: for which rows of the source; None for all. It can look at the source alone.

        Returns:
            A builder with the clause.
        """
        return self._with("insert", where, None)

    def execute(self) -> WriteResult:
        """Carries out the merge in one commit.

        Returns:
            What was written. A source without rows, or of which no clause takes any, makes no
            commit.

        Raises:
            ConfigError: there is no clause, or one cannot be carried out.
            SchemaMismatch: the source lacks key columns or has a key twice, values do not fit, or
                a file has several rows of a key and clauses do not delete all of them.
            UnsupportedTableFeature: pyhudi does not write to the table, or its rules keep what is
                stored in the place of a value.
            CommitConflict: it must not write to it now, or another writer changed the same file
                groups.
        """
        if not self.clauses:
            msg = "the merge has no clause"
            raise ConfigError(msg, hint="Add when_matched_... or when_not_matched_... first.")
        return self.run(self.clauses)

    def _with(
        self, kind: str, where: str | pc.Expression | None, values: Mapping[str, Any] | None
    ) -> Merge:
        from pyhudi.write.merge_planning import MergeClause  # noqa: PLC0415 - as it is needed

        if values is not None and not values:
            msg = "a clause sets no column"
            raise ConfigError(msg)
        return replace(self, clauses=(*self.clauses, MergeClause(kind, where, values)))
