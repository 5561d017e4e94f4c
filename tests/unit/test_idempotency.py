"""The search for a `commit_id` reads each commit once for a handle."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.config import extra_metadata
from pyhudi.write import idempotency
from tests.helpers.table_builder import SMALL, TableBuilder

TABLE = TableBuilder(
    {"id": (pa.string(), str), "v": (pa.int64(), 1)}, options=SMALL, metadata=False
)


def test_search_for_commit_id_reads_each_commit_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = TABLE.make(tmp_path / "t")
    for turn in range(5):
        table.upsert(TABLE.rows("a", v=turn), commit_id=f"c{turn}")
    read: list[Any] = []
    commit_ids = extra_metadata.commit_ids

    def count(extra: Any, of: Any) -> Collection[str]:
        read.append(of)
        return commit_ids(extra, of)

    monkeypatch.setattr(idempotency, "commit_ids", count)
    table.upsert(TABLE.rows("a", v=5), commit_id="c5")
    assert len(read) == 1, "that of the last commit"
    pyhudi.open_table(table.uri).upsert(TABLE.rows("a", v=6), commit_id="c6")
    read.clear()
    assert table.upsert(TABLE.rows("a", v=9), commit_id="c6").was_written_before
    assert table.upsert(TABLE.rows("a", v=9), commit_id="c0").was_written_before
    assert table.refresh().to_arrow().column("v").to_pylist() == [6]


def test_search_for_commit_id_sees_restore(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t")
    table.upsert(TABLE.rows("a", v=1), commit_id="one")
    saved = table.savepoint()
    table.upsert(TABLE.rows("a", v=2), commit_id="two")
    table.restore(saved)
    assert not table.upsert(TABLE.rows("a", v=3), commit_id="two").was_written_before
    assert table.upsert(TABLE.rows("a", v=4), commit_id="one").was_written_before
