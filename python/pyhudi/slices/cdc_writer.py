"""Writes change logs: records the changes of a rewritten base file next to it.

Rows are recorded as they are written. `slices/cdc_format.py` defines the format of a record.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.config.file_names import CDC_SUFFIX, log_file_name
from pyhudi.config.meta_columns import RECORD_KEY
from pyhudi.engine.protocol import Attempt
from pyhudi.slices import write_log
from pyhudi.slices.bootstrap import source_spec
from pyhudi.slices.cdc_format import ChangeLogFormat, change_records
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.write_tasks import BaseFileTask, NewFiles

_COMMIT_TIME = "_hoodie_commit_time"


class ChangeRecorder:
    """Records the rows that a task changes while they stream into its base file."""

    def __init__(
        self,
        task: BaseFileTask,
        format_: ChangeLogFormat,
        keys: pa.Array[Any],
        deletes: pa.Array[Any],
    ) -> None:
        """`keys`: of all rows and deletes of the task. `deletes`: keys that may be deleted."""
        self._task = task
        self._format = format_
        self._keys = keys
        self._deletes = deletes.unique()
        self._written: list[pa.RecordBatch] = []
        self._kept_keys: list[pa.Array[Any]] = []

    @property
    def _columns(self) -> list[str]:
        return [RECORD_KEY, *(self._format.images if self._format.needs_images else ())]

    def record_from(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows unchanged, and record their changes."""
        instant = self._task.target.instant
        for batch in rows:
            # An unchanged row keeps the instant that wrote it.
            new = batch.filter(pc.equal(batch.column(_COMMIT_TIME), instant))
            if new.num_rows:
                self._written.append(new.select(self._columns))
            if len(self._deletes):
                may_be_deleted = pc.is_in(batch.column(RECORD_KEY), value_set=self._deletes)
                self._kept_keys.append(batch.column(RECORD_KEY).filter(may_be_deleted))
            yield batch

    def write(
        self, previous: FileSlice, merged: _native.SliceSpec, attempt: Attempt
    ) -> dict[str, int]:
        """Write the change logs and return paths and sizes; empty if nothing changed.

        merged: the read of the previous slice, with its log files.
        """
        task, target = self._task, self._task.target
        schema = pa.schema([target.schema.field(name) for name in self._columns])
        after = pa.Table.from_batches(self._written, schema)
        before = self._before(previous, merged, schema)
        deleted = self._deletes.filter(
            pc.is_in(self._deletes, value_set=before.column(RECORD_KEY).combine_chunks())
        )
        if self._kept_keys:
            kept_keys = pa.concat_arrays(self._kept_keys)
            deleted = deleted.filter(pc.invert(pc.is_in(deleted, value_set=kept_keys)))
        records = change_records(self._format, target.instant, before, after, deleted)
        if not records.num_rows:
            return {}

        def file_name(number: int) -> str:
            token = attempt.write_token
            return log_file_name(task.file_id, target.instant, number + 1, token) + CDC_SUFFIX

        written = write_log.store_log_files(
            target,
            NewFiles(target, task.partition, target.version.log_marker_type, file_name),
            avro_schema=self._format.avro_schema,
            rows=records,
            blocks="cdc",
        )
        return {file.path: file.size for file in written}

    def _before(
        self, previous: FileSlice, merged: _native.SliceSpec, schema: pa.Schema
    ) -> pa.Table:
        if not self._task.merge_by_key:
            return schema.empty_table()
        target = self._task.target
        spec: _native.SliceSpec = {
            **merged,
            "columns": schema.names,
            "filters": [(RECORD_KEY, "in", self._keys)],
            "bootstrap": source_spec(target.storage, previous, target.schema, schema.names),
        }
        reader, _ = _native.read_slice(target.storage.native, **spec)
        batches = [
            batch.filter(pc.is_in(batch.column(RECORD_KEY), value_set=self._keys))
            for batch in reader
        ]
        return pa.Table.from_batches(batches, schema)
