"""Table services in a thread of this process, so that no commit waits for them.

`admin/inline_services.py` decides which services are due, and runs them. The thread has a lock
manager of its own, so the services and the commits of this process exclude each other as those of
two processes do. It exists while there is work.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable

from pyhudi.config.log import logger
from pyhudi.storage import threads

RunServices = Callable[[str, Callable[[], bool], Callable[[Exception], None]], None]
"""Runs what is due after the commit of an instant, one service after another, until the first
function returns true; the second one gets the errors."""

_WAIT_SECONDS = 1.0
"""Ctrl-C that arrives just before a wait does not end it: it is handled after this time."""
_MAX_ERRORS = 100
"""Maximum number of errors that are kept until `finish`."""


class BackgroundServices:
    """The services of one table handle. Its methods can be called from any thread."""

    def __init__(self, uri: str, run: RunServices) -> None:
        self._uri = uri
        self._run_services = run
        self.process = os.getpid()
        """The process that it belongs to."""
        self._changed = threading.Condition()
        self._requested: str | None = None
        """The last commit after which no services ran yet."""
        self._thread: threading.Thread | None = None
        self._errors: list[Exception] = []
        self._is_stopped = False

    @classmethod
    def of(cls, owner: object, uri: str, runner: Callable[[], RunServices]) -> BackgroundServices:
        """Return the services of a handle in this process.

        runner: returns what runs them, without the handle.
        """
        with _lock:
            services = _by_owner.get(owner)
            # A forked process does not have the thread.
            if services is None or services.process != os.getpid():
                services = _by_owner[owner] = cls(uri, runner())
        return services

    @classmethod
    def finish_of(cls, owner: object) -> None:
        """Wait for the services of a handle, if it has any: see `finish`."""
        services = _by_owner.get(owner)
        if services is not None:
            services.finish()

    def request(self, instant: str) -> None:
        """Run what is due after a commit, as soon as earlier requests are done.

        One run serves several commits. It raises `StorageError` if no thread can be started.
        """
        with self._changed:
            if self._is_stopped:
                return
            self._requested = instant
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="pyhudi-services", daemon=True)
                threads.start(thread)
                self._thread = thread
                _active.add(self)

    def finish(self) -> None:
        """Wait until the requested services have run. Raises the first error of one that failed."""
        if self.process != os.getpid() or threading.current_thread() is self._thread:
            return
        with self._changed:
            while self._thread is not None:
                self._changed.wait(_WAIT_SECONDS)
            errors, self._errors = self._errors, []
        for error in errors:
            raise error

    def stop(self) -> None:
        """Begin no further service, and wait for the running one."""
        with self._changed:
            self._is_stopped = True
        try:
            self.finish()
        except Exception:  # noqa: BLE001 - it was a warning before
            logger.info("%s: services of the background are stopped", self._uri)

    def _run(self) -> None:
        while True:
            with self._changed:
                instant, self._requested = self._requested, None
                if instant is None or self._is_stopped:
                    self._thread = None
                    self._changed.notify_all()
                    return
            try:
                self._run_services(instant, lambda: self._is_stopped, self._add_error)
            except Exception as error:  # noqa: BLE001 - such as a warning that is an error
                self._add_error(error)

    def _add_error(self, error: Exception) -> None:
        with self._changed:
            self._errors = [*self._errors, error][:_MAX_ERRORS]


_lock = threading.Lock()
_by_owner: weakref.WeakKeyDictionary[object, BackgroundServices] = weakref.WeakKeyDictionary()
"""By handle."""
_active: weakref.WeakSet[BackgroundServices] = weakref.WeakSet()


def _stop_all() -> None:
    """Stop the services of this process before the interpreter exits."""
    for services in [*_active]:
        if services.process == os.getpid():
            services.stop()


threads.call_before_exit(_stop_all)
