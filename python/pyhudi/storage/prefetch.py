"""Prefetch: storage requests that are sent before their results are needed.

If each call is a round trip, a step that reads several files requests all of them concurrently. The
first read of each in the block, in the same thread, gets the prefetched result; the next one reads
storage again. So a block begins at a point at which all of it could have been read, such as after
taking the lock under which it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

from pyhudi.storage.threads import ThreadPool

MAX_CONCURRENT = 16
"""Concurrent calls to an object store or to HDFS, or tasks that mostly make such calls."""

Request: TypeAlias = tuple[str, str, str]
"""The method, the storage's URI, the path."""
_Pending: TypeAlias = dict[Request, "Future[Any]"]

_blocks: ContextVar[tuple[_Pending, ...]] = ContextVar("prefetched", default=())
"""The prefetched results of the blocks that the thread is in, the innermost first."""


@contextmanager
def prefetch(requests: Mapping[Request, Callable[[], Any]]) -> Iterator[None]:
    """Send all requests concurrently, for `take_prefetched` in the block; none of them twice."""
    outer = _blocks.get()
    pool = ThreadPool(MAX_CONCURRENT, thread_name_prefix="pyhudi-prefetch")
    pending = {
        request: pool.submit(send)
        for request, send in requests.items()
        if not any(request in block for block in outer)
    }
    try:
        with prefetch_block(pending):
            yield
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def prefetch_block(pending: _Pending) -> Iterator[None]:
    """Run a block in which `take_prefetched` finds these results."""
    token = _blocks.set((pending, *_blocks.get()))
    try:
        yield
    finally:
        _blocks.reset(token)


def take_prefetched(request: Request) -> Future[Any] | None:
    """Return the pending result, once; None if it was not prefetched."""
    for pending in _blocks.get():
        if request in pending:
            return pending.pop(request)
    return None


def forget() -> None:
    """Drop all prefetched results: other writers, or this thread, have made changes since."""
    for pending in _blocks.get():
        pending.clear()


def run_concurrently(steps: Sequence[Callable[[], object]]) -> None:
    """Run independent steps. Raises the first failure once all have ended."""
    with ThreadPool(min(len(steps), MAX_CONCURRENT), thread_name_prefix="pyhudi-step") as pool:
        futures = [pool.submit(step) for step in steps]
    for step in futures:
        step.result()
