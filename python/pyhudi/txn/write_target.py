"""The write target of tasks: how they read and write the slices of the table."""

from __future__ import annotations

from pyhudi import _native
from pyhudi.config.write_options import WriteOptions
from pyhudi.input.conform import data_schema
from pyhudi.schema.payloads import merge_on_rewrite, with_defaults
from pyhudi.schema.virtual_keys import virtual_keys
from pyhudi.slices.cdc_format import change_log_form
from pyhudi.slices.nested_partitions import min_levels
from pyhudi.slices.write_tasks import WriteTarget
from pyhudi.table.table_snapshot import TableSnapshot


def write_options(table: TableSnapshot) -> WriteOptions:
    """Return the options of the table's handle, adapted to the format of its base files."""
    return WriteOptions.of(table.options, table.config.base_extension)


def write_target(
    table: TableSnapshot,
    options: WriteOptions,
    instant: str,
    task_memory: int | None = None,
) -> WriteTarget:
    """Return the settings that all tasks of a write share.

    task_memory: bytes that one task may use for records that it merges, None for no limit.
    """
    config, schema = table.config, table.schema
    committed, start = find_committed_blocks(table)
    return WriteTarget(
        storage=table.storage,
        version=config.version,
        instant=instant,
        merge_on_read=config.is_merge_on_read,
        schema=table.columns,
        virtual_keys=virtual_keys(config),
        avro_schema=_native.with_meta_fields(schema.avro),
        evolution=schema.evolution,
        merge=config.merge,
        ordering_fields=config.ordering_fields,
        options=options,
        task_memory=task_memory,
        fields=with_defaults(merge_on_rewrite(config), schema),
        change_log=change_log_form(config, data_schema(schema.arrow), schema.avro),
        valid_instants=committed,
        timeline_start=start,
        two_threads=table.engine.tasks_per_process > 1,
        min_levels=min_levels(table),
    )


def find_committed_blocks(table: TableSnapshot) -> tuple[tuple[str, ...] | None, str | None]:
    """Return the instants whose log blocks are valid, and the instant before which all are.

    Both are None if only whole files count.
    """
    if not table.config.version.blocks_need_commit_check:
        return None, None
    committed = tuple(instant.requested for instant in table.timeline.commits)
    return committed, table.timeline.blocks_start
