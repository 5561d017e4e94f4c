"""One handle that several threads write with, or whose table is made anew beneath it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
import pyhudi.api.table_handle
from pyhudi.errors import ConfigError

SCHEMA = pa.schema([("id", pa.string()), ("other", pa.string()), ("n", pa.int64())])


def rows(*given: tuple[str, str, int]) -> pa.Table:
    return pa.Table.from_pylist(
        [dict(zip(SCHEMA.names, each, strict=True)) for each in given], SCHEMA
    )


def test_refresh_never_moves_handle_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread stalls between loading the table and updating the handle."""
    table = pyhudi.create_table(tmp_path / "t", rows(("x", "x", 0)), key="id")
    load = pyhudi.api.table_handle.load_snapshot
    looked, go_on = threading.Event(), threading.Event()

    def loaded(*args: Any) -> Any:
        snapshot = load(*args)
        if threading.current_thread() is late:
            looked.set()
            assert go_on.wait(60)
        return snapshot

    late = threading.Thread(target=table.refresh)
    monkeypatch.setattr(pyhudi.api.table_handle, "load_snapshot", loaded)
    late.start()
    assert looked.wait(60)
    table.upsert(rows(("mine", "x", 1)))
    assert table.count("id = 'mine'") == 1
    go_on.set()
    late.join()
    assert sorted(table.to_arrow()["id"].to_pylist()) == ["mine", "x"]


@pytest.mark.parametrize("on", ["id", ["id"]])
def test_merge_uses_key_it_was_created_with(tmp_path: Path, on: Any) -> None:
    """Another writer has recreated the table with another key."""
    before = rows(("1", "a", 0), ("2", "b", 0))
    table = pyhudi.create_table(tmp_path / "t", before, key="id")
    merge = table.merge(rows(("1", "b", 9)), on=on).when_matched_update_all()
    now = pyhudi.create_table(tmp_path / "t", before, key="other", mode="overwrite")
    with pytest.raises(ConfigError, match=r"on is \['id'\]"):
        merge.execute()
    assert now.refresh().to_arrow().select(SCHEMA.names) == before
