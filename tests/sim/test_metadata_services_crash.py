"""Crashes at every change of a compaction and a clean of the metadata table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.config.actions import CLEAN, COMMIT
from pyhudi.config.table_config import TableConfig
from pyhudi.engine.local import LocalEngine
from pyhudi.metadata import services as policy
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline
from pyhudi.write import upsert
from tests.helpers.metadata_table import metadata_table
from tests.helpers.tables import unpack
from tests.sim.crash import Handle, rows_read
from tests.sim.states import recorded

TABLES = ["v6_cow_record_index", "v8_mor_part_avro", "v9_mor_record_index"]
OPTIONS = {
    "hoodie.index.bloom.num_entries": "64",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.metadata.compact.max.delta.commits": "2",
}


@pytest.fixture(autouse=True)
def _due_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "RETAINED", 3)
    monkeypatch.setattr(policy, "_SINCE_COMPACTION", 0)


def write(storage: Storage, data: pa.Table) -> None:
    upsert.upsert(Handle(storage, OPTIONS, LocalEngine(1)), data)


def services(base: Path) -> tuple[int, int]:
    """Completed compactions and cleans."""
    timeline = metadata_table(Storage(str(base))).timeline
    return len(timeline.filter_completed(COMMIT)), len(timeline.filter_completed(CLEAN))


@pytest.mark.parametrize("name", TABLES)
def test_metadata_service_crash_is_completed_by_next_writer(name: str, tmp_path: Path) -> None:
    table = unpack(name, tmp_path)
    handle = pyhudi.open_table(str(table))
    data = handle.scan().to_arrow().slice(0, 3)
    # The write that follows cleans and compacts.
    for _ in range(5):
        write(Storage(str(table)), data)
    before = services(table)
    whole = recorded(table, tmp_path, lambda storage: write(storage, data))
    after = services(whole.base)
    assert after[0] + after[1] > before[0] + before[1]
    judged = 0
    for n, copy in whole.deaths():
        # The services begin when the write's own commit is complete.
        if commits(copy) == commits(table):
            continue
        judged += 1
        assert rows_read(copy, "true") == rows_read(copy, "false"), f"after change {n}"
        write(Storage(str(copy)), data)
        assert rows_read(copy, "true") == rows_read(copy, "false"), f"after the next write, {n}"
        own = metadata_table(Storage(str(copy)))
        assert own.timeline.pending() == (), f"after change {n}"
        found = pyhudi.open_table(str(copy)).check(deep=True)
        assert not found, f"after change {n}: {found}"
    assert judged > 5


def commits(base: Path) -> int:
    storage = Storage(str(base))
    return len(Timeline.load(storage, TableConfig.load(storage)).commits)
