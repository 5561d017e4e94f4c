"""Record keys: those that are there twice, and the record index against the files.

Tasks give the keys of file slices and of the index's file groups; an exchange brings equal keys
together, where Arrow compares them. No key but those of findings reaches the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.admin.check_findings import Finding, Severity
from pyhudi.engine.protocol import Attempt, Engine
from pyhudi.metadata.group import MetadataGroup
from pyhudi.slices.read import read_task
from pyhudi.slices.read_tasks import ReadTask

_PARTS = (32, 1024)
"""Parts that are compared one by one, at least and at most: each must fit in memory."""
_KEY_BYTES = 12
"""Of a key in a file, as a low guess."""
_ROW_BYTES = 1024
"""Of a key with its places while it is compared."""
MOST = 100
"""Findings of one kind of one part; the rest is counted."""

_BATCH_ROWS = 32 * 1024

_ROWS = pa.schema(
    [
        pa.field("route", pa.string(), nullable=False),
        pa.field("key", pa.string()),
        pa.field("partition", pa.string()),
        pa.field("file_id", pa.string()),
        pa.field("indexed", pa.bool_()),
        pa.field("misplaced", pa.bool_()),
        pa.field("column_is_null", pa.bool_()),
    ]
)


@dataclass(frozen=True)
class SliceKeys:
    """The keys of the rows of one file slice."""

    read: ReadTask
    """Of the record key and, where it is one column's value, that column."""
    parts: int = 1
    """As of `IndexKeys`."""


@dataclass(frozen=True)
class IndexKeys:
    """The entries of one file group of the record index."""

    group: MetadataGroup
    number: int
    groups: int
    """How many there are, by which keys are placed."""
    parts: int = 1
    """In how many parts all keys are compared."""


@dataclass(frozen=True)
class KeyRules:
    """What holds for the keys of a table."""

    one_table: bool
    """A key is in the table once, else in each partition."""
    index: bool
    """There is a record index."""


def key_rows(task: SliceKeys | IndexKeys) -> Iterator[pa.RecordBatch]:
    """Rows for `compare`, routed by key."""
    if isinstance(task, IndexKeys):
        found = task.group.open().locations()
        keys = found.column("key")
        places = _native.metadata_groups(keys, task.groups)
        misplaced = pc.not_equal(places, task.number)
        indexed = pa.repeat(pa.scalar(value=True), found.num_rows)
        no = pc.invert(indexed)
        columns = found.column("partition"), found.column("file_id"), indexed, misplaced, no
        for start in range(0, found.num_rows, _BATCH_ROWS):
            some = (column.slice(start, _BATCH_ROWS) for column in (keys, *columns))
            yield _rows(task.parts, *some)
        return
    slice_ = task.read.slice
    for batch in read_task(task.read):
        count = batch.num_rows
        no = pa.repeat(pa.scalar(value=False), count)
        paths, ids = pa.repeat(slice_.partition, count), pa.repeat(slice_.file_id, count)
        yield _rows(task.parts, batch.column(0), paths, ids, no, no, _has_no_value(batch))


def _has_no_value(batch: pa.RecordBatch) -> pa.Array:
    """Whether each row's key column is null, where it was read: stored keys never are."""
    if batch.num_columns == 1:
        return pa.repeat(pa.scalar(value=False), batch.num_rows)
    return batch.column(1).is_null()


def _rows(parts: int, keys: pa.Array, *columns: pa.Array) -> pa.RecordBatch:
    routes = _native.key_parts(keys, parts).cast(pa.string())
    return pa.RecordBatch.from_arrays([routes, keys, *columns], schema=_ROWS)


def check_keys(
    engine: Engine, tasks: Sequence[SliceKeys | IndexKeys], rules: KeyRules, memory: int
) -> list[Finding]:
    """Keys that are there twice, and what the index lacks, has beyond the rows, or misplaces.

    memory: bytes that keys may take while they are compared.
    """
    if not tasks:
        return []
    parts = keys_parts(engine, tasks, memory)
    tasks = [replace(task, parts=parts) for task in tasks]
    rows = engine.scan(key_rows, tasks, _ROWS, label="read record keys")
    return engine.exchange(rows, "route", partial(compare, rules), label="compare record keys")


def keys_parts(engine: Engine, tasks: Sequence[SliceKeys | IndexKeys], memory: int) -> int:
    """So many that those which are compared at a time fit in memory."""
    sizes = (task.read.slice.size for task in tasks if isinstance(task, SliceKeys))
    most = sum(sizes) // _KEY_BYTES * _ROW_BYTES
    least, greatest = _PARTS
    return min(max(most * engine.tasks_per_process // memory, least), greatest)


def compare(rules: KeyRules, _route: str, rows: pa.Table, _attempt: Attempt) -> list[Finding]:
    """The findings among the rows of one part."""
    by = ["key"] if rules.one_table else ["partition", "key"]
    indexed = rows.column("indexed")
    data, index = rows.filter(pc.invert(indexed)), rows.filter(indexed)
    aggregates = [("file_id", "count"), ("file_id", "min"), ("file_id", "max")]
    aggregates += [("partition", "min"), ("partition", "max")] if rules.one_table else []
    grouped = data.group_by(by).aggregate(aggregates)
    repeated = pc.greater(grouped.column("file_id_count"), 1)
    findings = [*_twice(grouped.filter(repeated), rules), *_without_column(data)]
    if rules.index:
        findings += _against_index(grouped, index, by)
    return findings


def _twice(repeated: pa.Table, rules: KeyRules) -> Iterator[Finding]:
    # Without a global index inserts may repeat keys on purpose.
    severity: Severity = "error" if rules.one_table else "warning"
    for row in repeated.slice(0, MOST).to_pylist():
        places = " and ".join(sorted({row["file_id_min"], row["file_id_max"]}))
        partition = row.get("partition", row.get("partition_min")) or ""
        other = row.get("partition_max", partition)
        where = f"in {places}" + (f", also in partition {other!r}" if other != partition else "")
        found = f"{row['file_id_count']} rows {where}"
        yield Finding("duplicate_key", severity, partition, row["key"], "one row", found)
    yield from _more("duplicate_key", severity, repeated.num_rows)


def _without_column(data: pa.Table) -> Iterator[Finding]:
    rows = data.filter(data.column("column_is_null"))
    for row in rows.slice(0, MOST).to_pylist():
        found = f"null in {row['file_id']}"
        yield Finding(_NULL, "error", row["partition"], row["key"], "the key in its column", found)
    yield from _more(_NULL, "error", rows.num_rows)


_NULL = "key_column_null"


def _against_index(grouped: pa.Table, index: pa.Table, by: list[str]) -> Iterator[Finding]:
    at = "partition_min" if by == ["key"] else "partition"
    rows = grouped.select([*dict.fromkeys(["key", at, "file_id_min", "file_id_count"])])
    rows = rows.rename_columns(["key", "partition", "file_id", "count"])
    said = index.select(["key", "partition", "file_id"])
    both = rows.join(said, by, join_type="full outer", right_suffix="_said")
    has_row, has_entry = pc.is_valid(both["file_id"]), pc.is_valid(both["file_id_said"])
    yield from _of("record_index_missing", "error", both.filter(pc.invert(has_entry)))
    yield from _of("record_index_extra", "warning", both.filter(pc.invert(has_row)))
    other = pc.not_equal(both["file_id"], both["file_id_said"])
    if "partition_said" in both.column_names:
        other = pc.or_kleene(other, pc.not_equal(both["partition"], both["partition_said"]))
    single = pc.equal(both["count"], 1)
    wrong = pc.and_(pc.and_(has_row, has_entry), pc.and_(single, other))
    yield from _of("record_index_wrong", "error", both.filter(wrong))
    misplaced = index.filter(index.column("misplaced"))
    yield from _of("record_index_misplaced", "error", misplaced)


def _of(kind: str, severity: Severity, rows: pa.Table) -> Iterator[Finding]:
    for row in rows.slice(0, MOST).to_pylist():
        partition = row.get("partition") or row.get("partition_said") or ""
        expected = _place(row.get("partition"), row.get("file_id"))
        found = _place(row.get("partition_said", partition), row.get("file_id_said"))
        yield Finding(kind, severity, partition, row["key"], expected, found)
    yield from _more(kind, severity, rows.num_rows)


def _place(partition: str | None, file_id: str | None) -> str:
    if file_id is None:
        return "no entry"
    return f"{partition}/{file_id}" if partition else file_id


def _more(kind: str, severity: Severity, count: int) -> Iterable[Finding]:
    if count > MOST:
        found = f"{count - MOST} more of this kind"
        yield Finding(kind, severity, "", "…", "", found)
