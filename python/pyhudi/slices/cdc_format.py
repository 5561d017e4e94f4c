"""The content of a table's change logs, by its logging mode: schema and columns. Pure.

A copy-on-write merge writes a change log next to the base file if `hoodie.table.cdc.enabled` is
set (`HoodieCDCUtils`, `HoodieCDCLogger`, Hudi 1.2.0). New files and appended logs need none: the
files themselves show the changes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.meta_columns import RECORD_KEY
from pyhudi.config.table_config import TableConfig

INSERT, UPDATE, DELETE = "i", "u", "d"

_KEY_ONLY = {
    "type": "record",
    "name": "Record",
    "fields": [
        {"name": "op", "type": ["string", "null"]},
        {"name": "record_key", "type": ["string", "null"]},
    ],
}


@dataclass(frozen=True)
class ChangeLogFormat:
    """The format of a table's change log records."""

    columns: tuple[str, ...]
    """Columns of a record: `op` and, by the mode, `ts_ms`, `record_key`, `before`, `after`."""
    avro_schema: str
    images: tuple[str, ...]
    """The table's columns without Hudi's own."""

    @property
    def needs_images(self) -> bool:
        """Whether the log needs more than the keys of the changed rows."""
        return "before" in self.columns


_COLUMNS = {
    "DATA_BEFORE_AFTER": ("op", "ts_ms", "before", "after"),
    "DATA_BEFORE": ("op", "record_key", "before"),
    "OP_KEY_ONLY": ("op", "record_key"),
}
MODES = tuple(_COLUMNS)
"""Values of `hoodie.table.cdc.supplemental.logging.mode`, Hudi's default first."""


def change_log_form(
    config: TableConfig, schema: pa.Schema, avro_schema: str
) -> ChangeLogFormat | None:
    """Return the format for a schema without Hudi's own columns; None without CDC."""
    if not config.cdc_enabled:
        return None
    columns = _COLUMNS[config.cdc_mode]
    return ChangeLogFormat(columns, _avro_schema(columns, avro_schema), tuple(schema.names))


def _avro_schema(columns: tuple[str, ...], avro_schema: str) -> str:
    if "before" not in columns:
        return json.dumps(_KEY_ONLY, separators=(",", ":"))
    image = json.loads(avro_schema)
    namespace = image.pop("namespace", None)
    # Avro defines a named type at its first use, and refers to it by name afterwards.
    types = {"before": image, "after": image["name"]}
    fields = [
        {"name": name, "type": ["null", types.get(name, "string")], "doc": "", "default": None}
        for name in columns
    ]
    record = {"type": "record", "name": "CDC", "namespace": namespace, "fields": fields}
    if namespace is None:
        del record["namespace"]
    return json.dumps(record, separators=(",", ":"))


def change_records(
    format_: ChangeLogFormat,
    instant: str,
    before: pa.Table,
    after: pa.Table,
    deleted: pa.Array[Any],
) -> pa.Table:
    """Return one record for each row that changed.

    before: rows of the written or deleted keys, as they were; after: rows as written; both with
    record key and images. deleted: removed keys, all of them in `before`.
    """
    old_keys, new_keys = _key_column(before), _key_column(after)
    was_at = pc.index_in(new_keys, value_set=old_keys)
    gone_at = pc.index_in(deleted, value_set=old_keys)
    ops = pc.if_else(pc.is_null(was_at), INSERT, UPDATE)
    count = len(was_at) + len(gone_at)
    columns: dict[str, Any] = {
        "op": pa.concat_arrays([ops, pa.repeat(pa.scalar(DELETE), len(gone_at))]),
        "record_key": pa.concat_arrays([new_keys, deleted]),
        "ts_ms": pa.repeat(pa.scalar(instant), count),
    }
    if format_.needs_images:
        old, new = _images(format_, before), _images(format_, after)
        columns["before"] = old.take(pa.concat_arrays([was_at, gone_at]))
        columns["after"] = pa.concat_arrays([new, pa.nulls(len(gone_at), new.type)])
    return pa.table({name: columns[name] for name in format_.columns})


def _key_column(rows: pa.Table) -> pa.Array[Any]:
    column = rows.column(RECORD_KEY)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], pa.string())


def _images(format_: ChangeLogFormat, rows: pa.Table) -> pa.Array[Any]:
    """Return each row's images as one struct."""
    columns = rows.select(list(format_.images)).combine_chunks()
    batches = columns.to_batches()
    if not batches:
        return pa.array([], pa.struct(list(columns.schema)))
    return pa.StructArray.from_arrays(batches[0].columns, fields=list(columns.schema))
