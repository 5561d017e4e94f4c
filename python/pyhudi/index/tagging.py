"""Tags the rows of an operation with the locations of their keys, with any index.

`selection.py` chooses the index. This module does not decide what is written.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.index import live_records, partition_moves
from pyhudi.index.protocol import NO_LOCATIONS, IndexedTable, TagResult, group_numbers
from pyhudi.index.simple import tag_from_files
from pyhudi.schema.payloads import field_merge
from pyhudi.slices.tagged_rows import Tagged
from pyhudi.timeline.key_uniqueness import keys_are_unique


def combine(table: IndexedTable, rows: pa.Table) -> pa.Table:
    """Return one row for each key, by the table's merge mode.

    A key is unique in its partition, or in the whole table if the index finds keys in all
    partitions (`HoodieWriteHelper.deduplicateRecords`). rows: with record key and partition path in
    front.
    """
    if not table.index.is_global:
        return table.combine(rows)
    at = rows.schema.get_field_index(PARTITION_PATH)
    no_partition = pa.repeat(pa.scalar(""), rows.num_rows)
    without_partition = rows.append_column(_OWN_PARTITION, rows.column(at)).set_column(
        at, PARTITION_PATH, no_partition
    )
    combined = table.combine(without_partition)
    combined = combined.set_column(at, rows.schema.field(at), combined.column(_OWN_PARTITION))
    return combined.drop_columns([_OWN_PARTITION])


_OWN_PARTITION = "_pyhudi_own_partition"


def cross_partition_duplicates(
    table: IndexedTable, rows: pa.Table, kept: pa.Table
) -> pa.Array[Any]:
    """Return for each combined row how many rows of its key named another partition.

    rows: the input of `combine`; kept: its result.
    """
    is_global = table.index.is_global and bool(table.config.partition_fields)
    if not is_global or kept.num_rows == rows.num_rows:
        return pa.repeat(pa.scalar(0), kept.num_rows)
    pairs = rows.select([RECORD_KEY, PARTITION_PATH])
    distinct = pairs.group_by(pairs.column_names).aggregate([])
    counts = distinct.group_by(RECORD_KEY).aggregate([([], "count_all")])
    at = pc.index_in(kept.column(RECORD_KEY).combine_chunks(), value_set=counts.column(RECORD_KEY))
    return pc.subtract(counts.column("count_all").combine_chunks().take(at), 1)


def tag_upsert(table: IndexedTable, rows: pa.Table, marked_deleted: pa.Array[Any]) -> TagResult:
    """Return the locations of rows whose keys the table may have.

    rows: with record key and partition path in front, as `combine` returns them. marked_deleted:
    for each row whether it deletes its key.
    """
    check_mergeable(table)
    tag_result = look_up(table, rows.select([RECORD_KEY, PARTITION_PATH]), marked_deleted)
    return resolve_partition_moves(table, rows, marked_deleted, tag_result)


def look_up(table: IndexedTable, keys: pa.Table, marked_deleted: pa.Array[Any]) -> TagResult:
    """Return the locations of keys in the index, whether or not their rows may stay there.

    keys: columns record key and partition path. marked_deleted: as in `tag_upsert`; the row gets
    no new bucket.
    """
    tag_result = table.index.look_up(table, keys, pc.invert(marked_deleted))
    if pc.any(marked_deleted).as_py() and may_miss_duplicates(table):
        return _with_duplicates(table, keys, marked_deleted, tag_result)
    return tag_result


def may_miss_duplicates(table: IndexedTable) -> bool:
    """Return whether the index may have only one of several locations of a key.

    Updates use that location, as Hudi's do. Deletes look in the files.
    """
    return table.index.is_record_index and not keys_are_unique(table.timeline)


def _with_duplicates(
    table: IndexedTable, keys: pa.Table, marked_deleted: pa.Array[Any], tag_result: TagResult
) -> TagResult:
    """Add every location of the marked keys."""
    marked = pc.indices_nonzero(marked_deleted).cast(pa.int64())
    duplicates = tag_from_files(table, keys.take(marked), any_partition=table.index.is_global)
    groups, numbers = list(tag_result.groups), dict(group_numbers(tag_result.groups))
    for group in duplicates.groups:
        number = numbers.setdefault((group.slice.partition, group.slice.file_id), len(groups))
        if number == len(groups):
            groups.append(group)
    merged_numbers = [
        numbers[group.slice.partition, group.slice.file_id] for group in duplicates.groups
    ]
    kept = tag_result.tagged.only(pc.invert(marked_deleted.take(tag_result.tagged.rows)))
    rows = pa.concat_arrays([kept.rows, marked.take(duplicates.tagged.rows)])
    group_numbers_of_rows = [
        kept.groups,
        pa.array(merged_numbers, pa.int64()).take(duplicates.tagged.groups),
    ]
    order = pc.sort_indices(rows)
    return TagResult(
        Tagged(rows.take(order), pa.concat_arrays(group_numbers_of_rows).take(order)), groups
    )


def find_existing_keys(table: IndexedTable, keys: pa.Table) -> pa.Array[Any]:
    """Return numbers of rows whose keys have current rows, in their partition or anywhere.

    keys: columns record key and partition path. Raises `UnsupportedTableFeature` if rows without
    stored keys are in log files.
    """
    index = table.index
    if index.is_record_index or not table.config.is_merge_on_read:
        return index.find(table, keys, any_partition=index.is_global).tagged.rows.unique()
    if not table.config.populate_meta_fields:
        msg = "hoodie.populate.meta.fields is false: log files do not show which keys are live"
        raise UnsupportedTableFeature(msg, hint="Insert without a duplicate policy, or upsert.")
    return live_records.tag_from_records(
        table, keys, partitioned=not index.is_global
    ).tagged.rows.unique()


def resolve_partition_moves(
    table: IndexedTable, rows: pa.Table, marked_deleted: pa.Array[Any], tag_result: TagResult
) -> TagResult:
    """Return where rows go, and which rows leave the partition in which the index has their key.

    If files show a key at several locations, its row goes to those with a current record. The first
    arguments are those of `tag_upsert`; tag_result: the result of `look_up`.
    """
    index = table.index
    if not index.is_global:
        # A bucket index or a record index has one location of a key.
        is_unique = index.has_buckets or index.is_record_index
        return (
            tag_result
            if is_unique
            else live_records.drop_deleted_duplicates(table, rows, tag_result)
        )
    # The record index and the files of copy-on-write tables contain no deleted keys.
    is_exact = index.is_record_index or not table.config.is_merge_on_read
    return partition_moves.resolve_moves(
        table,
        rows,
        marked_deleted,
        tag_result,
        updates_partition_path=index.updates_partition_path,
        is_exact=is_exact,
    )


def count_kept_in_partition(
    table: IndexedTable, rows: pa.Table, marked_deleted: pa.Array[Any], tag_result: TagResult
) -> int:
    """Return how many rows update a key in another partition than their own, and go there.

    Arguments as in `resolve_partition_moves`. 0 if rows may move.
    """
    if not table.index.is_global or table.index.updates_partition_path:
        return 0
    tagged = tag_result.tagged
    paths = pa.array([group.slice.partition for group in tag_result.groups], pa.string())
    own = rows.column(PARTITION_PATH).combine_chunks().take(tagged.rows)
    in_other_partition = pc.not_equal(own, paths.take(tagged.groups))
    in_other_partition = pc.and_(in_other_partition, pc.invert(marked_deleted.take(tagged.rows)))
    return len(tagged.rows.filter(in_other_partition).unique())


def check_mergeable(table: IndexedTable) -> None:
    """Check that the merge mode decides which of two records wins, if the index must know it.

    Raises `UnsupportedTableFeature` naming the index.
    """
    index = table.index
    if index.is_global and not index.keeps_locations and field_merge(table.config) is not None:
        raise UnsupportedTableFeature(
            f"hoodie.index.type is {index.index_type}: pyhudi does not merge by column with it",
            hint="upsert, insert and merge of whole rows work.",
        )


def tag_merge(table: IndexedTable, keys: pa.Table, *, deletes: bool) -> TagResult:
    """Return the locations of records that a merge's source may match, and where new ones go.

    keys: columns record key and partition path. deletes: the merge may delete them. Under an index
    over all partitions a record is matched by its key alone.
    """
    if deletes and may_miss_duplicates(table):
        # The index does not have deleted keys, so the key is new.
        duplicates = tag_from_files(table, keys, any_partition=table.index.is_global)
        return live_records.drop_deleted_locations(table, keys, duplicates)
    return look_up(table, keys, pa.repeat(pa.scalar(value=False), keys.num_rows))


def tag_insert(table: IndexedTable, rows: pa.Table, marked_deleted: pa.Array[Any]) -> TagResult:
    """Return the buckets of rows, without a lookup whether the table has their keys."""
    if table.index.has_buckets:
        return _in_buckets(table, rows, marked_deleted)
    groups, _ = table.groups(rows.column(PARTITION_PATH).unique().to_pylist())
    return TagResult(NO_LOCATIONS, groups)


def tag_new_buckets(
    table: IndexedTable, keys: pa.Table, marked_deleted: pa.Array[Any]
) -> TagResult:
    """Return where rows go under a bucket index that replaces all their file groups.

    All these file groups are new. Arguments as in `look_up`; deletes have no location.
    """
    return _in_buckets(table, keys, marked_deleted, rewrite=True)


def _in_buckets(
    table: IndexedTable, keys: pa.Table, marked_deleted: pa.Array[Any], *, rewrite: bool = False
) -> TagResult:
    kept = pc.invert(marked_deleted)
    tag_result = table.index.look_up(table, keys, kept, rewrite=rewrite)
    return TagResult(tag_result.tagged.only(kept.take(tag_result.tagged.rows)), tag_result.groups)


def tag_delete(table: IndexedTable, keys: pa.Table, *, in_partitions: bool) -> TagResult:
    """Return the locations of keys to delete.

    keys: columns record key and partition path. in_partitions: the keys name partitions, and are
    looked up only there.
    """
    index = table.index
    if index.has_buckets and in_partitions:
        return index.look_up(table, keys, pa.repeat(pa.scalar(value=False), keys.num_rows))
    if may_miss_duplicates(table):
        tag_result = tag_from_files(table, keys, any_partition=not in_partitions)
    else:
        tag_result = index.find(table, keys, any_partition=not in_partitions)
        tag_result = _in_named_partitions(keys, tag_result) if in_partitions else tag_result
        if index.is_record_index:
            return tag_result
    return live_records.drop_deleted_locations(table, keys, tag_result)


def _in_named_partitions(keys: pa.Table, tag_result: TagResult) -> TagResult:
    """Remove keys that were found in another partition than the one they name."""
    tagged = tag_result.tagged
    paths = pa.array([group.slice.partition for group in tag_result.groups], pa.string())
    named = keys.column(PARTITION_PATH).combine_chunks().take(tagged.rows)
    same = pc.equal(named, paths.take(tagged.groups))
    return TagResult(tagged.only(same), tag_result.groups)
