"""Hypothesis strategies: schemas, layouts of tables, their rows, and histories of operations."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from pyhudi import ConfigError, HudiTable, UnsupportedTableFeature
from pyhudi.testing.operations import (
    Clean,
    Cluster,
    Compact,
    Condition,
    Delete,
    DeleteKeys,
    Insert,
    Operation,
    Row,
    Update,
    Upsert,
)
from pyhudi.testing.table_layout import TableLayout
from pyhudi.testing.table_model import TableModel

try:
    from hypothesis import strategies as st
except ImportError as error:
    message = "the strategies of pyhudi.testing need Hypothesis, which is not installed"
    raise ConfigError(message, hint="pip install 'pyhudi[testing]'") from error

TableType = Literal["cow", "mor"]

_DAY = datetime.date
_UTC = datetime.timezone.utc
_KEYS: dict[pa.DataType, Sequence[Any]] = {
    pa.string(): ("a", "é ☃", "50%", "a/b c", "A"),
    pa.int32(): (0, 1, -1, 2**31 - 1, -(2**31)),
    pa.int64(): (0, 1, -1, 2**63 - 1, -(2**63)),
    pa.date32(): (_DAY(1970, 1, 1), _DAY(2024, 2, 29), _DAY(1969, 12, 31), _DAY(2100, 1, 1)),
    pa.bool_(): (False, True),
}
"""A few values of each type, so that operations meet the same keys again."""
_PARTITIONS = 3
_TEXTS = ("", " ", "plain", "ünï 世 \U0001f600", "e\u0301", 'quote\'s "two", three', "null", "\x00")
_FLOATS = (0.0, -0.0, 1.5, float("nan"), float("inf"), float("-inf"))
_SETTABLE = (pa.string(), pa.int32(), pa.int64(), pa.float64(), pa.bool_(), pa.date32())
_COMPARED = (pa.int32(), pa.int64(), pa.string())


def _floats(width: Literal[32, 64]) -> st.SearchStrategy[float]:
    return st.sampled_from(_FLOATS) | st.floats(width=width)


def _integers(bits: int) -> st.SearchStrategy[int]:
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    return st.sampled_from((0, 1, -1, high, low)) | st.integers(low, high)


_STRINGS = st.sampled_from(_TEXTS) | st.text(max_size=4)
_VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.string(): _STRINGS,
    pa.int32(): _integers(32),
    pa.int64(): _integers(64),
    pa.float32(): _floats(32),
    pa.float64(): _floats(64),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(),
    pa.timestamp("us", "UTC"): st.datetimes(timezones=st.just(_UTC)),
    pa.timestamp("us"): st.datetimes(),
    pa.binary(): st.binary(max_size=3),
    pa.decimal128(12, 2): st.integers(1 - 10**12, 10**12 - 1).map(
        lambda cents: decimal.Decimal(cents).scaleb(-2)
    ),
}
_ORDERING: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int32(): st.integers(1, 9),
    pa.int64(): st.integers(1, 9),
    pa.string(): st.sampled_from("abc"),
    **{kind: _VALUES[kind] for kind in _VALUES if pa.types.is_temporal(kind)},
}
"""Few values of integers and strings, so that ties and late rows are frequent."""
_NESTED = (
    pa.list_(pa.string()),
    pa.struct([("a", pa.int32()), ("b", pa.string())]),
)


def _values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Return values of a type, with nulls."""
    if kind in _VALUES:
        return st.none() | _VALUES[kind]
    if pa.types.is_struct(kind):
        fields = {kind.field(at).name: _values(kind.field(at).type) for at in range(len(kind))}
        return st.none() | st.fixed_dictionaries(fields)
    if pa.types.is_list(kind):
        # Lists in base files hold no null elements by default.
        elements = _values(kind.value_type).filter(lambda value: value is not None)
        return st.none() | st.lists(elements, max_size=2)
    raise UnsupportedTableFeature(
        f"there is no strategy for values of the type {kind}",
        hint="Make rows of your own, such as with hypothesis.strategies.fixed_dictionaries.",
    )


@st.composite
def schemas(draw: st.DrawFn, *, max_columns: int = 3) -> pa.Schema:
    """Return schemas with a key column `id`, a column `part`, a column `ts`, and some others.

    Args:
        draw: given by Hypothesis.
        max_columns: maximum number of the other columns, `c0`, `c1` and so on.

    Returns:
        A strategy for `pyarrow.Schema`.
    """
    key = draw(st.sampled_from((pa.string(), pa.int64())))
    types = draw(st.lists(st.sampled_from((*_VALUES, *_NESTED)), max_size=max_columns))
    others = [(f"c{number}", kind) for number, kind in enumerate(types)]
    return pa.schema([("id", key), ("part", pa.string()), ("ts", pa.int64()), *others])


@st.composite
def tables(
    draw: st.DrawFn,
    schema: st.SearchStrategy[pa.Schema] | None = None,
    *,
    versions: Sequence[int] = (9, 8, 6),
    types: Sequence[TableType] = ("cow", "mor"),
    indexes: Sequence[str | None] = (None, "simple", "bloom", "bucket", "global_simple"),
) -> TableLayout:
    """Return layouts of small tables, with and without partitions and ordering columns.

    Args:
        draw: given by Hypothesis.
        schema: strategy for schemas that have the columns of `schemas()`, which is the default.
        versions: table versions.
        types: table types.
        indexes: indexes, as in `create_table`; None is its default.

    Returns:
        A strategy for `TableLayout`.
    """
    index = draw(st.sampled_from(indexes))
    options = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
    if index == "bucket":
        options["hoodie.bucket.index.num.buckets"] = "2"
    return TableLayout(
        schema=draw(schemas() if schema is None else schema),
        partition_by=draw(st.sampled_from(((), ("part",)))),
        order_by=draw(st.sampled_from(((), ("ts",)))),
        type=draw(st.sampled_from(types)),
        version=draw(st.sampled_from(versions)),
        index=index,
        options=options,
    )


def rows(
    table: TableLayout | HudiTable,
    *,
    keys: Sequence[Mapping[str, Any]] | None = None,
    min_rows: int = 0,
    max_rows: int = 4,
) -> st.SearchStrategy[pa.Table]:
    """Return valid rows of a table: few keys, so that rows meet again; nulls and extreme values.

    Keys and ordering values are never null. Under a global index, a key keeps its partition.

    Args:
        table: the table or its layout.
        keys: the keys to choose from, with the partition columns; by default some of each type.
        min_rows: minimum number of rows.
        max_rows: maximum number of rows; several may have the same key.

    Returns:
        A strategy for `pyarrow.Table`.

    Raises:
        UnsupportedTableFeature: there are no values of a column's type.
    """
    layout = table if isinstance(table, TableLayout) else TableLayout.of(table)
    dicts = st.lists(_row(layout, keys), min_size=min_rows, max_size=max_rows)
    return dicts.map(lambda drawn: pa.Table.from_pylist(drawn, layout.schema))


def _row(
    layout: TableLayout, keys: Sequence[Mapping[str, Any]] | None = None
) -> st.SearchStrategy[Row]:
    pool = _key_pool(layout) if keys is None else list(keys)
    others = {
        name: _ordering(name, kind) if name in layout.order_by else _values(kind)
        for name, kind in zip(layout.schema.names, layout.schema.types, strict=True)
        if name not in (*layout.key, *layout.partition_by)
    }
    values = st.fixed_dictionaries(others)
    pairs = st.tuples(st.sampled_from(pool), values)
    return pairs.map(lambda pair: {**pair[0], **pair[1]})


def _ordering(name: str, kind: pa.DataType) -> st.SearchStrategy[Any]:
    if kind not in _ORDERING:
        raise UnsupportedTableFeature(
            f"there are no ordering values for the column {name} of the type {kind}",
            hint="Order by an integer, a string, a date or a timestamp.",
        )
    return _ORDERING[kind]


def _key_pool(layout: TableLayout) -> list[Mapping[str, Any]]:
    """Return keys with their partitions: a global key has one partition."""
    pools = [_pool(layout, name) for name in layout.key]
    keys = [dict(zip(layout.key, values, strict=True)) for values in zip(*pools, strict=False)]
    named = [(*_pool(layout, name)[:_PARTITIONS], None) for name in layout.partition_by]
    partitions = [
        dict(zip(layout.partition_by, values, strict=True)) for values in zip(*named, strict=False)
    ] or [{}]
    if layout.has_global_keys:
        return [{**key, **partitions[at % len(partitions)]} for at, key in enumerate(keys)]
    return [{**key, **partition} for key in keys for partition in partitions]


def _pool(layout: TableLayout, name: str) -> Sequence[Any]:
    kind = layout.schema.field(name).type
    if kind not in _KEYS:
        raise UnsupportedTableFeature(
            f"there are no keys for the column {name} of the type {kind}",
            hint="Pass keys=, a list of dicts with the key and partition columns.",
        )
    return _KEYS[kind]


@dataclass(frozen=True)
class History:
    """A table's layout, and the operations that change it.

    Attributes:
        table: the layout.
        operations: the operations in order. Their `run` runs them on a table.
    """

    table: TableLayout
    operations: tuple[Operation, ...]


@st.composite
def histories(
    draw: st.DrawFn,
    table: TableLayout | st.SearchStrategy[TableLayout] | None = None,
    *,
    max_operations: int = 6,
    services: bool = True,
) -> History:
    """Return sequences of operations that a table accepts and `TableModel` knows the result of.

    They upsert, insert keys that the table does not have, delete keys, delete and update by a
    condition, and run table services. The first operation writes rows.

    Args:
        draw: given by Hypothesis.
        table: a layout or a strategy for layouts, `tables()` by default.
        max_operations: maximum number of operations.
        services: False for histories without table services.

    Returns:
        A strategy for `History`.
    """
    if table is None or isinstance(table, st.SearchStrategy):
        table = draw(tables() if table is None else table)
    model = TableModel(table)
    made: list[Operation] = []
    for number in range(draw(st.integers(1, max_operations))):
        operation = draw(next_operation(model, services=services) if number else _upserts(model))
        model.apply(operation)
        made.append(operation)
    return History(table, tuple(made))


@st.composite
def next_operation(draw: st.DrawFn, model: TableModel, *, services: bool = True) -> Operation:
    """Return operations that a table in the state of a model accepts.

    For a state machine of your own: draw an operation, run it, apply it to the model.

    Args:
        draw: given by Hypothesis.
        model: the model, which knows the result of each operation.
        services: False for operations that change rows only.

    Returns:
        A strategy for operations.
    """
    kinds = _kinds(model.layout, services=services)
    return _operation(draw, model, draw(st.sampled_from(kinds)))


@st.composite
def _upserts(draw: st.DrawFn, model: TableModel) -> Operation:
    return _operation(draw, model, "upsert")


def _kinds(table: TableLayout, *, services: bool) -> Sequence[str]:
    kinds = ["upsert", "insert", "delete_keys", "delete", "update"]
    if services:
        kinds += ["compact"] if table.type == "mor" else []
        kinds += ["cluster"] if table.index != "bucket" else []
        kinds += ["clean"]
    return kinds


def _operation(draw: st.DrawFn, model: TableModel, kind: str) -> Operation:
    layout = model.layout
    match kind:
        case "compact":
            return Compact()
        case "cluster":
            return Cluster()
        case "clean":
            return Clean(retain=draw(st.integers(1, 3)))
        case "delete_keys":
            pool = st.sampled_from(_key_pool(layout))
            return DeleteKeys(draw(st.lists(pool, min_size=1, max_size=3)))
        case "delete":
            return Delete(_condition(draw, layout))
        case "update":
            return _update(draw, layout)
    drawn = draw(st.lists(_row(layout), min_size=1, max_size=4))
    if kind == "insert":
        existing = {model.place(row) for row in model.rows()}
        new = {model.place(row): row for row in drawn if model.place(row) not in existing}
        return Insert([_raise_ordering(model, row) for row in new.values()])
    return Upsert([_raise_ordering(model, row) for row in drawn])


def _raise_ordering(model: TableModel, row: Row) -> Row:
    """Return a row with an ordering value that a deleted key may come back with."""
    ordering = model.min_ordering(row) or ()
    for name, value in zip(model.layout.order_by, ordering, strict=False):
        row[name] = max(row[name], value)
    return row


def _condition(draw: st.DrawFn, layout: TableLayout) -> Condition:
    named = zip(layout.schema.names, layout.schema.types, strict=True)
    columns = [(name, kind) for name, kind in named if kind in _COMPARED]
    name, kind = draw(st.sampled_from(columns))
    comparison = draw(st.sampled_from(("==", "is null", "<")))
    if comparison == "is null":
        return Condition(name, "is null")
    usual = _ORDERING[kind] if name in layout.order_by else _VALUES[kind]
    pool = st.sampled_from(_KEYS[kind]) if name in (*layout.key, *layout.partition_by) else usual
    return Condition(name, "<" if comparison == "<" else "==", draw(pool))


def _update(draw: st.DrawFn, layout: TableLayout) -> Operation:
    fixed = {*layout.key, *layout.partition_by, *layout.order_by}
    named = zip(layout.schema.names, layout.schema.types, strict=True)
    columns = [(name, kind) for name, kind in named if kind in _SETTABLE and name not in fixed]
    where = _condition(draw, layout)
    if not columns:
        return Delete(where)
    name, kind = draw(st.sampled_from(columns))
    return Update(where, {name: draw(_values(kind))})
