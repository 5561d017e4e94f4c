"""The rows that a table has to hold after some operations, in plain Python.

The model is a dictionary by key. It knows the merge modes commit time and event time, and nothing
of files. It refuses operations whose result depends on more than that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi import ConfigError, SchemaMismatch, UnsupportedTableFeature
from pyhudi.testing.operations import (
    Clean,
    Cluster,
    Compact,
    Delete,
    DeleteKeys,
    Insert,
    Operation,
    Row,
    Update,
    Upsert,
    check_names,
    rows_of,
)
from pyhudi.testing.table_layout import TableLayout

if TYPE_CHECKING:
    from pyhudi import HudiTable


class TableModel:
    """The rows that a table holds, by key.

    Attributes:
        layout: the table's layout.
    """

    def __init__(self, table: TableLayout | HudiTable) -> None:
        """Start with no rows, or with those of a table.

        Args:
            table: a layout, for a table without rows; or a table, whose rows are read.

        Raises:
            UnsupportedTableFeature: as `TableLayout.of`; or the table has duplicate keys, or
                floats as ordering values.
            ConfigError: the argument is neither.
        """
        self.layout = table if isinstance(table, TableLayout) else TableLayout.of(table)
        types = [self.layout.schema.field(name).type for name in self.layout.order_by]
        if any(map(pa.types.is_floating, types)):
            raise UnsupportedTableFeature(
                f"the model does not compare floats, which {self.layout.order_by} orders by",
                hint="Order by an integer, a decimal or a timestamp.",
            )
        self._rows: dict[tuple[Any, ...], Row] = {}
        self._deleted: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        """Ordering values of deleted rows, which their keys must not fall below again."""
        if not isinstance(table, TableLayout):
            rows = table.to_arrow().to_pylist()
            self._rows = {self.place(row): row for row in rows}
            if len(self._rows) < len(rows):
                raise UnsupportedTableFeature(
                    f"the model has no duplicate keys, and {table.uri} has some",
                    hint="If keys are unique by partition, pass TableLayout.of(table, index=...) "
                    "and apply an Upsert of the rows.",
                )

    def rows(self) -> list[Row]:
        """Return the rows, in no order."""
        return list(self._rows.values())

    def place(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return what is unique of a row: its key, with its partition if keys are not global."""
        layout = self.layout
        columns = layout.key if layout.has_global_keys else (*layout.key, *layout.partition_by)
        return tuple(row[name] for name in columns)

    def min_ordering(self, row: Mapping[str, Any]) -> tuple[Any, ...] | None:
        """Return the lowest ordering value of a row whose key was deleted; None for any value.

        A merge-on-read table can keep the deleted row next to the delete, where it wins over a row
        with a lower value: whether it does depends on file groups and compactions.
        """
        return self._deleted.get(self.place(row)) if self.layout.type == "mor" else None

    def apply(self, operation: Operation) -> None:
        """Change the rows as an operation does.

        Args:
            operation: the operation. Table services change no row.

        Raises:
            UnsupportedTableFeature: what a table holds afterwards depends on more than its rows: an
                insert of an existing key, a row that changes its partition under a global index, a
                null in an ordering column, a deleted key that comes back with a lower value.
            SchemaMismatch: the operation does not have the table's columns.
            ConfigError: it is no operation of this package; or it sets a key or partition column.
        """
        match operation:
            case Upsert() | Insert():
                for row in operation.to_arrow(self.layout.schema).to_pylist():
                    self._check_insert(operation, row)
                    self._put(row)
            case DeleteKeys():
                for key in self._keys(operation):
                    for row in [row for row in self._rows.values() if key.items() <= row.items()]:
                        self._remove(row)
            case Delete():
                for row in [row for row in self._rows.values() if operation.where.holds(row)]:
                    self._remove(row)
            case Update():
                self._check_settable(operation.set)
                matches = [row for row in self._rows.values() if operation.where.holds(row)]
                changes = [{**row, **operation.set} for row in matches]
                for row in rows_of(changes, self.layout.schema).to_pylist():
                    self._put(row)
            case Compact() | Cluster() | Clean():
                pass
            case _:
                raise ConfigError(
                    f"a model cannot apply {operation!r}",
                    hint="Pass an operation of pyhudi.testing, such as Upsert([{'id': 'a'}]).",
                )

    def _keys(self, operation: DeleteKeys) -> list[Row]:
        """Return keys with what the table compares: key columns, and partitions if it has all."""
        layout, keys = self.layout, operation.to_arrow(self.layout.schema)
        missing = [name for name in layout.key if name not in keys.column_names]
        if missing and operation.rows:
            raise SchemaMismatch(
                f"the keys do not have the key column {missing[0]!r}",
                hint=f"Give {', '.join(layout.key)}.",
            )
        has_partition = set(layout.partition_by) <= {*keys.column_names}
        names = [*layout.key, *layout.partition_by] if has_partition else layout.key
        return keys.select(list(dict.fromkeys(names))).to_pylist() if operation.rows else []

    def _check_settable(self, values: Mapping[str, Any]) -> None:
        layout = self.layout
        check_names(values, layout.schema.names)
        fixed = next((name for name in (*layout.key, *layout.partition_by) if name in values), None)
        if fixed is not None:
            raise ConfigError(
                f"{fixed!r} cannot be set: it is part of the record key or partition path",
                hint="Delete the rows and insert them again.",
            )

    def _check_insert(self, operation: Upsert | Insert, row: Row) -> None:
        if isinstance(operation, Insert) and self.place(row) in self._rows:
            raise UnsupportedTableFeature(
                f"the model has no duplicate keys, and {self.place(row)} exists already",
                hint="Upsert the row.",
            )

    def _put(self, row: Row) -> None:
        layout, place = self.layout, self.place(row)
        stored = self._rows.get(place)
        if stored and any(stored[name] != row[name] for name in layout.partition_by):
            raise UnsupportedTableFeature(
                f"the model does not follow {place} to another partition",
                hint="Delete the key first, or use an index whose keys are unique by partition.",
            )
        ordering = self._ordering(row)
        if None in ordering:
            raise UnsupportedTableFeature(
                f"the model does not compare nulls, and an ordering column of {place} is null",
                hint="Give the row an ordering value.",
            )
        if ordering < (self.min_ordering(row) or ordering):
            raise UnsupportedTableFeature(
                f"{place} was deleted and comes back with a lower ordering value: whether readers "
                "see the old row or the new one depends on compactions",
                hint=f"Give the row an ordering value of at least {self._deleted[place]}.",
            )
        if stored is None or ordering >= self._ordering(stored):
            self._rows[place] = row

    def _remove(self, row: Row) -> None:
        place = self.place(row)
        self._deleted[place] = self._ordering(row)
        del self._rows[place]

    def _ordering(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.layout.order_by)
