"""Preservation of errors from rows that are computed while they are written.

An error that crosses the C stream interface keeps its text, with a stack in it, but loses its type.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pyhudi.slices.write_tasks import WriteTask


@contextmanager
def telling_errors(task: WriteTask) -> Iterator[WriteTask]:
    """The task with rows that store their error, which the block then raises."""
    if not hasattr(task.rows, "reader"):
        yield task
        return
    rows = _Telling(task.rows)
    try:
        yield replace(task, rows=rows)
    except Exception as error:
        if rows.failure is None:
            raise
        raise rows.failure from error


class _Telling:
    """Rows of an object with `reader`, which returns a `pyarrow.RecordBatchReader`."""

    def __init__(self, rows: Any) -> None:
        self._rows = rows
        self.failure: Exception | None = None

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        reader = self._rows.reader()
        checked = pa.RecordBatchReader.from_batches(reader.schema, self._batches(reader))
        return checked.__arrow_c_stream__(requested_schema)

    def _batches(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        try:
            yield from reader
        except Exception as error:
            self.failure = error
            raise
