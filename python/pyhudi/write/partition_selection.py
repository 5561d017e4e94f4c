"""Selection of partitions by path, by value or by a filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pyhudi.config.meta_columns import PARTITION_PATH
from pyhudi.errors import ConfigError, SchemaMismatch, without_hint
from pyhudi.input.conform import data_schema
from pyhudi.input.python_objects import table_from_columns
from pyhudi.schema.key_generator import add_keys, column_at
from pyhudi.schema.predicate_parser import parse_where
from pyhudi.schema.predicates import filter_rows
from pyhudi.slices.listing import walk_partitions
from pyhudi.slices.partition_values import path_values
from pyhudi.suggestions import case_hint
from pyhudi.write.write_context import WriteContext

_KEY = "__key"


def select_partitions(context: WriteContext, partitions: Any) -> list[str]:
    """Return the distinct paths for an argument of `HudiTable.delete_partitions`.

    A partition named by path or values need not exist; a filter selects existing ones. Raises
    `ConfigError` for an empty list, an invalid argument, and a filter on values that paths do not
    contain; `SchemaMismatch` as `parse_where` does.
    """
    if isinstance(partitions, str):
        return _select_by_string(context, partitions)
    if not _is_list(partitions):
        return _select_by_filter(context, partitions)
    if not partitions:
        msg = "no partition is named"
        raise ConfigError(msg)
    if all(isinstance(partition, str) for partition in partitions):
        return list(dict.fromkeys(_check_path(path) for path in partitions))
    return list(dict.fromkeys(_path(context, values) for values in partitions))


def _check_path(path: str) -> str:
    path_parts = path.strip("/")
    if "\0" in path_parts or any(part in ("", ".", "..") for part in path_parts.split("/")):
        msg = f"{path!r} is not a partition path"
        raise ConfigError(msg, hint="Give it relative to the table, such as 'city=osaka'.")
    return path_parts


def _is_list(partitions: Any) -> bool:
    """Return whether it is a list of partitions; a list of tuples or lists is a filter."""
    if not isinstance(partitions, Sequence):
        return False
    return not any(isinstance(partition, (tuple, list)) for partition in partitions)


def _path(context: WriteContext, values: Any) -> str:
    fields = context.config.partition_fields
    if len(fields) == 1 and not isinstance(values, (str, Mapping)):
        values = {fields[0]: values}
    if not isinstance(values, Mapping) or set(values) != set(fields):
        msg = f"{values!r} does not name a partition"
        meant = case_hint(values, fields) if isinstance(values, Mapping) else ""
        raise ConfigError(msg, hint=meant or f"Give values of exactly {', '.join(fields)}.")
    empty = context.schema.arrow.empty_table()
    columns = {name: _value(name, values[name], column_at(empty, name).type) for name in fields}
    return str(_path_column(context, pa.table(columns))[0].as_py())


def paths_of(context: WriteContext, rows: pa.Table) -> pa.ChunkedArray[Any]:
    """Return the partition path of each row. rows: with the partition columns, as for a write.

    Raises `SchemaMismatch` for a missing column, or one that does not match the table.
    """
    _, table = context.evolve(rows, "strict")
    return _path_column(context, context.key_columns(table, context.key_spec().partition_fields))


def _path_column(context: WriteContext, columns: pa.Table) -> pa.ChunkedArray[Any]:
    key = pa.repeat(pa.scalar("-"), columns.num_rows)
    spec = replace(context.key_spec(), key_fields=(_KEY,), key_prefixed=False)
    return add_keys(columns.append_column(_KEY, key), spec).column(PARTITION_PATH)


def _value(name: str, value: Any, data_type: pa.DataType) -> pa.ChunkedArray[Any]:
    try:
        return table_from_columns({name: [value]}, pa.schema({name: data_type})).column(name)
    except SchemaMismatch as error:
        msg = f"the partition column {name!r} is {data_type}, not {value!r}"
        raise SchemaMismatch(msg) from error


def _select_by_string(context: WriteContext, argument: str) -> list[str]:
    """Select by a filter in SQL; an error hints that a path must be in a list."""
    try:
        return _select_by_filter(context, argument)
    except (ConfigError, SchemaMismatch) as error:
        hint = f"Give a list of paths: [{argument!r}]."
        raise type(error)(without_hint(error), hint=f"{error.hint} {hint}".strip()) from error


def _select_by_filter(context: WriteContext, where: Any) -> list[str]:
    schema = data_schema(context.schema.arrow)
    condition = parse_where(where, schema)
    others = [name for name in condition.columns if name not in context.config.partition_fields]
    if others:
        inside = [
            name for name in context.config.partition_fields if name.split(".")[0] == others[0]
        ]
        if inside:
            msg = f"a filter cannot select partitions by {inside[0]!r}, a field of a struct"
            raise ConfigError(msg, hint=f"Name them by path, or as {{{inside[0]!r}: value}}.")
        msg = f"{others[0]!r} is not a partition column"
        raise ConfigError(msg, hint="Use delete(where=...) for other columns.")
    names = condition.columns
    paths, rows = [], []
    for path, _ in walk_partitions(context.storage):
        path_fields = path_values(context.config, context.schema.arrow, path)
        missing = [name for name in names if name not in path_fields]
        if missing:
            msg = f"the partition path {path!r} does not contain the value of {missing[0]!r}"
            raise ConfigError(msg, hint="Name the partitions by their paths.")
        paths.append(path)
        rows.append({name: path_fields[name].as_py() for name in names})
    table = pa.Table.from_pylist(rows, pa.schema([schema.field(name) for name in names]))
    partitions = table.append_column("__path", pa.array(paths, pa.string()))
    return [str(path) for path in filter_rows(partitions, condition)["__path"].to_pylist()]
