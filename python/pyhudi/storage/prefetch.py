"""Answers of storage that were asked for before somebody waits for them.

Where each call is a round trip, a step that reads several files one after the other has all of
them asked for at once. Whoever asks in the block, in the same thread, gets the answer that is on
its way, and the next time storage's own. So a block begins where all of it could have been read,
such as after the lock was taken that it is read under.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

from pyhudi.storage.threads import ThreadPool

AT_ONCE = 16
"""Calls to a bucket or to HDFS under way, or tasks that do little but make them."""

Question: TypeAlias = tuple[str, str, str]
"""The verb, the storage's URI, the path."""
_Coming: TypeAlias = dict[Question, "Future[Any]"]

_coming: ContextVar[tuple[_Coming, ...]] = ContextVar("coming", default=())
"""Of the blocks that the thread is in."""


@contextmanager
def prefetch(questions: Mapping[Question, Callable[[], Any]]) -> Iterator[None]:
    """Asks all of them at once, for `answer` in the block; not again what is on its way."""
    outer = _coming.get()
    pool = ThreadPool(AT_ONCE, thread_name_prefix="pyhudi-ahead")
    coming = {
        question: pool.submit(ask)
        for question, ask in questions.items()
        if not any(question in asked for asked in outer)
    }
    try:
        with coming_in(coming):
            yield
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def coming_in(answers: _Coming) -> Iterator[None]:
    """A block in which these are the answers on their way."""
    token = _coming.set((answers, *_coming.get()))
    try:
        yield
    finally:
        _coming.reset(token)


def take_prefetched(question: Question) -> Future[Any] | None:
    """The answer that is on its way, once; None where nobody has asked."""
    for coming in _coming.get():
        if question in coming:
            return coming.pop(question)
    return None


def forget() -> None:
    """Has nothing be taken that was asked for so far: others, or this thread, went on since."""
    for coming in _coming.get():
        coming.clear()


def run_concurrently(steps: Sequence[Callable[[], object]]) -> None:
    """Takes steps that do not need each other. Raises the first failure once all are taken."""
    with ThreadPool(min(len(steps), AT_ONCE), thread_name_prefix="pyhudi-step") as pool:
        taken = [pool.submit(step) for step in steps]
    for step in taken:
        step.result()
