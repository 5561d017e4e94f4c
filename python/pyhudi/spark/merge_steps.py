"""Merges a DataFrame by record key: the clauses run where the files are read.

Steps on executors tag the source's rows and match them with the rows of their file groups. The
result is assigned rows of the table's columns, as in `tagging.py`, and is written like the rows of
an upsert. The rules are those of `write/merge.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.engine import route_groups
from pyhudi.engine.protocol import Attempt
from pyhudi.errors import SchemaMismatch
from pyhudi.input.conform import data_schema
from pyhudi.input.decode_encodings import check_names
from pyhudi.slices.read_tasks import ReadTask
from pyhudi.slices.tagged_rows import row_numbers
from pyhudi.spark.column_compatibility import (
    check_set_zones,
    check_zones,
    rename_columns,
)
from pyhudi.spark.executor_steps import (
    CachedFrames,
    RemoteContext,
    arrow_schema,
    chunks,
    collect,
    key_chunks,
    map_batches,
    with_types,
)
from pyhudi.spark.internal_columns import (
    ACTION,
    ASSIGNED,
    DESTINATION,
    GROUP,
    NEW,
    NUMBERED,
    REMOVE,
    SEQ,
    UPDATE,
    with_fields,
)
from pyhudi.spark.key_steps import Batches, add_sequence, task_number
from pyhudi.spark.small_frames import fetch_if_small
from pyhudi.spark.write_rows import FrameRows
from pyhudi.write.merge import merge_in_memory
from pyhudi.write.merge_clauses import Clause
from pyhudi.write.merge_match import Matched, match_rows
from pyhudi.write.merge_planning import (
    MergeClause,
    add_source_keys,
    build_inserts,
    check_clauses,
    match_task,
    tasks_for_groups,
)
from pyhudi.write.row_protocols import AssignedRows
from pyhudi.write.write_context import WriteContext

LOCATION = "_pyhudi_location"
"""`DESTINATION` and `GROUP` together."""
SEPARATOR = "\n"

_LIVE = 3
"""The table has a row of the source row's key."""
_MAY_HIT = 4
"""A new row if the table has none of its key: it goes to the file group that had the key before."""
_MAY_BE_NEW = 5
"""A new row if the table has none of its key."""

_KEYS = (RECORD_KEY, PARTITION_PATH)


@dataclass(frozen=True)
class Source:
    """Properties of the source and the table that the steps need."""

    context: RemoteContext
    source_schema: pa.Schema
    """Schema of the source."""
    renamed: pa.Schema
    """Record key, partition path, then the source's columns under names that no table has."""
    rows: pa.Schema
    """Schema of the table's rows, with record key and partition path in front."""
    on_match: tuple[Clause, ...] = ()
    on_absence: tuple[Clause, ...] = ()

    def split_columns(self, rows: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Return the keys, and the source's own columns."""
        typed = with_types(rows, self.renamed)
        own = typed.drop_columns(list(_KEYS)).rename_columns(self.source_schema.names)
        return typed.select(list(_KEYS)), own


@dataclass(frozen=True)
class SourceKeys:
    """Adds record key, partition path and number to the source's rows."""

    source: Source

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Yield the rows, with renamed columns."""
        task, first = task_number(), 0
        for chunk in chunks(batches):
            keys = add_source_keys(self.source.context, chunk)
            columns = [*keys.columns, *chunk.columns]
            rows = pa.table(columns, names=self.source.renamed.names)
            yield add_sequence(rows, task, first)
            first += rows.num_rows


@dataclass(frozen=True)
class Match:
    """Runs the clauses for source rows whose keys are in file groups."""

    source: Source
    reads: Mapping[str, ReadTask]
    """Tasks by `LOCATION`; buckets that are not created yet have none."""

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Yield changed rows, keys to delete, and what `Resolve` needs to know about the others."""
        task = task_number()
        for location, source_rows in route_groups.cut(batches, LOCATION):
            read = self.reads.get(location)
            if read is None:
                yield from _absent(self.source, source_rows)
                continue
            keys, own = self.source.split_columns(source_rows)
            record_keys = keys.column(RECORD_KEY).combine_chunks()
            context = self.source.context
            work = match_task(context, read, record_keys, own, self.source.on_match)
            matches = match_rows(work, Attempt(task, 0, 0))
            yield from self._apply_changes(source_rows, matches)
            every = row_numbers(source_rows.num_rows)
            unmatched = every.filter(pc.invert(pc.is_in(every, value_set=matches.matched)))
            yield from _absent(self.source, source_rows.take(unmatched))

    def _apply_changes(self, source_rows: pa.Table, matches: Matched) -> Iterator[pa.Table]:
        destination, group = source_rows.column(DESTINATION)[0], source_rows.column(GROUP)[0]
        deletes = self.source.context.find_delete_markers(matches.updated)
        updated = with_types(matches.updated, self.source.rows)
        for rows, action, marked in (
            (updated, UPDATE, deletes),
            (self._keys_only(matches.deleted), REMOVE, None),
        ):
            numbers = rows.append_column(SEQ, row_numbers(rows.num_rows))
            yield _with_destination(numbers, action, destination, group, marked)
        live = source_rows.take(matches.matched)
        bare = self._keys_only(live.select(list(_KEYS))).append_column(SEQ, live.column(SEQ))
        yield _with_destination(bare, _LIVE, destination, group, None)

    def _keys_only(self, keys: pa.Table) -> pa.Table:
        """Return keys as rows of the table, with nulls in all other columns."""
        return _nullable(keys, self.source.rows)


@dataclass(frozen=True)
class Absent:
    """Runs the clauses for source rows whose keys are in no file group."""

    source: Source

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Yield new rows."""
        for chunk in chunks(batches):
            yield from _absent(self.source, chunk)


@dataclass(frozen=True)
class Resolve:
    """Passes one new row of each key, and none if the table has the key.

    The rows come sorted by key.
    """

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Yield assigned rows."""
        for chunk in key_chunks(batches, RECORD_KEY):
            action = chunk.column(ACTION)
            definite = chunk.filter(
                pc.is_in(action, value_set=pa.array([UPDATE, REMOVE], pa.int32()))
            )
            live = chunk.filter(pc.equal(action, _LIVE)).column(SEQ).combine_chunks()
            candidates = chunk.filter(pc.greater(action, _LIVE))
            candidates = candidates.filter(
                pc.invert(pc.is_in(candidates.column(SEQ), value_set=live))
            )
            order = [(name, "ascending") for name in (SEQ, ACTION, GROUP)]
            candidates = candidates.take(pc.sort_indices(candidates, sort_keys=order))
            number = candidates.select([SEQ]).append_column("row", row_numbers(candidates.num_rows))
            firsts = number.group_by(SEQ, use_threads=False).aggregate([("row", "min")])
            first_rows = candidates.take(firsts.column("row_min"))
            hit = pc.equal(first_rows.column(ACTION), _MAY_HIT)
            final_action = pc.if_else(
                hit, pa.scalar(UPDATE, pa.int32()), pa.scalar(NEW, pa.int32())
            )
            at = first_rows.schema.get_field_index(ACTION)
            yield pa.concat_tables([definite, first_rows.set_column(at, ACTION, final_action)])


def _absent(source: Source, source_rows: pa.Table) -> Iterator[pa.Table]:
    """Yield what the clauses for absent rows build from source rows."""
    keys, own = source.split_columns(source_rows)
    every = row_numbers(source_rows.num_rows)
    inserts = build_inserts(source.context, own, keys, every, source.on_absence)
    rows = with_types(inserts.rows, source.rows)
    sources = source_rows.take(inserts.numbers)
    marked = source.context.find_delete_markers(rows)
    paths = rows.column(PARTITION_PATH)
    returns = pc.fill_null(pc.equal(sources.column(DESTINATION), paths), fill_value=False)
    # A record index has no deleted keys, and accepts new keys only.
    may_return = pa.scalar(not source.context.index.is_record_index)
    returns = pc.and_(pc.and_(returns, pc.is_valid(sources.column(GROUP))), may_return)
    action = pc.if_else(
        returns, pa.scalar(_MAY_HIT, pa.int32()), pa.scalar(_MAY_BE_NEW, pa.int32())
    )
    group = pc.if_else(returns, sources.column(GROUP), pa.scalar(None, pa.string()))
    no_base_rows = pa.nulls(rows.num_rows, pa.int64())
    rows = rows.append_column(SEQ, sources.column(SEQ))
    for field, column in zip(ASSIGNED, (action, paths, group, no_base_rows, marked), strict=True):
        rows = rows.append_column(field, column)
    # As in an upsert, a row that deletes a missing key is dropped.
    yield rows.filter(pc.or_(returns, pc.invert(marked)))


def _with_destination(
    rows: pa.Table, action: int, destination: Any, group: Any, marked: pa.Array[Any] | None
) -> pa.Table:
    count = rows.num_rows
    deletes = pa.repeat(pa.scalar(value=False), count) if marked is None else marked
    values = (pa.scalar(action, pa.int32()), destination, group)
    columns = [*(pa.repeat(value, count) for value in values), pa.nulls(count, pa.int64()), deletes]
    for field, column in zip(ASSIGNED, columns, strict=True):
        rows = rows.append_column(field, column)
    return rows


def _nullable(keys: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        keys.column(field.name)
        if field.name in keys.column_names
        else pa.nulls(keys.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, names=schema.names)


_KEY_FIELDS = [(RECORD_KEY, pa.string()), (PARTITION_PATH, pa.string())]


@contextmanager
def merge_by_key(
    context: WriteContext,
    frame: DataFrame,
    clauses: Sequence[MergeClause],
    *,
    fetched: pa.Table | None = None,
) -> Iterator[AssignedRows]:
    """Yield the rows that the clauses produce; raises as `write.merge.merge` does.

    fetched: the frame's rows, if they are small and were fetched already.
    """
    columns = data_schema(context.schema.arrow)
    config = context.config
    keys = {name.split(".")[0] for name in (*config.record_key_fields, *config.partition_fields)}
    # Expressions of clauses name the other columns as the source does.
    sets_all = any(clause.action != "delete" and clause.values is None for clause in clauses)
    frame = rename_columns(frame, columns.names if sets_all else keys)
    source_schema = arrow_schema(frame)
    check_names(source_schema)
    empty = source_schema.empty_table()
    add_source_keys(context, empty)
    check_zones(frame, (field for field in columns if field.name in keys))
    renamed = [field.with_name(f"_pyhudi_source_{at}") for at, field in enumerate(source_schema)]
    source = Source(
        context=RemoteContext.of(context),
        source_schema=source_schema,
        renamed=pa.schema([*_KEY_FIELDS, *renamed]),
        rows=pa.schema([*_KEY_FIELDS, *columns]),
        on_match=check_clauses(context, empty, clauses, matched=True),
        on_absence=check_clauses(context, empty, clauses, matched=False),
    )
    all_clauses = (*source.on_match, *source.on_absence)
    check_set_zones(frame.sparkSession, source_schema, columns, all_clauses)
    small = fetch_if_small(context.engine, frame) if fetched is None else fetched
    if small is not None:
        small = with_types(small.rename_columns(source_schema.names), source_schema)
        with merge_in_memory(context, small, clauses) as merged:
            yield merged
        return
    with CachedFrames() as keep:
        keyed = map_batches(frame, SourceKeys(source), with_fields(source.renamed, NUMBERED))
        rows = FrameRows(context, keep, keyed, source.renamed).cache()
        paths = rows.paths()
        _check_unique_keys(rows)
        deletes = any(clause.values is None for clause in source.on_match)
        tagged = rows.after_recovery().tag_source(paths, deletes=deletes)
        reads = _reads(tagged)
        groups_read = frozenset(
            (read.slice.partition, read.slice.file_id) for read in reads.values()
        )
        yield replace(_merge_rows(tagged, source, reads).count_by_file(), groups_read=groups_read)


def _check_unique_keys(rows: FrameRows) -> None:
    is_global = rows.context.index.is_global
    key_columns = [RECORD_KEY] if is_global else [RECORD_KEY, PARTITION_PATH]
    duplicates = rows.frame.groupBy(*key_columns).count().where(sf.col("count") > 1).limit(1)
    if collect(duplicates, "look for duplicate keys", rows.context.engine):
        raise SchemaMismatch(
            "the source has several rows of one key",
            hint="Keep one row per key in the source.",
        )


def _merge_rows(tagged: FrameRows, source: Source, reads: dict[str, ReadTask]) -> FrameRows:
    """Return the rows of the table that the clauses produce, with their destinations."""
    source = replace(source, context=RemoteContext.of(tagged.context))
    schema = with_fields(with_fields(source.rows, NUMBERED), ASSIGNED)
    location = sf.concat_ws(SEPARATOR, sf.col(DESTINATION), sf.col(GROUP))
    hit = tagged.frame.where(sf.col(GROUP).isNotNull()).withColumn(LOCATION, location)
    routed = hit.repartition(LOCATION).sortWithinPartitions(LOCATION)
    matched = map_batches(routed, Match(source, reads), schema)
    new = map_batches(tagged.frame.where(sf.col(GROUP).isNull()), Absent(source), schema)
    both = matched.union(new).repartition(RECORD_KEY).sortWithinPartitions(RECORD_KEY, SEQ)
    return replace(tagged, frame=map_batches(both, Resolve(), schema), schema=source.rows).cache()


def _reads(tagged: FrameRows) -> dict[str, ReadTask]:
    """Return how to read the file groups with keys of the source, by `LOCATION`."""
    context = tagged.context
    locations = tagged.frame.where(sf.col(GROUP).isNotNull()).select(DESTINATION, GROUP).distinct()
    names = {(row[0], row[1]) for row in collect(locations, "find where rows are", context.engine)}
    groups, _ = context.groups(sorted({destination for destination, _ in names}))
    groups_by_name = {context.index.location_of(group.slice): group for group in groups}
    hit = {name: group for name, group in groups_by_name.items() if name in names}
    reads = tasks_for_groups(context, list(hit.values()))
    return {SEPARATOR.join(name): read for name, read in zip(hit, reads, strict=True)}
