"""pyhudi makes secondary, expression and partitioned record indexes; Hudi goes on with them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from tests.compat.test_alternating_writers import TRIPS, Model, hudi_options
from tests.compat.test_metadata_writes import (
    METADATA,
    read_by_pyhudi,
    write_with_hudi,
    write_with_pyhudi,
)
from tests.compat.test_secondary_index import LOCK, check
from tests.helpers.oracle.client import HudiOracle

Kind = Literal["cow", "mor"]
RECORDS = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.index.type": "RECORD_INDEX",
}


def make(base: Path, model: Model, version: int, kind: Kind) -> pyhudi.HudiTable:
    first = model.batch(12)
    model.upsert(first)
    rows = pa.Table.from_pylist(first, TRIPS.schema)
    table = TRIPS.make(base, version=version, kind=kind, metadata=False, first=rows)
    write_with_pyhudi(base, model)
    return pyhudi.open_table(table.uri)


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize(("version", "hudi"), [(8, "1.0.2"), (9, "1.2.0")], indirect=["hudi"])
@pytest.mark.timeout(600)
def test_secondary(tmp_path: Path, hudi: HudiOracle, version: int, kind: Kind) -> None:
    base = tmp_path / "trips"
    model = Model(random.Random(f"secondary-{version}-{kind}"))
    table = make(base, model, version, kind)
    table.create_index("record_index")
    made = table.create_index("secondary_index", ["note"], name="idx_note")
    assert made == ("files", "record_index", "secondary_index_idx_note")
    check(hudi, base, model)
    options = {**hudi_options(kind, partitioned=True), **METADATA, **RECORDS}
    write_with_hudi(hudi, base, model, options)
    write_with_pyhudi(base, model)
    write_with_hudi(hudi, base, model, options)
    check(hudi, base, model)
    assert set(made) <= set(pyhudi.open_table(base).config.metadata_partitions)
    hudi.sql(base, "DROP INDEX idx_note ON {table}", LOCK)
    assert "secondary_index_idx_note" not in pyhudi.open_table(base).config.metadata_partitions
    write_with_pyhudi(base, model)
    assert read_by_pyhudi(base) == model.sorted()


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("hudi", ["1.2.0"], indirect=["hudi"])
@pytest.mark.timeout(600)
def test_record_index_by_data_partition(tmp_path: Path, hudi: HudiOracle, kind: Kind) -> None:
    base = tmp_path / "trips"
    model = Model(random.Random(f"partitioned-{kind}"))
    table = make(base, model, 9, kind)
    assert table.create_index("record_index", partitioned=True) == ("files", "record_index")
    options = {
        **hudi_options(kind, partitioned=True),
        **METADATA,
        "hoodie.metadata.record.level.index.enable": "true",
        "hoodie.index.type": "RECORD_LEVEL_INDEX",
    }
    for _ in range(2):
        write_with_hudi(hudi, base, model, options)
        write_with_pyhudi(base, model)
    assert read_by_pyhudi(base) == model.sorted()
    for row in model.sorted()[:3]:
        assert read_by_pyhudi(base, pc.field("id") == row["id"]) == [row]
        where = f"id = '{row['id']}' AND city = '{row['city']}'"
        read = hudi.read(base, metadata=True, data_skipping=True, filter=where)["rows"]
        assert read == [row]
    verdict = hudi.validate(base)
    assert verdict["ok"], verdict
    assert verdict["duplicate_keys"] == 0
    assert pyhudi.open_table(base).check().ok
