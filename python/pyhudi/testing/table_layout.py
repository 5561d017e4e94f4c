"""The layout of a table: what `create_table` has to know, as a value that prints on one line."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

from pyhudi import ConfigError, HudiTable, UnsupportedTableFeature, create_table

_PER_PARTITION = frozenset({"bloom", "simple", "bucket", "record_level_index"})
_MODES = ("COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING")
_DELETE_FLAG = "_hoodie_is_deleted"


def check_table(table: object) -> None:
    """Raise `ConfigError` for what is not a table handle."""
    if not isinstance(table, HudiTable):
        hint = "Pass pyhudi.open_table(path), or what temporary_table yields."
        raise ConfigError(f"{table!r:.60} is not a HudiTable", hint=hint)


@dataclass(frozen=True, repr=False)
class TableLayout:
    """The layout of a table: columns, key, partitions, merge mode, type, version and index.

    Attributes:
        schema: the columns.
        key: the key columns.
        partition_by: the partition columns.
        order_by: the ordering columns; without them the last commit wins.
        type: "cow" or "mor".
        version: the table version.
        index: the index of writes, as in `create_table`.
        options: more options of `create_table`.
    """

    schema: pa.Schema
    key: tuple[str, ...] = ("id",)
    partition_by: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()
    type: Literal["cow", "mor"] = "cow"
    version: int = 9
    index: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, table: HudiTable, index: str | None = None) -> TableLayout:
        """Return the layout of an existing table.

        Args:
            table: the table.
            index: the index of its writes, which decides whether a key is unique in the table or in
                its partition; by default the one that the handle's options name.

        Returns:
            The layout.

        Raises:
            UnsupportedTableFeature: the table has no key, or merges rows by other rules than commit
                time and event time.
            ConfigError: the argument is no table.
        """
        check_table(table)
        config = table.config
        merge = config.merge
        if not config.record_key_fields:
            raise UnsupportedTableFeature("a table without key columns has no model")
        if (
            merge.mode not in _MODES
            or merge.partial_update_mode
            or merge.delete_field
            or _DELETE_FLAG in table.schema.names
        ):
            raise UnsupportedTableFeature(
                f"the merge rules of {table.uri} are not only those of {' and '.join(_MODES)}",
                hint="Compare its rows with rows that you expect.",
            )
        is_ordered = merge.mode == "EVENT_TIME_ORDERING"
        named = table.options.get("hoodie.index.type")
        return cls(
            schema=table.schema,
            key=tuple(config.record_key_fields),
            partition_by=tuple(config.partition_fields),
            order_by=tuple(config.ordering_fields) if is_ordered else (),
            type=table.type,
            version=table.version,
            index=index or (named and named.lower()),
        )

    @property
    def has_global_keys(self) -> bool:
        """Whether a key is unique in the whole table, not only in its partition."""
        return not self.partition_by or self.index not in _PER_PARTITION

    def create(self, uri: str | os.PathLike[str], **arguments: Any) -> HudiTable:
        """Create an empty table of this layout.

        Args:
            uri: where.
            arguments: other arguments of `create_table`.

        Returns:
            A handle of the new table.

        Raises:
            HudiError: as `create_table`.
        """
        options = {**self.options, **arguments.pop("options", {})}
        return create_table(
            uri,
            self.schema,
            key=self.key,
            partition_by=self.partition_by or None,
            order_by=self.order_by or None,
            type=self.type,
            version=self.version,
            index=self.index,
            options=options,
            **arguments,
        )

    def _repr_pretty_(self, printer: Any, _is_cycle: bool) -> None:
        """Print as `repr` in the examples of Hypothesis, which shows dataclasses by field."""
        printer.text(repr(self))

    def __repr__(self) -> str:
        columns = {column.name: str(column.type) for column in self.schema}
        shown = {name: value for name, value in vars(self).items() if value and name != "schema"}
        rest = ", ".join(f"{name}={value!r}" for name, value in shown.items())
        return f"TableLayout({columns}, {rest})"
