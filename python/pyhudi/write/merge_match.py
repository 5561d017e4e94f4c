"""Matching the source of a merge with one file slice. Runs on an engine's workers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.engine.protocol import Attempt
from pyhudi.index.duplicate_keys import duplicate_keys_error
from pyhudi.input.conform import conform, data_schema
from pyhudi.schema.computed_columns import project
from pyhudi.schema.partial_update_checks import IgnoredUpdateValues
from pyhudi.slices.read import read_task
from pyhudi.slices.read_tasks import ReadTask
from pyhudi.write.merge_clauses import Clause, join_sides, select_rows

_SHARE = 4


@dataclass(frozen=True)
class MatchTask:
    """Match some rows of the source with one slice."""

    read: ReadTask
    """Gives the slice's rows: record key, partition path, then the table's columns."""
    keys: pa.Array[Any]
    """Record keys of the source's rows."""
    source: pa.Table
    """Their own columns."""
    clauses: tuple[Clause, ...]
    null_elements: bool = False
    """Lists that clauses set may have some."""
    kept: IgnoredUpdateValues | None = None
    """What clauses cannot set."""


@dataclass(frozen=True)
class Matched:
    """What became of the source rows of one task."""

    matched: pa.Array[Any]
    """Numbers of the task's source rows that the slice has live rows for."""
    updated: pa.Table
    """New rows, with record key and partition path in front."""
    deleted: pa.Table
    """Record key and partition path of rows to delete."""


def match_rows(task: MatchTask, _attempt: Attempt) -> Matched:
    """Joins by key and carries out the clauses.

    Raises `SchemaMismatch` for values that do not fit, and where clauses change some of the slice's
    several rows of a key, or update them; `UnsupportedTableFeature` for values that would not
    stand.
    """
    parts = [_some(task, rows) for rows in _together(task)]
    schema = pa.schema([task.read.schema.field(name) for name in task.read.output])
    parts.append(_some(task, schema.empty_table()))
    found = Matched(
        pa.concat_arrays([part.matched for part in parts]),
        pa.concat_tables([part.updated for part in parts]),
        pa.concat_tables([part.deleted for part in parts]),
    )
    _check_copies(task.keys, found)
    return found


def _check_copies(keys: pa.Array[Any], found: Matched) -> None:
    counts = pc.value_counts(found.matched)
    copies = counts.filter(pc.greater(counts.field("counts"), 1))
    if not len(copies):
        return
    texts = keys.take(copies.field("values"))
    updated, deleted = (
        rows.column(RECORD_KEY).filter(pc.is_in(rows.column(RECORD_KEY), value_set=texts))
        for rows in (found.updated, found.deleted)
    )
    if len(updated):
        raise duplicate_keys_error(f"the table has duplicates of the key {updated[0].as_py()!r}")
    gone = pc.value_counts(deleted)
    kept = pc.take(copies.field("counts"), pc.index_in(gone.field("values"), value_set=texts))
    some = gone.filter(pc.less(gone.field("counts"), kept))
    if len(some):
        key = some.field("values")[0].as_py()
        raise duplicate_keys_error(
            f"the table has duplicates of the key {key!r}, and only some of them are deleted"
        )


def _together(task: MatchTask) -> Iterator[pa.Table]:
    """The slice's rows, a share of the keys at a time: each time these are hashed once."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in read_task(task.read):
        held.append(batch)
        count += batch.num_rows
        if count >= len(task.keys) // _SHARE:
            yield pa.Table.from_batches(held)
            held, count = [], 0
    if held:
        yield pa.Table.from_batches(held)


def _some(task: MatchTask, rows: pa.Table) -> Matched:
    at = pc.index_in(rows.column(RECORD_KEY), value_set=task.keys).combine_chunks()
    rows = rows.filter(pc.is_valid(at))
    at = at.drop_null().cast(pa.int64())
    both = join_sides(task.source.take(at), rows)
    meta = rows.select([RECORD_KEY, PARTITION_PATH])
    schema = data_schema(task.read.schema)
    updated, deleted = [_with_meta(meta.slice(0, 0), schema.empty_table())], [meta.slice(0, 0)]
    for clause, numbers in zip(task.clauses, select_rows(both, task.clauses), strict=True):
        if clause.values is None:
            deleted.append(meta.take(numbers))
            continue
        new = project(both.take(numbers), clause.values)
        old = rows.take(numbers)
        columns = {
            name: (new if name in clause.values else old).column(name) for name in schema.names
        }
        stored = set(schema.names) - set(clause.values)
        data = conform(pa.table(columns), schema, stored=stored, null_elements=task.null_elements)
        if task.kept is not None:
            task.kept.check(old, data, clause.values)
        updated.append(_with_meta(meta.take(numbers), data))
    return Matched(at, pa.concat_tables(updated), pa.concat_tables(deleted))


def _with_meta(meta: pa.Table, data: pa.Table) -> pa.Table:
    for place, name in enumerate((RECORD_KEY, PARTITION_PATH)):
        data = data.add_column(place, pa.field(name, pa.string()), meta.column(name))
    return data
