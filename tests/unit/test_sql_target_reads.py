"""A SQL statement commits only on the rows of the table that it read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.errors import CommitConflict
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


@pytest.mark.parametrize("name", STATEMENTS)
def test_statement_runs_again_if_rows_that_it_read_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The table is as if the statement had run after the other write."""
    base, expected = tmp_path / "t", tmp_path / "expected"
    change = COUNTS.rows("xy", n=5)
    COUNTS.make(expected).upsert(change)
    pyhudi.sql(STATEMENTS[name], tables={"t": str(expected)})
    COUNTS.make(base)
    with monkeypatch.context() as patch:
        write_before_commits(patch, lambda _: pyhudi.open_table(base).upsert(change), 1)
        pyhudi.open_table(base).sql(STATEMENTS[name])
    assert values(base) == values(expected)


def test_statement_ignores_services_and_other_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compaction changes no rows, and a statement is a commit of one table."""
    table = COUNTS.make(tmp_path / "t", kind="mor")
    table.upsert(COUNTS.rows("xy", n=5))
    other = COUNTS.make(tmp_path / "other")

    def write(_: int) -> None:
        pyhudi.open_table(tmp_path / "t").compact()
        pyhudi.open_table(tmp_path / "other").upsert(COUNTS.rows("xy", n=9))

    statement = (
        "UPDATE t SET n = (SELECT max(n) FROM t) + (SELECT max(n) FROM other) WHERE id = 'x'"
    )
    with monkeypatch.context() as patch:
        plans = write_before_commits(patch, write, 1)
        table.sql(statement, tables={"other": other})
    assert plans[0] < 3
    assert values(tmp_path / "t") == {"x": 5, "y": 5}


def test_statement_raises_commit_conflict_if_each_attempt_loses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = COUNTS.make(tmp_path / "t")
    options = {"hoodie.write.num.retries.on.conflict.failures": "2"}

    def write(number: int) -> None:
        pyhudi.open_table(tmp_path / "t").upsert(COUNTS.rows("y", n=number))

    loser = pyhudi.open_table(tmp_path / "t", options=options)
    with monkeypatch.context() as patch:
        write_before_commits(patch, write, 99)
        with pytest.raises(CommitConflict, match="changed the table after the statement read it"):
            loser.sql(STATEMENTS["value of another row"])
    assert values(tmp_path / "t")["x"] == 0
    assert table.refresh().check().findings == ()
