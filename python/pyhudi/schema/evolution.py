"""Schema evolution on write: widens the table's schema so that incoming rows fit it.

New columns come last and may be null, numbers are widened, columns that the rows do not have become
null; within structs, list elements and map values too. Nothing is renamed, dropped or narrowed. The
order of columns is the table's (as in Hudi's `AvroSchemaEvolutionUtils.reconcileSchema`, 1.2.0).
`table/participants.py` handles column ids.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, Literal

import pyarrow as pa

from pyhudi.config.meta_columns import META_COLUMNS
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.input.conform import data_schema
from pyhudi.input.required_fields import entries_of, list_of, map_of
from pyhudi.schema.avro_names import Json, define_names_once, inline_references
from pyhudi.schema.commit_schema import evolve_table_schema
from pyhudi.schema.supported_types import avro_schema, check_reserved
from pyhudi.schema.table_schema import TableSchema

SchemaMode = Literal["strict", "merge"]
SCHEMA_MODES = ("strict", "merge")

_WIDER = {
    "int": ("int", "long", "float", "double"),
    "long": ("long", "float", "double"),
    "float": ("float", "double"),
}
"""The wider types as which every release of Hudi reads a type of number."""


def check_mode(mode: str) -> None:
    """Raise `ConfigError` for an invalid `SchemaMode`."""
    if mode not in SCHEMA_MODES:
        raise ConfigError(f"schema_mode is {mode!r}", hint='Pass "strict" or "merge".')


def evolve(
    table: TableSchema, config: TableConfig, rows: pa.Table, indexed: Mapping[str, str]
) -> tuple[TableSchema, pa.Table]:
    """Return the table's schema with the additions of the rows, and the rows with all its columns.

    indexed: the named index over each column that has one.

    Raises `SchemaMismatch` naming the column for a type that neither fits nor widens the table's,
    for a required column that the rows do not have, for a name that differs from another only in
    case, is repeated or is reserved, and for a change of columns of keys, orderings or indexes.
    """
    table_columns = frozenset(data_schema(table.arrow).names)
    check_reserved(field for field in rows.schema if field.name not in table_columns)
    data = data_schema(rows.schema)
    record = inline_references(json.loads(table.avro))
    fixed = _columns_with_fixed_type(config, indexed)
    evolved = _record(record, pa.struct(list(data)), "", fixed)
    schema = table
    if evolved != record:
        schema = evolve_table_schema(table, json.dumps(define_names_once(evolved)), config)
    return schema, _fit_rows(rows, data_schema(schema.arrow))


def _columns_with_fixed_type(config: TableConfig, indexed: Mapping[str, str]) -> dict[str, str]:
    """Return columns whose type a stored key, path, ordering or index depends on, and why."""
    named = (*config.record_key_fields, *config.partition_fields, *config.ordering_fields)
    return {
        **{
            column: f'{index} uses it. Drop the index first: drop_index("{index}").'
            for column, index in indexed.items()
        },
        **dict.fromkeys(named, "Keys, partitions and orderings depend on its type."),
    }


# --- the schema -----------------------------------------------------------------------------------


def _record(record: Json, struct: pa.StructType, path: str, fixed: Mapping[str, str]) -> Json:
    """Merge the fields of a struct into an Avro record; `path` is "" or ends with a dot."""
    fields_of_table = {field["name"]: field for field in record["fields"]}
    incoming = {field.name: field for field in struct}
    _check_names(fields_of_table, struct, path)
    fields = []
    for name, field in fields_of_table.items():
        avro_type = field["type"]
        if name in incoming:
            avro_type = _type(avro_type, incoming[name].type, path + name, fixed)
        fields.append({**field, "type": avro_type})
    added = [
        field.with_nullable(True) for name, field in incoming.items() if name not in fields_of_table
    ]
    return {**record, "fields": [*fields, *_new_fields(record, added, path)]}


def _check_names(table_names: Collection[str], struct: pa.StructType, path: str) -> None:
    by_case = {name.lower(): name for name in table_names}
    names = [field.name for field in struct]
    for at, name in enumerate(names):
        if name in names[:at]:
            msg = f"there is more than one column {path + name!r}"
            raise SchemaMismatch(msg, hint="Rename one.")
        other = by_case.setdefault(name.lower(), name)
        if other != name:
            msg = f"the new column {path + name!r} differs from {path + other!r} only in case"
            raise SchemaMismatch(
                msg,
                hint=f"Rename it to {other!r}, or give it another name: Spark does not "
                "distinguish such columns.",
            )


def _new_fields(record: Json, added: list[pa.Field[Any]], path: str) -> list[Json]:
    if not added:
        return []
    for field in added:
        if pa.types.is_null(field.type):
            msg = f"the new column {path + field.name!r} has no type"
            raise SchemaMismatch(msg, hint="Cast it, or leave it out.")
    schema_json = avro_schema(pa.schema(added), record["name"], record.get("namespace", ""))
    fields: list[Json] = inline_references(json.loads(schema_json))["fields"]
    return fields


def _type(avro_type: Json, data_type: pa.DataType, path: str, fixed: Mapping[str, str]) -> Json:
    if isinstance(avro_type, list):
        return [
            _type(branch, data_type, path, fixed) if branch != "null" else branch
            for branch in avro_type
        ]
    if isinstance(avro_type, str):
        return _number(avro_type, data_type, path, fixed)
    if avro_type["type"] == "record" and pa.types.is_struct(data_type):
        return _record(avro_type, data_type, f"{path}.", fixed)
    if avro_type["type"] == "array" and (
        pa.types.is_list(data_type) or pa.types.is_large_list(data_type)
    ):
        return {**avro_type, "items": _type(avro_type["items"], data_type.value_type, path, fixed)}
    if avro_type["type"] == "map" and pa.types.is_map(data_type):
        return {**avro_type, "values": _type(avro_type["values"], data_type.item_type, path, fixed)}
    return avro_type


def _number(avro_type: str, data_type: pa.DataType, path: str, fixed: Mapping[str, str]) -> str:
    required = _avro_number(data_type)
    if required is None or required == avro_type or required not in _WIDER.get(avro_type, ()):
        return avro_type
    if path in fixed:
        types = f"{avro_type} in the table and {required} in the data"
        raise SchemaMismatch(f"column {path!r} is {types}: it cannot change", hint=fixed[path])
    return required


def _avro_number(data_type: pa.DataType) -> str | None:
    if pa.types.is_dictionary(data_type):
        return _avro_number(data_type.value_type)
    if pa.types.is_integer(data_type):
        small = data_type.bit_width < 32 or pa.types.is_int32(data_type)  # noqa: PLR2004
        return "int" if small else "long"
    if pa.types.is_float16(data_type) or pa.types.is_float32(data_type):
        return "float"
    return "double" if pa.types.is_float64(data_type) else None


# --- the rows -------------------------------------------------------------------------------------


def _fit_rows(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the rows with nulls for missing columns, at every depth; `conform` casts types."""
    row_columns = [name for name in rows.column_names if name not in META_COLUMNS]
    names = frozenset(row_columns)
    if len(names) < len(row_columns):
        return rows
    columns = {
        field.name: (
            _fill_column(rows.column(field.name), field)
            if field.name in names
            else _nulls(rows.num_rows, field, field.name)
        )
        for field in schema
    }
    return pa.table(columns)


def _fill_column(column: pa.ChunkedArray[Any], field: pa.Field[Any]) -> pa.ChunkedArray[Any]:
    if not pa.types.is_nested(field.type) or pa.types.is_null(column.type):
        return column
    chunks = [_fill_array(chunk, field.type, field.name) for chunk in column.chunks]
    if not chunks:
        return pa.chunked_array([], field.type)
    return pa.chunked_array(chunks)


def _fill_array(values: pa.Array[Any], data_type: pa.DataType, path: str) -> pa.Array[Any]:
    """Return the array with nulls for missing struct fields, in the requested order."""
    if pa.types.is_struct(data_type) and pa.types.is_struct(values.type):
        _check_fields(values.type, data_type, path)
        children = [
            _child(values, data_type.field(index), path) for index in range(data_type.num_fields)
        ]
        fields = [
            pa.field(data_type.field(index).name, child.type)
            for index, child in enumerate(children)
        ]
        return pa.StructArray.from_arrays(children, fields=fields, mask=values.is_null())
    if pa.types.is_list(data_type) and pa.types.is_list(values.type):
        items = _fill_array(values.flatten(), data_type.value_type, path)
        return list_of(values, items)
    if pa.types.is_map(data_type) and pa.types.is_map(values.type):
        entries = entries_of(values)
        flat = entries.flatten()
        items = _fill_array(flat.field(1), data_type.item_type, path)
        return map_of(entries, flat.field(0), items)
    return values


def _check_fields(data_type: pa.StructType, table_type: pa.StructType, path: str) -> None:
    for field in data_type:
        if table_type.get_field_index(field.name) < 0:
            msg = f"the table has no column {path}.{field.name}, and a field cannot be added there"
            raise SchemaMismatch(msg, hint="Leave it out.")


def _child(values: pa.StructArray, field: pa.Field[Any], path: str) -> pa.Array[Any]:
    at = values.type.get_field_index(field.name)
    name = f"{path}.{field.name}"
    if at < 0:
        if not field.nullable and values.null_count == len(values):
            field = field.with_nullable(True)
        return _nulls(len(values), field, name)
    # `field` would return the values below a null struct.
    return _fill_array(values.flatten()[at], field.type, name)


def _nulls(count: int, field: pa.Field[Any], path: str) -> pa.Array[Any]:
    if not field.nullable and count:
        msg = f"the input is missing the table's column {path!r}, which cannot be null"
        raise SchemaMismatch(msg)
    return pa.nulls(count, field.type)
