"""pyhudi changes a table's version; Apache Hudi of that version reads it and writes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from tests.compat.test_write_and_continue import VERSION_OF
from tests.helpers.oracle.client import HudiOracle
from tests.helpers.oracle_pool import OraclePool
from tests.helpers.rows import canonical, difference

RELEASE_OF = {version: release for release, version in VERSION_OF.items()}
COLUMNS = "id string, city string, v int, ts int"


def options(version: int) -> dict[str, str]:
    found = {
        "hoodie.table.name": "moved",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.index.type": "SIMPLE",
        "hoodie.compact.inline": "false",
        "hoodie.embed.timeline.server": "false",
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.metadata.record.index.enable": "true",
    }
    payload = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
    if version == 6:
        return {**found, "hoodie.datasource.write.payload.class": payload}
    return {**found, "hoodie.write.table.version": str(version)}


def write(hudi: HudiOracle, base: Path, version: int, rows: list[dict[str, Any]]) -> None:
    hudi.write(str(base), rows=rows, schema=COLUMNS, operation="upsert", options=options(version))


def row(number: int, v: int) -> dict[str, Any]:
    return {"id": f"k{number}", "city": "rome" if number % 2 else "oslo", "v": v, "ts": v}


def same(hudi: HudiOracle, table: HudiTable, wanted: dict[str, int]) -> None:
    theirs = hudi.read(table.uri)["rows"]
    ours = table.refresh().scan().to_arrow().to_pylist()
    assert difference(map(canonical, ours), map(canonical, theirs)) is None
    assert {one["id"]: one["v"] for one in ours} == wanted


@pytest.mark.timeout(900)
def test_hudi_goes_on_after_every_step(oracle: OraclePool, tmp_path: Path) -> None:
    """One table from version 6 to 9 and back, each release of Hudi writing log files on the way."""
    base = tmp_path / "moved"
    write(oracle("0.15.0"), base, 6, [row(n, 1) for n in range(6)])
    write(oracle("0.15.0"), base, 6, [row(n, 2) for n in (0, 3, 6)])
    wanted = {f"k{n}": 1 for n in range(6)} | {"k0": 2, "k3": 2, "k6": 2}
    table = pyhudi.open_table(base)
    for number, to in enumerate((8, 9, 8, 6), start=3):
        change = table.upgrade(to) if to > table.version else table.downgrade(to)
        assert change.compaction is not None
        assert {"files", "record_index"} <= set(change.metadata_made)
        assert table.check().ok
        hudi = oracle(RELEASE_OF[to])
        same(hudi, table, wanted)
        write(hudi, base, to, [row(n, number) for n in (1, 6, 7)])
        wanted |= {"k1": number, "k6": number, "k7": number}
        assert table.refresh().version == to
        same(hudi, table, wanted)
        assert table.check().ok


@pytest.mark.timeout(600)
@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_older_log_files_stay_out_of_newer_slices(
    release: str, oracle: OraclePool, tmp_path: Path
) -> None:
    """1.2.0 places those of a version 6 table by when their commits' files were changed."""
    rows = pa.table({"id": ["k0", "k1"], "v": [1, 1]})
    table = pyhudi.create_table(
        tmp_path / "down", rows, key="id", type="mor", version=8, index="simple"
    )
    table.delete_keys(rows.slice(0, 1).select(["id"]))
    table.compact()
    # Into a base file: a log file of the slice before would take the row away again.
    table.upsert(pa.table({"id": ["k0"], "v": [9]}))
    table.downgrade(6)
    same(oracle(release), table, {"k0": 9, "k1": 1})
    table.upsert(pa.table({"id": ["k1"], "v": [2]}))
    same(oracle(release), table, {"k0": 9, "k1": 2})
