"""Rows that say to be deletes, taken out of what goes to log files.

Hudi's writers make delete records of such rows. Its readers look for no marker of the table's own
in data blocks of version 9: they would show the rows. `_hoodie_is_deleted` they do look at, and let
such a row take the place of a delete by key, so that it loses to an older row where that delete did
not (`BufferedRecordMergerFactory`, 1.2.0). Up to version 6 those rows stay in data blocks all the
same: Hudi 0.15 lets every delete record win, however late.
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


def _is_wrapped(kind: Any) -> bool:
    """Whether `DecimalWrapper`, of 30 digits with a scale of 15, can have all its values."""
    fits = pa.types.is_decimal(kind) and kind.scale <= 15 and kind.precision - kind.scale <= 15
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
"""What ordering values are in delete records."""


def apart(target: WriteTarget, rows: RowStream) -> tuple[RowStream, pa.Table | None]:
    """Rows without those that are deletes, and those as keys with ordering values.

    The keys are in memory; rows that come as a stream stay one. None where there are no deletes.
    """
    if not _may_delete(target) or _ordering(target) is None:
        return rows, None
    if isinstance(rows, pa.Table):
        marked = _find_marked(target, rows)
        live: RowStream = rows.filter(pc.invert(marked))
        gone = _deletes(target, rows.filter(marked))
    else:
        reader = pa.RecordBatchReader.from_stream(rows)
        tables = (pa.Table.from_batches([batch]) for batch in reader)
        marked_rows = [table.filter(_find_marked(target, table)) for table in tables]
        live = _Live(target, rows)
        gone = _deletes(target, pa.concat_tables([reader.schema.empty_table(), *marked_rows]))
    return (live, gone) if gone.num_rows else (rows, None)


def _may_delete(target: WriteTarget) -> bool:
    names = target.schema.names
    by_flag = IS_DELETED in names and not target.version.logs_named_by_base_instant
    return by_flag or target.merge.delete_field in names


def _find_marked(target: WriteTarget, rows: pa.Table) -> pa.Array[Any]:
    return find_delete_markers(rows, target.merge.delete_field, target.merge.delete_marker)


def _ordering(target: WriteTarget) -> dict[str, pa.DataType] | None:
    """The fields of the deletes' ordering value, with their types; None if it cannot be had."""
    # Up to version 6 readers compare the ordering values of log records in every mode.
    in_every_mode = target.version.logs_named_by_base_instant
    if target.merge_mode != "EVENT_TIME_ORDERING" and not in_every_mode:
        return {}
    kinds = {}
    for name in target.merge_ordering:
        given = column_at(target.schema.empty_table(), name).type
        kind = next((kind for test, kind in _KINDS if test(given)), None)
        if kind is None:
            return None
        kinds[name] = kind
    return kinds


def _deletes(target: WriteTarget, rows: pa.Table) -> pa.Table:
    found = rows.select([RECORD_KEY, PARTITION_PATH])
    for number, (name, kind) in enumerate((_ordering(target) or {}).items()):
        column = column_at(rows, name)
        if pa.types.is_timestamp(column.type):
            moment = pa.timestamp(_unit(target, column.type), column.type.tz)
            column = column.cast(moment, safe=False)
        found = found.append_column(f"{_ORDERING}_{number}", column.cast(kind))
    if BASE_ROW in rows.column_names:
        found = found.append_column(BASE_ROW, rows.column(BASE_ROW))
    return found


def _unit(target: WriteTarget, kind: Any) -> Literal["ms", "us"]:
    """What moments are counted in.

    Hudi 0.15 compares milliseconds with those of the column. 1.2.0 takes either for a column in
    UTC, and for one without a zone microseconds alone, as 1.0.2 does for both.
    """
    old = target.version.logs_named_by_base_instant
    return "ms" if old and kind == pa.timestamp("ms", "UTC") else "us"


@dataclass(frozen=True)
class _Live:
    """The rows that are no deletes, each time anew."""

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
