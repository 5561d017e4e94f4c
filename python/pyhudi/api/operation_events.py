"""Events of public calls: exactly one for each operation of a table.

A call within an operation of the same table is part of that one, and has no event of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import pyarrow as pa

from pyhudi import events

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
        return report_call(self, method.__name__, partial(method, self, *args, **more))

    return run


def as_lazy_operation(
    method: Callable[Concatenate[Owner, Arguments], Result],
) -> Callable[Concatenate[Owner, Arguments], Result]:
    """Report the calls of a method that fail, by its name.

    For a method whose result reports what it does: rows to read, a builder, a transaction.
    """

    @wraps(method)
    def run(self: Owner, /, *args: Arguments.args, **more: Arguments.kwargs) -> Result:
        with report_failure(self, method.__name__):
            return method(self, *args, **more)

    return run


def as_location_operation(
    name: str,
) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Report the calls of a function that creates or removes the table at its argument `uri`.

    The function calls `set_location` when it knows more.
    """

    def decorate(call: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        @wraps(call)
        def run(*args: Arguments.args, **more: Arguments.kwargs) -> Result:
            uri: Any = more["uri"] if "uri" in more else args[0]
            location = os.fspath(uri)
            if not events.is_observed() or _outer_operation(location) is not None:
                return call(*args, **more)
            table_name = location.rstrip("/").rpartition("/")[2]
            with events.Observation(events.Operation(location, name, table_name)):
                return call(*args, **more)

        return run

    return decorate


def set_location(uri: str, table_name: str) -> None:
    """Set what the enclosing operation is about: the location and the name of the table."""
    operation = events.enclosing_operation()
    if operation is not None:
        operation.uri, operation.table = uri, table_name


def report_call(owner: Observed, name: str, call: Callable[[], Result]) -> Result:
    """Return the result of a call, which is reported as an operation."""
    if not events.is_observed():
        return call()
    outer = _outer_operation(owner.uri)
    if outer is not None:
        result = call()
        outer.add_figures(result)
        return result
    with events.Observation(events.Operation(owner.uri, name, owner.table_name)) as event:
        result = call()
        event.add_figures(result)
    return result


@contextmanager
def report_failure(owner: Observed, name: str) -> Iterator[None]:
    """Report a block as an operation if it fails, unless its error is that of an operation."""
    try:
        yield
    except StopIteration:
        raise
    except BaseException as error:
        if not events.is_reported(error):
            report_error(owner, name, error)
        raise


def report_error(owner: Observed, name: str, error: BaseException) -> None:
    """Report an operation that failed, unless it is part of another one of the table."""
    if _outer_operation(owner.uri) is not None:
        return
    failure = events.begin(events.Operation, owner.uri, name, owner.table_name)
    if failure is not None:
        failure.end(error)


def report_rows(
    uri: str, table_name: str, name: str, open_rows: Callable[[], pa.RecordBatchReader]
) -> pa.RecordBatchReader:
    """Return the rows that a function opens; reported until their end, an error or `close`."""
    if not events.is_observed() or _outer_operation(uri) is not None:
        return open_rows()
    read = events.Observation(_stream(uri, name, table_name))
    try:
        rows = open_rows()
    except BaseException as error:
        read.end(error)
        raise
    batches = _count_rows(rows, read)
    # A generator that has not started would not see that its reader is dropped.
    next(batches)
    return pa.RecordBatchReader.from_batches(rows.schema, batches)


def _outer_operation(uri: str) -> events.Operation | None:
    """Return the operation of the same table that this thread is in, if there is one."""
    outer = events.enclosing_operation()
    return outer if outer is not None and outer.uri == uri else None


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
