"""Operations that replace file groups, each with one replace commit, on both table types.

They overwrite the table or some partitions, or delete partitions. Readers no longer see a replaced
file group once the commit is complete; its files stay until a cleaner removes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pyhudi.clock import Clock
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
from pyhudi.write.file_assignment import check_not_clustered
from pyhudi.write.input_rows import read_rows
from pyhudi.write.non_blocking import check_appends
from pyhudi.write.partition_selection import select_partitions
from pyhudi.write.row_counters import with_row_counts
from pyhudi.write.upsert import open_write
from pyhudi.write.write_context import WritableTable, WriteContext


def overwrite(
    table: WritableTable,
    data: Any,
    *,
    clock: Clock | None = None,
    memory_limit: int | None = None,
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
    memory_limit: int | None = None,
    schema_mode: SchemaMode = "strict",
) -> WriteResult:
    """Replace all rows of the partitions that the data has rows for.

    Delete rows count, too, though they are not written. Other partitions stay. The rest is as in
    `overwrite`.
    """
    return _overwrite(table, data, INSERT_OVERWRITE, clock, memory_limit, schema_mode)


def delete_partitions(
    table: WritableTable, partitions: Any, *, clock: Clock | None = None
) -> WriteResult:
    """Remove all rows of some partitions.

    partitions: as `HudiTable.delete_partitions` takes them. A partition that does not exist is
    ignored. Raises `ConfigError` for a table without partitions, an empty list, and an invalid
    partition; the rest is as in `upsert`.
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
            lost.partition for lost in find_lost_files(context.table, _view(context, paths))
        }
        paths = [path for path in paths if path in present]
    return remove_partitions(context, paths)


def remove_partitions(context: WriteContext, paths: Sequence[str]) -> WriteResult:
    """Replace the file groups of partitions, unless other writers change them concurrently."""
    check_replaceable(context.config)
    replaced = groups_of(context, paths)
    commit_checks = [check_partitions_unchanged(replaced)]
    with Transaction(context.table, DELETE_PARTITION, commit_checks=commit_checks) as txn:
        new_hashing_metadata(context, txn, replaced)
        return execute(context, txn, [], DELETE_PARTITION, replaced=replaced)


def _overwrite(
    table: WritableTable,
    data: Any,
    operation: str,
    clock: Clock | None,
    memory_limit: int | None,
    schema_mode: SchemaMode,
) -> WriteResult:
    limit = input_rows.memory_limit(memory_limit, data)
    context = open_write(table, clock, limit)
    check_appends(context, "overwriting", appends=False)
    check_replaceable(context.config)
    in_buckets = context.index.has_buckets
    with read_rows(context, data, limit, schema_mode=schema_mode, generate=True) as source:
        rows = source.combine() if context.options.combine_inserts else source
        placed = rows.for_new_buckets() if in_buckets else rows.for_new_files()
        whole = operation == INSERT_OVERWRITE_TABLE
        replaced = groups_of(placed.context, None if whole else placed.counts.partitions)
        put = write_buckets if in_buckets else write_new_files
        result = put(
            placed, operation, replaced, [check_partitions_unchanged(None if whole else replaced)]
        )
        return with_row_counts(result, source.counters)


def groups_of(context: WriteContext, partitions: Sequence[str] | None) -> Replaced:
    """Return the ids of all file groups of partitions (None for all), by partition path.

    A partition without file groups is included, as in Hudi, and so is a file group with lost files.
    Raises `CommitConflict` if one has a pending clustering.
    """
    view = _view(context, partitions)
    slices = view.slices()
    check_not_clustered(file_groups(context.timeline, view.iter_newest_slices(), slices))
    lost = ((file.partition, file.file_id) for file in find_lost_files(context.table, view))
    return _by_partition(
        view.partitions if partitions is None else partitions,
        dict.fromkeys([*(slice_.key for slice_ in slices), *lost]),
    )


def _view(context: WriteContext, partitions: Sequence[str] | None) -> FileSystemView:
    """Return the files, some of which may be missing: the table can go on without them."""
    return context.view(partitions, may_miss_files=True)


def _by_partition(names: Iterable[str], found: Iterable[tuple[str, str]]) -> Replaced:
    ids: dict[str, tuple[str, ...]] = dict.fromkeys(names, ())
    for partition, file_id in found:
        ids[partition] = (*ids.get(partition, ()), file_id)
    return ids
