"""pyhudi makes the metadata table, of a new table or of one that has lacked it; Hudi uses it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import pyhudi
from tests.compat.test_alternating_writers import TRIPS, Model, hudi_options
from tests.compat.test_metadata_writes import (
    EVENT_TIME,
    METADATA,
    RELEASES,
    STATISTICS,
    check,
    write_with_hudi,
    write_with_pyhudi,
)
from tests.helpers.oracle.client import HudiOracle

Kind = Literal["cow", "mor"]
LOCATIONS = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.index.type": "RECORD_INDEX",
}
EVERYTHING = {**METADATA, **STATISTICS, **LOCATIONS}
ALL = {"bloom_filters", "column_stats", "files", "record_index"}
OF_PARTITIONS = "hoodie.metadata.index.partition.stats.enable"
"""Hudi 0.15 takes no notice of it; pyhudi refuses it there."""


@dataclass(frozen=True)
class Layout:
    """A partitioned table's version and type."""

    version: int
    kind: Kind

    def for_hudi(self, chosen: dict[str, str]) -> dict[str, str]:
        found = {**hudi_options(self.kind, partitioned=True), **chosen}
        return found | EVENT_TIME if self.version == 6 else found


def make(base: Path, model: Model, layout: Layout, options: dict[str, Any]) -> None:
    first = model.batch(12)
    rows = pa.Table.from_pylist(first, TRIPS.schema)
    TRIPS.make(base, version=layout.version, kind=layout.kind, options=options, first=rows)
    model.upsert(first)


def partitions(base: Path) -> set[str]:
    return set(pyhudi.open_table(str(base)).config.metadata_partitions)


FILES = {**METADATA, "hoodie.metadata.record.index.enable": "false"}
DEFAULT = {"hoodie.metadata.enable": "true"}
CHOSEN = {"files": FILES, "default": DEFAULT, "all": EVERYTHING}


def expected(version: int, indexes: str) -> set[str]:
    if indexes == "files":
        return {"files"}
    stats = set[str]() if version == 6 else {"column_stats", "partition_stats"}
    return stats | (ALL if indexes == "all" else {"files", "record_index"})


@pytest.mark.parametrize(
    ("kind", "indexes"), [("cow", "files"), ("cow", "default"), ("mor", "all")]
)
@pytest.mark.parametrize(("version", "hudi"), RELEASES, indirect=["hudi"])
@pytest.mark.timeout(600)
def test_new_table(
    tmp_path: Path, hudi: HudiOracle, version: int, kind: Kind, indexes: str
) -> None:
    base = tmp_path / "trips"
    model = Model(random.Random(f"new-{version}-{kind}-{indexes}"))
    layout = Layout(version, kind)
    chosen = CHOSEN[indexes]
    left_out = {OF_PARTITIONS} if version == 6 else set[str]()
    own = {
        name: value
        for name, value in chosen.items()
        if "compact" not in name and name not in left_out
    }
    make(base, model, layout, own)
    assert partitions(base) == expected(version, indexes)
    check(hudi, base, model)
    options = layout.for_hudi({**chosen, **(LOCATIONS if indexes == "default" else {})})
    write_with_hudi(hudi, base, model, options)
    write_with_pyhudi(base, model)
    write_with_hudi(hudi, base, model, options)
    check(hudi, base, model)
    assert partitions(base) == expected(version, indexes)


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize(("version", "hudi"), RELEASES, indirect=["hudi"])
@pytest.mark.timeout(600)
def test_table_with_rows(tmp_path: Path, hudi: HudiOracle, version: int, kind: Kind) -> None:
    base = tmp_path / "trips"
    model = Model(random.Random(f"old-{version}-{kind}"))
    layout = Layout(version, kind)
    make(base, model, layout, {"hoodie.metadata.enable": "false"})
    write_with_pyhudi(base, model)
    table = pyhudi.open_table(str(base))
    for index in ("record_index", "bloom_filters", "column_stats"):
        table.create_index(index)
    check(hudi, base, model)
    options = layout.for_hudi(EVERYTHING)
    write_with_hudi(hudi, base, model, options)
    write_with_pyhudi(base, model)
    # Hudi makes again what was dropped.
    pyhudi.open_table(str(base)).drop_index("column_stats")
    write_with_hudi(hudi, base, model, options)
    check(hudi, base, model)

    table.refresh().rebuild_metadata()
    check(hudi, base, model)
    write_with_hudi(hudi, base, model, options)
    write_with_pyhudi(base, model)
    check(hudi, base, model)
