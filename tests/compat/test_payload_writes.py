"""Tables with older payload classes: one write by pyhudi leaves what one by Apache Hudi leaves."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from tests.helpers.oracle.client import HudiOracle
from tests.helpers.payloads import PAYLOADS, Payload, changed, stored

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.keygenerator.class": (
        "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
    ),
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.insert.shuffle.parallelism": "1",
    "hoodie.index.bloom.num_entries": "64",
}


@pytest.mark.parametrize("hudi", ["1.2.0"], indirect=True)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("name", PAYLOADS)
def test_either_writer_leaves_the_same_rows(
    tmp_path: Path, hudi: HudiOracle, name: str, version: int, kind: str
) -> None:
    payload = PAYLOADS[name]
    options = {
        **OPTIONS,
        "hoodie.datasource.write.precombine.field": _ordering(payload, version),
        "hoodie.datasource.write.payload.class": payload.name,
        "hoodie.datasource.write.table.type": kind,
        "hoodie.write.table.version": str(version),
    }
    found = []
    for writer in ("hudi", "pyhudi"):
        base = tmp_path / writer
        first, then = stored(payload), changed(payload)
        for rows in (first, then):
            # Version 9 orders by both parts.
            for row in rows if version == 9 and name == "mysql" else ():
                file, position = row["_event_seq"].split(".")
                row |= {"_event_bin_file": f"{int(file):06}", "_event_pos": int(position)}
        hudi.write(base, rows=first, schema=payload.ddl, operation="insert", options=options)
        if writer == "hudi":
            hudi.write(base, rows=then, schema=payload.ddl, operation="upsert", options=options)
        else:
            pyhudi.open_table(base).upsert(payload.table(then))
        read = hudi.read(base)["rows"]
        found.append({row["id"]: row["name"] for row in read})
        ours = pyhudi.open_table(base).scan(["id", "name"]).to_arrow().to_pylist()
        assert {row["id"]: row["name"] for row in ours} == found[-1], writer
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("version", "kind", "hudi"),
    [
        (6, "COPY_ON_WRITE", "0.15.0"),
        (6, "MERGE_ON_READ", "0.15.0"),
        (8, "MERGE_ON_READ", "1.0.2"),
        (8, "COPY_ON_WRITE", "1.0.2"),
    ],
    indirect=["hudi"],
)
def test_deletes_that_the_table_was_told_of(
    tmp_path: Path, hudi: HudiOracle, version: int, kind: str
) -> None:
    """Hudi is told with each write, and pyhudi once."""
    deletes = {"hoodie.payload.delete.field": "op", "hoodie.payload.delete.marker": "D"}
    payload = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
    options = {
        **OPTIONS,
        **deletes,
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.payload.class": payload,
        "hoodie.datasource.write.table.type": kind,
        "hoodie.write.table.version": str(version),
        "hoodie.index.type": "SIMPLE",
    }

    def told(ids: str, ts: int, op: str) -> list[dict[str, object]]:
        return [{"id": key, "ts": ts, "op": op} for key in ids]

    base, ddl = tmp_path / "t", "id string, ts bigint, op string"
    hudi.write(base, rows=told("abcdef", 1, "I"), schema=ddl, operation="insert", options=options)
    table = pyhudi.open_table(base)
    table.set_properties(deletes)
    hudi.write(base, rows=told("a", 2, "D"), schema=ddl, options=options)
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("op", pa.string())])
    table.refresh().upsert(pa.Table.from_pylist(told("b", 2, "D") + told("c", 2, "U"), schema))
    hudi.write(base, rows=told("d", 3, "D") + told("e", 3, "U"), schema=ddl, options=options)
    wanted = [("c", "U"), ("e", "U"), ("f", "I")]
    found = table.refresh().scan(["id", "op"]).to_arrow().sort_by("id").to_pylist()
    assert [(row["id"], row["op"]) for row in found] == wanted
    read = hudi.read(base, options=deletes)["rows"]
    assert sorted((row["id"], row["op"]) for row in read) == wanted


def _ordering(payload: Payload, version: int) -> str:
    if version == 9 and payload.ordering == "_event_seq":
        return "_event_bin_file,_event_pos"
    return payload.ordering
