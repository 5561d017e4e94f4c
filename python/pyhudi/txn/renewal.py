"""A thread that calls a method periodically: the renewal of a lock's lease or of a heartbeat."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from contextlib import suppress

from pyhudi.storage.threads import start


class Renewal:
    """Calls a method of an object periodically, from `start` to `stop`.

    It ends with the object, so an abandoned lock is not renewed forever. After an error it calls
    the method again at the next interval; the object detects itself that it has expired.
    """

    def __init__(self, method: Callable[[], None], every_ms: int, name: str) -> None:
        """method: bound to the object. name: of the thread."""
        self._method = weakref.WeakMethod(method)
        self._every_s = every_ms / 1000
        self._name = name
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start; the first call comes after one interval."""
        self._ended.clear()
        arguments = (self._method, self._ended, self._every_s)
        thread = threading.Thread(target=_run, args=arguments, name=self._name, daemon=True)
        start(thread)
        self._thread = thread

    @property
    def is_ended(self) -> bool:
        """Whether no further call begins."""
        return self._ended.is_set()

    def end(self) -> None:
        """Begin no further call, and do not wait for a running one."""
        self._ended.set()

    def stop(self) -> None:
        """Stop, and wait for a running call."""
        self.end()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._thread = None


def _run(
    method: weakref.WeakMethod[Callable[[], None]], ended: threading.Event, every_s: float
) -> None:
    while not ended.wait(every_s):
        call = method()
        if call is None:
            return
        with suppress(Exception):
            call()
        del call
