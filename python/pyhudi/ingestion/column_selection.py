"""The columns of a source that a table gets, under the names that it gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.suggestions import did_you_mean


@dataclass(frozen=True)
class ColumnSelection:
    """Columns that are kept, and new names."""

    columns: Sequence[str] | None
    """Names in the source; None for all columns."""
    renames: Mapping[str, str]
    """New names by those in the source."""

    def schema(self, source: pa.Schema) -> pa.Schema:
        """Return the columns that the table gets.

        Raises `ConfigError` for a column that the source does not have, and for a repeated name.
        """
        for name in (*(self.columns or ()), *self.renames):
            if name not in source.names:
                hint = did_you_mean(name, source.names)
                raise ConfigError(f"the source has no column {name!r}", hint=hint)
        fields = [source.field(name) for name in self._names(source)]
        renamed = [each.with_name(self.renames.get(each.name, each.name)) for each in fields]
        names = [each.name for each in renamed]
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise ConfigError(f"two columns would have the name {repeated!r}")
        return pa.schema(renamed)

    def arrays(self, batch: pa.RecordBatch) -> list[pa.Array[Any]]:
        """Return the columns of a batch, in the order of `schema`."""
        return [batch.column(name) for name in self._names(batch.schema)]

    def in_source(self, table: pa.Schema) -> pa.Schema:
        """Return the table's columns by their names in the source."""
        old_names = {new: old for old, new in self.renames.items()}
        kept = [each for each in table if each.name not in self.renames or each.name in old_names]
        return pa.schema([each.with_name(old_names.get(each.name, each.name)) for each in kept])

    def _names(self, source: pa.Schema) -> list[str]:
        return source.names if self.columns is None else list(self.columns)
