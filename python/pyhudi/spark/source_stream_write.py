"""`df.writeStream.format("pyhudi")`: each batch of a stream in one commit, written exactly once.

The rows go through a stage, as in `source_write.py`. The commit has the number of the batch, as
with `pyhudi.spark.sink`: a batch that Spark repeats is skipped, and both can continue each other's
streams.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql.datasource import DataSourceStreamArrowWriter
from pyspark.sql.types import StructType

from pyhudi.api.table_exists import has_table
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import CommitConflict, ConfigError, UnsupportedTableFeature
from pyhudi.spark.hudi_operations import existing_table
from pyhudi.spark.source_write import Staged, StagedWrite, TaskStaging
from pyhudi.spark.source_write_options import SourceWrite
from pyhudi.spark.stream_sink import StreamBatches
from pyhudi.spark.task_errors import wrap_exceptions
from pyhudi.storage.storage import Storage


class HudiStreamWriter(TaskStaging, DataSourceStreamArrowWriter):  # type: ignore[misc]
    """The writer of one batch: Spark creates a writer for each of them."""

    @wrap_exceptions()
    def commit(self, messages: Sequence[Staged | None], batchId: int) -> None:  # noqa: N803 - Spark's
        """Next to the driver: write the rows, unless a commit of this batch is on the timeline."""
        try:
            self._commit(messages, batchId)
        finally:
            self._remove_stages(messages)

    def _remove_stages(self, messages: Sequence[Staged | None]) -> None:
        """Remove the stage of the tasks: Spark creates another writer to commit or abort."""
        stages = {self._write.stage.path: self._write.stage}
        stages |= {message.stage.path: message.stage for message in messages if message is not None}
        for stage in stages.values():
            stage.remove()

    def _commit(self, messages: Sequence[Staged | None], batch_id: int) -> None:
        query = self._write.query
        batches = StreamBatches(query.identifier, _query_id(query))
        if self._is_written(batches, batch_id):
            return
        try:
            staged = next((message for message in messages if message is not None), None)
            write = self._write if staged is None else replace(self._write, stage=staged.stage)
            write.commit(messages, batches.entries(batch_id))
        except CommitConflict:
            if not self._is_written(batches, batch_id):
                raise

    def _is_written(self, batches: StreamBatches, batch_id: int) -> bool:
        target = self._write.query.target(LocalEngine(1))
        if not has_table(target.storage):
            return False
        return batches.has(target.open(self._write.query.request), batch_id)

    def abort(self, messages: Sequence[Staged | None], batchId: int) -> None:  # noqa: ARG002, N803
        """Next to the driver: remove the rows."""
        self._remove_stages(messages)


def stream_writer_of(
    query: SourceWrite, schema: StructType, *, overwrite: bool, case: bool
) -> HudiStreamWriter:
    """Return the writer of a batch. Raises for the output mode "complete", and as `writer_of`."""
    if overwrite:
        raise UnsupportedTableFeature(
            'df.writeStream.format("pyhudi").outputMode("complete") is not supported',
            hint="Pass a function to foreachBatch that calls overwrite of the table.",
        )
    if query.checkpoint is None:
        raise ConfigError(
            'df.writeStream.format("pyhudi") needs the option checkpointLocation',
            hint="Spark does not pass the session's setting on, and the batches of two queries "
            "could not be distinguished.",
        )
    existing_table(query.target(LocalEngine(1)), query.request, "append")
    return HudiStreamWriter(StagedWrite.begin(query, "append", schema, case=case))


def _query_id(query: SourceWrite) -> str | None:
    """Return Spark's id of the query, which is in its checkpoint."""
    content = Storage(query.checkpoint or "", query.storage_options).read("metadata")
    query_id: str | None = json.loads(content).get("id")
    return query_id
