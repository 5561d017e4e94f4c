"""Converts record keys to the filter that finds their rows, and puts rows in the order of the keys.

Nothing is read here. A table that stores record keys is searched by them, if the strings of its
keys are certain; otherwise by the values of the key columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.config.meta_columns import RECORD_KEY
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import ConfigError, SchemaMismatch, UnsupportedTableFeature
from pyhudi.input.conform import read_table
from pyhudi.input.exact_casts import cast_exactly
from pyhudi.input.python_objects import by_column
from pyhudi.schema.key_generator import GENERATORS, column_at, plain_key
from pyhudi.schema.key_predicates import has_certain_string
from pyhudi.schema.predicate_parser import where_of
from pyhudi.schema.predicates import And, In, Where, both
from pyhudi.slices.tagged_rows import row_numbers
from pyhudi.table.scan_columns import scan_schema
from pyhudi.table.table_snapshot import TableSnapshot

_MAX_VALUES = 100_000
"""The maximum number of keys of a table that does not store them as certain strings."""


@dataclass(frozen=True)
class KeyLookup:
    """The rows to find, and their order."""

    where: Where | None
    """True for the rows with the keys, and perhaps for others. None for all rows."""
    fields: tuple[str, ...]
    """The columns, or fields of structs, that identify the key of a row."""
    identities: pa.Array[Any]
    """The distinct keys in order, as `_identities` returns them; in each format of stored keys."""
    distinct: int
    """The number of distinct keys."""
    record_keys: pa.Array[Any] | None = None
    """The strings of all keys, if each row with one of them is a result."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read."""
        return tuple(dict.fromkeys(name.split(".")[0] for name in self.fields))

    def in_order(self, rows: pa.Table) -> pa.Table:
        """Return the rows that have one of the keys, in the order of the keys."""
        if not rows.num_rows or not self.distinct:
            return rows.slice(0, 0)
        keys = pa.table({name: column_at(rows, name) for name in self.fields})
        matches = pc.index_in(_identities(keys), value_set=self.identities)
        formats = pc.multiply(pc.divide(matches, self.distinct), self.distinct)
        positions = pc.subtract(matches, formats)
        # Rows of one key stay in the order of the scan, and rows of other keys are at the end.
        order = pc.sort_indices(positions)
        return rows.take(order.slice(0, len(positions) - positions.null_count))


def look_up_keys(table: TableSnapshot, keys: Any) -> KeyLookup:
    """Return the lookup for an argument of `HudiTable.get`.

    Raises `SchemaMismatch` for keys that do not fit the table, `ConfigError` for an argument that
    is not keys, and `UnsupportedTableFeature` for a table without key columns.
    """
    fields = table.config.record_key_fields
    if not fields:
        raise UnsupportedTableFeature(
            "hoodie.table.recordkey.fields is not set: generated keys cannot be looked up",
            hint="Use scan(where=...).",
        )
    rows = read_table(_by_column(keys, fields), table.columns)
    columns = _key_columns(table, rows, _fields_of_keys(table.config, rows.column_names))
    if _has_certain_strings(table.config, columns.select(list(fields))):
        return _by_record_key(table, columns)
    return _by_values(table, columns)


def _by_column(keys: Any, fields: Sequence[str]) -> Any:
    """Return the values of one key column, or tuples of several columns, as columns."""
    if isinstance(keys, (list, tuple)) and not keys:
        return {name: [] for name in fields}
    is_tuples = isinstance(keys, (list, tuple)) and isinstance(keys[0], (list, tuple))
    if len(fields) == 1 or not is_tuples:
        return by_column(keys, fields)
    if any(not isinstance(key, (list, tuple)) or len(key) != len(fields) for key in keys):
        names = ", ".join(fields)
        raise ConfigError(f"the key has {len(fields)} columns", hint=f"Give tuples of {names}.")
    return {name: [key[number] for key in keys] for number, name in enumerate(fields)}


def _fields_of_keys(config: TableConfig, names: Sequence[str]) -> list[str]:
    """Return the key fields, and after them the partition fields if the keys have those."""
    keys = config.record_key_fields
    partitions = [name for name in config.partition_fields if name not in keys]
    named = [name for name in partitions if name in names or name.split(".")[0] in names]
    if named and named != partitions:
        missing = ", ".join(name for name in partitions if name not in named)
        raise SchemaMismatch(
            f"the keys have partition columns, but not {missing}",
            hint="Give all partition columns, or none to search all partitions.",
        )
    expected = {part for name in (*keys, *config.partition_fields) for part in (name, _root(name))}
    unknown = [name for name in names if name not in expected]
    if unknown:
        raise SchemaMismatch(
            f"{unknown[0]!r} is neither a key column nor a partition column",
            hint=f"Give {', '.join(keys)}, and the partition columns to search one partition.",
        )
    return [*keys, *named]


def _key_columns(table: TableSnapshot, rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return the distinct keys in order, in the types of a scan."""
    empty, columns = scan_schema(table).empty_table(), {}
    for name in names:
        if name not in rows.column_names and _root(name) not in rows.column_names:
            raise SchemaMismatch(f"the keys do not have the key column {name!r}")
        field = pa.field(name, column_at(empty, name).type)
        columns[name] = cast_exactly(column_at(rows, name), field)
    keys = pa.table(columns)
    key = table.config.record_key_fields
    if len(key) == 1 and keys.column(key[0]).null_count:
        raise SchemaMismatch(f"a key is null: {key[0]!r}", hint="Leave out nulls.")
    strings = _identities(keys)
    if keys.num_rows < 2:  # noqa: PLR2004 - a single key has no duplicate
        return keys
    rows = pa.table({"key": strings, "row": row_numbers(keys.num_rows)})
    first = rows.group_by("key").aggregate([("row", "min")]).column("row_min")
    return keys if len(first) == keys.num_rows else keys.take(first.combine_chunks().sort())


def _has_certain_strings(config: TableConfig, keys: pa.Table) -> bool:
    """Return whether the strings of stored record keys follow from the values of the columns."""
    generator = config.key_generator.removesuffix("_AVRO")
    if not config.populate_meta_fields or generator not in GENERATORS:
        return False
    return all(has_certain_string(column.type) for column in keys.columns)


def _by_record_key(table: TableSnapshot, columns: pa.Table) -> KeyLookup:
    """Return the lookup by the stored record keys."""
    fields = list(table.config.record_key_fields)
    keys, others = columns.select(fields), columns.drop_columns(fields)
    conditions = others
    if len(fields) > 1:
        formats = [_record_keys(keys)]
    else:
        formats = [_combine(keys.column(0).cast(pa.string()))]
        if plain_key(table.config, table.columns) is None:
            # The writer may have stored `k1` or `id:k1`, and another key may be `id:k1`.
            formats.append(_record_keys(keys))
            conditions = columns
    stored = pa.concat_arrays(formats)
    is_stored = Where(
        pc.field(RECORD_KEY).isin(stored), (RECORD_KEY,), ((RECORD_KEY, "in", stored),)
    )
    identities = [_identities(others.add_column(0, RECORD_KEY, [keys])) for keys in formats]
    return KeyLookup(
        both(is_stored, _among(table, conditions)),
        (RECORD_KEY, *others.column_names),
        pa.concat_arrays(identities),
        columns.num_rows,
        None if conditions.num_columns else stored,
    )


def _by_values(table: TableSnapshot, columns: pa.Table) -> KeyLookup:
    """Return the lookup by the values of the key columns."""
    if columns.num_rows > _MAX_VALUES:
        raise ConfigError(
            f"{columns.num_rows:,} keys; the maximum is {_MAX_VALUES:,} for keys that are not "
            "strings or integers",
            hint="Look up fewer keys at a time, or join the keys with a scan.",
        )
    where = _among(table, columns)
    return KeyLookup(where, tuple(columns.column_names), _identities(columns), columns.num_rows)


def _among(table: TableSnapshot, columns: pa.Table) -> Where | None:
    """Return a filter that is true if each column has one of its values; None if it may be null."""
    conditions = tuple(
        In(tuple(name.split(".")), tuple(values.unique().to_pylist()))
        for name, values in zip(columns.column_names, columns.columns, strict=True)
        if not values.null_count
    )
    return where_of(And(conditions), scan_schema(table)) if conditions else None


def _identities(keys: pa.Table) -> pa.Array[Any]:
    """Return one string for each row, which is equal for equal values of all columns."""
    if keys.num_columns == 1 and pa.types.is_string(keys.column(0).type):
        return _combine(keys.column(0))
    # 0.0 and -0.0 are equal.
    columns = [
        pc.add(column, pa.scalar(0, column.type)) if pa.types.is_floating(column.type) else column
        for column in keys.columns
    ]
    return _record_keys(pa.table(columns, names=keys.column_names))


def _record_keys(keys: pa.Table) -> pa.Array[Any]:
    """Return record keys `field:value,…`. Raises `SchemaMismatch` for a key without a value."""
    keyed = _native.add_keys(
        keys,
        key_fields=keys.column_names,
        key_prefixed=True,
        partition_fields=[],
        hive_style=False,
        url_encode=False,
        slash_dates=False,
        partition_columns=None,
    )
    return _combine(keyed.column(0))


def _combine(column: pa.ChunkedArray[Any]) -> pa.Array[Any]:
    return pa.concat_arrays([pa.array([], column.type), *column.chunks])


def _root(name: str) -> str:
    return name.split(".", maxsplit=1)[0]
