"""Steps on executors that tag rows with their file groups. No files are written.

Each step takes the rows of one Spark task and returns rows. An assigned row has its destination in
four columns: `ACTION`, and of a file group `DESTINATION` and `GROUP`, with `BASE_ROW` if it is
known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.index import tagging
from pyhudi.index.protocol import TagResult
from pyhudi.slices.tagged_rows import Tagged, find_untagged, row_numbers
from pyhudi.slices.write_tasks import BASE_ROW, FileGroup
from pyhudi.spark.executor_steps import RemoteContext, chunks, key_chunks, with_types
from pyhudi.spark.internal_columns import ASSIGNED, DESTINATION, GROUP, NEW, REMOVE, SEQ, UPDATE
from pyhudi.spark.key_steps import Batches, with_existing

Find = Callable[[RemoteContext, pa.Table, "pa.Array[Any]"], TagResult]
"""Tags rows, from the rows and whether each deletes its key."""


@dataclass(frozen=True)
class LookUp:
    """Looks up rows in an index that is searched by key."""

    context: RemoteContext
    schema: pa.Schema
    """Schema of the rows, without number."""
    find: Find = tagging.tag_upsert
    """A function of `index.tagging`."""
    mark_existing: bool = False
    """Whether each row records if the table has its key."""

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Yield the rows with their destinations."""
        for chunk in chunks(batches):
            rows = with_types(chunk, self.schema)
            deletes = self.context.find_delete_markers(rows)
            tag_result = self.find(self.context, rows, deletes)
            flagged = with_existing(self.context, chunk) if self.mark_existing else chunk
            yield assign_rows(self.context, flagged, deletes, tag_result)


@dataclass(frozen=True)
class LookUpDeletes:
    """Looks up keys to be deleted in the index."""

    context: RemoteContext
    in_partitions: bool

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Yield the keys that exist, with their locations."""
        for chunk in chunks(batches):
            keys = chunk.select([RECORD_KEY, PARTITION_PATH])
            tag_result = tagging.tag_delete(self.context, keys, in_partitions=self.in_partitions)
            tagged = tag_result.tagged
            rows = chunk.take(tagged.rows)
            deleted = pa.repeat(pa.scalar(value=True), rows.num_rows)
            destination = _destinations(self.context, tag_result, tagged.groups)
            yield _with_destination(rows, deleted, REMOVE, destination, tagged.base_rows)


@dataclass(frozen=True)
class ResolveMoves:
    """Assigns rows that were joined with the stored keys of all partitions.

    They come sorted by key. A row whose key is in several file groups comes once for each of them.
    """

    context: RemoteContext
    schema: pa.Schema
    """Schema of the rows, without number."""

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Yield the rows with their destinations."""
        groups, _ = self.context.groups(None)
        group_numbers = {_name(self.context, group): number for number, group in enumerate(groups)}
        names = pa.array(list(group_numbers), pa.string())
        for chunk in key_chunks(batches, RECORD_KEY):
            number = chunk.select([SEQ]).append_column("row", row_numbers(chunk.num_rows))
            firsts = number.group_by(SEQ, use_threads=False).aggregate([("row", "min")])
            first_rows = chunk.take(firsts.column("row_min"))
            at = pc.index_in(chunk.column(SEQ), value_set=firsts.column(SEQ).combine_chunks())
            group = pc.index_in(_names(chunk), value_set=names)
            has_group = pc.is_valid(group)
            tagged = Tagged(
                at.filter(has_group).combine_chunks().cast(pa.int64()),
                group.filter(has_group).combine_chunks().cast(pa.int64()),
            )
            rows = with_types(first_rows, self.schema)
            deletes = self.context.find_delete_markers(rows)
            tag_result = tagging.resolve_partition_moves(
                self.context, rows, deletes, TagResult(tagged, groups)
            )
            columns = [*self.schema.names, SEQ]
            yield assign_rows(self.context, first_rows.select(columns), deletes, tag_result)


@dataclass(frozen=True)
class AssignJoined:
    """Assigns rows that were joined with the stored keys of their partitions."""

    context: RemoteContext
    columns: tuple[str, ...]
    deletes: bool = False
    """Whether the rows are keys to be deleted."""

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Yield the rows with their destinations; deletes of missing keys are dropped."""
        for chunk in chunks(batches):
            hit = pc.is_valid(chunk.column(GROUP))
            deletes_key = self.context.find_delete_markers(chunk)
            keep = hit if self.deletes else pc.or_(hit, pc.invert(deletes_key))
            action_of_hit = REMOVE if self.deletes else UPDATE
            action = pc.if_else(
                hit, pa.scalar(action_of_hit, pa.int32()), pa.scalar(NEW, pa.int32())
            )
            destination = pc.coalesce(chunk.column(DESTINATION), chunk.column(PARTITION_PATH))
            rows = chunk.select([*self.columns, SEQ])
            destination_columns = [
                action,
                destination,
                chunk.column(GROUP),
                chunk.column(BASE_ROW),
                deletes_key,
            ]
            for field, column in zip(ASSIGNED, destination_columns, strict=True):
                rows = rows.append_column(field, column)
            yield rows.filter(keep)


def assign_rows(
    context: RemoteContext, rows: pa.Table, marked: pa.Array[Any], tag_result: TagResult
) -> pa.Table:
    """Return the rows with their actions; deletes of missing keys are dropped."""
    tagged = tag_result.tagged
    new = find_untagged(rows.num_rows, tagged)
    new = new.filter(pc.invert(marked.take(new)))
    added = rows.take(new)
    nothing = pa.nulls(len(new), pa.string())
    destinations = added.column(PARTITION_PATH)
    tagged_rows, removed_rows = rows.take(tagged.rows), rows.take(tagged.left_rows)
    parts = [
        _with_destination(added, marked.take(new), NEW, (destinations, nothing), None),
        _with_destination(
            tagged_rows,
            marked.take(tagged.rows),
            UPDATE,
            _destinations(context, tag_result, tagged.groups),
            tagged.base_rows,
        ),
        _with_destination(
            removed_rows,
            marked.take(tagged.left_rows),
            REMOVE,
            _destinations(context, tag_result, tagged.left_groups),
            None,
        ),
    ]
    return pa.concat_tables(parts)


def _destinations(
    context: RemoteContext, tag_result: TagResult, groups: pa.Array[Any]
) -> tuple[Any, Any]:
    """Return partition path and identity of each of the numbered file groups."""
    paths = [group.slice.partition for group in tag_result.groups]
    ids = [context.index.identity(group.slice.file_id) for group in tag_result.groups]
    return pa.array(paths, pa.string()).take(groups), pa.array(ids, pa.string()).take(groups)


def _with_destination(
    rows: pa.Table,
    deleted: pa.Array[Any],
    action: int,
    destination: tuple[Any, Any],
    base_rows: pa.Array[Any] | None,
) -> pa.Table:
    actions = pa.repeat(pa.scalar(action, pa.int32()), rows.num_rows)
    at = pa.nulls(rows.num_rows, pa.int64()) if base_rows is None else base_rows
    for field, column in zip(ASSIGNED, (actions, *destination, at, deleted), strict=True):
        rows = rows.append_column(field, column)
    return rows


_SEPARATOR = "\n"


def _name(context: RemoteContext, group: FileGroup) -> str:
    return _SEPARATOR.join(context.index.location_of(group.slice))


def _names(rows: pa.Table) -> Any:
    return pc.binary_join_element_wise(rows.column(DESTINATION), rows.column(GROUP), _SEPARATOR)
