"""Columns in the conditions and values of a statement: names that are not case-sensitive, aliases.

The methods of a table know neither. A statement's expressions become syntax trees with the names
that the methods use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.schema.sql_parser import SqlTree, parse_one
from pyhudi.suggestions import did_you_mean

_MAX_PARTS = 4
"""Maximum names that dots join in a column of sqlglot."""


@dataclass(frozen=True)
class Side:
    """The columns of a table or source that an expression may name."""

    columns: Mapping[str, str]
    """The name that the methods of the table use, by the name of the statement."""
    name: str | None = None
    """The table's name or alias."""
    prefix: str | None = None
    """The word before the column that the methods use: source or target."""

    @classmethod
    def of(cls, columns: Iterable[str], name: str | None, prefix: str | None = None) -> Side:
        """Return a side whose columns have the same names everywhere."""
        return cls({column: column for column in columns}, name, prefix)

    def find(self, name: str) -> str | None:
        """Return the name of a column that the methods use; None if no column has it."""
        match = match_name(name, list(self.columns))
        return None if match is None else self.columns[match]


def match_name(name: str, names: Sequence[str]) -> str | None:
    """Return the name among others that a statement means; None if no column has it.

    Raises `ConfigError` if several names differ from it only in case.
    """
    if name in names:
        return name
    matches = [each for each in names if each.lower() == name.lower()]
    if len(matches) > 1:
        raise ConfigError(
            f"the name {name!r} is ambiguous", hint=f"Write one of {', '.join(matches)}."
        )
    return matches[0] if matches else None


def own_name(name: str, names: Sequence[str]) -> str:
    """Return the column of a table that a statement means. Raises `SchemaMismatch` if unknown."""
    match = match_name(name, names)
    if match is None:
        meant = did_you_mean(name, names)
        raise SchemaMismatch(
            f"the table has no column {name!r}", hint=f"{meant} It has {', '.join(names)}.".strip()
        )
    return match


def resolve_names(sql: str, sides: Sequence[Side], what: str) -> SqlTree:
    """Parse an expression, with the names that the methods of a table use.

    what: for messages. Raises `ConfigError` for an invalid expression and an ambiguous name,
    `SchemaMismatch` for an unknown one.
    """
    tree = parse_one(sql, what, hint="Quote strings with single quotes.")
    for column in list(tree.find_all(exp.Column)):
        path = column_path(column)
        if not path:
            continue
        side, names = find_side(path, sides, what)
        prefix = [] if side.prefix is None else [side.prefix]
        parts = [*prefix, side.find(names[0]) or names[0], *names[1:]]
        if len(parts) > _MAX_PARTS:
            raise ConfigError(f"{what}: {column.sql()} has too many names")
        identifiers = [exp.to_identifier(part, quoted=True) for part in parts]
        named = exp.Column(
            **dict(zip(("this", "table", "db", "catalog"), reversed(identifiers), strict=False))
        )
        if column is tree:
            tree = named
        else:
            column.replace(named)
    return SqlTree(sql, tree)


def column_path(column: Any) -> tuple[str, ...]:
    """Return the names that dots join in a column; () if it is not made of names."""
    parts = [column.args.get(name) for name in ("catalog", "db", "table", "this")]
    names = [part for part in parts if part is not None]
    if not all(isinstance(name, exp.Identifier) for name in names):
        return ()
    return tuple(str(name.this) for name in names)


def find_side(
    path: tuple[str, ...], sides: Sequence[Side], what: str
) -> tuple[Side, tuple[str, ...]]:
    """Return the side of a column, and its names without that of the side."""
    for side in sides:
        is_named = side.name is not None and path[0].lower() == side.name.lower()
        if is_named and len(path) > 1 and side.find(path[1]) is not None:
            return side, path[1:]
    matches = [side for side in sides if side.find(path[0]) is not None]
    if not matches:
        raise _no_column_error(path, sides, what)
    if len(matches) > 1:
        names = " or ".join(f"{side.name or side.prefix}.{path[0]}" for side in matches)
        raise ConfigError(f"{what}: the column {path[0]!r} is ambiguous", hint=f"Write {names}.")
    return matches[0], path


def _no_column_error(path: tuple[str, ...], sides: Sequence[Side], what: str) -> SchemaMismatch:
    columns = list(dict.fromkeys(column for side in sides for column in side.columns))
    meant = did_you_mean(path[-1], columns)
    hint = f"{meant} Columns: {', '.join(columns)}. Put strings into single quotes."
    return SchemaMismatch(f"{what}: there is no column {'.'.join(path)!r}", hint=hint.strip())
