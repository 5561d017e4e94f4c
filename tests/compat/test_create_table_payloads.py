"""Tables that pyhudi makes with a payload class or delete marks: Apache Hudi writes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from tests.helpers.oracle.client import HudiOracle

MODEL = "org.apache.hudi.common.model."
MARKS = {"hoodie.payload.delete.field": "Op", "hoodie.payload.delete.marker": "D"}
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.keygenerator.class": (
        "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
    ),
    "hoodie.embed.timeline.server": "false",
    "hoodie.upsert.shuffle.parallelism": "1",
}
SCHEMA = pa.schema(
    [("id", pa.int64()), ("Op", pa.string()), ("v", pa.string()), ("ts", pa.int64())]
)
DDL = "id long, Op string, v string, ts long"


def rows(*given: tuple[int, str, str | None, int]) -> list[dict[str, Any]]:
    return [dict(zip(SCHEMA.names, row, strict=True)) for row in given]


@pytest.mark.parametrize("hudi", ["1.2.0"], indirect=True)
@pytest.mark.parametrize(
    ("kind", "name", "options", "wanted"),
    [
        ("mor", "", MARKS, {1: "a2", 4: "d"}),
        ("cow", "", MARKS, {1: "a2", 4: "d"}),
        ("mor", "AWSDmsAvroPayload", {}, {1: "a2", 4: "d"}),
        ("cow", "AWSDmsAvroPayload", {}, {1: "a2", 4: "d"}),
        ("mor", "DefaultHoodieRecordPayload", MARKS, {1: "a2", 4: "d"}),
        ("mor", "PartialUpdateAvroPayload", {}, {1: "a2", 2: "b", 3: "c", 4: "d", 5: "e"}),
        ("cow", "OverwriteNonDefaultsWithLatestAvroPayload", {},
         {1: "a2", 2: "b", 3: "c", 4: "d", 5: "e"}),
    ],
)  # fmt: skip
def test_hudi_writes_a_table_that_pyhudi_made(
    tmp_path: Path, hudi: HudiOracle, kind: Any, name: str, options: Any, wanted: dict[int, str]
) -> None:
    base = tmp_path / "t"
    payload = {"hoodie.compaction.payload.class": MODEL + name} if name else {}
    first = rows((1, "I", "a", 1), (2, "I", "b", 1), (3, "I", "c", 1), (5, "I", "e", 1))
    given = pa.Table.from_pylist(first, SCHEMA)
    table = pyhudi.create_table(
        base, given, key="id", order_by="ts", type=kind, options={**payload, **options}
    )
    before = dict(table.config.properties)
    told = {**OPTIONS, "hoodie.datasource.write.table.type": table.config.table_type, **options}
    if name:
        told["hoodie.datasource.write.payload.class"] = MODEL + name
    hudi.write(
        base, rows=rows((1, "U", "a2", 2), (2, "D", None, 2)), schema=DDL, operation="upsert",
        options=told,
    )  # fmt: skip
    table.refresh().upsert(pa.Table.from_pylist(rows((3, "D", None, 2), (4, "I", "d", 2)), SCHEMA))
    hudi.write(base, rows=rows((5, "D", None, 3)), schema=DDL, operation="upsert", options=told)
    ours = {row["id"]: row["v"] for row in table.refresh().to_arrow(["id", "v"]).to_pylist()}
    theirs = {row["id"]: row["v"] for row in hudi.read(base)["rows"]}
    assert ours == theirs == wanted
    after = dict(pyhudi.open_table(str(base)).config.properties)
    changed = {key for key in {*before, *after} if before.get(key) != after.get(key)}
    assert not {key for key in changed if "merge" in key or "payload" in key}
