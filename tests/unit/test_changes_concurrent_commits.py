"""Change queries over concurrent commits to the same buckets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.errors import HistoryUnavailable
from pyhudi.txn.transaction import Transaction
from tests.helpers.pairwise import pairwise as met_in_pairs
from tests.helpers.table_builder import TableBuilder

MADE = TableBuilder(
    {"id": (pa.string(), str), "v": (pa.int64(), 0), "ts": (pa.int64(), 0)},
    kind="mor",
    metadata=False,
    options={
        "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "1",
        "hoodie.table.cdc.enabled": "true",
    },
)


def rows(keys: str, v: int) -> pa.Table:
    return MADE.rows(keys, v=v, ts=v)


def first_in(
    monkeypatch: pytest.MonkeyPatch, moment: str, other: Callable[[], object]
) -> list[bool]:
    """Has another write in a moment of the next write: a method of its transaction."""
    of_transaction = getattr(Transaction, moment)
    met: list[bool] = []

    def entered(self: Transaction, *given: Any, **how: Any) -> Any:
        if not met:
            met.append(True)
            other()
        return of_transaction(self, *given, **how)

    monkeypatch.setattr(Transaction, moment, entered)
    return met


def replayed(changes: list[dict[str, Any]]) -> dict[str, Any]:
    """The rows by key that changes lead to, each from what the one before it left."""
    found: dict[str, Any] = {}
    for change in changes:
        before, after = change["before"], change["after"]
        key = (after or before)["id"]
        assert found.pop(key, None) == before
        if after:
            found[key] = after
    return found


def stepwise(table: HudiTable) -> Iterator[list[dict[str, Any]]]:
    """The changes commit by commit, in the order of completion."""
    times = [None, *sorted(str(commit.completed) for commit in table.state.timeline.commits)]
    for start, end in pairwise(times):
        yield table.changes(start, end).to_arrow().to_pylist()


@pytest.mark.parametrize(
    ("version", "moment", "order_by", "begun", "services"),
    met_in_pairs(
        (8, 9), ("__enter__", "commit"), (None, "ts"), (True, False), (True, False),
        allowed=lambda _, moment, __, begun, services: begun or moment == "commit" or not services,
    ),
)  # fmt: skip
def test_changes_compare_with_snapshot_before_each_commit(
    version: int,
    moment: str,
    order_by: str | None,
    begun: bool,
    services: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The stats of neither writer name the other's log files."""
    table = MADE.make(tmp_path / "table", version=version, order_by=order_by)
    second = pyhudi.open_table(table.uri, options=table.options)
    if begun:
        table.upsert(rows("ab", 0))

    def other() -> None:
        second.upsert(rows("abx", 7))
        if services:
            second.compact()
        second.delete_keys(rows("b", 0))
        second.upsert(rows("y", 7))

    assert not first_in(monkeypatch, moment, other)
    table.upsert(rows("abxyz", 3))
    second.refresh().upsert(rows("az", 9))
    table.refresh()
    now = {row["id"]: row for row in table.scan(list(MADE.columns)).to_arrow().to_pylist()}
    told = table.changes().to_arrow().to_pylist()
    assert replayed(told) == now
    assert sorted(chain(*stepwise(table)), key=str) == sorted(told, key=str)


def test_changes_skip_slice_compacted_concurrently(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit names nothing that was there, as one does that knows of no change capture."""
    table = MADE.make(tmp_path / "table")
    second = pyhudi.open_table(table.uri, options=table.options)

    def other() -> None:
        second.upsert(rows("a", 7))
        second.compact()

    first_in(monkeypatch, "__enter__", other)
    late = table.upsert(rows("a", 3)).instant
    with pytest.raises(HistoryUnavailable, match=f"written at {late} without a change log"):
        table.changes().to_arrow()


def test_changes_name_missing_slice_of_log_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = MADE.make(tmp_path / "table")
    table.upsert(rows("a", 0))
    (gone,) = (tmp_path / "table").glob(".*.log.*")
    second = pyhudi.open_table(table.uri, options=table.options)
    first_in(monkeypatch, "__enter__", lambda: second.upsert(rows("a", 7)))
    table.upsert(rows("a", 3))
    gone.unlink()
    with pytest.raises(HistoryUnavailable, match="is missing") as raised:
        table.refresh().changes().to_arrow()
    assert gone.name in str(raised.value)
