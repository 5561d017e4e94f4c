"""A table with a secondary index, written in turn: both find rows by it, none is missing."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi.clock import SystemClock
from pyhudi.config.table_config import TableConfig
from pyhudi.metadata.reader import MetadataTable
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline
from tests.compat.test_alternating_writers import Model, hudi_options
from tests.compat.test_metadata_writes import (
    LOCATIONS,
    METADATA,
    read_by_pyhudi,
    write_with_hudi,
    write_with_pyhudi,
)
from tests.helpers.oracle.client import HudiOracle

INDEX = "secondary_index_idx_note"
VALUES = ("", "plain", "ünï\u4e16")
LOCK = {
    "hoodie.write.lock.provider": ("org.apache.hudi.client.transaction.lock.InProcessLockProvider"),
}


def check(hudi: HudiOracle, base: Path, model: Model) -> None:
    rows = model.sorted()
    # Hudi 1.0.2 has no entries of nulls.
    indexed = [row for row in rows if row["note"] is not None or hudi.hudi != "1.0.2"]
    assert entries(base) == sorted(((row["note"], row["id"]) for row in indexed), key=str)
    assert read_by_pyhudi(base) == rows
    for value in VALUES:
        wanted = [row for row in rows if row["note"] == value]
        assert read_by_pyhudi(base, pc.field("note") == value) == wanted
        read = hudi.read(base, metadata=True, data_skipping=True, filter=f"note = '{value}'")
        assert sorted(read["rows"], key=lambda row: str(row["id"])) == wanted, value
    verdict = hudi.validate(base)
    assert verdict["ok"], verdict
    assert verdict["duplicate_keys"] == 0


def entries(base: Path) -> list[tuple[Any, Any]]:
    storage = Storage(str(base))
    config = TableConfig.load(storage, SystemClock())
    table = MetadataTable(storage, config, Timeline.load(storage, config))
    hashed = table.definitions[INDEX].version > 1
    rows = table.partition(INDEX).secondary(hashed_by_value=hashed)
    pairs = zip(rows["value"].to_pylist(), rows["record_key"].to_pylist(), strict=True)
    return sorted(pairs, key=str)


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize(("version", "hudi"), [(8, "1.0.2"), (9, "1.2.0")], indirect=["hudi"])
@pytest.mark.timeout(600)
def test_rounds_in_turn(tmp_path: Path, hudi: HudiOracle, version: int, kind: str) -> None:
    base = tmp_path / "trips"
    model = Model(random.Random(f"{version}-{kind}"))
    options = {**hudi_options(kind, partitioned=True), **METADATA, **LOCATIONS}
    write_with_hudi(hudi, base, model, options, mode="overwrite")
    hudi.sql(base, "CREATE INDEX idx_note ON {table} (note)", LOCK)
    for number in range(5):
        if number % 2:
            write_with_hudi(hudi, base, model, options)
        else:
            write_with_pyhudi(base, model)
        if number in (0, 4):
            check(hudi, base, model)
    nowhere = pyhudi.open_table(str(base)).scan(where="note = 'in no row'").explain()
    assert "secondary" in str(nowhere)
