"""Errors of rows that are made while they are written, in the place of what the core says of them.

An error that crosses the C stream interface keeps its text, with a stack in it, but loses its kind.
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
    """The task with rows that remember why they failed, which is what the block then raises."""
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
    """Rows of something with `reader`, which gives them as a `pyarrow.RecordBatchReader`."""

    def __init__(self, rows: Any) -> None:
        self._rows = rows
        self.failure: Exception | None = None

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        given = self._rows.reader()
        told = pa.RecordBatchReader.from_batches(given.schema, self._batches(given))
        return told.__arrow_c_stream__(requested_schema)

    def _batches(self, given: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        try:
            yield from given
        except Exception as error:
            self.failure = error
            raise
