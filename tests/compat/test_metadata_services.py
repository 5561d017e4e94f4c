"""pyhudi compacts and cleans the metadata table; Hudi reads it, goes on writing, and agrees."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import _native
from pyhudi.config.actions import CLEAN, COMMIT
from pyhudi.storage.storage import Storage
from tests.compat.test_alternating_writers import SCHEMA, Model, hudi_options
from tests.compat.test_metadata_writes import (
    EVENT_TIME,
    LOCATIONS,
    METADATA,
    RELEASES,
    STATISTICS,
    check,
    read_by_pyhudi,
    write_with_hudi,
)
from tests.helpers.metadata_table import metadata_table
from tests.helpers.oracle.client import HudiOracle

OPTIONS = {"hoodie.metadata.compact.max.delta.commits": "5"}


def services(base: Path) -> tuple[list[str], list[str]]:
    """Instants of completed compactions and cleans of the metadata table."""
    timeline = metadata_table(Storage(str(base))).timeline
    compactions = [one.requested for one in timeline.filter_completed(COMMIT)]
    return compactions, [one.requested for one in timeline.filter_completed(CLEAN)]


def write_with_pyhudi(base: Path, model: Model, commits: int) -> None:
    table = pyhudi.open_table(str(base), options=OPTIONS)
    for _ in range(commits):
        batch = model.batch(3)
        table.upsert(pa.Table.from_pylist(batch, SCHEMA))
        model.upsert(batch)
    gone = model.chosen(2)
    keys = pa.Table.from_pylist(gone, SCHEMA).select(["id", "city"])
    table.delete_keys(keys)
    model.delete(gone)


@pytest.mark.parametrize(
    ("version", "hudi", "kind"),
    [(*release, kind) for release, kind in zip(RELEASES, ("mor", "cow", "mor"), strict=True)],
    indirect=["hudi"],
)
@pytest.mark.timeout(600)
def test_services_of_pyhudi(tmp_path: Path, hudi: HudiOracle, version: int, kind: str) -> None:
    base = tmp_path / "trips"
    model = Model(random.Random(f"{version}-{kind}"))
    partitioned = version < 9
    options = {**hudi_options(kind, partitioned=partitioned), **METADATA}
    options |= {**STATISTICS, **LOCATIONS, "hoodie.metadata.compact.max.delta.commits": "50"}
    if version == 6:
        options |= EVENT_TIME
    write_with_hudi(hudi, base, model, options, mode="overwrite")
    write_with_pyhudi(base, model, 7)
    compactions, _ = services(base)
    assert compactions
    # Hudi finds keys by the record index, and files by statistics, in pyhudi's base files.
    write_with_hudi(hudi, base, model, options)
    write_with_pyhudi(base, model, 18)
    compactions, cleans = services(base)
    assert len(compactions) >= 4
    assert cleans
    found = pyhudi.open_table(str(base)).check(deep=True)
    assert not found, str(found)
    check(hudi, base, model)
    # Hudi compacts on top of what pyhudi compacted.
    options["hoodie.metadata.compact.max.delta.commits"] = "1"
    write_with_hudi(hudi, base, model, options)
    assert services(base)[0][-1] > compactions[-1]
    found = pyhudi.open_table(str(base)).check(deep=True)
    assert not found, str(found)
    assert read_by_pyhudi(base) == model.sorted()
    check(hudi, base, model)


@pytest.mark.parametrize(
    ("version", "hudi", "kind"),
    [(*release, kind) for release, kind in zip(RELEASES, ("cow", "mor", "mor"), strict=True)],
    indirect=["hudi"],
)
@pytest.mark.timeout(600)
def test_hudi_continues_after_first_compaction_of_bulk_load(
    tmp_path: Path, hudi: HudiOracle, version: int, kind: Literal["cow", "mor"]
) -> None:
    """The first base file of the record index has blocks of the log file of the load."""
    base = tmp_path / "trips"
    model = Model(random.Random(f"{version}-{kind}"))
    statistics = STATISTICS if version > 6 else {}
    options = {**hudi_options(kind, partitioned=True), **METADATA, **statistics, **LOCATIONS}
    options["hoodie.metadata.record.index.min.filegroup.count"] = "1"
    options["hoodie.metadata.record.index.max.filegroup.count"] = "1"
    options["hoodie.metadata.compact.max.delta.commits"] = "50"
    if version == 6:
        options |= EVENT_TIME
    groups = {name: options[name] for name in options if "filegroup.count" in name}
    batch = model.batch(12_000)
    pyhudi.create_table(
        base,
        pa.Table.from_pylist(batch, SCHEMA),
        key="id",
        partition_by="city",
        order_by="ts",
        type=kind,
        version=version,
        options={**statistics, **groups, **OPTIONS},
    )
    model.upsert(batch)
    write_with_pyhudi(base, model, 5)
    compactions, _ = services(base)
    assert compactions
    index = ".hoodie/metadata/record_index"
    names = [path.name for path in (base / index).glob("*.hfile")]
    first = min(names, key=lambda name: name.rsplit("_", 1)[1])
    pairs = _native.hfile_pairs(Storage(str(base)).native, f"{index}/{first}")
    assert sum(first.encode() not in value for _, value in pairs) > 10_000
    write_with_hudi(hudi, base, model, options)
    check(hudi, base, model)
    write_with_pyhudi(base, model, 3)
    # Hudi compacts on top of it.
    options["hoodie.metadata.compact.max.delta.commits"] = "1"
    write_with_hudi(hudi, base, model, options)
    assert services(base)[0][-1] > compactions[-1]
    found = pyhudi.open_table(str(base)).check(deep=True)
    assert not found, str(found)
    check(hudi, base, model)
