"""Apache Hudi reads, extends and compacts tables whose files have pyhudi's checksums."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi import _native
from tests.helpers.oracle.client import HudiOracle
from tests.helpers.oracle_pool import OraclePool

RELEASES = {"0.15.0": 6, "1.0.2": 8, "1.2.0": 9}
SCHEMA = "id string, city string, v int, note string, ts int"
COLUMNS = ("id", "city", "v", "note")
VERIFY = {"spark.hadoop.parquet.page.verify-checksum.enabled": "true"}


def _rows(numbers: range, value: int) -> pa.Table:
    keys = [f"k{number:04}" for number in numbers]
    cities = ["rome" if number % 2 else "oslo" for number in numbers]
    notes = [None if number % 7 == 0 else f"note {number % 50}" for number in numbers]
    return pa.table(
        {
            "id": keys,
            "city": cities,
            "v": pa.array([value] * len(keys), pa.int32()),
            "note": notes,
            "ts": pa.array([value] * len(keys), pa.int32()),
        }
    )


def _content(table: pyhudi.HudiTable) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = table.to_arrow(columns=COLUMNS).sort_by("id").to_pylist()
    return rows


def _hudi_content(hudi: HudiOracle, table: pyhudi.HudiTable) -> list[dict[str, object]]:
    rows = hudi.read(table.uri, options={"hoodie.metadata.enable": "true"})["rows"]
    return sorted(
        ({name: row[name] for name in COLUMNS} for row in rows), key=lambda row: str(row["id"])
    )


@pytest.mark.parametrize("hudi", list(RELEASES), indirect=True)
@pytest.mark.parametrize("blocks", ["avro", "parquet"])
def test_checksums_do_not_disturb_hudi(
    blocks: str, hudi: HudiOracle, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """pyhudi writes base files, log blocks and the metadata table. Hudi reads all of them, merges
    its own rows in by the record index, compacts, and pyhudi finds no damage afterwards.
    """
    version = RELEASES[request.node.callspec.params["hudi"]]
    table = pyhudi.create_table(
        tmp_path / "t",
        _rows(range(3000), 1),
        key="id",
        partition_by="city",
        type="mor",
        order_by="ts",
        version=version,
        options={"hoodie.logfile.data.block.format": blocks, "hoodie.compact.inline": "false"},
    )
    table.upsert(_rows(range(100), 2))
    table.delete_keys([f"k{number:04}" for number in range(50, 60)])
    for file in Path(table.uri).glob("*/*.parquet"):
        pq.read_table(file, partitioning=None, page_checksum_verification=True)
    result = table.check(deep=True)
    assert result.ok, result
    assert result.unverified == ()
    assert _hudi_content(hudi, table) == _content(table)
    options = {
        "hoodie.table.name": table.name,
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.compact.inline": "false",
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.index.type": "RECORD_INDEX",
        "hoodie.embed.timeline.server": "false",
        **({"hoodie.write.table.version": str(version)} if version > 6 else {}),
    }
    hudi.write(table.uri, rows=_rows(range(90, 110), 3).to_pylist(), schema=SCHEMA, options=options)
    table = pyhudi.open_table(table.uri)
    assert _hudi_content(hudi, table) == _content(table)
    hudi.call(table.uri, "run_compaction(op => 'scheduleandexecute')")
    table = pyhudi.open_table(table.uri)
    after = _hudi_content(hudi, table)
    assert after == _content(table)
    assert len(after) == 2990
    result = table.check(deep=True)
    assert not result.errors, result
    assert result.unverified, "Hudi's own files have no checksums of all bytes"


@pytest.mark.hudi("1.2.0")
def test_parquet_java_verifies_pages(oracle: OraclePool, tmp_path: Path) -> None:
    """parquet-java reads the file with its checksums verified, and finds a flipped bit."""
    table = pyhudi.create_table(tmp_path / "t", _rows(range(3000), 1), key="id")
    table.upsert(_rows(range(10), 2))
    hudi = oracle("1.2.0", VERIFY)
    assert _hudi_content(hudi, table) == _content(table)
    file = max(Path(table.uri).glob("*.parquet"), key=lambda path: path.stat().st_mtime)
    chunk = pq.read_metadata(file).row_group(0).column(7)
    damaged = bytearray(file.read_bytes())
    damaged[chunk.data_page_offset + chunk.total_compressed_size - 3] ^= 1
    file.write_bytes(damaged)
    with pytest.raises(pyhudi.CorruptTable):
        _native.verify_base_file(table.storage.native, file.name)
    with pytest.raises(Exception, match=r"(?i)crc|checksum"):
        _hudi_content(hudi, table)
