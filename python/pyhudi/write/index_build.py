"""The partitions of an index that is to be built concurrently, and the options of the build.

Requests are validated here before anything is written. `async_indexing.py` builds the partitions.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.config.metadata_names import FILES
from pyhudi.config.metadata_options import MetadataOptions
from pyhudi.errors import CommitConflict, ConfigError
from pyhudi.metadata.index_definitions import Definitions, parse_definitions
from pyhudi.metadata.index_request import IndexRequest
from pyhudi.metadata.partition_types.base import PartitionRequest
from pyhudi.metadata.partition_types.registry import (
    in_order,
    kind_asked,
    new_definitions,
    partitions_asked,
)
from pyhudi.metadata.pending_operation import PendingOperation
from pyhudi.metadata.statistics_columns import check_nested
from pyhudi.metadata.write_checks import can_be_kept, check_kept
from pyhudi.write.checks import check_indexed_columns
from pyhudi.write.write_context import WriteContext


@dataclass(frozen=True)
class Wanted:
    """The partitions of an index, and the options of their build."""

    names: tuple[str, ...]
    """In build order."""
    options: MetadataOptions
    definitions: Definitions


def plan_build(context: WriteContext, asked: IndexRequest, options: MetadataOptions) -> Wanted:
    """Plan an index build as an exclusive build does.

    Raises `ConfigError` if the table has the index or has no metadata table, `CommitConflict` if
    another writer is building the metadata table.
    """
    _check(context)
    config, index_type, table = context.config, kind_asked(asked), context.table
    if index_type.has_names:
        definitions = index_type.define(table.storage, config, asked)
        check_indexed_columns(definitions, context.schema)
        partitions = tuple(definitions)
    else:
        options = index_type.options_for_create_index(options, asked)
        wish = PartitionRequest(config, options, schema=table.columns)
        existing = config.metadata_partitions
        supported = can_be_kept(partitions_asked(index_type, wish), context.schema, options)
        partitions = tuple(name for name in in_order(set(supported)) if name not in existing)
        partitions = partitions if index_type.name in partitions else (index_type.name,)
        definitions = new_definitions(partitions, wish)
    for name in partitions:
        if name in config.metadata_partitions:
            msg = f"the table already has the index {name}"
            raise ConfigError(msg, hint="Drop it first to create another one.")
    check_kept(partitions, config, parse_definitions(definitions), context.schema)
    check_nested(config, options.stats_columns)
    return Wanted(partitions, options, definitions)


def _check(context: WriteContext) -> None:
    config = context.config
    if FILES not in config.metadata_partitions:
        msg = "the table has no metadata table, which cannot be built concurrently"
        raise ConfigError(msg, hint="Use rebuild_metadata first.")
    if PendingOperation.of(config):
        msg = "another writer is building the metadata table or changing the table's version"
        raise CommitConflict(msg, hint="Wait until it is done, then try again.")
