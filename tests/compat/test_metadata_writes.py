"""pyhudi and Hudi write a table with a metadata table in turn; both read by the metadata table."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from tests.compat.test_alternating_writers import DDL, SCHEMA, Model, hudi_options
from tests.helpers.oracle.client import HudiOracle

ROUNDS = 6
METADATA = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.metadata.index.partition.stats.enable": "false",
    # Hudi compacts what pyhudi wrote within the rounds.
    "hoodie.metadata.compact.max.delta.commits": "4",
}
STATISTICS = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}
LOCATIONS = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    "hoodie.metadata.record.index.max.filegroup.count": "2",
    "hoodie.index.type": "RECORD_INDEX",
}
PAYLOAD = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
EVENT_TIME = {
    "hoodie.datasource.write.payload.class": PAYLOAD,
    "hoodie.compaction.payload.class": PAYLOAD,
}
"""Hudi 0.15 would let the last write win."""
RELEASES = [(6, "0.15.0"), (8, "1.0.2"), (9, "1.2.0")]


def read_by_pyhudi(base: Path, where: pc.Expression | None = None) -> list[dict[str, Any]]:
    scan = pyhudi.open_table(str(base)).scan(where=where)
    rows: list[dict[str, Any]] = scan.to_arrow().to_pylist()
    return sorted(rows, key=lambda row: str(row["id"]))


def check(hudi: HudiOracle, base: Path, model: Model) -> None:
    """Rows, rows under a filter that skips files, Hudi's own checks, no key twice."""
    expected = model.sorted()
    assert read_by_pyhudi(base) == expected
    few = [row for row in expected if row["fare"] > 200]
    assert read_by_pyhudi(base, pc.field("fare") > 200) == few
    newest = [row for row in expected if row["id"] >= "k0012"]
    for text, rows in [("fare > 200", few), ("id >= 'k0012'", newest)]:
        read = hudi.read(base, metadata=True, data_skipping=True, filter=text)["rows"]
        assert sorted(read, key=lambda row: str(row["id"])) == rows, text
    verdict = hudi.validate(base)
    assert verdict["ok"], verdict
    assert verdict["duplicate_keys"] == 0
    assert verdict["snapshot"] == len(expected)


def write_with_hudi(
    hudi: HudiOracle, base: Path, model: Model, options: dict[str, str], mode: str = "append"
) -> None:
    batch = model.batch(4)
    hudi.write(base, rows=batch, schema=DDL, operation="upsert", options=options, mode=mode)
    model.upsert(batch)
    if mode == "append":
        gone = model.chosen(2)
        hudi.write(base, rows=gone, schema=DDL, operation="delete", options=options)
        model.delete(gone)


def write_with_pyhudi(base: Path, model: Model) -> None:
    batch = model.batch(4)
    pyhudi.open_table(str(base)).upsert(pa.Table.from_pylist(batch, SCHEMA))
    model.upsert(batch)
    gone = model.chosen(2)
    keys = pa.Table.from_pylist(gone, SCHEMA).select(["id", "city"])
    pyhudi.open_table(str(base)).delete_keys(keys)
    model.delete(gone)


@pytest.mark.parametrize("indexes", ["files", "stats", "locations"])
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize(("version", "hudi"), RELEASES, indirect=["hudi"])
@pytest.mark.timeout(600)
def test_rounds_in_turn(
    tmp_path: Path, hudi: HudiOracle, version: int, kind: str, indexes: str
) -> None:
    base = tmp_path / "trips"
    model = Model(random.Random(f"{version}-{kind}-{indexes}"))
    options = {**hudi_options(kind, partitioned=True), **METADATA}
    if version == 6:
        options |= EVENT_TIME
    if indexes != "files":
        options |= STATISTICS
    if indexes == "locations":
        options |= LOCATIONS
    write_with_hudi(hudi, base, model, options, mode="overwrite")
    for number in range(ROUNDS):
        if number % 2:
            write_with_hudi(hudi, base, model, options)
        else:
            write_with_pyhudi(base, model)
        if number in (0, ROUNDS - 1):
            check(hudi, base, model)
    assert read_by_pyhudi(base) == model.sorted()
