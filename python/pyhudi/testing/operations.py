"""Operations on a table as values: they run on a table, apply to a model, and print readably."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from pyhudi import HudiTable

Row: TypeAlias = dict[str, Any]
Rows: TypeAlias = Sequence[Mapping[str, Any]] | pa.Table


@dataclass(frozen=True)
class Condition:
    """A condition on one column, such as `Condition("n", "<", 3)`.

    Attributes:
        column: the column's name.
        comparison: "<", "==" or "is null".
        value: what the column is compared with; not used by "is null".
    """

    column: str
    comparison: Literal["<", "==", "is null"]
    value: Any = None

    @property
    def expression(self) -> pc.Expression:
        """The condition as an Arrow expression."""
        column = pc.field(self.column)
        if self.comparison == "is null":
            return column.is_null()
        value = pc.scalar(self.value)
        return column < value if self.comparison == "<" else column == value

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Return whether a row fulfils the condition; a null only fulfils "is null"."""
        stored = row[self.column]
        if stored is None or self.comparison == "is null":
            return stored is None and self.comparison == "is null"
        return bool(stored < self.value if self.comparison == "<" else stored == self.value)


@dataclass(frozen=True)
class _RowsOperation:
    """An operation that takes rows: Arrow data or a list of dicts."""

    rows: Rows

    def __post_init__(self) -> None:
        if isinstance(self.rows, pa.Table):
            object.__setattr__(self, "rows", self.rows.to_pylist())

    def to_arrow(self, schema: pa.Schema) -> pa.Table:
        """Return the rows as Arrow data; columns that they leave out are null."""
        return pa.Table.from_pylist(list(self.rows), schema)


class Upsert(_RowsOperation):
    """Update the rows whose keys exist, insert the others."""

    def run(self, table: HudiTable) -> None:
        """Run the operation on a table."""
        table.upsert(self.to_arrow(table.schema))


class Insert(_RowsOperation):
    """Insert rows with new keys."""

    def run(self, table: HudiTable) -> None:
        """Run the operation on a table."""
        table.insert(self.to_arrow(table.schema))


class DeleteKeys(_RowsOperation):
    """Delete the rows of some keys.

    Rows that have all partition columns, too, are searched in their partitions only.
    """

    def to_arrow(self, schema: pa.Schema) -> pa.Table:
        """Return the keys as Arrow data, with the columns that the first of them has."""
        names = self.rows[0] if self.rows else ()
        return super().to_arrow(pa.schema([schema.field(name) for name in names]))

    def run(self, table: HudiTable) -> None:
        """Run the operation on a table."""
        if self.rows:
            table.delete_keys(self.to_arrow(table.schema))


@dataclass(frozen=True)
class Delete:
    """Delete the rows that fulfil a condition."""

    where: Condition

    def run(self, table: HudiTable) -> None:
        """Run the operation on a table."""
        table.delete(self.where.expression)


@dataclass(frozen=True)
class Update:
    """Set columns of the rows that fulfil a condition."""

    where: Condition
    set: Mapping[str, Any]

    def run(self, table: HudiTable) -> None:
        """Run the operation on a table."""
        types = table.schema
        values = {
            name: pc.scalar(pa.scalar(value, types.field(name).type))
            for name, value in self.set.items()
        }
        table.update(self.where.expression, values)


@dataclass(frozen=True)
class Compact:
    """Merge the log files of a merge-on-read table."""

    def run(self, table: HudiTable) -> None:
        """Run the service on a table."""
        table.compact()


@dataclass(frozen=True)
class Cluster:
    """Rewrite small files."""

    def run(self, table: HudiTable) -> None:
        """Run the service on a table."""
        table.cluster()


@dataclass(frozen=True)
class Clean:
    """Remove files that newer ones replaced, but for those of the last commits."""

    retain: int = 1

    def run(self, table: HudiTable) -> None:
        """Run the service on a table."""
        table.clean(retain=self.retain)


Operation: TypeAlias = Upsert | Insert | DeleteKeys | Delete | Update | Compact | Cluster | Clean
