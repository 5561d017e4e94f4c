"""pyhudi archives the metadata table's timeline as Hudi does, and Hudi goes on from there."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi import _native
from pyhudi.config.retention_options import HistoryOptions
from pyhudi.metadata import services
from pyhudi.storage.storage import Storage
from tests.compat.test_alternating_writers import DDL, SCHEMA, Model, Row, hudi_options
from tests.compat.test_metadata_writes import EVENT_TIME, METADATA, RELEASES, check
from tests.helpers.metadata_table import metadata_table
from tests.helpers.oracle.client import HudiOracle

ARCHIVING = {
    "hoodie.metadata.compact.max.delta.commits": "2",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
}
OWN = Path(".hoodie/metadata")

Entries = dict[tuple[str, ...], dict[str, Any]]


def archived(base: Path) -> Entries:
    """What the archive of the metadata table says of each instant, in version 6 of each file."""
    own = metadata_table(Storage(str(base)))
    folder = own.config.history_folder
    if own.timeline.completes_in_names:
        files = sorted((base / OWN / folder).glob("*.parquet"))
        rows = [row for file in files for row in pq.read_table(file).to_pylist()]
        return {(row["instantTime"], row["action"]): row for row in rows}
    logs = sorted((base / OWN / folder).glob(".commits_.archive.*"))
    lines = [_native.log_records(own.storage.native, f"{folder}/{log.name}") for log in logs]
    entries = [json.loads(line) for of_log in lines for line in of_log]
    return {(one["commitTime"], one["actionType"], one["actionState"]): one for one in entries}


def write(hudi: HudiOracle, base: Path, batch: list[Row], options: dict[str, str]) -> None:
    mode = "append" if base.exists() else "overwrite"
    hudi.write(base, rows=batch, schema=DDL, operation="upsert", options=options, mode=mode)


@pytest.mark.parametrize(("version", "hudi"), RELEASES, indirect=["hudi"])
@pytest.mark.timeout(600)
def test_archives_what_hudi_would(
    tmp_path: Path, hudi: HudiOracle, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, other = tmp_path / "trips", tmp_path / "other"
    model = Model(random.Random(version))
    options = {**hudi_options("cow", partitioned=True), **METADATA, **ARCHIVING}
    options |= {"hoodie.clean.automatic": "true", "hoodie.cleaner.commits.retained": "1"}
    if version == 6:
        options |= EVENT_TIME

    for _ in range(7):
        batch = model.batch(3)
        write(hudi, base, batch, options)
        model.upsert(batch)
    mine: Entries = {}
    for merged in (10, 2):
        monkeypatch.setattr(services, "HISTORY", HistoryOptions(merged_files=merged))
        before = archived(base).keys()
        assert before
        shutil.copytree(base, other)
        batch = model.batch(3)
        write(hudi, other, batch, options)
        pyhudi.open_table(str(base), options=ARCHIVING).upsert(pa.Table.from_pylist(batch, SCHEMA))
        model.upsert(batch)
        mine = archived(base)
        hudis = archived(other)
        assert mine.keys() > before
        assert mine == hudis
        shutil.rmtree(other)
        # What each archives is the other's to read: of old log files it asks when they were done.
        batch = model.batch(3)
        write(hudi, base, batch, options)
        model.upsert(batch)
    folder = metadata_table(Storage(str(base))).config.history_folder
    if version > 6:
        assert list((base / OWN / folder).glob("*_1.parquet"))
    named = {(one["requested"], one["action"]) for one in hudi.instants(base / OWN, archived=True)}
    assert named >= {key[:2] for key in mine}
    found = pyhudi.open_table(str(base)).check(deep=True)
    assert not found, str(found)
    check(hudi, base, model)
