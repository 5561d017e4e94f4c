"""Reads during a write from a handle that was opened before it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.engine.local import LocalEngine
from tests.helpers.table_builder import TableBuilder, numbered
from tests.sim.states import State, recorded

TABLE = TableBuilder(
    {
        "id": (pa.string(), numbered(3)),
        "part": (pa.string(), lambda number: f"p{number % 2}"),
        "v": (pa.int64(), 1),
    },
    partition_by="part",
)

MOVES = {
    "overwrite": lambda table: table.overwrite(TABLE.rows(range(8), v=2)),
    "move": lambda table: table.upsert(TABLE.rows([3], part="p0", v=2)),
}
"""Writes after which the record index names other file groups."""


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_keys_are_found_where_they_were(tmp_path: Path, move: str, kind: str) -> None:
    """Also when the metadata table has the write already and the table has not."""
    start = tmp_path / "table"
    table = TABLE.make(start, version=9, kind=kind)
    table.upsert(TABLE.rows(range(8)))
    assert "record_index" in table.config.metadata_partitions
    write: Callable[[HudiTable], object] = MOVES[move]
    options = {"hoodie.record.index.update.partition.path": "true"}
    before = State.of(start)
    record = recorded(
        start, tmp_path, lambda storage: write(HudiTable(storage, LocalEngine(), options))
    )
    for n, base in record.deaths(one_in=2):
        state = State.of(base)
        before.restore(base)
        stale = pyhudi.open_table(base)
        state.restore(base)
        for _ in range(2):
            assert stale.scan(where="id = 'k003'").to_arrow()["v"].to_pylist() == [1], n


def test_handle_cache_is_rebuilt_after_its_files_are_cleaned(tmp_path: Path) -> None:
    """Of the metadata table, whose own services take files that the handle's moment had."""
    table = TABLE.make(tmp_path / "table", version=9, kind="cow")
    table.upsert(TABLE.rows(range(8)))
    stale = pyhudi.open_table(table.uri)
    assert stale.scan(where="id = 'k003'").count() == 1
    pyhudi.open_table(table.uri).rebuild_metadata()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert stale.scan(where="id = 'k004'").count() == 1
        assert stale.scan().count() == 8
