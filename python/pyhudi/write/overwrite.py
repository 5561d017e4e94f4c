"""Operations that replace file groups, each in one replace commit, on both table types.

They overwrite the table or partitions of it, or delete partitions. Readers ignore a replaced file
group once the commit is complete; its files stay until the cleaner deletes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pyhudi.clock import Clock
from pyhudi.config.memory_size import MemorySize
from pyhudi.errors import ConfigError
from pyhudi.metadata.write_checks import check_replaceable
from pyhudi.schema.evolution import SchemaMode
from pyhudi.slices.file_groups import file_groups
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.listing import walk_partitions
from pyhudi.slices.missing_files import find_lost_files
from pyhudi.txn.replace_commit import DELETE_PARTITION, INSERT_OVERWRITE, INSERT_OVERWRITE_TABLE
from pyhudi.txn.result import WriteResult
from pyhudi.txn.transaction import Transaction
from pyhudi.write import input_rows
from pyhudi.write.commit_validation import check_partitions_unchanged
from pyhudi.write.execute import (
    Replaced,
    execute,
    new_hashing_metadata,
    write_buckets,
    write_new_files,
)
from pyhudi.write.input_rows import read_rows
from pyhudi.write.non_blocking import check_appends
from pyhudi.write.partition_selection import select_partitions
from pyhudi.write.pending_clustering import check_no_pending_clustering
from pyhudi.write.row_counters import with_row_counts
from pyhudi.write.table_opening import WritableTable
from pyhudi.write.upsert import open_write
from pyhudi.write.write_context import WriteContext


def overwrite(
    table: WritableTable,
    data: Any,
    *,
    clock: Clock | None = None,
    memory_limit: MemorySize | None = None,
    schema_mode: SchemaMode = "strict",
) -> WriteResult:
    """Replace all rows of the table with the data.

    Data without rows empties the table. Duplicate keys in the data stay unless
    `hoodie.combine.before.insert` is true. schema_mode, errors: as for `upsert`.
    """
    return _overwrite(table, data, INSERT_OVERWRITE_TABLE, clock, memory_limit, schema_mode)


def overwrite_partitions(
    table: WritableTable,
    data: Any,
    *,
    clock: Clock | None = None,
    memory_limit: MemorySize | None = None,
    schema_mode: SchemaMode = "strict",
) -> WriteResult:
    """Replace all rows of the partitions that occur in the data.

    A partition counts even if the data has only delete rows for it, which are not written. For the
    rest see `overwrite`.
    """
    return _overwrite(table, data, INSERT_OVERWRITE, clock, memory_limit, schema_mode)


def delete_partitions(
    table: WritableTable, partitions: Any, *, clock: Clock | None = None
) -> WriteResult:
    """Remove all rows of some partitions.

    partitions: see `HudiTable.delete_partitions`; partitions that do not exist are ignored. Raises
    `ConfigError` for a table without partitions, an empty list, and an invalid partition; otherwise
    as `upsert` does.
    """
    context = open_write(table, clock, input_rows.memory_limit(None))
    check_appends(context, "delete_partitions", appends=False)
    if not context.config.partition_fields:
        msg = "the table has no partitions"
        raise ConfigError(msg, hint="Use overwrite with no rows to empty the table.")
    check_replaceable(context.config)
    paths = select_partitions(context, partitions)
    context = context.recover()
    if not context.config.version.lists_absent_partitions:
        present = {path for path, _ in walk_partitions(context.storage)}
        present |= {
            lost_file.partition
            for lost_file in find_lost_files(context.table, _view(context, paths))
        }
        paths = [path for path in paths if path in present]
    return remove_partitions(context, paths)


def remove_partitions(context: WriteContext, paths: Sequence[str]) -> WriteResult:
    """Replace all file groups of partitions by none.

    Raises `CommitConflict` if another writer changed them concurrently.
    """
    check_replaceable(context.config)
    replaced = groups_to_replace(context, paths)
    commit_checks = [check_partitions_unchanged(replaced)]
    with Transaction(context.table, DELETE_PARTITION, commit_checks=commit_checks) as txn:
        new_hashing_metadata(context, txn, replaced)
        return execute(context, txn, [], DELETE_PARTITION, replaced=replaced)


def _overwrite(
    table: WritableTable,
    data: Any,
    operation: str,
    clock: Clock | None,
    memory_limit: MemorySize | None,
    schema_mode: SchemaMode,
) -> WriteResult:
    limit = input_rows.memory_limit(memory_limit, data)
    context = open_write(table, clock, limit)
    check_appends(context, "overwriting", appends=False)
    check_replaceable(context.config)
    in_buckets = context.index.has_buckets
    with read_rows(context, data, limit, schema_mode=schema_mode, generate=True) as source:
        rows = source.combine() if context.options.combine_inserts else source
        assigned = rows.for_new_buckets() if in_buckets else rows.for_new_files()
        is_whole_table = operation == INSERT_OVERWRITE_TABLE
        replaced = groups_to_replace(
            assigned.context, None if is_whole_table else assigned.counts.partitions
        )
        write = write_buckets if in_buckets else write_new_files
        result = write(
            assigned,
            operation,
            replaced,
            [check_partitions_unchanged(None if is_whole_table else replaced)],
        )
        return with_row_counts(result, source.counters)


def groups_to_replace(context: WriteContext, partitions: Sequence[str] | None) -> Replaced:
    """Return the ids of all file groups of partitions (None for all), by partition path.

    Partitions without file groups are included, as in Hudi, and file groups with lost files. Raises
    `CommitConflict` if one has a pending clustering.
    """
    view = _view(context, partitions)
    slices = view.slices()
    check_no_pending_clustering(file_groups(context.timeline, view.iter_newest_slices(), slices))
    lost_groups = ((file.partition, file.file_id) for file in find_lost_files(context.table, view))
    return _by_partition(
        view.partitions if partitions is None else partitions,
        dict.fromkeys([*(slice_.key for slice_ in slices), *lost_groups]),
    )


def _view(context: WriteContext, partitions: Sequence[str] | None) -> FileSystemView:
    """Return the files of partitions; lost files do not matter, since their rows are removed."""
    return context.view(partitions, may_miss_files=True)


def _by_partition(partitions: Iterable[str], groups: Iterable[tuple[str, str]]) -> Replaced:
    ids: dict[str, tuple[str, ...]] = dict.fromkeys(partitions, ())
    for partition, file_id in groups:
        ids[partition] = (*ids.get(partition, ()), file_id)
    return ids
