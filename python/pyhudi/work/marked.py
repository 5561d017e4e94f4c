"""Rows that a table's own marker says to be deletes, taken out of what goes to log files.

Hudi's writers make delete records of such rows, and its readers look for no marker in data blocks
of version 9: they would show the rows. (`_hoodie_is_deleted` they do look at.) In event-time order
such a record has the row's ordering value, which pyhudi does not write: there rows stay rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.keys import PARTITION_PATH, RECORD_KEY
from pyhudi.plan.write_tasks import BASE_ROW
from pyhudi.txn.rows import marked_deleted

if TYPE_CHECKING:
    from pyhudi.plan.write_tasks import Rows, WriteTarget


def apart(target: WriteTarget, rows: Rows) -> tuple[Rows, pa.Table | None]:
    """Rows without those that the table's marker deletes, and those as keys.

    The keys are in memory; rows that come as a stream stay one. None where there are no deletes.
    """
    by_time = target.merge_mode == "EVENT_TIME_ORDERING"
    if by_time or target.merge.delete_field not in target.schema.names:
        return rows, None
    if isinstance(rows, pa.Table):
        marked = _marked(target, rows)
        live: Rows = rows.filter(pc.invert(marked))
        gone = _deletes(rows.filter(marked))
    else:
        reader = pa.RecordBatchReader.from_stream(rows)
        tables = (pa.Table.from_batches([batch]) for batch in reader)
        marked_rows = [table.filter(_marked(target, table)) for table in tables]
        live = _Live(target, rows)
        gone = _deletes(pa.concat_tables([reader.schema.empty_table(), *marked_rows]))
    return (live, gone) if gone.num_rows else (rows, None)


def _marked(target: WriteTarget, rows: pa.Table) -> pa.Array[Any]:
    return marked_deleted(rows, target.merge.delete_field, target.merge.delete_marker)


def _deletes(rows: pa.Table) -> pa.Table:
    named = (RECORD_KEY, PARTITION_PATH, BASE_ROW)
    return rows.select([name for name in named if name in rows.column_names])


@dataclass(frozen=True)
class _Live:
    """The rows that are no deletes, each time anew."""

    target: WriteTarget
    rows: Rows

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        reader = pa.RecordBatchReader.from_stream(self.rows)
        live = pa.RecordBatchReader.from_batches(reader.schema, self._batches(reader))
        return live.__arrow_c_stream__(requested_schema)

    def _batches(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        for batch in reader:
            marked = _marked(self.target, pa.Table.from_batches([batch]))
            yield batch.filter(pc.invert(marked))
