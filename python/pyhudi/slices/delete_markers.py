"""Separation of rows that are marked as deletes from the rows of log files.

Hudi's writers turn such rows into delete records. Its readers ignore the table's own marker in data
blocks of version 9: they would show the rows. They evaluate `_hoodie_is_deleted`, but let such a
row replace a delete by key, so that it loses to an older row where that delete did not
(`BufferedRecordMergerFactory`, 1.2.0). Up to version 6 those rows stay in data blocks all the same:
Hudi 0.15 lets every delete record win, however late.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.meta_columns import IS_DELETED, PARTITION_PATH, RECORD_KEY
from pyhudi.schema.delete_field import find_delete_markers
from pyhudi.schema.key_generator import column_at
from pyhudi.slices.write_tasks import BASE_ROW, RowStream, WriteTarget

_ORDERING = "_pyhudi_ordering"


def _is_wrapped(data_type: Any) -> bool:
    """Return whether `DecimalWrapper`, of 30 digits with a scale of 15, fits all its values."""
    fits = (
        pa.types.is_decimal(data_type)
        and data_type.scale <= 15
        and data_type.precision - data_type.scale <= 15
    )
    return bool(fits)


_KINDS: tuple[tuple[Any, pa.DataType], ...] = (
    (pa.types.is_int64, pa.int64()),
    (pa.types.is_integer, pa.int32()),
    (pa.types.is_date32, pa.int32()),
    (pa.types.is_timestamp, pa.int64()),
    (pa.types.is_time32, pa.int32()),
    (pa.types.is_time64, pa.int64()),
    (pa.types.is_float32, pa.float32()),
    (pa.types.is_floating, pa.float64()),
    (pa.types.is_string, pa.string()),
    (pa.types.is_boolean, pa.bool_()),
    (_is_wrapped, pa.decimal128(30, 15)),
)
"""Types of ordering values in delete records."""


def apart(target: WriteTarget, rows: RowStream) -> tuple[RowStream, pa.Table | None]:
    """Return rows without deletes, and the deletes as keys with ordering values.

    The keys are in memory; a stream of rows stays one. None if there are no deletes.
    """
    if not _may_delete(target) or _ordering(target) is None:
        return rows, None
    if isinstance(rows, pa.Table):
        marked = _find_marked(target, rows)
        live: RowStream = rows.filter(pc.invert(marked))
        deletes = _deletes(target, rows.filter(marked))
    else:
        reader = pa.RecordBatchReader.from_stream(rows)
        tables = (pa.Table.from_batches([batch]) for batch in reader)
        marked_rows = [table.filter(_find_marked(target, table)) for table in tables]
        live = _Live(target, rows)
        deletes = _deletes(target, pa.concat_tables([reader.schema.empty_table(), *marked_rows]))
    return (live, deletes) if deletes.num_rows else (rows, None)


def _may_delete(target: WriteTarget) -> bool:
    names = target.schema.names
    by_flag = IS_DELETED in names and not target.version.logs_named_by_base_instant
    return by_flag or target.merge.delete_field in names


def _find_marked(target: WriteTarget, rows: pa.Table) -> pa.Array[Any]:
    return find_delete_markers(rows, target.merge.delete_field, target.merge.delete_marker)


def _ordering(target: WriteTarget) -> dict[str, pa.DataType] | None:
    """Return the fields of the deletes' ordering value with types; None if unsupported."""
    # Up to version 6 readers compare the ordering values of log records in every mode.
    in_every_mode = target.version.logs_named_by_base_instant
    if target.merge_mode != "EVENT_TIME_ORDERING" and not in_every_mode:
        return {}
    stored_types = {}
    for name in target.merge_ordering:
        column_type = column_at(target.schema.empty_table(), name).type
        stored_type = next((stored_type for test, stored_type in _KINDS if test(column_type)), None)
        if stored_type is None:
            return None
        stored_types[name] = stored_type
    return stored_types


def _deletes(target: WriteTarget, rows: pa.Table) -> pa.Table:
    deletes = rows.select([RECORD_KEY, PARTITION_PATH])
    for number, (name, stored_type) in enumerate((_ordering(target) or {}).items()):
        column = column_at(rows, name)
        if pa.types.is_timestamp(column.type):
            timestamp_type = pa.timestamp(_unit(target, column.type), column.type.tz)
            column = column.cast(timestamp_type, safe=False)
        deletes = deletes.append_column(f"{_ORDERING}_{number}", column.cast(stored_type))
    if BASE_ROW in rows.column_names:
        deletes = deletes.append_column(BASE_ROW, rows.column(BASE_ROW))
    return deletes


def _unit(target: WriteTarget, data_type: Any) -> Literal["ms", "us"]:
    """Return the unit of timestamps.

    Hudi 0.15 compares milliseconds with those of the column. 1.2.0 accepts either for a column in
    UTC, and only microseconds for one without a zone, as 1.0.2 does for both.
    """
    old = target.version.logs_named_by_base_instant
    return "ms" if old and data_type == pa.timestamp("ms", "UTC") else "us"


@dataclass(frozen=True)
class _Live:
    """The rows that are not deletes, filtered on each read."""

    target: WriteTarget
    rows: RowStream

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        reader = pa.RecordBatchReader.from_stream(self.rows)
        live = pa.RecordBatchReader.from_batches(reader.schema, self._batches(reader))
        return live.__arrow_c_stream__(requested_schema)

    def _batches(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        for batch in reader:
            marked = _find_marked(self.target, pa.Table.from_batches([batch]))
            yield batch.filter(pc.invert(marked))
