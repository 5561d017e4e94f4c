"""Key encodings and bucket counts that only a table's rows show, not its properties."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.config.index_options import BUCKETS
from pyhudi.errors import ConfigError
from tests.helpers.oracle.client import HudiOracle

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("q", pa.string()), ("v", pa.int32())])
DDL = "id string, p string, q string, v int"
WRITE = "hoodie.datasource.write."
COMMON = {
    "hoodie.table.name": "t",
    f"{WRITE}recordkey.field": "id",
    f"{WRITE}precombine.field": "v",
    "hoodie.metadata.enable": "false",
    "hoodie.embed.timeline.server": "false",
    # Hudi's reckoning of a partition's buckets does not bear two tasks at once.
    "hoodie.upsert.shuffle.parallelism": "1",
}
TYPES = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}


def rows(v: int, ids: list[str], partition: str = "a") -> list[dict[str, Any]]:
    return [{"id": key, "p": partition, "q": "b", "v": v} for key in ids]


@pytest.mark.parametrize("hudi", ["0.15.0", "1.0.2", "1.2.0"], indirect=True)
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.timeout(600)
def test_values_that_begin_as_a_prefixed_key(tmp_path: Path, hudi: HudiOracle, kind: str) -> None:
    base, ids = tmp_path / "t", ["id:y", "x"]
    options = {
        **COMMON,
        f"{WRITE}partitionpath.field": "p,q",
        f"{WRITE}keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
        f"{WRITE}table.type": TYPES[kind],
    }
    for v in (1, 3):
        hudi.write(base, rows=rows(v, ids), schema=DDL, operation="upsert", options=options)
        pyhudi.open_table(base).upsert(pa.Table.from_pylist(rows(v + 1, ids), SCHEMA))
        found = hudi.read(base, metadata=False)["rows"]
        assert sorted((row["id"], row["v"]) for row in found) == [("id:y", v + 1), ("x", v + 1)]
    gone = pa.Table.from_pylist(rows(0, ["id:y"]), SCHEMA).select(["id", "p", "q"])
    assert pyhudi.open_table(base).delete_keys(gone).rows_deleted == 1
    assert [row["id"] for row in hudi.read(base, metadata=False)["rows"]] == ["x"]


@pytest.mark.parametrize("hudi", ["1.2.0"], indirect=True)
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.timeout(600)
def test_partitions_with_buckets_of_their_own(tmp_path: Path, hudi: HudiOracle, kind: str) -> None:
    base, ids = tmp_path / "t", [f"k{n}" for n in range(8)]
    options = {
        **COMMON,
        f"{WRITE}partitionpath.field": "p",
        f"{WRITE}table.type": TYPES[kind],
        "hoodie.index.type": "BUCKET",
        BUCKETS: "2",
        "hoodie.bucket.index.partition.rule.type": "regex",
        "hoodie.bucket.index.partition.expressions": "big.*,8;small.*,1",
    }
    for partition in ("big", "small", "other"):
        given = rows(1, ids, partition)
        hudi.write(base, rows=given, schema=DDL, operation="upsert", options=options)
    for told in (1, 2, 8, 16):
        table = pyhudi.open_table(base, options={"hoodie.index.type": "BUCKET", BUCKETS: told})
        assert [table.scan(where=f"id = '{key}'").count() for key in ids] == [3] * 8
        every = [row for part in ("big", "small", "other") for row in rows(2, ids, part)]
        with pytest.raises(ConfigError, match="bucket"):
            table.upsert(pa.Table.from_pylist(every, SCHEMA))
    table = pyhudi.open_table(base, options={"hoodie.index.type": "BUCKET", BUCKETS: 8})
    table.upsert(pa.Table.from_pylist(rows(3, ids, "big"), SCHEMA))
    given = rows(4, ids, "small")
    hudi.write(base, rows=given, schema=DDL, operation="upsert", options=options)
    found = hudi.read(base, metadata=False)["rows"]
    assert sorted((row["p"], row["v"]) for row in found) == sorted(
        [("big", 3)] * 8 + [("small", 4)] * 8 + [("other", 1)] * 8
    )
