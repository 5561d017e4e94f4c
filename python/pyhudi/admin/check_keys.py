"""Checks of record keys: duplicates, and the record index against the files.

Tasks return the keys of file slices and of the index's file groups; an exchange routes equal keys
to one part, where Arrow compares them. Only the keys of findings reach the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.admin.check_findings import Finding, Severity, damage_finding
from pyhudi.config.metadata_names import RECORD_INDEX
from pyhudi.engine.protocol import Attempt, Engine
from pyhudi.errors import CorruptTable
from pyhudi.metadata.file_group_handle import FileGroupHandle
from pyhudi.slices.read import read_task
from pyhudi.slices.read_tasks import ReadTask

_PARTS = (32, 1024)
"""Minimum and maximum number of parts that are compared separately: each must fit in memory."""
_KEY_BYTES = 12
"""Low estimate of a key's bytes in a file."""
_ROW_BYTES = 1024
"""Bytes of a key with its locations while it is compared."""
MAX_EXAMPLES = 100
"""Maximum number of places with keys of one finding type in one part; the rest is counted."""
FEW = 10
"""Maximum number of keys of one finding type at one place with a finding each; more are summed
up."""

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
    """Reads the record key and, if the key is the value of one column, that column."""
    parts: int = 1
    """See `IndexKeys`."""


@dataclass(frozen=True)
class IndexKeys:
    """The entries of one file group of the record index."""

    group: FileGroupHandle
    number: int
    groups: int
    """Number of file groups, which determines the group of a key."""
    parts: int = 1
    """Number of parts in which all keys are compared."""


@dataclass(frozen=True)
class KeyRules:
    """The rules for the keys of a table."""

    one_table: bool
    """A key is unique in the table, else in each partition."""
    index: bool
    """Whether the table has a record index."""


def key_rows(task: SliceKeys | IndexKeys) -> Iterator[pa.RecordBatch]:
    """Yield rows for `compare`, routed by key."""
    if isinstance(task, IndexKeys):
        entries = task.group.open().locations()
        keys = entries.column("key")
        groups = _native.metadata_groups(keys, task.groups)
        misplaced = pc.not_equal(groups, task.number)
        indexed = pa.repeat(pa.scalar(value=True), entries.num_rows)
        not_null = pc.invert(indexed)
        paths, ids = entries.column("partition"), entries.column("file_id")
        columns = (keys, paths, ids, indexed, misplaced, not_null)
        for start in range(0, entries.num_rows, _BATCH_ROWS):
            yield _rows(task.parts, *(column.slice(start, _BATCH_ROWS) for column in columns))
        return
    slice_ = task.read.slice
    for batch in read_task(task.read):
        count = batch.num_rows
        no = pa.repeat(pa.scalar(value=False), count)
        paths, ids = pa.repeat(slice_.partition, count), pa.repeat(slice_.file_id, count)
        # Stored keys are never null, but the key's column may be.
        is_null = no if batch.num_columns == 1 else batch.column(1).is_null()
        yield _rows(task.parts, batch.column(0), paths, ids, no, no, is_null)


def _rows(parts: int, keys: pa.Array, *columns: pa.Array) -> pa.RecordBatch:
    routes = _native.key_parts(keys, parts).cast(pa.string())
    return pa.RecordBatch.from_arrays([routes, keys, *columns], schema=_ROWS)


@dataclass(frozen=True)
class KeysFound:
    """Keys of one finding type at one place: a missing file has thousands of them."""

    kind: str
    severity: Severity
    partition: str
    keys: tuple[str, ...]
    """Some of the keys, in order; empty if only their number is reported."""
    count: int
    expected: str
    found: str

    @property
    def group(self) -> tuple[str, Severity, str, str, str, bool]:
        """The fields that are equal in all keys of one finding."""
        has_keys = bool(self.keys)
        return (self.kind, self.severity, self.partition, self.expected, self.found, has_keys)

    def with_others(self, other: KeysFound) -> KeysFound:
        """Add the keys at the same place of another part."""
        keys = tuple(sorted({*self.keys, *other.keys})[: FEW + 1])
        return replace(self, keys=keys, count=self.count + other.count)

    def findings(self) -> Iterator[Finding]:
        """Yield a finding for each key, or one for all of them if there are many."""
        sides = (self.expected, self.found)
        if not self.keys:
            remaining = f"{self.count} more of this kind"
            yield Finding(self.kind, self.severity, "", "…", "", remaining)
        elif self.count > FEW:
            item = f"{self.count} keys, such as {self.keys[0]}"
            yield Finding(self.kind, self.severity, self.partition, item, *sides)
        else:
            for key in self.keys:
                yield Finding(self.kind, self.severity, self.partition, key, *sides)


def check_keys(
    engine: Engine, tasks: Sequence[SliceKeys | IndexKeys], rules: KeyRules, memory: int
) -> list[Finding]:
    """Return duplicate keys, and index entries that are missing, extra or in the wrong group.

    Files that cannot be read are findings too; if one of them belongs to the index, nothing is
    compared with the index.

    memory: bytes that keys may use while they are compared.
    """
    if not tasks:
        return []
    parts = keys_parts(engine, tasks, memory)
    tasks = [replace(task, parts=parts) for task in tasks]
    try:
        return summarize(_compare(engine, tasks, rules))
    except CorruptTable:
        damaged = engine.run(damage, tasks, label="look for damage")
    if not any(damaged):
        raise AssertionError
    undamaged = [task for task, bad in zip(tasks, damaged, strict=True) if bad is None]
    of_index = any(
        isinstance(task, IndexKeys) for task, bad in zip(tasks, damaged, strict=True) if bad
    )
    if of_index:
        undamaged = [task for task in undamaged if isinstance(task, SliceKeys)]
    rules = replace(rules, index=rules.index and not of_index)
    results = summarize(_compare(engine, undamaged, rules)) if undamaged else []
    return [*(bad for bad in damaged if bad is not None), *results]


def _compare(
    engine: Engine, tasks: Sequence[SliceKeys | IndexKeys], rules: KeyRules
) -> list[KeysFound]:
    rows = engine.scan(key_rows, tasks, _ROWS, label="read record keys")
    return engine.exchange(rows, "route", partial(compare, rules), label="compare record keys")


def summarize(parts: Iterable[KeysFound]) -> list[Finding]:
    """Return the findings of all parts, with many keys at one place as one finding."""
    results_by_group: dict[tuple[str, Severity, str, str, str, bool], KeysFound] = {}
    for keys in parts:
        previous = results_by_group.get(keys.group)
        results_by_group[keys.group] = keys if previous is None else previous.with_others(keys)
    return [finding for keys in results_by_group.values() for finding in keys.findings()]


def damage(task: SliceKeys | IndexKeys, _attempt: Attempt) -> Finding | None:
    """Return why the keys of a task cannot be read."""
    try:
        for _ in key_rows(task):
            pass
    except CorruptTable as error:
        if isinstance(task, IndexKeys):
            return damage_finding("", RECORD_INDEX, error)
        return damage_finding(task.read.slice.partition, task.read.slice.file_id, error)
    return None


def keys_parts(engine: Engine, tasks: Sequence[SliceKeys | IndexKeys], memory: int) -> int:
    """Return the number of parts, so that those compared concurrently fit in memory."""
    sizes = (task.read.slice.size for task in tasks if isinstance(task, SliceKeys))
    needed = sum(sizes) // _KEY_BYTES * _ROW_BYTES
    minimum, maximum = _PARTS
    return min(max(needed * engine.tasks_per_process // memory, minimum), maximum)


def compare(rules: KeyRules, _route: str, rows: pa.Table, _attempt: Attempt) -> list[KeysFound]:
    """Return what is wrong with the keys of one part."""
    by = ["key"] if rules.one_table else ["partition", "key"]
    indexed = rows.column("indexed")
    data, index = rows.filter(pc.invert(indexed)), rows.filter(indexed)
    aggregates = [("file_id", "count"), ("file_id", "min"), ("file_id", "max")]
    aggregates += [("partition", "min"), ("partition", "max")] if rules.one_table else []
    grouped = data.group_by(by).aggregate(aggregates)
    repeated = pc.greater(grouped.column("file_id_count"), 1)
    results = [*_duplicates(grouped.filter(repeated), rules), *_null_key_columns(data)]
    if rules.index:
        results += _against_index(grouped, index, by)
    return results


def _duplicates(repeated: pa.Table, rules: KeyRules) -> Iterator[KeysFound]:
    # Without a global index, inserts may repeat keys on purpose.
    severity: Severity = "error" if rules.one_table else "warning"

    def describe(row: Mapping[str, Any]) -> tuple[str, str, str]:
        files = " and ".join(sorted({row["file_id_min"], row["file_id_max"]}))
        partition = row.get("partition", row.get("partition_min")) or ""
        other = row.get("partition_max", partition)
        where = f"in {files}" + (f", also in partition {other!r}" if other != partition else "")
        return partition, "one row", f"{row['file_id_count']} rows {where}"

    return _by_place("duplicate_key", severity, repeated, describe)


def _null_key_columns(data: pa.Table) -> Iterator[KeysFound]:
    rows = data.filter(data.column("column_is_null")).select(["key", "partition", "file_id"])
    expected = "the key in its column"
    return _by_place(
        "key_column_null",
        "error",
        rows,
        lambda row: (row["partition"], expected, f"null in {row['file_id']}"),
    )


def _against_index(grouped: pa.Table, index: pa.Table, by: list[str]) -> Iterator[KeysFound]:
    at = "partition_min" if by == ["key"] else "partition"
    rows = grouped.select([*dict.fromkeys(["key", at, "file_id_min", "file_id_count"])])
    rows = rows.rename_columns(["key", "partition", "file_id", "count"])
    entries = index.select(["key", "partition", "file_id"])
    both = rows.join(entries, by, join_type="full outer", right_suffix="_indexed")
    has_row, has_entry = pc.is_valid(both["file_id"]), pc.is_valid(both["file_id_indexed"])
    yield from _entries("record_index_missing", "error", both.filter(pc.invert(has_entry)))
    yield from _entries("record_index_extra", "warning", both.filter(pc.invert(has_row)))
    other = pc.not_equal(both["file_id"], both["file_id_indexed"])
    if "partition_indexed" in both.column_names:
        other = pc.or_kleene(other, pc.not_equal(both["partition"], both["partition_indexed"]))
    single = pc.equal(both["count"], 1)
    wrong = pc.and_(pc.and_(has_row, has_entry), pc.and_(single, other))
    yield from _entries("record_index_wrong", "error", both.filter(wrong))
    misplaced = index.filter(index.column("misplaced"))
    yield from _entries("record_index_misplaced", "error", misplaced)


def _entries(finding_type: str, severity: Severity, rows: pa.Table) -> Iterator[KeysFound]:
    """Yield findings about entries of the index, whose columns end in `_indexed`."""
    names = ("partition", "file_id", "partition_indexed", "file_id_indexed")
    columns = [name for name in names if name in rows.column_names]

    def describe(row: Mapping[str, Any]) -> tuple[str, str, str]:
        partition = row.get("partition") or row.get("partition_indexed") or ""
        expected = _place(row.get("partition"), row.get("file_id"))
        actual = _place(row.get("partition_indexed", partition), row.get("file_id_indexed"))
        return partition, expected, actual

    return _by_place(finding_type, severity, rows.select(["key", *columns]), describe)


def _by_place(
    finding_type: str,
    severity: Severity,
    rows: pa.Table,
    describe: Callable[[Mapping[str, Any]], tuple[str, str, str]],
) -> Iterator[KeysFound]:
    """Yield one result for all keys with equal values in all other columns.

    Only the first places are described; the keys of the others are counted. describe: returns the
    partition, the expected and the actual state of a place.
    """
    columns = [name for name in rows.column_names if name != "key"]
    grouped = rows.group_by(columns).aggregate([("key", "list"), ("key", "min"), ("key", "count")])
    grouped = grouped.sort_by("key_min")
    first_keys = pc.list_slice(grouped.column("key_list").combine_chunks(), 0, FEW + 1)
    results_by_group = grouped.drop_columns(["key_list"]).append_column("keys", first_keys)
    for row in results_by_group.slice(0, MAX_EXAMPLES).to_pylist():
        partition, expected, actual = describe(row)
        keys = tuple(sorted(filter(None, row["keys"])))
        yield KeysFound(finding_type, severity, partition, keys, row["key_count"], expected, actual)
    remaining = pc.sum(grouped.column("key_count").slice(MAX_EXAMPLES)).as_py()
    if remaining:
        yield KeysFound(finding_type, severity, "", (), remaining, "", "")


def _place(partition: str | None, file_id: str | None) -> str:
    if file_id is None:
        return "no entry"
    return f"{partition}/{file_id}" if partition else file_id
