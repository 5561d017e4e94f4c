"""Merge steps on executors: match source rows with the table's rows, and run the clauses.

The result is assigned rows of the table's columns, as in `tagging.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.engine import route_groups
from pyhudi.engine.protocol import Attempt
from pyhudi.slices.read_tasks import ReadTask
from pyhudi.slices.tagged_rows import row_numbers
from pyhudi.spark.executor_context import RemoteContext
from pyhudi.spark.executor_steps import pieces, runs, with_types
from pyhudi.spark.internal_columns import (
    ACTION,
    DESTINATION,
    GROUP,
    NEW,
    PLACED,
    REMOVE,
    SEQ,
    UPDATE,
)
from pyhudi.spark.key_steps import Batches, add_sequence, task_number
from pyhudi.write.merge_clauses import Clause
from pyhudi.write.merge_match import Matched, MatchTask, match_rows
from pyhudi.write.merge_planning import add_source_keys, build_inserts

PLACE = "_pyhudi_place"
"""`DESTINATION` and `GROUP` together."""
BETWEEN = "\n"

_LIVE = 3
"""The table has a row of the source row's key."""
_MAY_HIT = 4
"""A new row if the table has none of its key; it goes to the file group that had the key before."""
_MAY_BE_NEW = 5
"""A new row if the table has none of its key."""

_KEYS = (RECORD_KEY, PARTITION_PATH)


@dataclass(frozen=True)
class Source:
    """What the steps need of the source and of the table."""

    context: RemoteContext
    given: pa.Schema
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
        own = typed.drop_columns(list(_KEYS)).rename_columns(self.given.names)
        return typed.select(list(_KEYS)), own


@dataclass(frozen=True)
class SourceKeys:
    """Adds record key, partition path and number to the source's rows."""

    source: Source

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Yield the rows, with renamed columns."""
        task, first = task_number(), 0
        for given in pieces(batches):
            keys = add_source_keys(self.source.context, given)
            columns = [*keys.columns, *given.columns]
            rows = pa.table(columns, names=self.source.renamed.names)
            yield add_sequence(rows, task, first)
            first += rows.num_rows


@dataclass(frozen=True)
class Match:
    """Runs the clauses for source rows whose keys are in file groups."""

    source: Source
    reads: Mapping[str, ReadTask]
    """Tasks by `PLACE`; buckets that are not created yet have none."""

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Yield changed rows, keys to delete, and what `Resolve` needs of the others."""
        task = task_number()
        for place, given in route_groups.cut(batches, PLACE):
            read = self.reads.get(place)
            if read is None:
                yield from _absent(self.source, given)
                continue
            keys, own = self.source.split_columns(given)
            record_keys = keys.column(RECORD_KEY).combine_chunks()
            context = self.source.context
            work = MatchTask(
                read,
                record_keys,
                own,
                self.source.on_match,
                context.options.null_elements,
                context.ignored_values,
            )
            matches = match_rows(work, Attempt(task, 0, 0))
            yield from self._apply_changes(given, matches)
            every = row_numbers(given.num_rows)
            unmatched = every.filter(pc.invert(pc.is_in(every, value_set=matches.matched)))
            yield from _absent(self.source, given.take(unmatched))

    def _apply_changes(self, given: pa.Table, matches: Matched) -> Iterator[pa.Table]:
        destination, group = given.column(DESTINATION)[0], given.column(GROUP)[0]
        deletes = self.source.context.find_delete_markers(matches.updated)
        updated = with_types(matches.updated, self.source.rows)
        for rows, action, marked in (
            (updated, UPDATE, deletes),
            (self._bare(matches.deleted), REMOVE, None),
        ):
            numbers = rows.append_column(SEQ, row_numbers(rows.num_rows))
            yield _with_place(numbers, action, destination, group, marked)
        live = given.take(matches.matched)
        bare = self._bare(live.select(list(_KEYS))).append_column(SEQ, live.column(SEQ))
        yield _with_place(bare, _LIVE, destination, group, None)

    def _bare(self, keys: pa.Table) -> pa.Table:
        """Return keys as rows of the table, with nulls in all other columns."""
        return _nullable(keys, self.source.rows)


@dataclass(frozen=True)
class Absent:
    """Runs the clauses for source rows whose keys are in no file group."""

    source: Source

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Yield new rows."""
        for given in pieces(batches):
            yield from _absent(self.source, given)


@dataclass(frozen=True)
class Resolve:
    """Passes one new row of each key, and none if the table has the key.

    The rows are sorted by key.
    """

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Yield assigned rows."""
        for given in runs(batches, RECORD_KEY):
            action = given.column(ACTION)
            sure = given.filter(pc.is_in(action, value_set=pa.array([UPDATE, REMOVE], pa.int32())))
            live = given.filter(pc.equal(action, _LIVE)).column(SEQ).combine_chunks()
            may = given.filter(pc.greater(action, _LIVE))
            may = may.filter(pc.invert(pc.is_in(may.column(SEQ), value_set=live)))
            order = [(name, "ascending") for name in (SEQ, ACTION, GROUP)]
            may = may.take(pc.sort_indices(may, sort_keys=order))
            number = may.append_column("row", row_numbers(may.num_rows))
            firsts = number.group_by(SEQ, use_threads=False).aggregate([("row", "min")])
            once = may.take(firsts.column("row_min"))
            hit = pc.equal(once.column(ACTION), _MAY_HIT)
            final_action = pc.if_else(
                hit, pa.scalar(UPDATE, pa.int32()), pa.scalar(NEW, pa.int32())
            )
            at = once.schema.get_field_index(ACTION)
            yield pa.concat_tables([sure, once.set_column(at, ACTION, final_action)])


def _absent(source: Source, given: pa.Table) -> Iterator[pa.Table]:
    """Yield the rows that the clauses for absent rows make of source rows."""
    keys, own = source.split_columns(given)
    every = row_numbers(given.num_rows)
    inserts = build_inserts(source.context, own, keys, every, source.on_absence)
    rows = with_types(inserts.rows, source.rows)
    at = given.take(inserts.numbers)
    marked = source.context.find_delete_markers(rows)
    paths = rows.column(PARTITION_PATH)
    back = pc.fill_null(pc.equal(at.column(DESTINATION), paths), fill_value=False)
    # A record index does not have deleted keys, and gets new ones only.
    goes_back = pa.scalar(not source.context.index.is_record_index)
    back = pc.and_(pc.and_(back, pc.is_valid(at.column(GROUP))), goes_back)
    action = pc.if_else(back, pa.scalar(_MAY_HIT, pa.int32()), pa.scalar(_MAY_BE_NEW, pa.int32()))
    group = pc.if_else(back, at.column(GROUP), pa.scalar(None, pa.string()))
    no_base_rows = pa.nulls(rows.num_rows, pa.int64())
    rows = rows.append_column(SEQ, at.column(SEQ))
    for field, column in zip(PLACED, (action, paths, group, no_base_rows, marked), strict=True):
        rows = rows.append_column(field, column)
    # As in an upsert, a row that deletes a missing key is dropped.
    yield rows.filter(pc.or_(back, pc.invert(marked)))


def _with_place(
    rows: pa.Table, action: int, destination: Any, group: Any, marked: pa.Array[Any] | None
) -> pa.Table:
    count = rows.num_rows
    deletes = pa.repeat(pa.scalar(value=False), count) if marked is None else marked
    values = (pa.scalar(action, pa.int32()), destination, group)
    columns = [*(pa.repeat(value, count) for value in values), pa.nulls(count, pa.int64()), deletes]
    for field, column in zip(PLACED, columns, strict=True):
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
