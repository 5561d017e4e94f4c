"""Rows of Debezium's envelopes, with the columns that Hudi's Debezium sources add.

The columns are those of `PostgresDebeziumSource` and `MysqlDebeziumSource` (1.2.0). A delete has
the row before it, and the operation `d`, which the table's merge rule takes for a delete marker.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.merge_mode import DEBEZIUM_PAYLOADS
from pyhudi.config.table_version import table_version
from pyhudi.config.version_properties import ordering_of_payload
from pyhudi.errors import ConfigError

OPERATION = "_change_operation_type"
_MYSQL, _POSTGRES = DEBEZIUM_PAYLOADS
_COMMON = {
    "ts_ms": "_upstream_event_processed_ts_ms",
    "source.name": "db_shard_source_partition",
    "source.ts_ms": "_event_origin_ts_ms",
}
_OF_POSTGRES = {
    "source.schema": "db_schema_source_partition",
    "source.txId": "_event_tx_id",
    "source.lsn": "_event_lsn",
    "source.xmin": "_event_xmin",
}
_OF_MYSQL = {
    "source.file": "_event_bin_file",
    "source.pos": "_event_pos",
    "source.row": "_event_row",
}
_TEXTS = frozenset({"source.name", "source.schema", "source.file"})
"""Fields with texts; the others are numbers."""


_ADDED = frozenset(
    {OPERATION, "_event_seq", *_COMMON.values(), *_OF_POSTGRES.values(), *_OF_MYSQL.values()}
)


def envelope_types(columns: pa.Schema | None) -> pa.Schema | None:
    """Return the types of JSON envelopes for the rows of a table; None without a table."""
    if columns is None:
        return None
    row = pa.struct([each for each in columns if each.name not in _ADDED])
    images = [pa.field("before", row), pa.field("after", row)]
    return pa.schema([*images, pa.field("payload", pa.struct(images))])


def flatten(envelopes: pa.Table, columns: pa.Schema | None) -> tuple[pa.Table, str | None]:
    """Return the rows of envelopes, and the payload class of a new table for them.

    Args:
        envelopes: columns `before`, `after`, `op`, `source`, `ts_ms`; or a column `payload` with
            them.
        columns: the columns of the table, which a row that is only deleted may not have.

    Returns:
        The rows in their order, and the class; None without rows.

    Raises:
        ConfigError: the messages are not envelopes of Postgres or MySQL.
    """
    if "payload" in envelopes.column_names and pa.types.is_struct(
        envelopes.schema.field("payload").type
    ):
        payload = envelopes.column("payload").combine_chunks()
        envelopes = pa.Table.from_struct_array(payload)
    if not envelopes.num_rows:
        return (columns or pa.schema([])).empty_table(), None
    if not {"op", "source"} <= {*envelopes.column_names}:
        raise ConfigError(
            "the messages are not Debezium envelopes: they have no op and source",
            hint="If the connector unwraps them, use the format json or avro.",
        )
    source = envelopes.schema.field("source").type
    names = {field.name for field in source} if pa.types.is_struct(source) else set()
    if "lsn" in names:
        payload_class, fields = _POSTGRES, _OF_POSTGRES
    elif {"file", "pos"} <= names:
        payload_class, fields = _MYSQL, _OF_MYSQL
    else:
        raise ConfigError(
            "the source of the messages has neither lsn nor file and pos",
            hint="pyhudi reads envelopes of Postgres and MySQL.",
        )
    envelopes = envelopes.filter(pc.is_in(envelopes["op"], pa.array(["c", "u", "r", "d"])))
    rows = _images(envelopes)
    added: dict[str, Any] = {OPERATION: envelopes["op"]}
    for path, name in {**_COMMON, **fields}.items():
        data_type = pa.string() if path in _TEXTS else pa.int64()
        added[name] = _field(envelopes, path, data_type)
    if payload_class == _POSTGRES:
        # An incremental snapshot has no position (`PostgresDebeziumAvroPayload`: 0).
        added["_event_lsn"] = pc.fill_null(added["_event_lsn"], 0)
    else:
        file = pc.replace_substring_regex(added["_event_bin_file"], r"^.*\.", "")
        position = added["_event_pos"].cast(pa.string())
        added["_event_seq"] = pc.binary_join_element_wise(file, position, ".")
    arrays = [*added.values(), *rows.columns]
    table = pa.table(arrays, names=[*added, *rows.column_names])
    return table, payload_class


def ordering_fields(payload_class: str, version: int) -> list[str]:
    """Return the ordering fields of a table: before version 9, one column has the position.

    Args:
        payload_class: the table's payload class.
        version: the table's version.
    """
    if table_version(version).merge_inferred:
        return ["_event_lsn" if payload_class == _POSTGRES else "_event_seq"]
    return list(ordering_of_payload(payload_class))


def _images(envelopes: pa.Table) -> pa.Table:
    """Return the rows after inserts and updates, and before deletes."""
    images = []
    for name in ("before", "after"):
        field = envelopes.schema.field(name) if name in envelopes.column_names else None
        if field is not None and pa.types.is_struct(field.type):
            column = envelopes.column(name).combine_chunks()
            flat = [pc.struct_field(column, [at]) for at in range(field.type.num_fields)]
            images.append(pa.table(flat, names=[each.name for each in field.type]))
        else:
            images.append(None)
    before, after = images
    if before is None and after is None:
        return pa.table({})
    schemas = [each.schema for each in images if each is not None]
    schema = pa.unify_schemas(schemas, promote_options="permissive")
    empty = schema.empty_table()
    nulls = pa.table([pa.nulls(envelopes.num_rows, each.type) for each in schema], schema=schema)
    before, after = (
        nulls if each is None else pa.concat_tables([empty, each], promote_options="permissive")
        for each in images
    )
    is_delete = pc.equal(envelopes["op"], "d")
    columns = [pc.if_else(is_delete, before[name], after[name]) for name in schema.names]
    return pa.table(columns, schema=schema)


def _field(envelopes: pa.Table, path: str, data_type: pa.DataType) -> Any:
    """Return a field of an envelope, or nulls if it is missing."""
    first, _, second = path.partition(".")
    column = envelopes.column(first) if first in envelopes.column_names else None
    if column is not None and second:
        names = [each.name for each in column.type]
        column = pc.struct_field(column, [names.index(second)]) if second in names else None
    if column is None:
        return pa.chunked_array([pa.nulls(envelopes.num_rows, data_type)])
    return column.cast(data_type)
