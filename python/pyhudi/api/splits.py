"""Parts of a scan that can be read separately, also in other processes. Nothing is planned here."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pyhudi.api.outputs import Outputs
from pyhudi.input.semi_structured import as_arrow_extension, in_schema
from pyhudi.slices.read_tasks import ReadTask
from pyhudi.slices.task_packing import task_size


@dataclass(frozen=True)
class Split(Outputs):
    """Some rows of a scan: those of one file slice, or of a part of one. Made by `Scan.splits`.

    A split can be pickled, and read in any process with pyhudi and access to the storage.
    """

    task: ReadTask

    @property
    def schema(self) -> pa.Schema:
        """The columns of the scan, in order."""
        task = self.task
        fields = [task.schema.field(name) for name in task.output]
        return pa.schema(
            [
                f.with_type(pa.string()) if f.name in task.as_text else as_arrow_extension(f)
                for f in fields
            ]
        )

    @property
    def partition(self) -> str:
        """Path of the partition, "" in a table without partitions."""
        return self.task.slice.partition

    @property
    def file_id(self) -> str:
        """The id of the file group."""
        return self.task.slice.file_id

    @property
    def bytes(self) -> int:
        """Bytes of the files to read, with all columns and before any filter.

        The number of rows is known only after the read.
        """
        return task_size(self.task)

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream, which the calling thread reads.

        Returns:
            A reader of the record batches.

        Raises:
            CorruptTable: a file is damaged or missing, for example because a cleaner has removed it
                since the scan was planned; raised while you read the stream.
        """
        from pyhudi.slices.read import read_task  # noqa: PLC0415 - a plan needs no core

        rows = in_schema(read_task(self.task), self.schema)
        return pa.RecordBatchReader.from_batches(self.schema, rows)

    def __repr__(self) -> str:
        return f"<Split of {self.partition!r}, {self.file_id}: {self.bytes} bytes>"
