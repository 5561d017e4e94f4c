"""Threads; if the system refuses to start one, the error is a `StorageError`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from pyhudi.errors import StorageError


class ThreadPool(ThreadPoolExecutor):
    """Its base class, with `StorageError` if the system refuses to start a thread."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """See the base class."""
        with _name_thread():
            return super().submit(fn, *args, **kwargs)


def start(thread: threading.Thread) -> None:
    """Start a thread. Raises `StorageError` if the system refuses it."""
    with _name_thread():
        thread.start()


def call_before_exit(function: Callable[[], None]) -> None:
    """Call a function before the interpreter exits, while thread pools still accept tasks.

    Functions of `atexit` run when they accept no more. The standard library's own pools use this.
    """
    threading._register_atexit(function)  # type: ignore[attr-defined]  # noqa: SLF001


@contextmanager
def _name_thread() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        if "start new thread" not in str(error):
            raise
        hint = "Raise ulimit -u, end other processes, or use fewer threads."
        raise StorageError("the system refuses to start more threads", hint=hint) from error
