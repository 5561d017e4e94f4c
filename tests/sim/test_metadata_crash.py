"""Crashes at every change of a write to a table with a metadata table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.config.actions import DELTA_COMMIT
from pyhudi.config.table_config import TableConfig
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline
from pyhudi.write import upsert
from tests.helpers.tables import unpack
from tests.sim.crash import Handle, rows_read
from tests.sim.states import recorded

TABLES = [
    "v8_mor_part_avro",
    "v8_cow_nonpart",
    "v6_cow_record_index",
    "v9_mor_record_index",
    "v9_mor_secondary_index",
]
OPTIONS = {"hoodie.index.bloom.num_entries": "64", "hoodie.parquet.small.file.limit": "0"}


@pytest.fixture(params=TABLES)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A table of Hudi's with several indexes."""
    name: str = request.param
    unpack(name, tmp_path)
    return tmp_path / name


def pending(base: Path) -> list[str]:
    """Pending delta commits of the metadata table, but those that made it."""
    storage = Storage(str(base / ".hoodie" / "metadata"))
    config = TableConfig.parse(storage.read(".hoodie/hoodie.properties"), "properties")
    return [i.requested for i in Timeline.load(storage, config).pending(DELTA_COMMIT)]


def write(handle: Handle, data: pa.Table) -> None:
    upsert.upsert(handle, data)


def test_metadata_table_lists_committed_files_only(table: Path, tmp_path: Path) -> None:
    first = pa.Table.from_pylist(rows_read(table, "false"))
    schema = pyhudi.open_table(str(table)).scan().to_arrow().schema
    names = [name for name in schema.names if not name.startswith("_hoodie")]
    data = first.select(names).cast(pa.schema([schema.field(name) for name in names]))
    some, others = data.slice(0, 3), data.slice(3, 2)
    whole = recorded(table, tmp_path, lambda storage: write(Handle(storage, OPTIONS), some))
    assert any(".hoodie/metadata" in str(path) for path in whole.base.rglob("*"))
    for n, copy in whole.deaths(one_in=2):
        assert rows_read(copy, "true") == rows_read(copy, "false"), f"after change {n}"
        write(Handle(Storage(str(copy)), OPTIONS), others)
        assert rows_read(copy, "true") == rows_read(copy, "false"), f"after the next write, {n}"
        assert pending(copy) == [], f"after change {n}"
