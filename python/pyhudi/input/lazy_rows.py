"""What rows of a table that are read later can be told by."""

from __future__ import annotations

from abc import ABC, abstractmethod

import pyarrow as pa


class LazyRows(ABC):
    """Rows of a table that are read when they are wanted."""

    @abstractmethod
    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream."""
