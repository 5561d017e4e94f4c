"""SQL statements that read the table that they change, while another writer commits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.txn.transaction import Transaction
from tests.helpers.table_builder import TableBuilder

COUNTS = TableBuilder(
    {"id": (pa.string(), str), "city": (pa.string(), str), "n": (pa.int64(), 0)},
    partition_by="city",
    metadata=False,
    first="xy",
)

STATEMENTS = {
    "value": "UPDATE t SET n = (SELECT n FROM t WHERE id = 'x') + 1 WHERE id = 'x'",
    "value of another row": "UPDATE t SET n = (SELECT n FROM t WHERE id = 'y') WHERE id = 'x'",
    "condition": "UPDATE t SET n = 9 WHERE id = 'x' AND (SELECT n FROM t WHERE id = 'y') = 0",
    "delete": "DELETE FROM t WHERE id = 'x' AND (SELECT n FROM t WHERE id = 'y') = 0",
    "exists": "DELETE FROM t WHERE id = 'x' AND EXISTS (SELECT 1 FROM t o WHERE o.n = 0 "
    "AND o.id <> t.id)",
    "source of a merge": "MERGE INTO t USING (SELECT 'x' AS id, 'x' AS city, max(n) AS n FROM t) s "
    "ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n + 1",
    "query of an insert": "INSERT INTO t SELECT 'z', 'x', max(n) FROM t",
}
"""Statements whose effect on x or z depends on rows of the same table."""


def write_before_commits(
    monkeypatch: pytest.MonkeyPatch, write: Callable[[int], object], times: int
) -> list[int]:
    """Have another writer commit after each of the first plans of a writer; count the plans."""
    enter, plans = Transaction.__enter__, [0]
    is_other = [False]

    def entered(self: Transaction) -> Transaction:
        if not is_other[0]:
            plans[0] += 1
            if plans[0] <= times:
                is_other[0] = True
                write(plans[0])
                is_other[0] = False
        return enter(self)

    monkeypatch.setattr(Transaction, "__enter__", entered)
    return plans


def values(base: Path) -> dict[str, int]:
    """The values by key."""
    rows = pyhudi.open_table(base).to_arrow().to_pylist()
    return {row["id"]: row["n"] for row in rows}
