"""Secondary and expression indexes that are about to be made: what they are called and defined as.

Nothing is written here, and no row is read. Names: `HoodieSparkIndexClient` (Hudi 1.0.2 and 1.2.0).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyhudi.config.metadata_names import RECORD_INDEX
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.metadata import expression, secondary
from pyhudi.metadata.definitions import BLOOM_FILTERS, COLUMN_STATS, SECONDARY_INDEX
from pyhudi.metadata.definitions_file import Definitions, index_definition
from pyhudi.metadata.partitioned import is_partitioned
from pyhudi.storage.storage import Storage

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]*")
_EXPRESSION_KINDS = (COLUMN_STATS, BLOOM_FILTERS)


@dataclass(frozen=True)
class IndexRequest:
    """What is asked of `create_index`."""

    kind: str
    columns: tuple[str, ...] = ()
    name: str | None = None
    function: str | None = None
    options: Mapping[str, str] | None = None
    partitioned: bool = False

    @classmethod
    def of(
        cls,
        kind: str,
        columns: Sequence[str],
        name: str | None,
        function: str | None,
        options: Mapping[str, str] | None,
        *,
        partitioned: bool,
    ) -> IndexRequest:
        """As it was given. Raises `ConfigError` for what does not go together."""
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        found = cls(kind, names, name, function, options, partitioned)
        if function is not None and kind not in _EXPRESSION_KINDS:
            msg = f"the index {kind} takes no function"
            raise ConfigError(msg, hint=f"One of {', '.join(_EXPRESSION_KINDS)} does.")
        if not found.is_named and (name is not None or options):
            msg = f"the index {kind} takes neither a name nor options"
            raise ConfigError(msg, hint="Give a function for an expression index.")
        if partitioned and kind != RECORD_INDEX:
            msg = f"the index {kind} is not one by data partition"
            raise ConfigError(msg)
        return found

    @property
    def is_named(self) -> bool:
        """Whether it is a secondary or an expression index."""
        return self.kind == SECONDARY_INDEX or self.function is not None


def definition(storage: Storage, config: TableConfig, asked: IndexRequest) -> Definitions:
    """The definition of a named index, by the name of its partition.

    Raises `ConfigError` for a name or columns that it cannot have or a table without what it needs,
    `UnsupportedTableFeature` where the table's version has no such index.
    """
    if not config.version.has_index_definitions:
        msg = f"tables of version {config.version.code} have no index of the kind {asked.kind!r}"
        raise UnsupportedTableFeature(msg, hint="Upgrade the table first.")
    if asked.name is None or not _NAME.fullmatch(asked.name):
        msg = f"an index of this kind needs a name of letters, digits and _, not {asked.name!r}"
        raise ConfigError(msg)
    if len(asked.columns) != 1:
        msg = f"an index of this kind is over one column, not over {len(asked.columns)}"
        raise ConfigError(msg)
    if asked.function is not None:
        return _expression(config, asked, asked.name, asked.function.lower())
    if RECORD_INDEX not in config.metadata_partitions or is_partitioned(storage, config):
        msg = "a secondary index needs a record index over all of the table"
        raise ConfigError(msg, hint='table.create_index("record_index") makes one.')
    partition = secondary.PREFIX + asked.name
    options = asked.options or {}
    return index_definition(
        config, partition, SECONDARY_INDEX, "identity", asked.columns[0], options
    )


def _expression(config: TableConfig, asked: IndexRequest, name: str, function: str) -> Definitions:
    partition = expression.PREFIX + name
    options = {"expr": function, **(asked.options or {})}
    return index_definition(config, partition, asked.kind, function, asked.columns[0], options)
