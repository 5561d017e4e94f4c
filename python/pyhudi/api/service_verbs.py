"""The verbs of a table handle that keep its table in shape. Thin: every verb is one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # Opening and reading a table needs none of it.
    from pyhudi.write.write_context import WritableTable


class ServiceVerbs:
    """What `HudiTable` can do for its table's health. Rows never change by it."""

    def refresh(self) -> Any:
        """Looks at the table again.

        Returns:
            This handle.
        """
        raise NotImplementedError

    def _writable(self) -> WritableTable:
        """The handle, if it may write."""
        raise NotImplementedError
