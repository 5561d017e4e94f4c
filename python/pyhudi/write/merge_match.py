"""Matching of a merge source with one file slice; runs on the engine's workers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.engine.protocol import Attempt
from pyhudi.index.duplicate_keys import duplicate_keys_error
from pyhudi.input.conform import conform
from pyhudi.input.row_rules import NO_RULES, RowRules
from pyhudi.schema.column_rules import leave_unchanged
from pyhudi.schema.computed_columns import project
from pyhudi.schema.partial_update_checks import IgnoredUpdateValues
from pyhudi.slices.read import read_task
from pyhudi.slices.read_tasks import ReadTask
from pyhudi.write.merge_clauses import Clause, join_sides, select_rows

_SHARE = 4


@dataclass(frozen=True)
class Matcher:
    """Some rows of the source, and the clauses for rows of the table."""

    schema: pa.Schema
    """The table's columns."""
    keys: pa.Array[Any]
    """Record keys of the source's rows."""
    source: pa.Table
    """The source's columns of these rows."""
    clauses: tuple[Clause, ...]
    rules: RowRules = NO_RULES
    """The rules for the new rows."""
    ignored_values: IgnoredUpdateValues | None = None
    """Values that clauses cannot set."""
    unchanged: tuple[str, ...] = ()
    """Columns with a merge rule: null leaves them as they are."""

    def match(self, rows: pa.Table) -> Matched:
        """Join rows of one slice by key and apply the clauses. Raises as `match_rows` does."""
        result = _match(self, rows)
        _check_duplicates(self.keys, result)
        return result

    def match_absent(self, rows: pa.Table) -> Matched:
        """Apply the clauses to rows of one slice whose keys are not among those of the source.

        Raises as `match_rows` does.
        """
        rows = _absent_rows(self, rows)
        keys = rows.column(RECORD_KEY).combine_chunks()
        unique = keys.unique()
        numbers = pc.index_in(keys, value_set=unique).cast(pa.int64())
        result = _apply(self, numbers, join_sides(None, rows), rows)
        _check_duplicates(unique, result)
        return replace(result, matched=numbers.slice(0, 0))


@dataclass(frozen=True)
class MatchTask:
    """Match some rows of the source with one slice."""

    read: ReadTask
    """Reads the slice's rows: record key, partition path, then the table's columns."""
    matcher: Matcher


@dataclass(frozen=True)
class Matched:
    """The results of the source rows of one matcher."""

    matched: pa.Array[Any]
    """Numbers of the source rows that match a row of the slice."""
    updated: pa.Table
    """New rows, with record key and partition path first."""
    deleted: pa.Table
    """Record key and partition path of rows to delete."""


def match_rows(task: MatchTask, _attempt: Attempt) -> Matched:
    """Join by key and apply the clauses.

    Raises `SchemaMismatch` for values that do not fit, and if clauses change only some of the
    slice's duplicates of a key, or update them; `UnsupportedTableFeature` for values that the merge
    mode would ignore.
    """
    parts = [_match(task.matcher, rows) for rows in _read_tables(task)]
    schema = pa.schema([task.read.schema.field(name) for name in task.read.output])
    parts.append(_match(task.matcher, schema.empty_table()))
    result = Matched(
        pa.concat_arrays([part.matched for part in parts]),
        pa.concat_tables([part.updated for part in parts]),
        pa.concat_tables([part.deleted for part in parts]),
    )
    _check_duplicates(task.matcher.keys, result)
    return result


def _check_duplicates(keys: pa.Array[Any], result: Matched) -> None:
    counts = pc.value_counts(result.matched)
    duplicates = counts.filter(pc.greater(counts.field("counts"), 1))
    if not len(duplicates):
        return
    duplicate_keys = keys.take(duplicates.field("values"))
    updated, deleted = (
        rows.column(RECORD_KEY).filter(pc.is_in(rows.column(RECORD_KEY), value_set=duplicate_keys))
        for rows in (result.updated, result.deleted)
    )
    if len(updated):
        raise duplicate_keys_error(f"the table has duplicates of the key {updated[0].as_py()!r}")
    deleted_counts = pc.value_counts(deleted)
    duplicate_counts = pc.take(
        duplicates.field("counts"),
        pc.index_in(deleted_counts.field("values"), value_set=duplicate_keys),
    )
    partly_deleted = deleted_counts.filter(
        pc.less(deleted_counts.field("counts"), duplicate_counts)
    )
    if len(partly_deleted):
        key = partly_deleted.field("values")[0].as_py()
        raise duplicate_keys_error(
            f"the table has duplicates of the key {key!r}, and only some of them are deleted"
        )


def _read_tables(task: MatchTask) -> Iterator[pa.Table]:
    """Yield the slice's rows in tables large enough that hashing the keys for each one pays off."""
    buffered: list[pa.RecordBatch] = []
    count = 0
    for batch in read_task(task.read):
        buffered.append(batch)
        count += batch.num_rows
        if count >= len(task.matcher.keys) // _SHARE:
            yield pa.Table.from_batches(buffered)
            buffered, count = [], 0
    if buffered:
        yield pa.Table.from_batches(buffered)


def match_absent_rows(task: MatchTask, _attempt: Attempt) -> Matched:
    """Apply the clauses to the slice's rows whose keys are not among the task's.

    The task's source is not used. Raises as `match_rows` does.
    """
    matcher = task.matcher
    schema = pa.schema([task.read.schema.field(name) for name in task.read.output])
    tables = (pa.Table.from_batches([batch]) for batch in read_task(task.read))
    parts = [_absent_rows(matcher, table) for table in tables]
    return matcher.match_absent(pa.concat_tables([schema.empty_table(), *parts]))


def _absent_rows(matcher: Matcher, rows: pa.Table) -> pa.Table:
    return rows.filter(pc.invert(pc.is_in(rows.column(RECORD_KEY), value_set=matcher.keys)))


def _match(matcher: Matcher, rows: pa.Table) -> Matched:
    key_numbers = pc.index_in(rows.column(RECORD_KEY), value_set=matcher.keys).combine_chunks()
    rows = rows.filter(pc.is_valid(key_numbers))
    key_numbers = key_numbers.drop_null().cast(pa.int64())
    return _apply(matcher, key_numbers, join_sides(matcher.source.take(key_numbers), rows), rows)


def _apply(
    matcher: Matcher, key_numbers: pa.Array[Any], joined: pa.Table, rows: pa.Table
) -> Matched:
    """Apply the clauses to rows of the slice. joined: what the clauses see of them."""
    meta = rows.select([RECORD_KEY, PARTITION_PATH])
    schema = matcher.schema
    updated, deleted = [_with_meta(meta.slice(0, 0), schema.empty_table())], [meta.slice(0, 0)]
    for clause, numbers in zip(matcher.clauses, select_rows(joined, matcher.clauses), strict=True):
        if clause.values is None:
            deleted.append(meta.take(numbers))
            continue
        projected = project(joined.take(numbers), clause.values)
        previous = rows.take(numbers)
        columns = {
            name: (projected if name in clause.values else previous).column(name)
            for name in schema.names
        }
        stored = set(schema.names) - set(clause.values)
        data = conform(pa.table(columns), schema, stored=stored, rules=matcher.rules)
        if matcher.ignored_values is not None:
            matcher.ignored_values.check(previous, data, clause.values)
        data = leave_unchanged(data, matcher.unchanged)
        updated.append(_with_meta(meta.take(numbers), data))
    return Matched(key_numbers, pa.concat_tables(updated), pa.concat_tables(deleted))


def _with_meta(meta: pa.Table, data: pa.Table) -> pa.Table:
    for position, name in enumerate((RECORD_KEY, PARTITION_PATH)):
        data = data.add_column(position, pa.field(name, pa.string()), meta.column(name))
    return data
