"""The arguments of `create_index`, checked together.

Names: `HoodieSparkIndexClient` (Hudi 1.0.2 and 1.2.0).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.config.metadata_names import BLOOM_FILTERS, COLUMN_STATS, RECORD_INDEX
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.metadata.index_definitions import SECONDARY_INDEX

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]*")
_EXPRESSION_TYPES = (COLUMN_STATS, BLOOM_FILTERS)


@dataclass(frozen=True)
class IndexRequest:
    """The arguments of `create_index`."""

    index_type: str
    columns: tuple[str, ...] = ()
    name: str | None = None
    function: str | None = None
    options: Mapping[str, str] | None = None
    partitioned: bool = False

    def __post_init__(self) -> None:
        """Raise `ConfigError` for arguments that exclude each other."""
        index_type = self.index_type
        if self.function is not None and index_type not in _EXPRESSION_TYPES:
            msg = f"the index {index_type} takes no function"
            raise ConfigError(msg, hint=f"One of {', '.join(_EXPRESSION_TYPES)} does.")
        if not self.is_named and (self.name is not None or self.options):
            msg = f"the index {index_type} takes neither a name nor options"
            raise ConfigError(msg, hint="Give a function for an expression index.")
        if self.partitioned and index_type != RECORD_INDEX:
            msg = f"the index {index_type} cannot be partitioned"
            raise ConfigError(msg, hint=f"Only {RECORD_INDEX} can.")

    def name_for(self, config: TableConfig) -> str:
        """Return the name of a named index.

        Raises `ConfigError` for an invalid name or columns, `UnsupportedTableFeature` if the
        table's version has no such index.
        """
        if not config.version.has_index_definitions:
            msg = f"tables of version {config.version.code} have no index {self.index_type!r}"
            raise UnsupportedTableFeature(msg, hint="Upgrade the table first.")
        if self.name is None or not _NAME.fullmatch(self.name):
            msg = (
                f"index {self.index_type} needs a name of letters, digits and _, got {self.name!r}"
            )
            raise ConfigError(msg)
        if len(self.columns) != 1:
            msg = f"index {self.index_type}: expected one column, got {len(self.columns)}"
            raise ConfigError(msg)
        return self.name

    @property
    def is_named(self) -> bool:
        """Return whether it is a secondary or an expression index."""
        return self.index_type == SECONDARY_INDEX or self.function is not None
