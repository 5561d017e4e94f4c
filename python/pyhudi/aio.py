"""The table for asyncio: what reads or writes is awaited, and runs in a thread.

The classes here wrap those of `pyhudi` and have no logic of their own. Each method has the
arguments, the result and the errors of the wrapped one. To cancel a task ends its wait, and not the
operation: a write that has started is committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from pyhudi.api import create as _create
from pyhudi.api import table as _table
from pyhudi.api.drop import drop_table as _drop_table
from pyhudi.api.outputs import Outputs
from pyhudi.api.stream import Stream, StreamBatch
from pyhudi.api.table import HudiTable
from pyhudi.api.table_exists import table_exists as _table_exists
from pyhudi.foreign_names import attribute_hint
from pyhudi.input.lazy_rows import ForeignNames

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from typing_extensions import Self

__all__ = [
    "AsyncBatch",
    "AsyncRows",
    "AsyncStream",
    "AsyncTable",
    "create_table",
    "drop_table",
    "open_table",
    "stream",
    "table_exists",
]

P = ParamSpec("P")
R = TypeVar("R")
Awaited = Coroutine[Any, Any, R]


def _awaitable(call: Callable[P, R]) -> Callable[P, Awaited[R]]:
    """Return a function that runs `call` in a thread."""

    @wraps(call)
    async def run(*args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(call, *args, **kwargs)

    return run


def _opening(call: Callable[P, HudiTable]) -> Callable[P, Awaited[AsyncTable]]:
    """Return a function that opens a table in a thread."""

    @wraps(call)
    async def run(*args: P.args, **kwargs: P.kwargs) -> AsyncTable:
        return AsyncTable(await asyncio.to_thread(call, *args, **kwargs))

    return run


def _of_table(
    method: Callable[Concatenate[HudiTable, P], R],
) -> Callable[Concatenate[AsyncTable, P], Awaited[R]]:
    """Return the awaitable form of a method of `HudiTable`."""

    @wraps(method)
    async def run(self: AsyncTable, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(method, self.table, *args, **kwargs)

    return run


def _of_rows(
    method: Callable[Concatenate[Outputs, P], R],
) -> Callable[Concatenate[AsyncRows, P], Awaited[R]]:
    """Return the awaitable form of an output."""

    @wraps(method)
    async def run(self: AsyncRows, /, *args: P.args, **kwargs: P.kwargs) -> R:
        def read() -> R:
            rows = self._describe()
            # The method of its class, which may be faster.
            output: Callable[P, R] = getattr(rows, method.__name__)
            return output(*args, **kwargs)

        return await asyncio.to_thread(read)

    return run


def _lazy(
    method: Callable[Concatenate[HudiTable, P], Outputs],
) -> Callable[Concatenate[AsyncTable, P], AsyncRows]:
    """Return the form of a method whose rows are read later."""

    @wraps(method)
    def describe(self: AsyncTable, /, *args: P.args, **kwargs: P.kwargs) -> AsyncRows:
        return AsyncRows(lambda: method(self.table, *args, **kwargs))

    return describe


def _hint(blocking: type, name: str, expression: str) -> str | None:
    """Return what to write for a name that the blocking class has, or has a hint for."""
    if hasattr(blocking, name):
        call = "(…)" if callable(getattr(blocking, name)) else ""
        return f"Write await table.run(lambda t: {expression}.{name}{call})."
    hint = attribute_hint(blocking, name)
    return hint and f"{hint} Here, await it, or write await table.run(lambda table: …)."


class AsyncRows(ForeignNames):
    """Rows that are described but not read: a scan, changes or a difference.

    Errors of the arguments are raised by the outputs.
    """

    def __init__(self, describe: Callable[[], Outputs]) -> None:
        self._describe = describe

    def _hint(self, name: str) -> str | None:
        from pyhudi.api.scan import Scan  # noqa: PLC0415 - only errors need it

        return _hint(Scan, name, "t.scan(…)")

    to_arrow = _of_rows(Outputs.to_arrow)
    to_polars = _of_rows(Outputs.to_polars)
    count = _of_rows(Outputs.count)
    head = _of_rows(Outputs.head)

    async def to_pandas(self, **kwargs: Any) -> pd.DataFrame:
        """Read all rows as a pandas DataFrame: see `Scan.to_pandas`."""
        return await asyncio.to_thread(lambda: self._describe().to_pandas(**kwargs))

    async def batches(self) -> AsyncIterator[pa.RecordBatch]:
        """Yield the rows as record batches, with bounded read-ahead."""

        def read() -> pa.RecordBatchReader:
            return self._describe().to_reader()

        reader = iter(await asyncio.to_thread(read))
        while (batch := await asyncio.to_thread(next, reader, None)) is not None:
            yield batch


class AsyncBatch(AsyncRows):
    """A batch of a stream: its rows and its position, see `pyhudi.StreamBatch`."""

    def __init__(self, batch: StreamBatch) -> None:
        super().__init__(lambda: batch)
        self.batch = batch
        """The batch, with blocking methods."""

    @property
    def position(self) -> str:
        """The position after this batch, as `StreamBatch.position`."""
        return self.batch.position

    @property
    def instants(self) -> tuple[str, ...]:
        """The instants, as `StreamBatch.instants`."""
        return self.batch.instants

    async def commit(self) -> None:
        """Store that this batch, and all before it, are used: see `StreamBatch.commit`."""
        await asyncio.to_thread(self.batch.commit)


class AsyncStream(AsyncIterator[AsyncBatch]):
    """The batches of a table for `async for`: see `pyhudi.Stream`.

    The wait for a commit holds no thread. If you cancel it, or it times out, you can go on with the
    same stream: no batch is lost.
    """

    def __init__(self, open_stream: Callable[[], Stream]) -> None:
        self._open = open_stream
        self._stream: Stream | None = None
        self._pending: asyncio.Future[StreamBatch | None] | None = None
        self._turn = asyncio.Lock()
        self._closed = asyncio.Event()
        self._has_ended = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AsyncBatch:
        async with self._turn:
            while not (self._closed.is_set() or self._has_ended):
                if self._pending is None:
                    self._pending = asyncio.ensure_future(asyncio.to_thread(self._advance))
                # If the task is canceled here, the next call gets what the thread returns.
                pending = self._pending
                await asyncio.wait([pending])
                self._pending = None
                batch = pending.result()
                if batch is not None:
                    return AsyncBatch(batch)
                if self._stream is not None and not self._has_ended:
                    with suppress(asyncio.TimeoutError):
                        await asyncio.wait_for(self._closed.wait(), self._stream.poll_s)
            raise StopAsyncIteration

    async def aclose(self) -> None:
        """End the stream. A batch that is in use stays readable, and can be committed."""
        self._closed.set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _advance(self) -> StreamBatch | None:
        """Return the next batch; None until there is one, and once the stream has ended."""
        if self._stream is None:
            self._stream = self._open()
        try:
            return self._stream.next_completed()
        except StopIteration:
            self._has_ended = True
            return None


def _streaming(
    method: Callable[Concatenate[HudiTable, P], Stream],
) -> Callable[Concatenate[AsyncTable | HudiTable, P], AsyncStream]:
    """Return the function that streams a table."""

    @wraps(method)
    def open_stream(
        table: AsyncTable | HudiTable, /, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncStream:
        wrapped = table.table if isinstance(table, AsyncTable) else table
        return AsyncStream(lambda: method(wrapped, *args, **kwargs))

    return open_stream


class AsyncTable(ForeignNames):
    """A table whose methods are awaited: see `pyhudi.HudiTable`.

    `scan`, `incremental`, `changes` and `diff` are not awaited, but their outputs are. `run` is for
    everything else, such as `merge` and `alter`. `table.writer` has awaitable methods of its own.
    """

    def __init__(self, table: HudiTable) -> None:
        self.table = table
        """The table, with blocking methods."""

    def __repr__(self) -> str:
        return f"<AsyncTable of {self.table!r}>"

    def _hint(self, name: str) -> str | None:
        return _hint(HudiTable, name, "t")

    def __len__(self) -> int:
        """Raise `TypeError`: `len` cannot be awaited."""
        raise TypeError("an AsyncTable has no len()\nHint: Write await table.count().")

    def __bool__(self) -> bool:
        """Return true without a read; otherwise Python would call `len(table)` for `if table:`."""
        return True

    scan = _lazy(HudiTable.scan)
    incremental = _lazy(HudiTable.incremental)
    changes = _lazy(HudiTable.changes)
    diff = _lazy(HudiTable.diff)
    stream = _streaming(HudiTable.stream)

    get = _of_table(HudiTable.get)
    head = _of_table(HudiTable.head)
    count = _of_table(HudiTable.count)
    to_arrow = _of_table(HudiTable.to_arrow)
    to_polars = _of_table(HudiTable.to_polars)
    report = _of_table(HudiTable.report)

    upsert = _of_table(HudiTable.upsert)
    insert = _of_table(HudiTable.insert)
    bulk_insert = _of_table(HudiTable.bulk_insert)
    overwrite = _of_table(HudiTable.overwrite)
    overwrite_partitions = _of_table(HudiTable.overwrite_partitions)
    update = _of_table(HudiTable.update)
    delete = _of_table(HudiTable.delete)
    delete_keys = _of_table(HudiTable.delete_keys)
    delete_partitions = _of_table(HudiTable.delete_partitions)
    set_properties = _of_table(HudiTable.set_properties)
    add_constraint = _of_table(HudiTable.add_constraint)
    drop_constraint = _of_table(HudiTable.drop_constraint)
    add_generated_column = _of_table(HudiTable.add_generated_column)
    drop_generated_column = _of_table(HudiTable.drop_generated_column)
    create_index = _of_table(HudiTable.create_index)
    drop_index = _of_table(HudiTable.drop_index)

    history = _of_table(HudiTable.history)
    savepoint = _of_table(HudiTable.savepoint)
    savepoints = _of_table(HudiTable.savepoints)
    delete_savepoint = _of_table(HudiTable.delete_savepoint)
    rollback = _of_table(HudiTable.rollback)
    restore = _of_table(HudiTable.restore)
    consumers = _of_table(HudiTable.consumers)
    reset_consumer = _of_table(HudiTable.reset_consumer)
    delete_consumer = _of_table(HudiTable.delete_consumer)

    maintain = _of_table(HudiTable.maintain)
    compact = _of_table(HudiTable.compact)
    log_compact = _of_table(HudiTable.log_compact)
    cluster = _of_table(HudiTable.cluster)
    clean = _of_table(HudiTable.clean)
    archive = _of_table(HudiTable.archive)
    expire_partitions = _of_table(HudiTable.expire_partitions)
    finish_services = _of_table(HudiTable.finish_services)
    check = _of_table(HudiTable.check)
    rebuild_metadata = _of_table(HudiTable.rebuild_metadata)
    upgrade = _of_table(HudiTable.upgrade)
    downgrade = _of_table(HudiTable.downgrade)
    sync = _of_table(HudiTable.sync)
    sql = _of_table(HudiTable.sql)

    async def to_pandas(self, columns: Sequence[str] | None = None, **kwargs: Any) -> pd.DataFrame:
        """Read all rows as a pandas DataFrame: see `HudiTable.to_pandas`."""
        return await asyncio.to_thread(self.table.to_pandas, columns, **kwargs)

    async def run(self, call: Callable[[HudiTable], R]) -> R:
        """Run a function of the table in a thread, such as a merge or a change of columns."""
        return await asyncio.to_thread(call, self.table)

    async def refresh(self) -> Self:
        """Reload the table, so that reads see later commits: see `HudiTable.refresh`."""
        await asyncio.to_thread(self.table.refresh)
        return self


stream = _streaming(HudiTable.stream)
open_table = _opening(_table.open_table)
create_table = _opening(_create.create_table)
drop_table = _awaitable(_drop_table)
table_exists = _awaitable(_table_exists)
