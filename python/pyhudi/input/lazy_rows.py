"""Rows that pyhudi itself reads, as an input like any other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # The help of commands needs none of it.
    import pyarrow as pa


class LazyRows(ABC):
    """Rows of a table that are read on demand."""

    @abstractmethod
    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream."""
