"""A table by name in a metastore that is reached in some way, such as with TLS."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.cli import main


def check_commits_sync(
    settings: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Check that commits of `prod.sales.trips` reach a Hive metastore.

    settings: lines of the catalog `prod` in pyhudi.toml. folder: becomes the working directory.
    """
    (folder / "pyhudi.toml").write_text(f'[catalog.prod]\ntype = "hive"\n{settings}')
    monkeypatch.chdir(folder)
    monkeypatch.delenv("PYHUDI_CONFIG", raising=False)
    prod = pyhudi.load_catalog("prod")
    prod.create_database("sales", location=f"file:{folder}/sales")
    rows = pa.table({"id": ["a"], "city": ["lima"]})
    table = pyhudi.create_table("prod.sales.trips", rows, key="id", partition_by="city")
    table.upsert(pa.table({"id": ["b"], "city": ["oslo"]}))
    partitions = prod.store.get_partitions("sales", "trips")
    assert {partition.values[0] for partition in partitions} == {"lima", "oslo"}
    assert pyhudi.open_table("prod.sales.trips").count() == 2
    prod.close()
    capfd.readouterr()
    assert main(["catalog", "tables", "prod.sales", "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == {"table": "trips"}
