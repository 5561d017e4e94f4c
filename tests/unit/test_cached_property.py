"""`cached_property` computes once per object; objects do not wait for each other."""

from __future__ import annotations

import threading

from pyhudi.cached_property import cached_property


class Counted:
    def __init__(self, before: threading.Event | None = None) -> None:
        self.begun = threading.Event()
        self.times = 0
        self._before = before

    @cached_property
    def answer(self) -> int:
        self.begun.set()
        if self._before is not None:
            assert self._before.wait(30)
        self.times += 1
        return 42


def test_cached_property_computes_once() -> None:
    one = Counted()
    assert (one.answer, one.answer, one.times) == (42, 42, 1)
    assert isinstance(Counted.answer, cached_property)


def test_another_object_does_not_wait() -> None:
    free = threading.Event()
    slow = Counted(free)
    thread = threading.Thread(target=lambda: slow.answer)
    thread.start()
    assert slow.begun.wait(30)
    found: list[int] = []
    other = threading.Thread(target=lambda: found.append(Counted().answer))
    other.start()
    other.join(10)
    free.set()
    thread.join()
    assert found == [42]
