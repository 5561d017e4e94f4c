"""Events of this process: a function of the program is called as operations and their parts end.

`listen` registers the function. Without a listener no event is created, and nothing is measured.
Events come from the process that calls pyhudi: on Spark, from the driver.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from pyhudi.clock import SystemClock
from pyhudi.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from typing_extensions import Self

    Function = Callable[["Event"], object]
    """A function of the program that gets events."""

__all__ = [
    "Commit",
    "ConflictRetry",
    "Event",
    "Listener",
    "LockHold",
    "LockWait",
    "Operation",
    "Requests",
    "Service",
    "listen",
    "storage_requests",
]


class Requests(NamedTuple):
    """Requests of one kind to storage."""

    total: int
    """All requests, including retries."""
    bytes_sent: int
    bytes_received: int
    retries: int
    """Requests that repeat a failed one."""
    throttled: int
    """Answers by which the service asked for fewer requests: 429 and 503."""

    def since(self, before: Requests) -> Requests:
        """Return the requests that were added to earlier totals."""
        return Requests(*(new - old for new, old in zip(self, before, strict=True)))


def storage_requests() -> dict[str, Requests]:
    """Return the requests of this process to storage since it began.

    In a bucket, they are HTTP requests. On a local file system and on HDFS, they are calls: a range
    that is read, a file that is written. You need no listener for this.

    Returns:
        The totals by kind: "read", "head" (size of a file), "list", "write", "delete" and "other"
        (such as temporary credentials).
    """
    from pyhudi import _native  # noqa: PLC0415 - events alone need no core

    return {kind: Requests(*totals) for kind, *totals in _native.request_totals()}


class Event:
    """The base of all events. The same object is passed at the begin and at the end."""

    uri: str
    """Location of the table."""
    parent: Event | None = None
    """The event that this one is part of: of a lock wait, the operation that waits."""
    seconds: float = 0.0
    """Duration; 0 at the begin."""
    error: BaseException | None = None
    """The exception that ended it; None if it succeeded."""
    is_enclosing: bool = True
    """Whether it begins and ends in one thread, around its parts."""

    def __init__(self, uri: str) -> None:
        self.uri = uri

    @property
    def operation(self) -> Operation | None:
        """The operation that the event is, or else is part of; None in the background."""
        event: Event | None = self
        while event is not None and not isinstance(event, Operation):
            event = event.parent
        return event

    def add_figures(self, result: object) -> None:
        """Take over figures of a result that the event has, too."""

    def __repr__(self) -> str:
        values = {**vars(self), "parent": None, "seconds": round(self.seconds, 6)}
        shown = (f"{name}={value!r}" for name, value in values.items() if value)
        return f"<{type(self).__name__} {' '.join(shown)}>"


class _Work(Event):
    """An event with the figures of a result."""

    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    files_written: int = 0
    bytes_written: int = 0
    files_removed: int = 0

    def add_figures(self, result: object) -> None:
        """Take over figures of a result that the event has, too."""
        if getattr(result, "was_written_before", False):
            return
        for name in _FIGURES:
            value = getattr(result, name, 0)
            if isinstance(value, int) and value:
                setattr(self, name, value)


_FIGURES = (
    "rows_inserted",
    "rows_updated",
    "rows_deleted",
    "files_written",
    "bytes_written",
    "files_removed",
)


class Operation(_Work):
    """A call that reads or changes a table, with all retries and services after it.

    A call of pyhudi within an operation of the same table has no event of its own.
    """

    name: str
    """Name of the method or function: "upsert", "compact", "scan", "create_table"."""
    table: str
    """Name of the table."""
    instant: str = ""
    """The commit; "" without one."""
    rows_read: int = 0
    """Rows that the program got."""
    conflict_retries: int = 0
    """Retries after conflicts with other writers."""
    requests: Mapping[str, Requests] = {}  # noqa: RUF012 - replaced, never changed
    """Requests of the process to storage during the operation, by kind: including those of
    operations that ran concurrently. See `storage_requests`."""

    def __init__(self, uri: str, name: str, table: str) -> None:
        super().__init__(uri)
        self.name, self.table = name, table

    def add_figures(self, result: object) -> None:
        """Take over figures of a result that the event has, too."""
        super().add_figures(result)
        self.instant = str(getattr(result, "instant", "")) or self.instant
        self.rows_read = int(getattr(result, "num_rows", 0)) or self.rows_read


class LockWait(Event):
    """The wait for a table's lock, also if it was free. Its error is often a `LockTimeout`."""


class LockHold(Event):
    """The time for which this process held a table's lock. It may end in another thread."""

    is_enclosing = False


class Commit(Event):
    """The publication of a commit under the table's lock, from the checks to the last step."""

    action: str
    """Hudi's action: "commit", "deltacommit", "replacecommit"."""
    instant: str
    """The requested time of the commit."""

    def __init__(self, uri: str, action: str, instant: str) -> None:
        super().__init__(uri)
        self.action, self.instant = action, instant


class Service(_Work):
    """A table service after a commit. In the background, it has no parent."""

    name: str
    """"cleaning", "archiving", "compaction", "log compaction", "clustering", "removal of old
    partitions" or "sync of catalogs"."""
    instant: str
    """The commit after which it runs."""

    def __init__(self, uri: str, name: str, instant: str) -> None:
        super().__init__(uri)
        self.name, self.instant = name, instant


class ConflictRetry(Event):
    """The pause before an operation is retried; `error` is the conflict."""

    attempt: int
    """Number of the attempt that follows: 2 or more."""

    def __init__(self, uri: str, attempt: int, error: Exception) -> None:
        super().__init__(uri)
        self.attempt, self.error = attempt, error


class Listener:
    """A registered function. `close` ends the registration, as does the end of a `with` block."""

    def __init__(self, on_end: Function, on_begin: Function | None) -> None:
        self._functions = {"begin": on_begin, "end": on_end}
        self._has_failed = False
        self.is_closed = False
        """Whether the registration has ended."""

    def close(self) -> None:
        """Call the function no more."""
        global _listeners  # noqa: PLW0603 - replaced as a whole, so that no call needs the lock
        with _lock:
            self.is_closed = True
            _listeners = tuple(each for each in _listeners if each is not self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _notify(self, moment: str, event: Event) -> None:
        """Pass on an event. The first exception of the listener is logged, later ones are not."""
        function = self._functions[moment]
        if function is None:
            return
        try:
            function(event)
        except Exception:  # noqa: BLE001 - must not fail the operation
            if not self._has_failed:
                self._has_failed = True
                import logging  # noqa: PLC0415 - only for this

                message = "a listener failed; its further errors are not logged: %r"
                logging.getLogger("pyhudi").exception(message, event)


_lock = threading.Lock()
_listeners: tuple[Listener, ...] = ()
_enclosing: ContextVar[Event | None] = ContextVar("pyhudi_event", default=None)
_is_silent: ContextVar[bool] = ContextVar("pyhudi_is_silent", default=False)


def listen(on_end: Function, *, on_begin: Function | None = None) -> Listener:
    """Have a function called for each event of this process, until the listener is closed.

    pyhudi calls it immediately, in the thread of the operation, also from several threads;
    some events end while the table's lock is held. An exception of it is logged once and changes
    nothing. Calls of pyhudi in the function have no events.

    Args:
        on_end: called when something has ended, with the event.
        on_begin: called when something begins, with the object that `on_end` gets later.

    Returns:
        The listener. Its `close` ends the calls, and so does the end of a `with` block.

    Raises:
        ConfigError: an argument is not a function.
    """
    global _listeners  # noqa: PLW0603 - as above
    for function in (on_end, on_begin or on_end):
        if not callable(function):
            raise ConfigError(
                f"listen takes a function, not {function!r}", hint="Pass a function of one event."
            )
    listener = Listener(on_end, on_begin)
    with _lock:
        _listeners = (*_listeners, listener)
    return listener


E = TypeVar("E", bound=Event)


class Observation(Generic[E]):
    """A started event. As a context manager it encloses the events of the block."""

    def __init__(self, event: E) -> None:
        self.event = event
        self._listeners = _listeners
        event.parent = _enclosing.get()
        self._requests = storage_requests() if isinstance(event, Operation) else {}
        if isinstance(event, ConflictRetry) and event.operation is not None:
            event.operation.conflict_retries += 1
        self._notify("begin")
        self._began_ns = _CLOCK.ticks_ns()

    def end(self, error: BaseException | None = None) -> None:
        """Report that the event has ended. error: the exception that ended it."""
        event = self.event
        event.seconds = (_CLOCK.ticks_ns() - self._began_ns) / 1e9
        event.error = error or event.error
        if isinstance(event, Operation):
            if error is not None:
                error.__dict__[_IS_REPORTED] = True
            event.requests = {
                kind: now.since(self._requests[kind])
                for kind, now in storage_requests().items()
                if now != self._requests[kind]
            }
        self._notify("end")

    def _notify(self, moment: str) -> None:
        with suppress_events():
            for listener in self._listeners:
                listener._notify(moment, self.event)  # noqa: SLF001 - of this module

    def __enter__(self) -> E:
        self._token = _enclosing.set(self.event)
        return self.event

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        _enclosing.reset(self._token)
        self.end(error)


_CLOCK = SystemClock()
_IS_REPORTED = "_pyhudi_is_reported"
"""Attribute of an exception that is the error of an operation."""
_NOTHING: AbstractContextManager[None] = nullcontext()


def is_observed() -> bool:
    """Return whether a listener gets events of this thread."""
    return bool(_listeners) and not _is_silent.get()


def is_reported(error: BaseException) -> bool:
    """Return whether an exception is the error of an operation that has ended."""
    return _IS_REPORTED in error.__dict__


def enclosing_operation() -> Operation | None:
    """Return the operation that this thread is in, if there is one."""
    event = _enclosing.get()
    return None if event is None else event.operation


@contextmanager
def suppress_events() -> Iterator[None]:
    """Have no event begin in the block."""
    token = _is_silent.set(True)
    try:
        yield
    finally:
        _is_silent.reset(token)


def begin(kind: Callable[..., E], *args: Any) -> Observation[E] | None:
    """Begin an event whose end is reported by `Observation.end`; None without a listener.

    kind: the type of the event, called with `args`.
    """
    return Observation(kind(*args)) if is_observed() else None


def observe(kind: Callable[..., E], *args: Any) -> AbstractContextManager[E | None]:
    """Report an event around a block, which gets it; None without a listener.

    kind: the type of the event, called with `args`.
    """
    return Observation(kind(*args)) if is_observed() else _NOTHING
