"""Operations on a table as values: they run on a table, apply to a model, and print readably."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.suggestions import did_you_mean

if TYPE_CHECKING:
    from pyhudi import HudiTable

Row: TypeAlias = dict[str, Any]
Rows: TypeAlias = Sequence[Mapping[str, Any]] | pa.Table
_COMPARISONS = ("<", "==", "is null")


def check_names(names: Iterable[str], columns: Iterable[str]) -> None:
    """Raise `SchemaMismatch` for a name that is not one of the columns."""
    columns = list(columns)
    unknown = next((name for name in names if name not in columns), None)
    if unknown is not None:
        hint = did_you_mean(unknown, columns) or f"Its columns are {', '.join(columns)}."
        raise SchemaMismatch(f"the table has no column {unknown!r}", hint=hint)


def rows_of(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Return rows as Arrow data. Raises `SchemaMismatch` for a value of another type."""
    try:
        return pa.Table.from_pylist(list(rows), schema)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise SchemaMismatch(f"the rows do not fit {schema.names}: {error}") from error


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

    def __post_init__(self) -> None:
        """Raise `ConfigError` for an unknown comparison."""
        if self.comparison not in _COMPARISONS:
            raise ConfigError(
                f"comparison is {self.comparison!r}", hint=f"It is one of {_COMPARISONS}."
            )

    @property
    def expression(self) -> pc.Expression:
        """The condition as an Arrow expression."""
        column = pc.field(self.column)
        if self.comparison == "is null":
            return column.is_null()
        value = pc.scalar(self.value)
        return column < value if self.comparison == "<" else column == value

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Return whether a row fulfils the condition; a null only fulfils "is null".

        Raises `SchemaMismatch` if the row has no such column.
        """
        check_names([self.column], row)
        stored = row[self.column]
        if stored is None or self.comparison == "is null":
            return stored is None and self.comparison == "is null"
        return bool(stored < self.value if self.comparison == "<" else stored == self.value)


@dataclass(frozen=True)
class _RowsOperation:
    """An operation that takes rows: Arrow data or a list of dicts."""

    rows: Rows

    def __post_init__(self) -> None:
        """Raise `ConfigError` if the rows are something else."""
        if isinstance(self.rows, (pa.Table, pa.RecordBatch)):
            object.__setattr__(self, "rows", self.rows.to_pylist())
        elif (
            isinstance(self.rows, str)
            or not isinstance(self.rows, Sequence)
            or not all(isinstance(row, Mapping) for row in self.rows)
        ):
            raise ConfigError(
                f"the rows of {type(self).__name__} are not a list of dicts: {self.rows!r:.60}",
                hint="Pass a pyarrow.Table, or dicts by column, such as [{'id': 'a'}].",
            )

    def to_arrow(self, schema: pa.Schema) -> pa.Table:
        """Return the rows as Arrow data. Raises `SchemaMismatch` if they do not have its columns.

        A row may leave out columns that another row has: they are null, as in `HudiTable.upsert`.
        """
        names = self._names(schema)
        missing = [name for name in schema.names if name not in names]
        if missing and self.rows:
            raise SchemaMismatch(
                f"the rows have no column {', '.join(map(repr, missing))}",
                hint="Give every column of the table, such as with None: a table requires it, too.",
            )
        return rows_of(self.rows, schema)

    def _names(self, schema: pa.Schema) -> dict[str, None]:
        """Return the columns that the rows have. Raises `SchemaMismatch` for an unknown one."""
        names = dict.fromkeys(name for row in self.rows for name in row)
        check_names(names, schema.names)
        return names


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
        """Return the keys as Arrow data. Raises `SchemaMismatch` for an unknown column."""
        names = self._names(schema)
        return rows_of(self.rows, pa.schema([schema.field(name) for name in names]))

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
        check_names(self.set, types.names)
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
