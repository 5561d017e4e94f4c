"""Which partitions an index is that is to be made beside writers, and what they are made by.

What is refused here is so before anything is written. How they are made is the part of
`async_indexing.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.config.metadata_names import FILES
from pyhudi.config.metadata_options import MetadataOptions
from pyhudi.errors import CommitConflict, ConfigError
from pyhudi.metadata.index_definitions import parse_definitions
from pyhudi.metadata.index_definitions_file import Definitions
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
    """The partitions that an index is, and what they are made by."""

    names: tuple[str, ...]
    """In the order of making."""
    options: MetadataOptions
    definitions: Definitions


def plan_build(context: WriteContext, asked: IndexRequest, options: MetadataOptions) -> Wanted:
    """As making it alone has it.

    Raises `ConfigError` where the table has the index or has no metadata table, `CommitConflict`
    where others are at the metadata table.
    """
    _check(context)
    config, kind, table = context.config, kind_asked(asked), context.table
    if kind.has_names:
        definitions = kind.define(table.storage, config, asked)
        check_indexed_columns(definitions, context.schema)
        made = tuple(definitions)
    else:
        options = kind.options_for_create_index(options, asked)
        wish = PartitionRequest(config, options, schema=table.columns)
        there = config.metadata_partitions
        kept = can_be_kept(partitions_asked(kind, wish), context.schema, options)
        made = tuple(name for name in in_order(set(kept)) if name not in there)
        made = made if kind.name in made else (kind.name,)
        definitions = new_definitions(made, wish)
    for name in made:
        if name in config.metadata_partitions:
            msg = f"the table already has the index {name}"
            raise ConfigError(msg, hint="Drop it first to create another one.")
    check_kept(made, config, parse_definitions(definitions), context.schema)
    check_nested(config, options.stats_columns)
    return Wanted(made, options, definitions)


def _check(context: WriteContext) -> None:
    config = context.config
    if FILES not in config.metadata_partitions:
        msg = "the table has no metadata table, which cannot be built concurrently"
        raise ConfigError(msg, hint="Use rebuild_metadata first.")
    if PendingOperation.of(config):
        msg = "another writer is building the metadata table or changing the table's version"
        raise CommitConflict(msg, hint="Wait until it is done, then try again.")
