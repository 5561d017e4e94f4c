"""Streams of commits in plain Python: the lazy result of `HudiTable.stream`.

A stream is a loop over incremental queries, or change queries, of one commit each.
`query/stream_progress.py` says which commit is next, `query/consumers.py` stores positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.api.changes import Changes, changes_of_range
from pyhudi.api.operation_events import report_failure
from pyhudi.api.outputs import Outputs
from pyhudi.api.scan import Scan, new_scan
from pyhudi.api.table_handle import TableHandle, load_snapshot
from pyhudi.clock import Moment, SystemClock
from pyhudi.config.formatting import count_text
from pyhudi.config.option_parsing import parse_duration
from pyhudi.engine.protocol import Engine
from pyhudi.errors import ConfigError, HistoryUnavailable, without_hint
from pyhudi.query.cdc import check_changes
from pyhudi.query.cdc_files import ChangeRequest
from pyhudi.query.commit_range import (
    IncrementalRange,
    Shard,
    by_completion_times,
    check_word,
    range_start,
)
from pyhudi.query.consumers import ConsumerPosition
from pyhudi.query.incremental import check_incremental
from pyhudi.query.stream_progress import CommitStep, commit_steps, newest_time, order_of
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.time_travel import timeline_as_of

if TYPE_CHECKING:
    from typing_extensions import Self

    from pyhudi.config.memory_size import MemorySize

_MAX_POLL_S = 86_400.0
_NAMED = 10
"""Maximum number of instants that an error names."""


@dataclass(frozen=True)
class StreamRequest:
    """The arguments of `HudiTable.stream` that say what to read."""

    start: Moment | None
    changes: bool
    columns: Sequence[str] | None
    where: Any
    meta_fields: bool
    memory_limit: MemorySize | None
    fallback_full_scan: bool
    shard: tuple[int, int] | None

    @property
    def part(self) -> Shard | None:
        """The file groups to read; None for all."""
        return None if self.shard is None else Shard(*map(int, self.shard))


@dataclass(frozen=True)
class StreamBatch(Outputs):
    """The rows or changes of one commit, of a `Stream`. Nothing is read before you ask for it.

    Outputs are those of a scan: `to_arrow`, `to_reader`, `to_pandas` and others. You can pass a
    batch to anything that reads Arrow streams, any number of times.
    """

    rows: Scan | Changes
    """The query of the batch."""
    position: str
    """The `start` after this batch, of `stream`, `incremental` and `changes`."""
    instants: tuple[str, ...]
    """The instant of the commit, or several that have the same time; () for the first batch of a
    stream without a start, which has the rows of the table."""
    _consumer: ConsumerPosition | None = field(repr=False)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows, in order."""
        return self.rows.schema

    def commit(self) -> None:
        """Store that this batch, and all before it, are used: the consumer goes on after them.

        A second call, and a call after that of a later batch, change nothing.

        Raises:
            ConsumerConflict: another process moved the consumer's position.
            ConfigError: the stream has no consumer.
            StorageError: the storage fails. Call it again.
        """
        if self._consumer is None:
            raise ConfigError(
                "the stream has no consumer",
                hint="Pass consumer='name' to `stream`, or store batch.position yourself.",
            )
        self._consumer.advance(order_of(self.rows.table), self.position)

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream.

        Returns:
            A reader of the record batches.

        Raises:
            HistoryUnavailable: while you read the stream, a cleaner or a restore has removed files.
            UnsupportedTableFeature: pyhudi does not support the merge rule of a slice.
            CorruptTable: a file is damaged or missing; also while you read the stream.
            ConfigError: the engine does not give Arrow streams.
        """
        return self.rows.to_reader()

    def to_spark(self) -> Any:
        """Return the rows as a Spark DataFrame; the table must be opened with a `SparkEngine`.

        Returns:
            The DataFrame.

        Raises:
            ConfigError: the table was opened with another engine.
            UnsupportedTableFeature: Spark does not support a type.
        """
        return self.rows.to_spark()

    def count(self) -> int:
        """Count the rows, without reading them if the commit has the number.

        Returns:
            The number of rows.
        """
        return self.rows.count()

    def __repr__(self) -> str:
        content = f"commit {', '.join(self.instants)}" if self.instants else "the table's rows"
        return f"<StreamBatch of {self.rows.table.config.name!r}: {content}>"

    def _first_rows(self, max_rows: int) -> pa.RecordBatchReader:
        return self.rows._first_rows(max_rows)  # noqa: SLF001 - as a batch's own


class Stream(Iterator[StreamBatch]):
    """The batches of a table, one for each commit: see `HudiTable.stream`.

    Use it in a `for` loop, in one thread. Any thread can `close` it: then a wait for the next
    commit ends, and the loop with it. Nothing is left open by a stream that you drop.
    """

    def __init__(
        self,
        table: TableHandle,
        request: StreamRequest,
        consumer: ConsumerPosition | None,
        *,
        poll_s: float,
        wait: bool,
    ) -> None:
        self._handle = table
        self._request = request
        self._consumer = consumer
        self.poll_s = poll_s
        """Seconds between two listings of the timeline."""
        self._wait = wait
        self._order = order_of(table.state)
        self._closed = Event()
        self._table = table.state
        self._listing: object = None
        self._until: str | None = None
        self._has_begun = False
        self._batches: Iterator[StreamBatch | None] | None = None
        self.position: str | None = None
        """The `start` after the last batch, and after later commits without rows; None before the
        first commit."""

    def close(self) -> None:
        """End the stream. A batch that is in use stays readable, and can be committed."""
        self._closed.set()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> StreamBatch:
        """Return the next batch. After an exception, another call tries again."""
        while True:
            batch = self.next_completed()
            if batch is not None:
                return batch
            if self._closed.wait(self.poll_s):
                raise StopIteration

    def next_completed(self) -> StreamBatch | None:
        """Return the next batch without waiting for a commit.

        Returns:
            The batch; None if no later commit is complete. After the end of the stream it raises
                `StopIteration`.
        """
        if self._closed.is_set():
            raise StopIteration
        batches = self._batches or self._read()
        self._batches = None
        with report_failure(self._handle, "stream"):
            batch = next(batches)
        self._batches = batches
        return batch

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _read(self) -> Iterator[StreamBatch | None]:
        """Yield batches, and None while there is no later commit."""
        self._load()
        is_current = True
        if not self._has_begun:
            first = self._begin()
            if first is not None:
                yield first
                is_current = False
        while not self._closed.is_set():
            try:
                for step in commit_steps(self._table, self.position, self._until):
                    batch = self._batch_of(step)
                    self.position = step.time
                    if batch is not None:
                        yield batch
                        is_current = False
                    if self._closed.is_set():
                        return
            except HistoryUnavailable as error:
                # A restore may have removed the commit since the table was loaded.
                if is_current:
                    raise self._describe_loss(error) from error
            else:
                if not self._wait:
                    return
                while self._list() == self._listing:
                    yield None
            self._load()
            is_current = True

    def _begin(self) -> StreamBatch | None:
        """Set where the stream begins and ends; return the batch of the table's rows, if due."""
        start, consumer = self._request.start, self._consumer
        stored = None if consumer is None else consumer.load(self._order)
        newest, first = newest_time(self._table), None
        if stored is None and start is None:
            stored = newest or ""
            first = None if newest is None else self._table_batch(newest)
        elif stored is None and start is not None:
            stored = resolve_position(self._table, start) or ""
            if consumer is not None:
                stored = consumer.begin(self._order, stored)
        self.position = stored or None
        self._until = None if self._wait else newest or ""
        self._has_begun = True
        return first

    def _list(self) -> object:
        return self._table.storage.list_dir(self._table.timeline.folder)

    def _load(self) -> None:
        """Load the table. What changes from now on differs from the listing."""
        storage, options = self._handle.storage, self._handle.options
        self._listing = self._list()
        self._table = load_snapshot(storage, options, None, self._table.config)
        if order_of(self._table) != self._order:
            raise ConfigError(
                f"the stream's position is a {self._order} time, and the table has "
                f"{order_of(self._table)} times now",
                hint="The table's version was changed: begin a new stream.",
            )

    def _batch_of(self, step: CommitStep) -> StreamBatch | None:
        """Return the batch of a step, None if it has no rows for this stream."""
        if not step.has_rows(self._table, changes=self._request.changes):
            return None
        rows = query_of(self._table, self._handle.engine, self._request, step)
        return self._batch(rows, step.time, step.instants) if rows.tasks else None

    def _table_batch(self, position: str) -> StreamBatch:
        """Return the batch of all rows up to a position."""
        table = self._table
        if self._order == "requested" and table.timeline.commits[-1].requested > position:
            # Later commits follow once an older one is complete.
            table = replace(table, timeline=timeline_as_of(table.timeline, position))
        rows = query_of(table, self._handle.engine, self._request, None)
        return self._batch(rows, position, ())

    def _batch(self, rows: Scan | Changes, position: str, instants: tuple[str, ...]) -> StreamBatch:
        return StreamBatch(rows, position, instants, self._consumer)

    def _describe_loss(self, error: HistoryUnavailable) -> HistoryUnavailable:
        """Return the error of a stream that cannot go on: which commits it misses."""
        missed: list[CommitStep] = []
        for step in commit_steps(self._table, self.position, self._until):
            try:
                if self._batch_of(step) is not None:
                    break
            except HistoryUnavailable:
                missed.append(step)
        instants = [instant for step in missed for instant in step.instants]
        named = instants if len(instants) <= _NAMED else [instants[0], "...", instants[-1]]
        skip = missed[-1].time if missed else self.position
        hint = f"To skip them, begin at {skip!r}. Without a start you get the rows of the table."
        if self._consumer is not None:
            hint = (
                f"To skip them, call reset_consumer(name, {skip!r}). After delete_consumer(name) "
                "you get the rows of the table."
            )
        if not self._request.changes and self._request.shard is None:
            hint += " fallback_full_scan=True gives their rows that are still current."
        return HistoryUnavailable(
            f"{without_hint(error)}; the stream misses {count_text(len(instants), 'commit')}: "
            f"{', '.join(named)}",
            hint=hint,
        )


def query_of(
    table: TableSnapshot, engine: Engine, request: StreamRequest, step: CommitStep | None
) -> Scan | Changes:
    """Return the query of a step; for None that of all rows. Raises as `HudiTable.stream`."""
    after, until = (step.after, step.time) if step else (None, None)
    if request.changes:
        if request.columns is not None or request.meta_fields:
            raise ConfigError(
                "columns and meta_fields are for rows, and changes=True has op, ts_ms, before and "
                "after"
            )
        part = ChangeRequest(after, until, shard=request.part, is_initial=step is None)
        return changes_of_range(
            table,
            engine,
            part,
            where=request.where,
            memory_limit=request.memory_limit,
        )
    fallback, shard = request.fallback_full_scan, request.part
    return new_scan(
        table,
        engine,
        columns=request.columns,
        where=request.where,
        limit=None,
        meta_fields=request.meta_fields,
        incremental_range=IncrementalRange(after, until, "block", fallback, shard)
        if step
        else None,
        memory_limit=request.memory_limit,
    )


def resolve_position(table: TableSnapshot, start: Moment) -> str | None:
    """Return the position that a time means, None for the beginning. "latest" is the last commit.

    Raises as `HudiTable.incremental`.
    """
    if _is_latest(start):
        return newest_time(table)
    check_word(start, ["latest", "earliest"])
    return range_start(table, start, by_completion=by_completion_times(table))


def _is_latest(start: Moment) -> bool:
    return isinstance(start, str) and start.strip().lower() == "latest"


def new_stream(
    table: TableHandle,
    request: StreamRequest,
    *,
    consumer: str | None,
    poll: float | str,
    wait: bool,
) -> Stream:
    """Return a stream after checking its arguments; see `HudiTable.stream`."""
    state = table.state
    if table.as_of is not None:
        raise ConfigError(
            f"the table was opened as of {table.as_of}, and has no later commits",
            hint="Open it without as_of.",
        )
    _check_shard(request, consumer)
    if request.changes:
        check_changes(state)
        if request.fallback_full_scan:
            raise ConfigError("fallback_full_scan cannot be combined with changes=True")
    else:
        check_incremental(state, IncrementalRange(None, None, "block"))
    query_of(state, table.engine, request, None)
    if request.start is not None:
        resolve_position(state, request.start)
    stored = None
    if consumer is not None:
        shard = request.part or Shard(0, 1)
        stored = ConsumerPosition(table.storage, consumer, shard, SystemClock())
    return Stream(table, request, stored, poll_s=parse_interval(poll, "poll"), wait=wait)


def _check_shard(request: StreamRequest, consumer: str | None) -> None:
    if request.shard is None:
        return
    number, count = request.shard
    if not 0 <= number < count:
        hint = "The first of 4 shards is (0, 4), the last one (3, 4)."
        raise ConfigError(f"there is no shard {number} of {count}", hint=hint)
    if request.fallback_full_scan:
        # A clustering may have moved rows to file groups of a shard that is further on.
        raise ConfigError("fallback_full_scan cannot be combined with shard")
    if request.start is None or (_is_latest(request.start) and consumer is None):
        raise ConfigError(
            "shards of a stream must begin at the same commit",
            hint="Pass a start, such as the same position in each process, or 'latest' with a "
            "consumer, whose first shard sets it for all.",
        )


def parse_interval(interval: float | str, name: str) -> float:
    """Return the seconds of an interval. Raises `ConfigError` if it is no duration.

    name: of the argument, for the error.
    """
    value: Any = parse_duration(interval) if isinstance(interval, str) else interval
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not 0 < value <= _MAX_POLL_S
    ):
        raise ConfigError(
            f"{name} is {interval!r}", hint="Pass seconds, such as 5, or '500ms', '5s', '1m'."
        )
    return float(value)
