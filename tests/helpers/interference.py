"""Another writer that commits between the plan of a write and its instant."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from pyhudi.txn.transaction import Transaction


def interfere_once(monkeypatch: pytest.MonkeyPatch, other: Callable[[], object]) -> None:
    """Has `other` write once, when the next write has made its plan."""
    enter = Transaction.__enter__

    def write_before(self: Transaction) -> Transaction:
        monkeypatch.setattr(Transaction, "__enter__", enter)
        # In a thread of its own, because events of the other writer are no part of this one's.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(other).result()
        return enter(self)

    monkeypatch.setattr(Transaction, "__enter__", write_before)
