"""The interface of rows of a table that are read later."""

from __future__ import annotations

from abc import ABC, abstractmethod

import pyarrow as pa


class LazyRows(ABC):
    """Rows of a table that are read on demand."""

    @abstractmethod
    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream."""
