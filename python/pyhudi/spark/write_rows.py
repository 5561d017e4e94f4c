"""The rows of a write as a DataFrame; `write/row_protocols.py` documents the methods.

Nothing runs until a job needs the rows; what several jobs need is cached on the executors.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from pyhudi.clock import SystemClock
from pyhudi.config.index_options import INDEX_TYPE
from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.config.write_options import INSERT_DUPLICATES
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.index import tagging
from pyhudi.index.protocol import TagResult
from pyhudi.spark.assigned_frame import AssignedFrame
from pyhudi.spark.column_compatibility import check_zones, rename_columns
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.executor_steps import (
    CachedFrames,
    ChainedSteps,
    RemoteContext,
    Step,
    arrow_schema,
    collect,
    job_group,
    map_batches,
)
from pyhudi.spark.internal_columns import (
    ASSIGNED,
    COMBINED,
    CROSSED,
    EXISTING,
    NUMBERED,
    SEQ,
    with_fields,
)
from pyhudi.spark.key_steps import Combine, DeleteKeys, DropExistingKeys, KeyRows
from pyhudi.spark.shuffle_free_write import UnshuffledRows, WriteWithoutShuffle
from pyhudi.spark.small_frames import fetch_if_small
from pyhudi.spark.stored_keys import join_stored_keys
from pyhudi.spark.tagging import AssignJoined, Find, LookUp, LookUpDeletes, ResolveMoves
from pyhudi.write import memory_rows
from pyhudi.write.memory_rows import MemoryRows
from pyhudi.write.non_blocking import check_appends
from pyhudi.write.row_counters import RowCounters
from pyhudi.write.row_protocols import AssignedRows, UnassignedRows
from pyhudi.write.table_opening import Handle, WritableTable
from pyhudi.write.write_context import WriteContext


@dataclass(frozen=True)
class FrameRows:
    """The rows of a write at one step before they are in files."""

    context: WriteContext
    keep: CachedFrames
    frame: DataFrame
    schema: pa.Schema
    """Schema with record key and partition path in front, as in the table."""
    unshuffled: UnshuffledRows | None = None
    """The rows for a write without a shuffle, if no rows must be combined."""
    last_step: tuple[DataFrame, Step] | None = None
    """The source and the step that build the frame, if it is not cached."""
    counters: None = None
    """See `UnassignedRows`: counting rows would be a job of its own."""
    crossed: bool = False
    """Whether the rows have `CROSSED`."""
    counts_existing: bool = False
    """Whether inserted rows get `EXISTING`."""

    def combine(self) -> UnassignedRows:
        """Combine rows of one key; see `UnassignedRows`."""
        index = self.context.index
        # Other indexes join rows with their keys, which drops the column.
        crossed = index.is_global and index.finds_by_key(any_partition=True)
        step = Combine(RemoteContext.of(self.context), self.schema, crossed)
        sorted_rows = self.frame.repartition(RECORD_KEY).sortWithinPartitions(RECORD_KEY, SEQ)
        schema = with_fields(self.schema, COMBINED if crossed else NUMBERED)
        frame = map_batches(sorted_rows, step, schema)
        return replace(
            self, frame=frame, last_step=(sorted_rows, step), unshuffled=None, crossed=crossed
        )

    def without_existing_keys(self, *, fail: bool) -> UnassignedRows:
        """Drop rows with existing keys, found in the record index; see `UnassignedRows`."""
        if not self.context.index.is_record_index:
            policy = "fail" if fail else "drop"
            msg = (
                f"{INSERT_DUPLICATES} is {policy}: an insert of a DataFrame cannot look up "
                f"existing keys in the index {self.context.index.index_type}"
            )
            raise UnsupportedTableFeature(msg, hint="Upsert the rows, or pass Arrow data.")
        step = DropExistingKeys(RemoteContext.of(self.context, None), self.schema, fail)
        frame = map_batches(self.frame, step, self._numbered)
        return replace(self, frame=frame, last_step=None, unshuffled=None)

    def count_existing_keys(self) -> UnassignedRows:
        """Count rows with existing keys when rows are assigned; see `UnassignedRows`."""
        unshuffled = None if self.unshuffled is None else self.unshuffled.count_existing_keys()
        return replace(self, counts_existing=True, unshuffled=unshuffled)

    def fill_missing_columns(self) -> UnassignedRows:
        """Raise `UnsupportedTableFeature`: partial updates are not supported."""
        index_type = self.context.index.index_type
        msg = f"{INDEX_TYPE} is {index_type}: a DataFrame cannot update parts of rows"
        raise UnsupportedTableFeature(msg, hint="Pass whole rows, or Arrow data.")

    def for_upsert(self) -> AssignedRows:
        """Assign rows to file groups for an upsert; see `UnassignedRows`."""
        index = self.context.index
        # If all partitions are searched by key, adding keys and the lookup are one step.
        in_one_step = index.is_global and index.finds_by_key(any_partition=True)
        rows, paths = (self.after_recovery(), []) if in_one_step else self.read()
        return rows.tag(paths).count_by_file()

    def for_insert(
        self,
        order: tuple[str, ...] = (),
        *,
        is_global: bool = False,  # noqa: ARG002 - the rows of one file are sorted completely
    ) -> AssignedRows:
        """Assign rows to file groups for an insert; see `UnassignedRows`."""
        rows, paths = self.read() if self.context.index.has_buckets else (self.after_recovery(), [])
        remote = RemoteContext.of(rows.context, None if self.counts_existing else paths)
        return rows.tag_by_key(remote, tagging.tag_insert).count_by_file(order)

    def for_new_buckets(self) -> AssignedRows:
        """Assign rows to new buckets; see `UnassignedRows`."""
        rows, paths = self.read()
        remote = RemoteContext.of(rows.context, paths)
        return (
            rows.tag_by_key(remote, tagging.tag_new_buckets)
            .count_by_file(rewrite=True)
            .with_partitions(paths)
        )

    def for_new_files(
        self, order: tuple[str, ...] = (), *, is_global: bool = False, counted: bool = True
    ) -> AssignedRows:
        """Assign rows to new files; see `UnassignedRows`."""
        if self.unshuffled is not None and not counted:
            return self.unshuffled.after_recovery()
        rows = self.frame.drop(CROSSED)
        if is_global:
            columns = [sf.col(f"`{name}`").asc_nulls_last() for name in (PARTITION_PATH, *order)]
            rows = rows.orderBy(*columns)
        return AssignedFrame.of_new(
            self.context, self.keep, rows, self.schema, order, counts_existing=self.counts_existing
        )

    def read(self) -> tuple[FrameRows, list[str]]:
        """Return the computed rows in the recovered table, and the paths of their partitions."""
        rows = self.cache()
        paths = rows.paths()
        return rows.after_recovery(), paths

    def paths(self) -> list[str]:
        """Return the partition paths of the rows; computes all rows, and raises for bad ones."""
        distinct_paths = self.frame.select(PARTITION_PATH).distinct()
        return sorted(row[0] for row in collect(distinct_paths, "make keys", self.context.engine))

    def after_recovery(self) -> FrameRows:
        """Return the rows after the recovery that precedes a write."""
        return replace(self, context=self.context.recover())

    def cache(self) -> FrameRows:
        """Cache the rows, which several jobs read."""
        return replace(self, frame=self.keep.keep(self.frame), last_step=None)

    # --- tagging ----------------------------------------------------------------------------------

    def tag(self, paths: list[str]) -> FrameRows:
        """Tag the rows with the locations of their keys."""
        index = self.context.index
        remote = RemoteContext.of(self.context, None if index.is_global else paths)
        if index.finds_by_key(any_partition=index.is_global):
            return self.tag_by_key(remote, tagging.tag_upsert)
        rows = self._join_keys(remote, any_partition=index.is_global)
        if not index.is_global and not any(slice_.logs for slice_ in remote.groups(None)[1]):
            return rows.assign(
                AssignJoined(RemoteContext.of(self.context), tuple(self.schema.names))
            )
        by_key = rows.frame.repartition(RECORD_KEY).sortWithinPartitions(RECORD_KEY, SEQ)
        return replace(rows, frame=by_key).assign(ResolveMoves(remote, self.schema))

    def tag_source(self, paths: list[str], *, deletes: bool) -> FrameRows:
        """Tag the rows of a merge's source with the locations of their keys, or new destinations.

        deletes: the merge may delete rows.
        """
        index = self.context.index
        remote = RemoteContext.of(self.context, None if index.is_global else paths)
        in_files = deletes and tagging.may_miss_duplicates(self.context)
        if index.finds_by_key(any_partition=index.is_global) and not in_files:
            return self.tag_by_key(remote, partial(_for_merge, deletes=deletes))
        rows = self._join_keys(remote, any_partition=index.is_global)
        return rows.assign(AssignJoined(RemoteContext.of(self.context), tuple(self.schema.names)))

    def tag_by_key(self, remote: RemoteContext, find: Find) -> FrameRows:
        """Tag rows with an index that is searched by key."""
        return self.assign(LookUp(remote, self.schema, find, self.counts_existing))

    def for_deletes(self) -> tuple[FrameRows, list[str]]:
        """Return the keys to delete in the recovered table, and the paths of their partitions.

        If all partitions are searched by key, the lookup needs neither computed rows nor paths.
        """
        index = self.context.index
        by_key = index.is_global and index.finds_by_key(any_partition=True)
        if not by_key or tagging.may_miss_duplicates(self.context):
            return self.read()
        rows = self.after_recovery()
        return (rows.cache() if tagging.may_miss_duplicates(rows.context) else rows), []

    def tag_deletes(self, paths: list[str] | None) -> FrameRows:
        """Tag keys to be deleted with their locations. paths: None to search all partitions."""
        index = self.context.index
        remote = RemoteContext.of(self.context, None if index.is_global else paths)
        by_key = index.finds_by_key(any_partition=paths is None)
        if by_key and not tagging.may_miss_duplicates(self.context):
            return self.assign(LookUpDeletes(remote, paths is not None))
        rows = self._join_keys(remote, any_partition=paths is None)
        step = AssignJoined(RemoteContext.of(self.context), tuple(self.schema.names), deletes=True)
        return rows.assign(step)

    def _join_keys(self, remote: RemoteContext, *, any_partition: bool) -> FrameRows:
        frame = join_stored_keys(
            self.context.engine,
            self.frame,
            self.context.key_source,
            remote.groups(None)[1],
            index=self.context.index,
            any_partition=any_partition,
            filters=self.context.index.filters(self.context),
        )
        return replace(self, frame=frame)

    def assign(self, step: Any) -> FrameRows:
        """Return the rows of a step, with the columns of their destinations."""
        source_frame = self.frame
        if self.last_step is not None:
            source_frame, first = self.last_step
            step = ChainedSteps(first, step, self._numbered)
        existing_field = pa.schema([(EXISTING, pa.bool_())] if self.counts_existing else [])
        schema = with_fields(with_fields(self._numbered, existing_field), ASSIGNED)
        frame = map_batches(source_frame, step, schema)
        return replace(self, frame=frame).cache()

    def count_by_file(self, order: tuple[str, ...] = (), *, rewrite: bool = False) -> AssignedFrame:
        """Return rows with their destinations, counted; see `AssignedFrame.of_tagged`."""
        return AssignedFrame.of_tagged(
            self.context, self.frame, self.schema, order=order, rewrite=rewrite
        )

    @property
    def _numbered(self) -> pa.Schema:
        return with_fields(self.schema, COMBINED if self.crossed else NUMBERED)


def _for_merge(
    context: RemoteContext, rows: pa.Table, _: pa.Array[Any], *, deletes: bool
) -> TagResult:
    return tagging.tag_merge(context, rows.select([RECORD_KEY, PARTITION_PATH]), deletes=deletes)


@contextmanager
def read_keyed_rows(
    context: WriteContext,
    data: DataFrame,
    limit: int,
    schema_mode: str,
    *,
    generate: bool,
    partial: bool,
) -> Iterator[UnassignedRows]:
    """Yield the data as rows of the table, not computed yet; see `write.input_rows`.

    limit: bytes that a task may use.
    """
    data = rename_columns(data, context.schema.arrow.names)
    check_zones(data, context.schema.arrow)
    empty = arrow_schema(data).empty_table()
    context, _ = context.evolve(empty, schema_mode)
    mode = "partial" if partial else schema_mode
    step, schema = KeyRows.of(context, empty, mode, generate=generate)
    small = fetch_if_small(context.engine, data)
    if small is not None:
        yield MemoryRows(context, step.add_keys(small, (0, 0)), RowCounters(small.num_rows))
        return
    unshuffled = UnshuffledRows(
        context, data, WriteWithoutShuffle(step.context, step, schema, limit)
    )
    with CachedFrames() as keep:
        frame = map_batches(data, step, with_fields(schema, NUMBERED))
        yield FrameRows(context, keep, frame, schema, unshuffled, (data, step))


@contextmanager
def assign_deletes(
    context: WriteContext, keys: DataFrame, *, fetched: pa.Table | None = None
) -> Iterator[AssignedRows]:
    """Yield the rows of a delete by key, assigned; see `read_delete_keys`.

    fetched: the keys, if they are few and were fetched already.
    """
    keys = rename_columns(keys, context.schema.arrow.names)
    check_zones(keys, context.schema.arrow)
    empty, in_partitions = context.delete_keys(arrow_schema(keys).empty_table())
    check_appends(context, "delete_keys without partition columns", appends=in_partitions)
    small = fetch_if_small(context.engine, keys) if fetched is None else fetched
    if small is not None:
        keyed, _ = context.delete_keys(small.rename_columns(keys.columns))
        yield memory_rows.assign_deletes(context.recover(), keyed, in_partitions=in_partitions)
        return
    with CachedFrames() as keep:
        step = DeleteKeys(RemoteContext.of(context))
        frame = map_batches(keys, step, with_fields(empty.schema, NUMBERED))
        if context.options.combine_deletes:
            frame = frame.dropDuplicates([RECORD_KEY, PARTITION_PATH])
        rows, paths = FrameRows(context, keep, frame, empty.schema).for_deletes()
        yield rows.tag_deletes(paths if in_partitions else None).count_by_file()


@contextmanager
def on_session(table: WritableTable, data: DataFrame, operation: str) -> Iterator[WritableTable]:
    """Yield the table for one write of a DataFrame.

    A table without a Spark engine gets one of the DataFrame's session for this write.
    """
    if isinstance(table.engine, LocalEngine):
        handle = Handle.of(table, SystemClock())
        table = replace(handle, engine=SparkEngine(data.sparkSession))
    with job_group(data.sparkSession, f"pyhudi {operation}: {table.storage.uri}"):
        yield table
