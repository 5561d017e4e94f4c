"""The changes of a table's columns, each with the column's path.

A path names a column, or with dots a struct's field; `element` is the element of a list, `value`
the value of a map (`visits.element.at`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from pyhudi.errors import ConfigError


@dataclass(frozen=True)
class Position:
    """The position of a column among its siblings; if nothing is set, last."""

    first: bool = False
    after: str | None = None
    before: str | None = None

    def check(self) -> None:
        """Raise `ConfigError` if it names several positions."""
        if sum((self.first, self.after is not None, self.before is not None)) > 1:
            raise ConfigError("first, after and before cannot be combined")


@dataclass(frozen=True)
class Add:
    """Add a column, which may be null."""

    path: str
    data_type: pa.DataType
    position: Position
    doc: str | None


@dataclass(frozen=True)
class Rename:
    """Rename a column."""

    path: str
    name: str


@dataclass(frozen=True)
class Drop:
    """Drop a column; files keep its values."""

    path: str


@dataclass(frozen=True)
class ChangeType:
    """Change the type of a column without parts."""

    path: str
    data_type: pa.DataType


@dataclass(frozen=True)
class Comment:
    """Change the description; None removes it."""

    path: str
    doc: str | None


@dataclass(frozen=True)
class MakeNullable:
    """Let a required column be null."""

    path: str


@dataclass(frozen=True)
class Move:
    """Move a column among its siblings."""

    path: str
    position: Position


Change: TypeAlias = "Add | Rename | Drop | ChangeType | Comment | MakeNullable | Move"
