"""Checks before a write that pyhudi can maintain the table's metadata table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyhudi.config.metadata_names import FILES, index_creation_error, index_maintenance_error
from pyhudi.config.metadata_options import MetadataOptions
from pyhudi.config.property_names import METADATA_PARTITIONS, METADATA_PARTITIONS_INFLIGHT
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import UnsupportedTableFeature, retryable_conflict
from pyhudi.metadata.index_definitions import IndexDefinition
from pyhudi.metadata.partition_types.base import DefinitionContext
from pyhudi.metadata.partition_types.registry import partition_type_of, partition_types_of
from pyhudi.schema.table_schema import TableSchema
from pyhudi.storage.storage import Storage


def check_partitions(config: TableConfig) -> None:
    """Raise `UnsupportedTableFeature` for a partition that pyhudi cannot maintain."""
    check_not_building(config)
    listed = config.metadata_partitions
    for name in listed:
        partition_type = partition_type_of(name)
        if partition_type is None:
            raise index_maintenance_error(name, "pyhudi cannot maintain this index")
        if partition_type.needs is not None and partition_type.needs not in listed:
            raise index_maintenance_error(name, f"without {partition_type.needs}")
    if listed and FILES not in listed:
        raise index_maintenance_error(",".join(listed), f"without {FILES}")


def check_not_building(config: TableConfig) -> None:
    """Raise `UnsupportedTableFeature` while another writer builds an index."""
    building = config.properties.get(METADATA_PARTITIONS_INFLIGHT, "").strip()
    if building:
        msg = f"{METADATA_PARTITIONS_INFLIGHT} is {building}: another writer is building an index"
        hint = (
            "Complete the indexing with Apache Hudi, or call drop_index if its writer has failed."
        )
        raise UnsupportedTableFeature(msg, hint=hint)


def check_replaceable(config: TableConfig) -> None:
    """Raise `UnsupportedTableFeature` if file groups cannot be replaced."""
    for partition_type, name in partition_types_of(config.metadata_partitions):
        if partition_type.prevents_replace:
            msg = f"{METADATA_PARTITIONS} has {name}: pyhudi cannot replace file groups then"
            raise UnsupportedTableFeature(msg, hint="Drop the index first.")


def check_indexes(
    storage: Storage,
    config: TableConfig,
    schema: TableSchema,
    definitions: Mapping[str, IndexDefinition],
) -> None:
    """Run the checks of `check_partitions` that depend on index definitions and the schema.

    Raises `CommitConflict` if another writer drops an index concurrently.
    """
    if not config.metadata_partitions:
        return
    try:
        check_maintainable(config.metadata_partitions, config, definitions, schema)
    except UnsupportedTableFeature as error:
        if TableConfig.load(storage).metadata_partitions == config.metadata_partitions:
            raise
        raise retryable_conflict("another writer changed the table's indexes") from error


def columns_with_index(
    config: TableConfig, definitions: Mapping[str, IndexDefinition]
) -> dict[str, str]:
    """Return the index over each column with a named index, such as a secondary index."""
    return {
        column: name
        for partition_type, name in partition_types_of(config.metadata_partitions)
        if partition_type.has_names and name in definitions
        for column in definitions[name].columns
    }


def check_maintainable(
    names: Iterable[str],
    config: TableConfig,
    definitions: Mapping[str, IndexDefinition],
    schema: TableSchema,
) -> None:
    """Raise `UnsupportedTableFeature` for a partition that cannot be built or maintained."""
    context = DefinitionContext(config, definitions, schema.arrow)
    for name in names:
        partition_type = partition_type_of(name)
        reason = (
            None
            if partition_type is None
            else partition_type.check_base_files(config)
            or partition_type.find_unsupported(name, context)
        )
        if reason:
            raise (
                index_maintenance_error
                if name in config.metadata_partitions
                else index_creation_error
            )(name, reason)
        if schema.evolution is not None and (
            partition_type is None or partition_type.depends_on_column_names
        ):
            msg = f"hoodie.schema.on.read.enable with {name} in {METADATA_PARTITIONS}"
            msg = f"{msg}: that index depends on column names"
            hint = f'Drop it: drop_index("{name}"). Or write to the table with Apache Hudi.'
            raise UnsupportedTableFeature(msg, hint=hint)


def maintainable_partitions(
    names: Iterable[str], schema: TableSchema, options: MetadataOptions
) -> frozenset[str]:
    """Return the partitions that a table with this schema can have.

    `check_maintainable` checks partitions with a definition. Raises `UnsupportedTableFeature` if
    the options request a partition that the table cannot have.
    """
    by_name = {
        name
        for partition_type, name in partition_types_of(names)
        if partition_type.depends_on_column_names
        and not partition_type.has_names
        and schema.evolution is not None
    }
    if by_name and options.partition_stats:
        msg = (
            f"hoodie.schema.on.read.enable: columns were altered, and {', '.join(by_name)} "
            "depends on column names"
        )
        raise UnsupportedTableFeature(msg, hint="Drop it. column_stats can remain.")
    return frozenset(names) - by_name
