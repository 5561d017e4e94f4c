"""The builder of changes to a table's columns, then `execute`.

What they do is `write/alter.py`'s part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.config import argument_checks as arg
from pyhudi.config.formatting import count_text
from pyhudi.errors import ConfigError
from pyhudi.schema.alter_changes import Change
from pyhudi.txn.result import WriteResult


@dataclass(frozen=True)
class Alter:
    """Changes to a table's columns; nothing happens before `execute`.

    Every method gives a new builder. Changes are made in the order they were added. `column` is a
    name, or a path with dots into structs; `element` stands for what a list holds and `value` for
    what a map does (`visits.element.at`). Columns that make the record key, the partition or the
    ordering keep their names and types.
    """

    run: Callable[[tuple[Change, ...]], WriteResult]
    """What carries them out."""
    changes: tuple[Change, ...] = ()

    def __repr__(self) -> str:
        return f"<Alter: {count_text(len(self.changes), 'change')}, not executed>"

    @arg.check_arguments(
        column=arg.text,
        type=arg.arrow_type,
        first=arg.flag,
        after=arg.optional(arg.text),
        before=arg.optional(arg.text),
        doc=arg.optional(arg.text),
    )
    def add_column(
        self,
        column: str,
        type: pa.DataType | str,  # noqa: A002 - the word for it
        *,
        first: bool = False,
        after: str | None = None,
        before: str | None = None,
        doc: str | None = None,
    ) -> Alter:
        """Adds a column, null in all rows there are.

        It comes last unless one of `first`, `after` and `before` is given. A name that a dropped
        column had is a new column all the same.

        Args:
            column: its name, or path.
            type: what it holds: of pyarrow, or text as in Spark's SQL, such as "decimal(10,2)".
            first: it comes before those beside it.
            after: the name of the column beside it that it follows.
            before: the name of the column beside it that it precedes.
            doc: its description; None for none.

        Returns:
            A builder with the change.

        Raises:
            ConfigError: an argument is of another kind, or a text no type.
        """
        from pyhudi.schema.alter_changes import Add, Position  # noqa: PLC0415 - as it is needed

        return self._with(Add(column, _type(type), Position(first, after, before), doc))

    @arg.check_arguments(column=arg.text, name=arg.text)
    def rename_column(self, column: str, name: str) -> Alter:
        """Gives a column another name.

        Args:
            column: its name, or path.
            name: the new name, without the path.

        Returns:
            A builder with the change.

        Raises:
            ConfigError: an argument is of another kind.
        """
        from pyhudi.schema.alter_changes import Rename  # noqa: PLC0415 - as it is needed

        return self._with(Rename(column, name))

    @arg.check_arguments(column=arg.text)
    def drop_column(self, column: str) -> Alter:
        """Takes a column away. Its values stay in the files until those are rewritten.

        Args:
            column: its name, or path.

        Returns:
            A builder with the change.

        Raises:
            ConfigError: an argument is of another kind.
        """
        from pyhudi.schema.alter_changes import Drop  # noqa: PLC0415 - as it is needed

        return self._with(Drop(column))

    @arg.check_arguments(column=arg.text, type=arg.arrow_type)
    def change_type(self, column: str, type: pa.DataType | str) -> Alter:  # noqa: A002 - as above
        """Gives a column another type.

        int may become long, float, double, decimal or text; long the same but long; float and
        double what is wider, decimal or text; a decimal a wider one or text; a date text; text a
        date or decimal (null where it says something else).

        Args:
            column: its name, or path.
            type: the new type, as in `add_column`.

        Returns:
            A builder with the change.

        Raises:
            ConfigError: an argument is of another kind, or a text no type.
        """
        from pyhudi.schema.alter_changes import ChangeType  # noqa: PLC0415 - as it is needed

        return self._with(ChangeType(column, _type(type)))

    @arg.check_arguments(column=arg.text, doc=arg.optional(arg.text))
    def set_doc(self, column: str, doc: str | None) -> Alter:
        """Describes a column.

        Args:
            column: its name, or path.
            doc: the description; None takes it away.

        Returns:
            A builder with the change.

        Raises:
            ConfigError: an argument is of another kind.
        """
        from pyhudi.schema.alter_changes import Comment  # noqa: PLC0415 - as it is needed

        return self._with(Comment(column, doc))

    @arg.check_arguments(column=arg.text)
    def make_nullable(self, column: str) -> Alter:
        """Lets a column be null that was required.

        Args:
            column: its name, or path.

        Returns:
            A builder with the change.

        Raises:
            ConfigError: an argument is of another kind.
        """
        from pyhudi.schema.alter_changes import MakeNullable  # noqa: PLC0415 - as it is needed

        return self._with(MakeNullable(column))

    @arg.check_arguments(
        column=arg.text,
        first=arg.flag,
        after=arg.optional(arg.text),
        before=arg.optional(arg.text),
    )
    def move_column(
        self,
        column: str,
        *,
        first: bool = False,
        after: str | None = None,
        before: str | None = None,
    ) -> Alter:
        """Puts a column elsewhere among those beside it; last where nothing says where.

        Args:
            column: its name, or path.
            first: it comes before those beside it.
            after: the name of the column beside it that it follows.
            before: the name of the column beside it that it precedes.

        Returns:
            A builder with the change.

        Raises:
            ConfigError: an argument is of another kind.
        """
        from pyhudi.schema.alter_changes import Move, Position  # noqa: PLC0415 - as it is needed

        return self._with(Move(column, Position(first, after, before)))

    def execute(self) -> WriteResult:
        """Carries the changes out in one commit, without touching a file.

        Returns:
            What was written.

        Raises:
            SchemaMismatch: a change is not possible, or changes nothing.
            ConfigError: there are no changes, or a position is none.
            UnsupportedTableFeature: pyhudi does not alter the columns of such a table.
            CommitConflict: the table must not be written to now.
        """
        if not self.changes:
            msg = "alter() has no changes"
            raise ConfigError(msg, hint="Add changes first.")
        return self.run(self.changes)

    def _with(self, change: Change) -> Alter:
        return replace(self, changes=(*self.changes, change))


def _type(given: pa.DataType | str) -> pa.DataType:
    if isinstance(given, pa.DataType):
        return given
    from pyhudi.schema.sql_types import type_of  # noqa: PLC0415 - as it is needed

    return type_of(given)
