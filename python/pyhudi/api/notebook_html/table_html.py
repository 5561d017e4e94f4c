"""Notebook HTML of a table handle and of rows that are not read yet, and the report's head.

A handle lists no file. A scan and changes are planned, which lists files, and not read. A
difference is read only if the files to compare are small, because its counts are what a user wants
to see.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.api.notebook_html.html import (
    Html,
    badge,
    grid,
    join,
    note,
    nothing,
    property_grid,
    tag,
    value_text,
    with_far_times,
)
from pyhudi.api.notebook_html.style import fragment
from pyhudi.config.actions import Instant
from pyhudi.config.formatting import count_text, instant_text, shorten, size_text
from pyhudi.errors import HudiError
from pyhudi.query.row_pairing import MatchTask
from pyhudi.schema.predicates import Where, format_expression
from pyhudi.schema.table_schema import is_meta
from pyhudi.slices.file_slice import FileSlice
from pyhudi.table.scan_columns import scan_schema
from pyhudi.table.table_snapshot import TableSnapshot

if TYPE_CHECKING:
    from pyhudi.api.changes import Changes, Diff
    from pyhudi.api.scan import Scan

_MAX_COLUMNS = 100


def table_html(table: TableSnapshot) -> str:
    """Return the notebook HTML of a table handle."""
    columns = data_columns(table)
    return fragment(
        tag("div", tag("b", table.config.name), badges(table), class_="head"),
        property_grid({"location": tag("code", table.storage.uri), **table_properties(table)}),
        _details(len(columns), schema_grid(table, columns)),
    )


def badges(table: TableSnapshot) -> Html:
    """Return type, version and snapshot as short labels."""
    config = table.config
    type_label = "merge-on-read" if config.is_merge_on_read else "copy-on-write"
    labels = [badge(type_label), badge(f"version {config.version.code}")]
    if config.cdc_enabled:
        labels.append(badge("change data capture"))
    if table.timeline.bound is not None:
        labels.append(badge(f"as of {instant_text(table.timeline.bound)}", "warm"))
    return join(labels)


def table_properties(table: TableSnapshot) -> dict[str, object]:
    """Return what the properties and the timeline record."""
    config, timeline = table.config, table.timeline
    properties: dict[str, object] = {}
    if config.database:
        properties["database"] = config.database
    properties["record key"] = ", ".join(config.record_key_fields) or nothing("generated")
    properties["partitioned by"] = ", ".join(config.partition_fields) or nothing("not partitioned")
    if config.ordering_fields:
        properties["ordered by"] = ", ".join(config.ordering_fields)
    properties["last commit"] = _last(table, timeline.last_commit)
    properties["timeline"] = _count_text(timeline.instants)
    properties["metadata table"] = ", ".join(config.metadata_partitions) or nothing("none")
    if config.bootstrap_path is not None:
        properties["bootstrapped from"] = tag("code", config.bootstrap_path)
    return properties


def data_columns(table: TableSnapshot) -> list[pa.Field]:
    """Return the table's columns without Hudi's meta columns."""
    return [column for column in scan_schema(table) if not is_meta(column.name)]


def schema_grid(table: TableSnapshot, columns: list[pa.Field]) -> Html:
    """Return a grid of column names, types and roles."""
    config = table.config
    roles = {
        "key": config.record_key_fields,
        "partition": config.partition_fields,
        "ordering": config.ordering_fields,
    }
    rows = [
        (
            tag("code", value_text(column.name)),
            value_text(str(column.type)),
            "" if column.nullable else "not null",
            join(badge(role) for role, names in roles.items() if column.name in names),
        )
        for column in columns[:_MAX_COLUMNS]
    ]
    result = grid(("column", "type", "", ""), rows)
    if len(columns) <= _MAX_COLUMNS:
        return result
    return join([result, note(f"the first {_MAX_COLUMNS} of {len(columns):,} columns")])


def _last(table: TableSnapshot, commit: Instant | None) -> object:
    if commit is None:
        return nothing("none yet")
    # The timeline has cached the metadata, because the schema came from them.
    operation = table.timeline.commit_metadata(commit).operation_type
    done = f"{commit.action}, {operation}" if operation else commit.action
    return f"{instant_text(commit.requested)} ({done})"


def _count_text(instants: tuple[Instant, ...]) -> str:
    pending = sum(not instant.is_completed for instant in instants)
    return f"{count_text(len(instants), 'instant')}, {pending:,} of them pending"


_MAX_BYTES_TO_READ = 16 * 1024 * 1024
"""Maximum bytes of files for a difference that is read without being asked for."""
_ROWS = 5
_COLUMNS = 4
_KINDS = {"i": "good", "u": "warm", "d": "bad"}
_OPS = {"i": "inserted", "u": "updated", "d": "deleted"}


def scan_html(scan: Scan) -> str:
    """Return the notebook HTML of a scan: its request and what it would read, without rows."""
    request = scan.request
    request_properties = _where_properties(request.where)
    if scan.incremental_range is not None:
        request_properties["range"] = _range(
            scan.incremental_range.start, scan.incremental_range.end
        )
    if request.limit is not None:
        request_properties["limit"] = count_text(request.limit, "row")
    if request.read_optimized:
        request_properties["files"] = "base files alone (read-optimized)"
    try:
        slices = [task.slice for task in scan.tasks]
        partitions = len({slice_.partition for slice_ in slices})
        request_properties["to read"] = (
            f"{_slices(slices)}, in {count_text(partitions, 'partition')}"
        )
    except HudiError as error:
        request_properties["cannot be read"] = f"{type(error).__name__}: {error}"
    title = "incremental scan" if scan.incremental_range is not None else "scan"
    return _lazy(title, scan.table.config.name, request_properties, scan.schema)


def changes_html(changes: Changes) -> str:
    """Return the notebook HTML of a change query, without rows."""
    request = changes.request
    request_properties = {
        "range": _range(request.start, request.end),
        **_where_properties(request.where),
    }
    if request.limit is not None:
        request_properties["limit"] = count_text(request.limit, "row")
    try:
        commits = len({task.instant for task in changes.tasks})
        cases = Counter(task.case for task in changes.tasks)
        by_case = ", ".join(f"{number:,} {case}" for case, number in sorted(cases.items()))
        groups = count_text(len(changes.tasks), "file group")
        request_properties["to read"] = f"{groups} of {count_text(commits, 'commit')}" + (
            by_case and f" ({by_case})"
        )
    except HudiError as error:
        request_properties["cannot be read"] = f"{type(error).__name__}: {error}"
    return _lazy("changes", changes.table.config.name, request_properties, changes.schema)


def diff_html(diff: Diff) -> str:
    """Return the notebook HTML of a difference: row counts by operation, and the first rows."""
    sides = [side.timeline.bound for side in (diff.before, diff.after)]
    name = diff.after.config.name
    request_properties: dict[str, object] = {
        "between": " and ".join(instant_text(side) for side in sides)
    }
    try:
        slices = _distinct_slices(diff.tasks)
        request_properties["to compare"] = _slices(slices)
        if sum(slice_.size for slice_ in slices) > _MAX_BYTES_TO_READ:
            more = note("Nothing was read: count() and head() do, whatever the size.")
            return _lazy("diff", name, request_properties, diff.schema, more)
        counts, first = _read(diff.to_reader())
    except HudiError as error:
        request_properties["cannot be read"] = f"{type(error).__name__}: {error}"
        return _lazy("diff", name, request_properties, diff.schema)
    labels = [badge(f"{counts[op]:,} {verb}") for op, verb in _OPS.items()]
    rows = _rows(first, diff.after.config.record_key_fields)
    head = tag("div", tag("b", name), badge("diff"), join(labels), class_="head")
    return fragment(head, property_grid(request_properties), rows)


def _read(rows: pa.RecordBatchReader) -> tuple[Counter[str], pa.Table]:
    counts: Counter[str] = Counter()
    first: list[pa.RecordBatch] = []
    rows_read = 0
    for batch in rows:
        value_counts = pc.value_counts(batch.column("op"))
        ops, numbers = (
            value_counts.field("values").to_pylist(),
            value_counts.field("counts").to_pylist(),
        )
        counts.update(dict(zip(ops, numbers, strict=True)))
        if rows_read < _ROWS:
            first.append(batch.slice(0, _ROWS - rows_read))
            rows_read += first[-1].num_rows
    return counts, pa.Table.from_batches(first, rows.schema)


def _rows(first: pa.Table, keys: Sequence[str]) -> Html:
    """Return a grid of the first rows: the key, and of an update the columns that differ."""
    if not first.num_rows:
        return Html()
    rows = []
    for row in with_far_times(first).to_pylist():
        before, after, op = row["before"] or {}, row["after"] or {}, row["op"]
        record = after or before
        key = join([tag("code", value_text(record.get(name))) for name in keys], ", ")
        columns = row["changed"] if op == "u" else [name for name in record if name not in keys]
        values = [
            f"{name}: {_value(before, name)} → {_value(after, name)}"
            if op == "u"
            else f"{name}: {_value(record, name)}"
            for name in columns[:_COLUMNS]
        ]
        more = len(columns) - _COLUMNS
        values += [f"and {more} more"] if more > 0 else []
        rows.append((badge(_OPS[op], _KINDS[op]), key, "; ".join(values)))
    return grid(("", "key", "values"), rows)


def _value(record: Mapping[str, Any], name: str) -> object:
    value = value_text(record.get(name))
    return "null" if value is None else value


def _distinct_slices(tasks: Sequence[MatchTask]) -> list[FileSlice]:
    """Return each slice once; several tasks may share one."""
    sides = (side for task in tasks for side in (task.before, task.after))
    return list(dict.fromkeys(side.slice for side in sides if side is not None))


def _slices(slices: Sequence[FileSlice]) -> str:
    size = size_text(sum(slice_.size for slice_ in slices))
    logs = sum(len(slice_.logs) for slice_ in slices)
    text = f"{count_text(len(slices), 'file slice')} of {size}"
    return text + (f" with {count_text(logs, 'log file')}" if logs else "")


def _where_properties(where: Where | None) -> dict[str, object]:
    if where is None:
        return {}
    return {"where": tag("code", shorten(format_expression(where.expression), 400))}


def _range(start: str | None, end: str | None) -> str:
    begun = instant_text(start) if start else "the beginning"
    return f"after {begun}, up to {instant_text(end) if end else 'the last commit'}"


def _lazy(
    title: str, name: str, request_properties: dict[str, object], schema: pa.Schema, *more: object
) -> str:
    head = tag("div", tag("b", name), badge(title), badge("not read yet"), class_="head")
    return fragment(head, property_grid(request_properties), *more, _columns(schema))


def _columns(schema: Iterable[pa.Field]) -> Html:
    rows = [
        (tag("code", value_text(column.name)), value_text(str(column.type))) for column in schema
    ]
    return _details(len(rows), grid(("column", "type"), rows))


def _details(columns: int, grid_of_columns: Html) -> Html:
    """Return a grid of columns that is closed at first if it is long."""
    summary = tag("summary", count_text(columns, "column"))
    return tag("details", summary, grid_of_columns, open="" if columns <= 12 else None)
