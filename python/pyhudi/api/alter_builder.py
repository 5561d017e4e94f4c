"""The builder of changes to a table's columns, then `execute`.

What they do is `write/alter.py`'s part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.config import arguments as arg
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

    @arg.checked(
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
        type: pa.DataType,  # noqa: A002 - the word for it
        *,
        first: bool = False,
        after: str | None = None,
        before: str | None = None,
        doc: str | None = None,
    ) -> Alter:
        """Adds a column, null in all rows there are.

        It comes last, or where `first`, `after` or `before` (names of columns beside it) say. A
        name that a dropped column had is a new column all the same.
        """
        from pyhudi.schema.alter_changes import Add, Position  # noqa: PLC0415 - as it is needed

        return self._with(Add(column, type, Position(first, after, before), doc))

    @arg.checked(column=arg.text, name=arg.text)
    def rename_column(self, column: str, name: str) -> Alter:
        """Gives a column another name, without the path."""
        from pyhudi.schema.alter_changes import Rename  # noqa: PLC0415 - as it is needed

        return self._with(Rename(column, name))

    @arg.checked(column=arg.text)
    def drop_column(self, column: str) -> Alter:
        """Takes a column away. Its values stay in the files until those are rewritten."""
        from pyhudi.schema.alter_changes import Drop  # noqa: PLC0415 - as it is needed

        return self._with(Drop(column))

    @arg.checked(column=arg.text, type=arg.arrow_type)
    def change_type(self, column: str, type: pa.DataType) -> Alter:  # noqa: A002 - as above
        """Gives a column another type.

        int may become long, float, double, decimal or text; long the same but long; float and
        double what is wider, decimal or text; a decimal a wider one or text; a date text; text a
        date or decimal (null where it says something else).
        """
        from pyhudi.schema.alter_changes import ChangeType  # noqa: PLC0415 - as it is needed

        return self._with(ChangeType(column, type))

    @arg.checked(column=arg.text, doc=arg.optional(arg.text))
    def set_doc(self, column: str, doc: str | None) -> Alter:
        """Describes a column; None takes the description away."""
        from pyhudi.schema.alter_changes import Comment  # noqa: PLC0415 - as it is needed

        return self._with(Comment(column, doc))

    @arg.checked(column=arg.text)
    def make_nullable(self, column: str) -> Alter:
        """Lets a column be null that was required."""
        from pyhudi.schema.alter_changes import MakeNullable  # noqa: PLC0415 - as it is needed

        return self._with(MakeNullable(column))

    @arg.checked(
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
        """Puts a column elsewhere among those beside it; last where nothing says where."""
        from pyhudi.schema.alter_changes import Move, Position  # noqa: PLC0415 - as it is needed

        return self._with(Move(column, Position(first, after, before)))

    def execute(self) -> WriteResult:
        """Carries the changes out in one commit, without touching a file.

        Raises `SchemaMismatch` for a change that is not possible or changes nothing, `ConfigError`
        for a position that is none, `UnsupportedTableFeature` for a table whose columns pyhudi does
        not alter, `CommitConflict` for one that it must not write to now.
        """
        if not self.changes:
            msg = "there is nothing to alter"
            raise ConfigError(msg, hint="Add changes first.")
        return self.run(self.changes)

    def _with(self, change: Change) -> Alter:
        return replace(self, changes=(*self.changes, change))
