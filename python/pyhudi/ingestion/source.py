"""The protocol of sources, and the batches that they return."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from pyhudi.ingestion.bad_records import BadRecord
from pyhudi.ingestion.checkpoint import Position
from pyhudi.input.lazy_rows import LazyRows


class BatchRows(LazyRows):
    """Rows of a batch, which can be read again after a conflict."""

    schema: pa.Schema
    """The columns of all batches."""

    def with_locations(self) -> Iterator[tuple[pa.RecordBatch, str | None]]:
        """Yield the rows as batches, with the file of each; None if they are not of files."""
        return ((batch, None) for batch in self.to_reader())


class TableRows(BatchRows):
    """Rows in memory."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows, self.schema = rows, rows.schema

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream."""
        return self.rows.to_reader()


@dataclass(frozen=True)
class SourceBatch:
    """Rows of a source after a position."""

    rows: BatchRows
    checkpoint: str
    """The position after the batch."""
    entries: Mapping[str, str] = field(default_factory=dict)
    """Extra metadata of the batch's commit, which `Position.entries` returns later."""
    bad: Sequence[BadRecord] = ()
    """Records that are not rows."""
    payload_class: str | None = None
    """Payload class of a new table for the rows; None for the default."""


class Source(Protocol):
    """A source of rows, read from a position on."""

    @property
    def name(self) -> str:
        """The source's name, by which commits tell whether they have its checkpoint."""
        ...

    def fetch(self, position: Position, columns: pa.Schema | None) -> SourceBatch | None:
        """Return the next batch after a position; None if there is nothing new.

        columns: types of columns by their names in the source, as far as the table has them; None
        if there is no table yet. Raises `ConfigError` if the position is not one of this source.
        """
        ...
