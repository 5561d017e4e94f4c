"""The one place where operations look up row locations: what they share under every index.

`selection.py` chooses the index. What is written because of the result is not decided here.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.index import live_records, partition_moves
from pyhudi.index.protocol import NOWHERE, IndexedTable, TagResult, group_numbers
from pyhudi.index.simple import in_files
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
    nowhere = pa.repeat(pa.scalar(""), rows.num_rows)
    alike = rows.append_column(_HOME, rows.column(at)).set_column(at, PARTITION_PATH, nowhere)
    kept = table.combine(alike)
    kept = kept.set_column(at, rows.schema.field(at), kept.column(_HOME))
    return kept.drop_columns([_HOME])


_HOME = "_pyhudi_home"


def cross_partition_duplicates(
    table: IndexedTable, rows: pa.Table, kept: pa.Table
) -> pa.Array[Any]:
    """Return for each combined row how many rows of its key other partitions would have got.

    rows: the input of `combine`; kept: its result.
    """
    is_global = table.index.is_global and bool(table.config.partition_fields)
    if not is_global or kept.num_rows == rows.num_rows:
        return pa.repeat(pa.scalar(0), kept.num_rows)
    pairs = rows.select([RECORD_KEY, PARTITION_PATH])
    once = pairs.group_by(pairs.column_names).aggregate([])
    counts = once.group_by(RECORD_KEY).aggregate([([], "count_all")])
    at = pc.index_in(kept.column(RECORD_KEY).combine_chunks(), value_set=counts.column(RECORD_KEY))
    return pc.subtract(counts.column("count_all").combine_chunks().take(at), 1)


def tag_upsert(table: IndexedTable, rows: pa.Table, marked_deleted: pa.Array[Any]) -> TagResult:
    """Return the locations of rows whose keys the table may have.

    rows: with record key and partition path in front, as `combine` returns them. marked_deleted:
    for each row whether it deletes its key.
    """
    check_mergeable(table)
    located = look_up(table, rows.select([RECORD_KEY, PARTITION_PATH]), marked_deleted)
    return resolve_partition_moves(table, rows, marked_deleted, located)


def look_up(table: IndexedTable, keys: pa.Table, marked_deleted: pa.Array[Any]) -> TagResult:
    """Return the locations of keys in the index, whether or not their rows may stay there.

    keys: columns record key and partition path. marked_deleted: as in `tag_upsert`; such a row gets
    no new bucket.
    """
    located = table.index.look_up(table, keys, pc.invert(marked_deleted))
    if pc.any(marked_deleted).as_py() and misses_copies(table):
        return _with_copies(table, keys, marked_deleted, located)
    return located


def misses_copies(table: IndexedTable) -> bool:
    """Return whether the index may have only one of several locations of a key.

    Updates use that location, as Hudi's do. Deletes look in the files.
    """
    return table.index.is_record_index and not keys_are_unique(table.timeline)


def _with_copies(
    table: IndexedTable, keys: pa.Table, marked_deleted: pa.Array[Any], located: TagResult
) -> TagResult:
    """Add every location of the marked keys."""
    marked = pc.indices_nonzero(marked_deleted).cast(pa.int64())
    copies = in_files(table, keys.take(marked), any_partition=table.index.is_global)
    groups, numbers = list(located.groups), dict(group_numbers(located.groups))
    for group in copies.groups:
        number = numbers.setdefault((group.slice.partition, group.slice.file_id), len(groups))
        if number == len(groups):
            groups.append(group)
    ours = [numbers[group.slice.partition, group.slice.file_id] for group in copies.groups]
    kept = located.tagged.only(pc.invert(marked_deleted.take(located.tagged.rows)))
    rows = pa.concat_arrays([kept.rows, marked.take(copies.tagged.rows)])
    homes = [kept.groups, pa.array(ours, pa.int64()).take(copies.tagged.groups)]
    order = pc.sort_indices(rows)
    return TagResult(Tagged(rows.take(order), pa.concat_arrays(homes).take(order)), groups)


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
    return live_records.tag_by_rows(
        table, keys, partitioned=not index.is_global
    ).tagged.rows.unique()


def resolve_partition_moves(
    table: IndexedTable, rows: pa.Table, marked_deleted: pa.Array[Any], located: TagResult
) -> TagResult:
    """Return where rows go, and which rows leave the partition in which the index has their key.

    If files show a key at several locations, its row goes to those with a current record. The first
    arguments are those of `tag_upsert`; located: the result of `look_up`.
    """
    index = table.index
    if not index.is_global:
        # A bucket or a record index has a key once.
        has_once = index.has_buckets or index.is_record_index
        return located if has_once else live_records.drop_deleted_duplicates(table, rows, located)
    # The record index forgets deleted keys; files of copy-on-write tables have none.
    certain = index.is_record_index or not table.config.is_merge_on_read
    return partition_moves.resolve_moves(
        table, rows, marked_deleted, located, moves=index.moves, certain=certain
    )


def count_kept_in_partition(
    table: IndexedTable, rows: pa.Table, marked_deleted: pa.Array[Any], located: TagResult
) -> int:
    """Return how many rows update a key in another partition than their own, and go there.

    Arguments as in `resolve_partition_moves`. 0 if rows may move, because then none stays for its
    key alone.
    """
    if not table.index.is_global or table.index.moves:
        return 0
    tagged = located.tagged
    paths = pa.array([group.slice.partition for group in located.groups], pa.string())
    own = rows.column(PARTITION_PATH).combine_chunks().take(tagged.rows)
    away = pc.not_equal(own, paths.take(tagged.groups))
    away = pc.and_(away, pc.invert(marked_deleted.take(tagged.rows)))
    return len(tagged.rows.filter(away).unique())


def check_mergeable(table: IndexedTable) -> None:
    """Refuse an index that must know which of two records wins if the merge mode does not say.

    Raises `UnsupportedTableFeature` naming the index.
    """
    index = table.index
    if index.is_global and not index.keeps_locations and field_merge(table.config) is not None:
        raise UnsupportedTableFeature(
            f"hoodie.index.type is {index.kind}: pyhudi does not merge column by column with it",
            hint="upsert, insert and merge of whole rows work.",
        )


def tag_merge(table: IndexedTable, keys: pa.Table, *, deletes: bool) -> TagResult:
    """Return the locations of records that a merge's source may match, and where new ones go.

    keys: columns record key and partition path. deletes: the merge may delete them. Under an index
    over all partitions a record is matched by its key alone.
    """
    if deletes and misses_copies(table):
        # A key that was deleted before is new: the index has forgotten it.
        copies = in_files(table, keys, any_partition=table.index.is_global)
        return live_records.drop_deleted_locations(table, keys, copies)
    return look_up(table, keys, pa.repeat(pa.scalar(value=False), keys.num_rows))


def tag_insert(table: IndexedTable, rows: pa.Table, marked_deleted: pa.Array[Any]) -> TagResult:
    """Return the buckets of rows, without a lookup whether the table has their keys."""
    if table.index.has_buckets:
        return _in_buckets(table, rows, marked_deleted)
    groups, _ = table.groups(rows.column(PARTITION_PATH).unique().to_pylist())
    return TagResult(NOWHERE, groups)


def tag_new_buckets(
    table: IndexedTable, keys: pa.Table, marked_deleted: pa.Array[Any]
) -> TagResult:
    """Return where rows go under a bucket index that replaces all their file groups.

    All these file groups are new. Arguments as in `look_up`; deletes have no location.
    """
    return _in_buckets(table, keys, marked_deleted, anew=True)


def _in_buckets(
    table: IndexedTable, keys: pa.Table, marked_deleted: pa.Array[Any], *, anew: bool = False
) -> TagResult:
    kept = pc.invert(marked_deleted)
    located = table.index.look_up(table, keys, kept, anew=anew)
    return TagResult(located.tagged.only(kept.take(located.tagged.rows)), located.groups)


def tag_delete(table: IndexedTable, keys: pa.Table, *, in_partitions: bool) -> TagResult:
    """Return the locations of keys to delete.

    keys: columns record key and partition path. in_partitions: the keys name partitions, and are
    looked up only there.
    """
    index = table.index
    if index.has_buckets and in_partitions:
        return index.look_up(table, keys, pa.repeat(pa.scalar(value=False), keys.num_rows))
    if misses_copies(table):
        located = in_files(table, keys, any_partition=not in_partitions)
    else:
        located = index.find(table, keys, any_partition=not in_partitions)
        located = _in_named_partitions(keys, located) if in_partitions else located
        if index.is_record_index:
            return located
    return live_records.drop_deleted_locations(table, keys, located)


def _in_named_partitions(keys: pa.Table, located: TagResult) -> TagResult:
    """Remove keys that were found in another partition than the one they name."""
    tagged = located.tagged
    paths = pa.array([group.slice.partition for group in located.groups], pa.string())
    named = keys.column(PARTITION_PATH).combine_chunks().take(tagged.rows)
    same = pc.equal(named, paths.take(tagged.groups))
    return TagResult(tagged.only(same), located.groups)
