"""A write based on a commit that is revoked before the write is published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pyhudi
from pyhudi.txn.transaction import Transaction
from tests.sim.crash import PEOPLE, SMALL_BLOOM, people, rows_read


@pytest.mark.parametrize("metadata", [False, True])
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_write_planned_on_rolled_back_commit_is_retried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, kind: Any, metadata: bool
) -> None:
    base = tmp_path / "t"
    options = {**SMALL_BLOOM, "hoodie.metadata.enable": str(metadata).lower()}
    table = PEOPLE.make(base, version=version, kind=kind, metadata=metadata, options=options)
    first = table.upsert(people([0, 1], 1, 1)).instant
    table.refresh().upsert(people([1, 2], 2, 2))
    if kind == "mor":
        table.refresh().compact()
    enter = Transaction.__enter__
    states: list[str] = []

    def late(self: Transaction) -> Transaction:
        if not states:
            states.append("restored")
            pyhudi.open_table(base, options=options).restore(to=first)
        return enter(self)

    monkeypatch.setattr(Transaction, "__enter__", late)
    result = pyhudi.open_table(base, options=options).upsert(people([2], 3, 3))
    assert (result.rows_inserted, result.rows_updated) == (1, 0)
    for _ in range(2):
        found = {row["id"]: row["v"] for row in rows_read(base, str(metadata).lower())}
        assert found == {"k00": 1, "k01": 1, "k02": 3}
        again = pyhudi.open_table(base, options=options)
        assert again.check(deep=True).findings == ()
        again.upsert(people([2], 3, 4))
