"""Merging a source into the table by record key, clause by clause, in one commit.

The source is in memory, and so are the rows that change because of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.clock import Clock
from pyhudi.engine.plugins import is_spark_frame, spark
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.index import locate
from pyhudi.index.located import Located
from pyhudi.query.select import plan_slices
from pyhudi.schema.assignments import parse_expression, set_value
from pyhudi.schema.casts import cast_exactly
from pyhudi.schema.computed import Names, project
from pyhudi.schema.conform import conform, data_schema, to_table
from pyhudi.schema.record_keys import PARTITION_PATH, RECORD_KEY, add_keys
from pyhudi.slices.read_tasks import ReadTask
from pyhudi.slices.tagged import Tagged, row_numbers
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.txn.result import WriteResult
from pyhudi.write import checks, incoming, merge_clauses
from pyhudi.write.clustered import check_free
from pyhudi.write.execute import TAG_STAGE, UPSERT, write
from pyhudi.write.match_rows import Matched, MatchTask, match_rows
from pyhudi.write.memory_rows import placed
from pyhudi.write.merge_clauses import Clause, chosen_rows, joined
from pyhudi.write.non_blocking import check_appends
from pyhudi.write.placed_rows import LeavingKeys, PlacedRows
from pyhudi.write.rechecks import absent_keys, unchanged
from pyhudi.write.rows import Placed
from pyhudi.write.tally import Tally, told
from pyhudi.write.update_delete import check_settable
from pyhudi.write.upsert import opened
from pyhudi.write.write_context import WritableTable, WriteContext


@dataclass(frozen=True)
class MergeClause:
    """A clause as the caller gives it."""

    kind: str
    """"update", "delete" or "insert"."""
    where: str | pc.Expression | None = None
    values: Mapping[str, Any] | None = None
    """None of an update or insert: every column that the source has."""


def merge(
    table: WritableTable,
    source: Any,
    clauses: Sequence[MergeClause],
    *,
    clock: Clock | None = None,
) -> WriteResult:
    """Carries out a merge; see `pyhudi.api.merge_builder.Merge` for what it means.

    Raises `SchemaMismatch` for a source without key or partition columns, or with a key twice, and
    for values that do not fit; `ConfigError` for clauses that cannot be carried out; the rest as
    `upsert` does.
    """
    context = opened(table, clock, incoming.memory_limit(None, source))
    check_appends(context, "merge", appends=False)
    if not is_spark_frame(source):
        source = to_table(source)
    tally = Tally(source.num_rows) if isinstance(source, pa.Table) else None
    with _merged(context, source, clauses) as changes:
        went_by = [*absent_keys(changes), unchanged(changes.seen)]
        return told(write(changes, UPSERT, deletes=True, went_by=went_by), tally)


def _merged(
    context: WriteContext, source: Any, clauses: Sequence[MergeClause]
) -> AbstractContextManager[Placed]:
    """What becomes of the rows of a source, where a cleaned-up table has them or they are to go."""
    if is_spark_frame(source):
        merged: AbstractContextManager[Placed] = spark("merging").merged(context, source, clauses)
        return merged
    return _merged_here(context, source, clauses)


@contextmanager
def _merged_here(
    context: WriteContext, given: pa.Table, clauses: Sequence[MergeClause]
) -> Iterator[Placed]:
    keyed = keyed_source(context, given)
    on_match = checked_clauses(context, given, clauses, matched=True)
    on_absence = checked_clauses(context, given, clauses, matched=False)
    context = context.recovered()
    deletes = any(clause.values is None for clause in on_match)
    located = locate.for_merge(context, keyed, deletes=deletes)
    groups = located.groups
    found = {n: rows for n, rows in located.tagged.by_group() if not groups[n].is_new}
    check_free(context, (groups[number] for number in found))
    hits = _match(context, given, keyed, found, groups, on_match)
    live = [rows.take(hits[number].matched) for number, rows in found.items()]
    inserted = inserted_rows(context, given, keyed, _fresh(keyed.num_rows, live), on_absence)
    gone = {n: hit.deleted.column(RECORD_KEY) for n, hit in hits.items() if hit.deleted.num_rows}
    leaving = {number: LeavingKeys(keys.combine_chunks()) for number, keys in gone.items()}
    # A row that the clauses leave alone now may be changed by them once another writer was there.
    seen = frozenset((groups[n].slice.partition, groups[n].slice.file_id) for n in found)
    changes = _placed(context, hits, inserted, located)
    yield replace(changes, leaving=leaving, absent=keyed, seen=seen)


def _match(
    context: WriteContext,
    given: pa.Table,
    keyed: pa.Table,
    found: Mapping[int, pa.Array[Any]],
    groups: Sequence[FileGroup],
    clauses: tuple[Clause, ...],
) -> dict[int, Matched]:
    """What becomes of the source's rows that file groups have the keys of, by number of those."""
    reads = matched_slices(context, [groups[number] for number in found])
    keys = keyed.column(RECORD_KEY)
    tasks = [
        MatchTask(read, keys.take(rows).combine_chunks(), given.take(rows), clauses)
        for read, rows in zip(reads, found.values(), strict=True)
    ]
    results = context.engine.run(match_rows, tasks, stage=TAG_STAGE, label="match rows")
    return dict(zip(found, results, strict=True))


def matched_slices(context: WriteContext, groups: Sequence[FileGroup]) -> list[ReadTask]:
    """How file groups are read that have keys of the source."""
    columns = (RECORD_KEY, PARTITION_PATH, *data_schema(context.schema.arrow).names)
    slices = [group.read or group.slice for group in groups]
    return plan_slices(context.table, slices, columns, context.task_memory, context.made_keys)


# --- the source -----------------------------------------------------------------------------------


def keyed_source(context: WriteContext, given: pa.Table) -> pa.Table:
    """Record key and partition path of the source's rows."""
    spec = context.key_spec()
    columns = {}
    for name in dict.fromkeys((*spec.key_fields, *spec.partition_fields)):
        if name not in given.column_names:
            msg = f"the source lacks the column {name!r} of the key or partition"
            raise SchemaMismatch(msg, hint="Rename the source's column.")
        columns[name] = cast_exactly(given.column(name), context.schema.arrow.field(name))
    keyed = add_keys(pa.table(columns), spec).select([RECORD_KEY, PARTITION_PATH])
    keyed = keyed.combine_chunks()
    known_by = [RECORD_KEY] if context.index.is_global else [RECORD_KEY, PARTITION_PATH]
    if keyed.group_by(known_by).aggregate([]).num_rows < keyed.num_rows:
        msg = "the source has several rows of one key"
        raise SchemaMismatch(msg, hint="Leave one row a key: a merge cannot choose among them.")
    return keyed


def checked_clauses(
    context: WriteContext, given: pa.Table, clauses: Sequence[MergeClause], *, matched: bool
) -> tuple[Clause, ...]:
    """The clauses for matched rows, or for the others, checked against both schemas."""
    schema = data_schema(context.schema.arrow)
    known = merge_clauses.names(given.schema, schema if matched else ())
    both = joined(given.slice(0, 0), schema.empty_table() if matched else None)
    made = [
        _clause(context, given, known, clause)
        for clause in clauses
        if (clause.kind != "insert") is matched
    ]
    chosen_rows(both, made)
    for clause in made:
        project(both, clause.values or {})
    return tuple(made)


def _clause(context: WriteContext, given: pa.Table, known: Names, clause: MergeClause) -> Clause:
    condition = clause.where
    if isinstance(condition, str):
        condition = parse_expression(condition, known, "where")
    elif not isinstance(condition, (pc.Expression, type(None))):
        msg = f"where: {condition!r} is no condition of a merge"
        raise ConfigError(msg, hint="Give a SQL expression as text, or a pyarrow expression.")
    if clause.kind == "delete":
        return Clause(condition, None)
    schema = data_schema(context.schema.arrow)
    values = clause.values
    if values is None:
        fixed = {*context.config.record_key_fields, *context.config.partition_fields}
        skipped = fixed if clause.kind == "update" else set()
        checks.check_known_columns([n for n in given.column_names if n not in schema.names], schema)
        values = {name: f'source."{name}"' for name in given.column_names if name not in skipped}
    elif clause.kind == "update":
        check_settable(context, values)
    checks.check_known_columns(list(values), schema)
    return Clause(
        condition,
        {
            name: set_value(value, schema.field(name).type, known, f"set {name!r}")
            for name, value in values.items()
        },
    )


# --- rows and files -------------------------------------------------------------------------------


def _fresh(count: int, live: list[pa.Array[Any]]) -> pa.Array[Any]:
    """Numbers of the source's rows that no live row of the table has the key of."""
    numbers = row_numbers(count)
    found = pa.concat_arrays([pa.array([], pa.int64()), *live])
    return numbers.filter(pc.invert(pc.is_in(numbers, value_set=found)))


@dataclass(frozen=True)
class _Inserted:
    """New rows, and the numbers of the source's rows that they come from."""

    rows: pa.Table
    numbers: pa.Array[Any]


def inserted_rows(
    context: WriteContext,
    given: pa.Table,
    keyed: pa.Table,
    fresh: pa.Array[Any],
    clauses: tuple[Clause, ...],
) -> _Inserted:
    """The rows that clauses make of some of the source's, which the table has no row for.

    Raises `ConfigError` where they have other keys than the source's.
    """
    schema = data_schema(context.schema.arrow)
    source = joined(given.take(fresh), None)
    parts, numbers = [schema.empty_table()], [pa.array([], pa.int64())]
    for clause, chosen in zip(clauses, chosen_rows(source, clauses), strict=True):
        new = project(source.take(chosen), clause.values or {})
        columns = {
            field.name: new.column(field.name)
            if field.name in new.column_names
            else pa.nulls(len(chosen), field.type)
            for field in schema
        }
        parts.append(conform(pa.table(columns), schema))
        numbers.append(fresh.take(chosen))
    taken = pa.concat_arrays(numbers)
    rows = add_keys(pa.concat_tables(parts).combine_chunks(), context.key_spec())
    if not rows.select([RECORD_KEY, PARTITION_PATH]).equals(keyed.take(taken)):
        msg = "a clause inserts rows with other keys than the source's"
        raise ConfigError(msg, hint="Set key and partition columns to those of the source.")
    return _Inserted(rows, taken)


def _placed(
    context: WriteContext, hits: Mapping[int, Matched], inserted: _Inserted, located: Located
) -> PlacedRows:
    """New and changed rows, where they go."""
    rows = [inserted.rows, *(hit.updated for hit in hits.values())]
    counts = [part.num_rows for part in rows]
    numbers = row_numbers(sum(counts)).slice(counts[0])
    at = [pa.repeat(pa.scalar(n, pa.int64()), hits[n].updated.num_rows) for n in hits]
    everything = pa.concat_tables(rows).combine_chunks()
    back = _back(inserted, located)
    tagged = Tagged(pa.concat_arrays([back.rows, numbers]), pa.concat_arrays([back.groups, *at]))
    marked = context.marked_deleted(everything)
    return placed(context, everything, marked, Located(tagged, located.groups))


def _back(inserted: _Inserted, located: Located) -> Tagged:
    """Where new rows have to go: to their buckets, or where their keys were before.

    A deleted key may still be in log files of several groups; its row goes to one in its partition.
    """
    tagged = located.tagged
    at = pc.index_in(tagged.rows, value_set=inserted.numbers)
    paths = pa.array([group.slice.partition for group in located.groups], pa.string())
    own = inserted.rows.column(PARTITION_PATH).combine_chunks().take(at)
    here = pc.fill_null(pc.equal(own, paths.take(tagged.groups)), fill_value=False)
    pairs = pa.table({"row": at.filter(here).cast(pa.int64()), "group": tagged.groups.filter(here)})
    first = pairs.group_by("row").aggregate([("group", "min")])
    none = pa.array([], pa.int64())
    return Tagged(*(pa.concat_arrays([none, *column.chunks]) for column in first.columns))
