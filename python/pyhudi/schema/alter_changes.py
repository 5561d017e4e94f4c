"""The changes that can be made to a table's columns, each by the column's path.

A path names a column, or with dots a struct's field; `element` is what a list holds, `value` what a
map does (`visits.element.at`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from pyhudi.errors import ConfigError


@dataclass(frozen=True)
class Position:
    """Where among its siblings a column goes; all unset: last."""

    first: bool = False
    after: str | None = None
    before: str | None = None

    def check(self) -> None:
        """Raises `ConfigError` when it names several places."""
        if sum((self.first, self.after is not None, self.before is not None)) > 1:
            msg = "first, after and before cannot be combined"
            raise ConfigError(msg)


@dataclass(frozen=True)
class Add:
    """A new column, which may be null."""

    path: str
    kind: pa.DataType
    position: Position
    doc: str | None


@dataclass(frozen=True)
class Rename:
    """Another name for a column."""

    path: str
    name: str


@dataclass(frozen=True)
class Drop:
    """A column goes; files keep its values."""

    path: str


@dataclass(frozen=True)
class ChangeType:
    """Another type for a column without parts."""

    path: str
    kind: pa.DataType


@dataclass(frozen=True)
class Comment:
    """Another description; None: none."""

    path: str
    doc: str | None


@dataclass(frozen=True)
class MakeNullable:
    """A required column may be null."""

    path: str


@dataclass(frozen=True)
class Move:
    """Another place among its siblings."""

    path: str
    position: Position


Change: TypeAlias = "Add | Rename | Drop | ChangeType | Comment | MakeNullable | Move"
