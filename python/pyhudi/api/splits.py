"""Parts of a scan that can be read separately, also in other processes. Nothing is planned here.

Engines push columns, filters and limits into a scan, or into one of its parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.api.operation_events import report_rows
from pyhudi.api.outputs import Outputs
from pyhudi.input.semi_structured import as_arrow_extension, in_schema
from pyhudi.schema.predicates import Where, both
from pyhudi.slices.read_tasks import ReadTask
from pyhudi.slices.task_packing import task_size

if TYPE_CHECKING:
    from pyhudi.api.scan import Scan


@dataclass(frozen=True)
class Split(Outputs):
    """Some rows of a scan: those of one file slice, or of a part of one. Made by `Scan.splits`.

    A split can be pickled, and read in any process with pyhudi and access to the storage.
    """

    task: ReadTask
    table_name: str
    """Name of the table."""

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
        return report_rows(self.task.storage.uri, self.table_name, "scan", self._open)

    def _open(self) -> pa.RecordBatchReader:
        from pyhudi.slices.read import read_task  # noqa: PLC0415 - a plan needs no core

        rows = in_schema(read_task(self.task), self.schema)
        return pa.RecordBatchReader.from_batches(self.schema, rows)

    def __repr__(self) -> str:
        return f"<Split of {self.partition!r}, {self.file_id}: {self.bytes} bytes>"


def push_into_scan(
    scan: Scan, columns: Sequence[str], where: Where | None = None, limit: int | None = None
) -> Scan:
    """Return the scan with some of its columns, and with the rows that a filter keeps.

    columns: at least one. where: only for a scan without a limit, because the limit applies first.
    limit: an additional limit.
    """
    request = scan.request
    combined = request.where if where is None else both(where, request.where)
    limits = [max_rows for max_rows in (limit, request.limit) if max_rows is not None]
    return replace(
        scan,
        request=replace(
            request, output=tuple(columns), where=combined, limit=min(limits, default=None)
        ),
    )


def push_into_split(split: Split, columns: Sequence[str], where: Where | None = None) -> Split:
    """Return a split with columns and a filter, as `push_into_scan` does."""
    combined = split.task.where if where is None else both(where, split.task.where)
    return with_filter(split, columns, combined)


def with_filter(split: Split, columns: Sequence[str], where: Where | None) -> Split:
    """Return the split with some of the columns that it needs, and with this filter only.

    where: uses only columns that the split needs.
    """
    needed = dict.fromkeys((*columns, *(where.columns if where else ())))
    task = replace(split.task, columns=tuple(needed), output=tuple(columns), where=where)
    return replace(split, task=task)
