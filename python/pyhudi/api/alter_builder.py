"""The builder of changes to a table's columns, which `execute` applies.

`write/alter.py` makes the changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.config import argument_checks as arg
from pyhudi.config.formatting import count_text
from pyhudi.errors import ConfigError
from pyhudi.schema.alter_changes import (
    Add,
    Change,
    ChangeType,
    Comment,
    Drop,
    MakeNullable,
    Move,
    Position,
    Rename,
)
from pyhudi.txn.result import WriteResult


@dataclass(frozen=True)
class Alter:
    """Changes to a table's columns; nothing happens before `execute`.

    Every method returns a new builder. Changes are made in the order in which you add them.
    `column` is a name, or a dotted path into structs; `element` names the elements of a list and
    `value` the values of a map (`visits.element.at`). Columns of the record key, the partition or
    the ordering keep their names and types.
    """

    run: Callable[[tuple[Change, ...]], WriteResult]
    """Executes the changes."""
    changes: tuple[Change, ...] = ()

    def __repr__(self) -> str:
        return f"<Alter: {count_text(len(self.changes), 'change')}, not executed>"

    @arg.check_arguments()
    def add_column(
        self,
        column: str,
        type: pa.DataType | str,  # noqa: A002 - the term of the field
        *,
        first: bool = False,
        after: str | None = None,
        before: str | None = None,
        doc: str | None = None,
    ) -> Alter:
        """Add a column, which is null in all existing rows.

        The column comes last unless you pass `first`, `after` or `before`. A column with the name
        of a dropped column is still a new column.

        Args:
            column: name of the column, or its path.
            type: its type: of pyarrow, or text as in Spark SQL, such as "decimal(10,2)".
            first: put it before its siblings.
            after: name of the sibling that it follows.
            before: name of the sibling that it precedes.
            doc: its description; None for no description.

        Returns:
            A builder with the change.

        Raises:
            ConfigError: an argument has the wrong type, or `type` names no type.
        """
        return self._with(Add(column, _type(type), Position(first, after, before), doc))

    @arg.check_arguments()
    def rename_column(self, column: str, name: str) -> Alter:
        """Rename a column.

        Args:
            column: name of the column, or its path.
            name: the new name, without the path.

        Returns:
            A builder with the change.

        Raises:
            ConfigError: an argument has the wrong type.
        """
        return self._with(Rename(column, name))

    @arg.check_arguments()
    def drop_column(self, column: str) -> Alter:
        """Drop a column. Its values stay in the files until those are rewritten.

        Args:
            column: name of the column, or its path.

        Returns:
            A builder with the change.

        Raises:
            ConfigError: an argument has the wrong type.
        """
        return self._with(Drop(column))

    @arg.check_arguments()
    def change_type(self, column: str, type: pa.DataType | str) -> Alter:  # noqa: A002 - as above
        """Change the type of a column.

        These changes are possible:

        - int to long, float, double, decimal or string;
        - long to float, double, decimal or string;
        - float and double to a wider type, decimal or string;
        - a decimal to a wider decimal or string;
        - date to string;
        - string to date or decimal (null where the text is not one).

        Args:
            column: name of the column, or its path.
            type: the new type, as in `add_column`.

        Returns:
            A builder with the change.

        Raises:
            ConfigError: an argument has the wrong type, or `type` names no type.
        """
        return self._with(ChangeType(column, _type(type)))

    @arg.check_arguments()
    def set_doc(self, column: str, doc: str | None) -> Alter:
        """Set the description of a column.

        Args:
            column: name of the column, or its path.
            doc: the description; None removes it.

        Returns:
            A builder with the change.

        Raises:
            ConfigError: an argument has the wrong type.
        """
        return self._with(Comment(column, doc))

    @arg.check_arguments()
    def make_nullable(self, column: str) -> Alter:
        """Make a required column nullable.

        Args:
            column: name of the column, or its path.

        Returns:
            A builder with the change.

        Raises:
            ConfigError: an argument has the wrong type.
        """
        return self._with(MakeNullable(column))

    @arg.check_arguments()
    def move_column(
        self,
        column: str,
        *,
        first: bool = False,
        after: str | None = None,
        before: str | None = None,
    ) -> Alter:
        """Move a column among its siblings; to the end if you pass no position.

        Args:
            column: name of the column, or its path.
            first: put it before its siblings.
            after: name of the sibling that it follows.
            before: name of the sibling that it precedes.

        Returns:
            A builder with the change.

        Raises:
            ConfigError: an argument has the wrong type.
        """
        return self._with(Move(column, Position(first, after, before)))

    def execute(self) -> WriteResult:
        """Apply the changes in one commit, without rewriting a file.

        Returns:
            What the commit wrote.

        Raises:
            SchemaMismatch: a change is not possible, or changes nothing.
            ConfigError: there are no changes, or a position is invalid.
            UnsupportedTableFeature: pyhudi does not alter the columns of this table.
            CommitConflict: a pending operation or another writer rules the change out now.
        """
        if not self.changes:
            raise ConfigError("alter() has no changes", hint="Add changes first.")
        return self.run(self.changes)

    def _with(self, change: Change) -> Alter:
        return replace(self, changes=(*self.changes, change))


def _type(data_type: pa.DataType | str) -> pa.DataType:
    if isinstance(data_type, pa.DataType):
        return data_type
    from pyhudi.schema.sql_types import type_of  # noqa: PLC0415 - imported when needed

    return type_of(data_type)
