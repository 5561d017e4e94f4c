"""The lazy results of `HudiTable.changes` and `HudiTable.diff`.

Nothing is read before you ask for an output. `query/cdc.py` and `query/diff.py` plan what to read,
the engine reads it, where `query/change_reader.py` also pairs rows that moved between file groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, get_args

import pyarrow as pa

from pyhudi.api.operation_events import report_rows
from pyhudi.api.outputs import Outputs, check_limit, stream, stream_first
from pyhudi.cached_property import cached_property
from pyhudi.clock import Moment
from pyhudi.config.formatting import count_text, shorten
from pyhudi.config.memory_size import MemorySize
from pyhudi.engine.memory_pool import task_memory
from pyhudi.engine.protocol import Engine
from pyhudi.errors import ConfigError
from pyhudi.query.cdc import check_changes, plan_changes
from pyhudi.query.cdc_files import ChangeRequest, ChangeTask, Images
from pyhudi.query.commit_range import (
    IncrementalRange,
    by_completion_times,
    check_range_end,
    next_start,
    range_bounds,
)
from pyhudi.query.diff import plan_diff
from pyhudi.query.row_pairing import BUFFER_BYTES, MatchTask, image_schema
from pyhudi.schema.predicate_parser import parse_where
from pyhudi.schema.predicates import format_expression
from pyhudi.schema.statement_time import StatementTime
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.named_instants import timeline_at

_TASK_PARTS = 4
"""The logs of each side get a task's memory divided by this."""

PLAN = pa.schema(
    [
        ("instant", pa.string()),
        ("case", pa.string()),
        ("partition", pa.string()),
        ("file_id", pa.string()),
        ("files", pa.list_(pa.string())),
    ]
)


@dataclass(frozen=True)
class Changes(Outputs):
    """The changes of commits, record by record: op, ts_ms, before, after. See `HudiTable.changes`.

    Rows are ordered by commit.
    """

    table: TableSnapshot
    """The table at the end of the requested range."""
    request: ChangeRequest
    engine: Engine

    @property
    def schema(self) -> pa.Schema:
        """Columns: op and ts_ms are text; images are structs of the data columns, or text."""
        return changes_schema(self.table, self.request.images)

    @cached_property
    def tasks(self) -> list[ChangeTask]:
        """Tasks for `change_task`. Raises as `HudiTable.changes`."""
        return plan_changes(self.table, self.request)

    @property
    def position(self) -> str | None:
        """The position after this range, as `Scan.position`."""
        return next_start(self.table, IncrementalRange(self.request.start, self.request.end))

    def plan(self) -> pa.Table:
        """List what is to be read, without reading it.

        Returns:
            Columns instant, case, partition, file_id, files. `case` says where the changes come
                from: `as_is` from change logs, otherwise inferred.

        Raises:
            HistoryUnavailable: commits of the range were archived, or files of it were cleaned.
            CorruptTable: the timeline is damaged.
        """
        rows = [{name: getattr(task, name) for name in PLAN.names} for task in self.tasks]
        return pa.Table.from_pylist(rows, PLAN)

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream, commit by commit, with bounded read-ahead.

        Returns:
            A reader of the record batches.

        Raises:
            HistoryUnavailable: commits of the range were archived, or files of it were cleaned.
            CorruptTable: a file is damaged or missing; also while you read the stream.
            ConfigError: the engine does not give Arrow streams.
        """
        return report_rows(
            self.table.storage.uri,
            self.table.config.name,
            "changes",
            partial(self._stream, self.request.limit),
        )

    def __repr__(self) -> str:
        request = self.request
        bounds = request.start or "the beginning", request.end or "the last commit"
        parts = [f"Changes of {self.table.config.name!r} after {bounds[0]}, up to {bounds[1]}"]
        if request.where is not None:
            parts.append(f"where {shorten(format_expression(request.where.expression))}")
        if request.limit is not None:
            parts.append(f"at most {count_text(request.limit, 'row')}")
        return f"<{'; '.join(parts)}>"

    def _repr_html_(self) -> str:
        from pyhudi.api.notebook_html.table_html import changes_html  # noqa: PLC0415 - only for notebooks

        return changes_html(self)

    def _first_rows(self, max_rows: int) -> pa.RecordBatchReader:
        limit = max_rows if self.request.limit is None else min(max_rows, self.request.limit)
        return report_rows(
            self.table.storage.uri, self.table.config.name, "changes", partial(self._stream, limit)
        )

    def _stream(self, limit: int | None) -> pa.RecordBatchReader:
        from pyhudi.query.change_reader import change_task  # noqa: PLC0415 - planning needs no core

        label = f"changes {self.table.storage.uri}"
        return stream_first(self.engine, change_task, self.tasks, self.schema, label, limit)


@dataclass(frozen=True)
class Diff(Outputs):
    """The differences between two snapshots: op, before, after, changed. See `HudiTable.diff`.

    Updates come before the inserts and deletes of records that may have moved between file groups.
    """

    before: TableSnapshot
    after: TableSnapshot
    engine: Engine
    buffer_bytes: int = BUFFER_BYTES
    """About how much of the older side is in memory concurrently: once for each file group that is
    compared, and once more for records that moved between groups."""
    log_bytes: int | None = None
    """Bytes of log records in memory for each side of a file group; None for no limit."""

    @property
    def schema(self) -> pa.Schema:
        """Columns: op is text, images are structs, changed is a list of column names."""
        return pa.schema([f for f in diff_rows(self.after) if f.name not in ("key", "place")])

    @cached_property
    def tasks(self) -> list[MatchTask]:
        """Tasks for `query.change_reader.diff_task`: the file groups that differ.

        Raises `UnsupportedTableFeature` if pyhudi does not support the merge rule of a slice.
        """
        return plan_diff(self.before, self.after, self.buffer_bytes, self.log_bytes)

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream.

        Returns:
            A reader of the record batches.

        Raises:
            UnsupportedTableFeature: pyhudi does not support the merge rule of a slice.
            CorruptTable: a file is damaged or missing; also while you read the stream.
            ConfigError: the engine does not give Arrow streams.
        """
        return report_rows(self.after.storage.uri, self.after.config.name, "diff", self._open)

    def _open(self) -> pa.RecordBatchReader:
        from pyhudi.query.change_reader import (  # noqa: PLC0415 - planning needs no core
            diff_task,
            pair_moved_rows,
        )

        label = f"diff {self.after.storage.uri}"
        rows = stream(self.engine, diff_task, self.tasks, diff_rows(self.after), label)
        both = any(task.before for task in self.tasks) and any(task.after for task in self.tasks)
        paired: Iterator[pa.RecordBatch] = (
            pair_moved_rows(rows, self.buffer_bytes) if both else iter(rows)
        )
        names = self.schema.names
        return pa.RecordBatchReader.from_batches(
            self.schema, (batch.select(names) for batch in paired)
        )

    def __repr__(self) -> str:
        sides = (side.timeline.bound or "now" for side in (self.before, self.after))
        return f"<Diff of {self.after.config.name!r}: {' to '.join(sides)}>"

    def _repr_html_(self) -> str:
        from pyhudi.api.notebook_html.table_html import diff_html  # noqa: PLC0415 - only for notebooks

        return diff_html(self)


def changes_schema(table: TableSnapshot, images: Images) -> pa.Schema:
    """Return the columns of a change query."""
    image_type = pa.string()
    if images == "struct":
        # Images have the types of change logs, also for columns that a scan returns as text.
        image_type = pa.struct(list(image_schema(replace(table, as_text=()))))
    return pa.schema(
        [("op", pa.string()), ("ts_ms", pa.string()), ("before", image_type), ("after", image_type)]
    )


def diff_rows(table: TableSnapshot) -> pa.Schema:
    """Return the columns of `query.change_reader.diff_task`."""
    image = pa.struct(list(image_schema(table)))
    return pa.schema(
        [
            ("op", pa.string()),
            ("key", pa.string()),
            ("before", image),
            ("after", image),
            ("changed", pa.list_(pa.string())),
            ("place", pa.string()),
        ]
    )


def new_changes(
    table: TableSnapshot,
    engine: Engine,
    *,
    start: Moment | None,
    end: Moment | None,
    where: Any,
    limit: int | None,
    images: Images,
    memory_limit: MemorySize | None,
) -> Changes:
    """Return a change query after checking its arguments; see `HudiTable.changes`."""
    check_changes(table)
    by_completion = by_completion_times(table)
    after, until = range_bounds(table, start, end, by_completion=by_completion)
    check_range_end(table, until, by_completion=by_completion)
    return changes_of_range(
        table,
        engine,
        ChangeRequest(after, until),
        where=where,
        limit=limit,
        images=images,
        memory_limit=memory_limit,
    )


def changes_of_range(
    table: TableSnapshot,
    engine: Engine,
    request: ChangeRequest,
    *,
    where: Any,
    limit: int | None = None,
    images: Images = "struct",
    memory_limit: MemorySize | None,
) -> Changes:
    """Return a change query of a range with its other arguments, after checking these."""
    if images not in get_args(Images):
        raise ConfigError(f"images is {images!r}; it is one of {', '.join(get_args(Images))}")
    check_limit(limit)
    if where is not None:
        fixed = StatementTime(table.clock).fix(where)
        where = parse_where(fixed, changes_schema(table, images))
    request = replace(
        request,
        images=images,
        where=where,
        limit=limit,
        memory_limit=task_memory(memory_limit, engine) // _TASK_PARTS,
    )
    return Changes(table, request, engine)


def new_diff(
    table: TableSnapshot, engine: Engine, a: Moment, b: Moment, memory_limit: MemorySize | None
) -> Diff:
    """Return the comparison of two snapshots of a table; see `HudiTable.diff`."""
    before, after = table_as_of(table, a), table_as_of(table, b)
    share = task_memory(memory_limit, engine)
    # The size of buffered rows is overestimated, so they may take the whole share.
    buffer_bytes = BUFFER_BYTES if memory_limit is None else share
    return Diff(before, after, engine, buffer_bytes, share // _TASK_PARTS)


def table_as_of(table: TableSnapshot, moment: Moment) -> TableSnapshot:
    """Return the table at an earlier snapshot, with its current columns.

    Raises `HistoryUnavailable` for a snapshot that can no longer be read.
    """
    return replace(table, timeline=timeline_at(table.timeline, moment, table.config.timezone))
