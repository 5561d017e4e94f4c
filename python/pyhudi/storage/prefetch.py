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

AT_ONCE = 16
"""Concurrent calls to an object store or to HDFS, or tasks that mostly make such calls."""

Question: TypeAlias = tuple[str, str, str]
"""The method, the storage's URI, the path."""
_Coming: TypeAlias = dict[Question, "Future[Any]"]

_coming: ContextVar[tuple[_Coming, ...]] = ContextVar("coming", default=())
"""The prefetched results of the blocks that the thread is in."""


@contextmanager
def prefetch(questions: Mapping[Question, Callable[[], Any]]) -> Iterator[None]:
    """Send all requests concurrently, for `take_prefetched` in the block; none of them twice."""
    outer = _coming.get()
    pool = ThreadPool(AT_ONCE, thread_name_prefix="pyhudi-ahead")
    coming = {
        question: pool.submit(ask)
        for question, ask in questions.items()
        if not any(question in block for block in outer)
    }
    try:
        with coming_in(coming):
            yield
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def coming_in(answers: _Coming) -> Iterator[None]:
    """A block in which these results are pending."""
    token = _coming.set((answers, *_coming.get()))
    try:
        yield
    finally:
        _coming.reset(token)


def take_prefetched(question: Question) -> Future[Any] | None:
    """Return the pending result, once; None if it was not prefetched."""
    for coming in _coming.get():
        if question in coming:
            return coming.pop(question)
    return None


def forget() -> None:
    """Drop all prefetched results: other writers, or this thread, have made changes since."""
    for coming in _coming.get():
        coming.clear()


def run_concurrently(steps: Sequence[Callable[[], object]]) -> None:
    """Run independent steps. Raises the first failure once all have ended."""
    with ThreadPool(min(len(steps), AT_ONCE), thread_name_prefix="pyhudi-step") as pool:
        futures = [pool.submit(step) for step in steps]
    for step in futures:
        step.result()
