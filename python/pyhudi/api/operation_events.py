"""Events of public methods: calls, and rows that are read as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial, wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

import pyarrow as pa

from pyhudi import events
from pyhudi.table.table_snapshot import TableSnapshot

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Observed(Protocol):
    """An object whose methods are operations."""

    @property
    def uri(self) -> str:
        """Location of the table."""
        ...

    @property
    def table_name(self) -> str:
        """Name of the table."""
        ...


Owner = TypeVar("Owner", bound=Observed)


def as_operation(
    method: Callable[Concatenate[Owner, Arguments], Result],
) -> Callable[Concatenate[Owner, Arguments], Result]:
    """Report the calls of a method, by its name."""

    @wraps(method)
    def run(self: Owner, /, *args: Arguments.args, **more: Arguments.kwargs) -> Result:
        if not events.is_observed():
            return method(self, *args, **more)
        return report_call(self, method.__name__, partial(method, self, *args, **more))

    return run


def report_call(owner: Observed, name: str, call: Callable[[], Result]) -> Result:
    """Return the result of a call, which is reported as an operation."""
    with events.observe(events.Operation, owner.uri, name, owner.table_name) as event:
        result = call()
        if event is not None:
            event.add_figures(result)
    return result


def report_rows(
    table: TableSnapshot, name: str, open_rows: Callable[[], pa.RecordBatchReader]
) -> pa.RecordBatchReader:
    """Return the rows that a function opens; reported until their end, an error or `close`."""
    read = events.begin(_stream, table.storage.uri, name, table.config.name)
    if read is None:
        return open_rows()
    try:
        rows = open_rows()
    except BaseException as error:
        read.end(error)
        raise
    batches = _count_rows(rows, read)
    # A generator that has not started would not see that its reader is dropped.
    next(batches)
    return pa.RecordBatchReader.from_batches(rows.schema, batches)


def _stream(uri: str, name: str, table: str) -> events.Operation:
    """Return the event of rows that the program reads while it does other work."""
    event = events.Operation(uri, name, table)
    event.is_enclosing = False
    return event


def _count_rows(
    rows: pa.RecordBatchReader, read: events.Observation[events.Operation]
) -> Iterator[pa.RecordBatch]:
    failure: BaseException | None = None
    try:
        yield pa.RecordBatch.from_arrays([], schema=pa.schema([]))
        for batch in rows:
            read.event.rows_read += batch.num_rows
            yield batch
    except GeneratorExit:
        raise
    except BaseException as error:
        failure = error
        raise
    finally:
        read.end(failure)
