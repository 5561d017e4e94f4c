"""The statements that pyhudi runs itself, in parts. Expressions and queries are text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

ClauseType = Literal["matched", "not_matched", "not_matched_by_source"]
ClauseAction = Literal["update", "delete", "insert"]


HUDI_FORMATS = frozenset({"hudi", "pyhudi", "org.apache.hudi"})
"""Names of Hudi's format in lower case: after USING, and of the provider in Spark's catalog."""


@dataclass(frozen=True)
class TableName:
    """A table as a statement names it: `trips`, `sales.trips`, or a path (hudi.`/lake/trips`)."""

    parts: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> TableName:
        """Return the table that a string names: by its name, or by a path, which has a slash."""
        return cls((text,) if "/" in text else tuple(text.split(".")))

    @property
    def path(self) -> str | None:
        """The location, if the statement names the table by it."""
        *first, last = self.parts
        by_format = [name.lower() for name in first] in (["hudi"], ["pyhudi"])
        return last if by_format or (not first and ("/" in last)) else None

    def __str__(self) -> str:
        return ".".join(name if name.isidentifier() else f"`{name}`" for name in self.parts)


@dataclass(frozen=True)
class Assignment:
    """A column and the expression that it is set to."""

    column: tuple[str, ...]
    """The names that dots join: with the table's name or alias in front, or without."""
    value: str


@dataclass(frozen=True)
class Clause:
    """A WHEN clause of a MERGE."""

    when: ClauseType
    action: ClauseAction
    condition: str | None = None
    assignments: tuple[Assignment, ...] | None = None
    """None for `*`, and for a delete."""


@dataclass(frozen=True)
class MergeInto:
    """MERGE INTO."""

    table: TableName
    alias: str | None
    source: str
    """A query, or the name of a table."""
    source_alias: str | None
    condition: str
    clauses: tuple[Clause, ...]


@dataclass(frozen=True)
class Update:
    """UPDATE."""

    table: TableName
    alias: str | None
    assignments: tuple[Assignment, ...]
    where: str | None


@dataclass(frozen=True)
class Delete:
    """DELETE FROM."""

    table: TableName
    alias: str | None
    where: str | None


@dataclass(frozen=True)
class Insert:
    """INSERT INTO or INSERT OVERWRITE."""

    table: TableName
    query: str
    overwrite: bool = False
    columns: tuple[str, ...] | None = None
    by_name: bool = False
    partition: Mapping[str, str | None] = field(default_factory=dict)
    """The PARTITION clause: an expression for each column, None for one that the query has."""


@dataclass(frozen=True)
class CreateTable:
    """CREATE TABLE ... USING hudi."""

    table: TableName
    columns: str | None = None
    """Columns and types."""
    partition_by: tuple[str, ...] = ()
    partition_columns: str | None = None
    """Columns and types, if PARTITIONED BY declares them."""
    if_not_exists: bool = False
    location: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    query: str | None = None


@dataclass(frozen=True)
class DropTable:
    """DROP TABLE."""

    table: TableName
    if_exists: bool = False


@dataclass(frozen=True)
class Truncate:
    """TRUNCATE TABLE, of some partitions or of all."""

    table: TableName
    partition: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class ColumnChange:
    """One change of ALTER TABLE to a column."""

    action: Literal["add", "rename", "drop", "type", "comment", "nullable", "move"]
    column: str
    """The name; a field of a struct has dots in it."""
    value: str | None = None
    """The type, name or comment."""
    comment: str | None = None
    first: bool = False
    after: str | None = None


@dataclass(frozen=True)
class AlterColumns:
    """ALTER TABLE with changes of columns."""

    table: TableName
    changes: tuple[ColumnChange, ...]


@dataclass(frozen=True)
class SetProperties:
    """ALTER TABLE SET TBLPROPERTIES."""

    table: TableName
    properties: Mapping[str, str]


@dataclass(frozen=True)
class DropPartitions:
    """ALTER TABLE DROP PARTITION."""

    table: TableName
    partitions: tuple[Mapping[str, str | None], ...]
    if_exists: bool = False


@dataclass(frozen=True)
class CreateIndex:
    """CREATE INDEX."""

    name: str
    table: TableName
    index_type: str
    columns: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropIndex:
    """DROP INDEX."""

    name: str
    table: TableName
    if_exists: bool = False


@dataclass(frozen=True)
class Show:
    """A statement that describes a table."""

    what: Literal["columns", "history", "detail", "partitions", "properties", "indexes", "create"]
    table: TableName
    limit: int | None = None
    extended: bool = False
    """Whether DESCRIBE shows details of the table after its columns."""


@dataclass(frozen=True)
class Call:
    """CALL of a procedure."""

    procedure: str
    positional: tuple[object, ...] = ()
    named: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Query:
    """Any other statement: the engine runs it, with views for the Hudi tables that it names."""

    sql: str
    stored_in: Literal["session", "catalog"] | None = None
    """Store of the query's text: the session for a temporary view or a cached table, the catalog
    for another view."""


Statement: TypeAlias = (
    MergeInto
    | Update
    | Delete
    | Insert
    | CreateTable
    | DropTable
    | Truncate
    | AlterColumns
    | SetProperties
    | DropPartitions
    | CreateIndex
    | DropIndex
    | Show
    | Call
    | Query
)
