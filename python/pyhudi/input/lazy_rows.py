"""Rows that pyhudi itself reads, as an input like any other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # The help of commands needs none of it.
    import pyarrow as pa


class ForeignNames:
    """The base of classes whose missing attributes say what to write, for names elsewhere."""

    if not TYPE_CHECKING:  # A type checker would accept every name.

        def __getattr__(self, name: str) -> Any:
            """Raise `AttributeError`: for a name of another library, with what to write instead.

            Python calls it for missing attributes only.
            """
            hint = None if name.startswith("_") else self._hint(name)
            if hint is None:
                # Python's error, or that of the property with this name.
                return object.__getattribute__(self, name)
            message = f"{type(self).__name__} has no attribute {name!r}\nHint: {hint}"
            raise AttributeError(message, name=name, obj=self)

        def _hint(self, name: str) -> str | None:
            from pyhudi.foreign_names import attribute_hint  # noqa: PLC0415 - only errors need it

            return attribute_hint(type(self), name)


class LazyRows(ForeignNames, ABC):
    """Rows of a table that are read on demand."""

    @abstractmethod
    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream."""
