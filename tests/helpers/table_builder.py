"""The tables that tests write: columns and axes said once, rows told by what names them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

import pyhudi
from pyhudi import HudiTable
from pyhudi.clock import SystemClock
from pyhudi.config.merge_mode import DELETE_FIELD, DELETE_MARKER, MERGE_PROPERTY
from pyhudi.config.meta_columns import IS_DELETED
from pyhudi.config.table_config import TableConfig
from pyhudi.storage.storage import Storage

Kind = Literal["cow", "mor"]

SMALL = {"hoodie.index.bloom.num_entries": "64"}
"""Bloom filters for a few keys: those for 60,000 take most of the time of a small table."""


@dataclass(frozen=True)
class TableBuilder:
    """A table by its axes. A test that needs another version or kind says so to `make`."""

    columns: Mapping[str, tuple[pa.DataType, Any]]
    """By name the type, and what rows have in it: a value, or a function of what names a row."""
    key: str | Sequence[str] | None = "id"
    partition_by: str | Sequence[str] | None = None
    order_by: str | Sequence[str] | None = None
    version: int = 9
    kind: Kind = "cow"
    index: str | None = None
    metadata: bool = True
    """Whether the table begins with a metadata table."""
    options: Mapping[str, Any] = field(default_factory=dict)
    first: Iterable[Any] | pa.Table | None = None
    """The rows that it begins with, or what names them; None for an empty table."""

    @classmethod
    def of(cls, schema: pa.Schema, **axes: Any) -> TableBuilder:
        """For rows that are made elsewhere."""
        return cls({field.name: (field.type, None) for field in schema}, **axes)

    @property
    def schema(self) -> pa.Schema:
        """Its columns in order."""
        return pa.schema([(name, kind) for name, (kind, _) in self.columns.items()])

    def rows(self, names: Iterable[Any], **values: Any) -> pa.Table:
        """A row for each name. values: by column what they have in place of what is usual."""
        given = list(names)
        unknown = values.keys() - self.columns.keys()
        assert not unknown, f"the table has no {unknown}"
        usual = {name: value for name, (_, value) in self.columns.items()}
        columns = {name: _column(value, given) for name, value in {**usual, **values}.items()}
        return pa.table(columns, schema=self.schema)

    def make(self, base: Path | str, **more: Any) -> HudiTable:
        """The table below a folder. more: other axes, or arguments of `create_table`.

        Options come beside those of the builder.
        """
        axes = {each.name: more.pop(each.name) for each in fields(self) if each.name in more}
        if "options" in axes:
            axes["options"] = {**self.options, **axes["options"]}
        made = replace(self, **axes)
        first = made.first
        if first is not None and not isinstance(first, pa.Table):
            first = made.rows(first)
        options = {} if made.metadata else {"hoodie.metadata.enable": "false"}
        return pyhudi.create_table(
            base,
            made.schema if first is None else first,
            key=made.key,
            partition_by=made.partition_by,
            order_by=made.order_by,
            type=made.kind,
            version=made.version,
            index=made.index,
            options={**options, **made.options},
            **more,
        )


def with_deletes(order_by: str | Sequence[str], **columns: pa.DataType) -> TableBuilder:
    """Merge-on-read, with a flag and a column `op` by which rows can be deletes."""
    more: dict[str, tuple[pa.DataType, Any]] = {n: (kind, None) for n, kind in columns.items()}
    return TableBuilder(
        {
            "id": (pa.string(), str),
            "op": (pa.string(), "I"),
            IS_DELETED: (pa.bool_(), False),
            **more,
        },
        order_by=order_by,
        kind="mor",
        metadata=False,
    )


def set_delete_marker(base: Path, field: str, marker: str) -> HudiTable:
    """The table, told by its properties which rows are deletes."""
    storage, clock = Storage(str(base)), SystemClock()
    config = TableConfig.load(storage, clock)
    prefix = "" if config.version.merge_inferred else MERGE_PROPERTY
    properties = {prefix + DELETE_FIELD: field, prefix + DELETE_MARKER: marker}
    config.update(storage, properties, clock)
    return pyhudi.open_table(base)


def numbered(digits: int = 1) -> Callable[[int], str]:
    """Keys such as k007, of rows that are named by numbers."""
    return lambda number: f"k{number:0{digits}}"


def _column(value: Any, names: list[Any]) -> list[Any]:
    return [value(name) for name in names] if callable(value) else [value] * len(names)
