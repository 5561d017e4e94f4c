"""A handle whose cached table properties are out of date."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.storage import properties_file
from pyhudi.storage import storage as storage_module
from pyhudi.storage.storage import Storage

SCHEMA = pa.schema([(name, pa.string()) for name in ("id", "p", "v")])


def rows(*given: tuple[str, str, str]) -> pa.Table:
    return pa.Table.from_pylist(
        [dict(zip(SCHEMA.names, row, strict=True)) for row in given], SCHEMA
    )


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    made = pyhudi.create_table(
        tmp_path / "t", SCHEMA, key="id", partition_by="p",
        options={"hoodie.metadata.record.index.enable": "false"},
    )  # fmt: skip
    made.upsert(rows(("a", "p1", "old"), ("b", "p1", "old")))
    return pyhudi.open_table(made.uri)


@pytest.fixture
def before_the_properties(
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[Callable[[], object]], None]:
    """Has another one act once all has been answered that is asked for, but for the properties."""
    read = Storage.read
    acts: list[Callable[[], object]] = []

    def late(self: Storage, path: str) -> bytes:
        if acts and path == properties_file.FILE:
            act = acts.pop()
            time.sleep(0.1)
            act()
        return read(self, path)

    late.__name__ = read.__name__
    monkeypatch.setattr(storage_module, "is_remote", lambda _uri: True)
    monkeypatch.setattr(Storage, "read", late)
    return acts.append


def index(table: HudiTable) -> None:
    pyhudi.open_table(table.uri).create_index("record_index", partitioned=True)


def test_write_uses_current_index_after_change(
    table: HudiTable, before_the_properties: Callable[[Callable[[], object]], None]
) -> None:
    before_the_properties(lambda: index(table))
    table.upsert(rows(("a", "p2", "new"), ("b", "p1", "new")))
    found = (
        pyhudi.open_table(table.uri)
        .scan()
        .to_arrow()
        .sort_by([("id", "ascending"), ("p", "ascending")])
    )
    assert (
        found.to_pylist()
        == rows(("a", "p1", "old"), ("a", "p2", "new"), ("b", "p1", "new")).to_pylist()
    )


def test_read_finds_rows_next_to_new_index(
    table: HudiTable, before_the_properties: Callable[[Callable[[], object]], None]
) -> None:
    before_the_properties(lambda: index(table))
    table.refresh()
    assert table.scan(where="id = 'a'").to_arrow().num_rows == 1
    assert table.scan().count() == 2
