"""Apache Hudi reads a table that a group writer wrote, and writes to it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from tests.helpers.oracle.client import HudiOracle
from tests.helpers.pairwise import pairwise
from tests.helpers.table_builder import SMALL, TableBuilder

TABLE = TableBuilder(
    {
        "id": (pa.string(), str),
        "city": (pa.string(), "rome"),
        "ts": (pa.int32(), 1),
        "v": (pa.int32(), 1),
    },
    partition_by="city",
    order_by="ts",
    options={**SMALL, "hoodie.table.name": "t"},
)
DDL = "id string, city string, ts int, v int"
RELEASES = [(6, "0.15.0"), (8, "1.0.2"), (9, "1.2.0")]
CASES = [(*release, kind) for release, kind in pairwise(RELEASES, ("cow", "mor"))]
CALLERS = 4


def call(writer: pyhudi.GroupWriter, caller: int) -> None:
    """Keys of the caller's own, one that all write, late rows and deletes."""
    for number in range(3):
        names = [f"{caller}-{number}-{n}" for n in range(2)]
        rows = TABLE.rows([*names, "shared"], ts=number, v=10 * caller + number)
        writer.upsert(rows, commit_id=f"{caller}/{number}").result()
        if number:
            writer.delete_keys([f"{caller}-{number - 1}-0"])


@pytest.mark.parametrize(("version", "hudi", "kind"), CASES, indirect=["hudi"])
def test_hudi_reads_rows_of_group_commits(
    version: int, hudi: HudiOracle, kind: Any, tmp_path: Path
) -> None:
    base = tmp_path / "t"
    table = TABLE.make(base, version=version, kind=kind)
    with table.writer(max_seconds=0.1) as writer:
        callers = [threading.Thread(target=call, args=(writer, n)) for n in range(CALLERS)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
    commits = table.refresh().history()
    assert len(commits) < 5 * CALLERS

    def check() -> None:
        ours = pyhudi.open_table(base).scan().to_arrow().to_pylist()
        for metadata in (False, True):
            theirs = hudi.read(base, metadata=metadata)["rows"]
            assert sorted(ours, key=str) == sorted(
                ({name: row[name] for name in TABLE.schema.names} for row in theirs), key=str
            )

    check()
    rows = table.scan().to_arrow().to_pylist()
    assert len(rows) == CALLERS * 4 + 1
    assert next(row["ts"] for row in rows if row["id"] == "shared") == 2
    hudi.write(
        base,
        rows=TABLE.rows(["shared", "theirs"], ts=9, v=99).to_pylist(),
        schema=DDL,
        operation="upsert",
        options={
            "hoodie.table.name": "t",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": "city",
            "hoodie.embed.timeline.server": "false",
            "hoodie.write.auto.upgrade": "false",
            "hoodie.write.table.version": str(version),
        },
    )
    check()
    again = pyhudi.open_table(base).upsert(TABLE.rows(["shared"], v=0), commit_id="0/0")
    assert again.was_written_before
