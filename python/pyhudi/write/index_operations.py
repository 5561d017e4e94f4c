"""Creation and removal of an index, which is a partition of the metadata table."""

from __future__ import annotations

from dataclasses import replace

from pyhudi.clock import Clock, SystemClock
from pyhudi.config.metadata_names import FILES
from pyhudi.config.metadata_options import MetadataOptions
from pyhudi.config.property_names import PENDING_OPERATION
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import ConfigError
from pyhudi.metadata.index_request import IndexRequest
from pyhudi.metadata.partition_types.base import PartitionRequest
from pyhudi.metadata.partition_types.registry import (
    PARTITION_TYPES,
    partition_types_of,
    partitions_to_build,
    type_to_build,
)
from pyhudi.metadata.pending_operation import PendingOperation
from pyhudi.write import abandoned_indexing, async_indexing
from pyhudi.write.metadata_lifecycle import (
    build,
    build_session,
    finish_pending_operation,
    remove_partitions,
)
from pyhudi.write.table_opening import Handle, WritableTable


def create_index(
    table: WritableTable,
    request: IndexRequest,
    clock: Clock | None = None,
    *,
    concurrently: bool = False,
) -> tuple[str, ...]:
    """Add an index to the metadata table; see `HudiTable.create_index`."""
    clock = clock or SystemClock()
    handle = Handle.of(table, clock)
    index_type = type_to_build(request)
    options = MetadataOptions.of(table.options)
    finish_pending_operation(handle, clock)
    if concurrently:
        return async_indexing.create(handle, request, options, clock)
    with build_session(handle, clock) as (config, heartbeat):
        if index_type.has_names:
            defined = index_type.define(table.storage, config, request)
            async_indexing.check_index_is_new(config, *defined)
            return build(handle, set(defined), options, clock, heartbeat, defined)
        async_indexing.check_index_is_new(config, index_type.name)
        index_options = index_type.options_for_create_index(options, request)
        partitions = partitions_to_build(index_type, PartitionRequest(config, index_options))
        return build(handle, set(partitions), index_options, clock, heartbeat)


def drop_index(table: WritableTable, name: str, clock: Clock | None = None) -> tuple[str, ...]:
    """Remove an index; see `HudiTable.drop_index`."""
    clock = clock or SystemClock()
    handle = Handle.of(table, clock)
    abandoned = abandoned_indexing.remove_abandoned_indexing(handle, name, clock)
    if abandoned:
        return abandoned
    with build_session(handle, clock) as (config, heartbeat):
        dropped = _partitions_to_drop(config, name)
        pending = PendingOperation.of(config)
        remaining = replace(
            pending,
            heartbeat=heartbeat,
            partitions=tuple(kept for kept in pending.partitions if kept not in dropped),
            definitions={k: kept for k, kept in pending.definitions.items() if k not in dropped},
        )
        without_index = remove_partitions(handle, config, dropped, clock, remaining)
        if pending:
            without_index.update(table.storage, remaining.properties, clock)
        else:
            without_index.update(table.storage, {}, clock, removed=(PENDING_OPERATION,))
    return dropped


def _partitions_to_drop(config: TableConfig, name: str) -> tuple[str, ...]:
    """Return the partitions to drop with an index. Raises `ConfigError` for an unknown index.

    Partitions with a pending rebuild count as existing.
    """
    existing = tuple(
        dict.fromkeys((*config.metadata_partitions, *PendingOperation.of(config).partitions))
    )
    named = (
        partition_type.name + name for partition_type in PARTITION_TYPES if partition_type.has_names
    )
    index = next((partition for partition in (name, *named) if partition in existing), None)
    if index is None:
        msg = f"the table has no index {name!r}"
        raise ConfigError(msg, hint=f"It has {', '.join(existing) or 'no metadata table'}.")
    if index == FILES:
        return existing
    dropped = [index]
    for partition_type, other in partition_types_of(existing):
        if partition_type.needs == index and not partition_type.is_dropped_with_needed:
            msg = f"the index {other} needs {index}"
            raise ConfigError(msg, hint=f"Drop {other} first.")
        if partition_type.needs == index:
            dropped.append(other)
    return tuple(partition for partition in existing if partition in dropped)
