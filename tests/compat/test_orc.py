"""Tables with ORC base files, of which Apache Hudi writes some: pyhudi reads what it reads."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import pyhudi
from pyhudi.errors import UnsupportedTableFeature
from tests.helpers.oracle.client import HudiOracle
from tests.helpers.rows import encode_table

DDL = (
    "id string, city string, n int, big bigint, price decimal(20,4), day date, name string, "
    "tags array<string>, m map<string,double>, "
    "st struct<a:int,b:array<struct<c:string>>>, ts bigint"
)
CITIES = ["oslo", "quito", "lima"]
TYPE_OF = {"0.15.0": "COPY_ON_WRITE", "1.2.0": "MERGE_ON_READ"}
"""What each release reads back of its own ORC tables. 1.0.2 reads none."""
NO_DATES = "1.2.0"
"""It fails to write them ("Unrecognized type for DATE field value")."""


def options(kind: str) -> dict[str, str]:
    return {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.table.base.file.format": "ORC",
        # The row writer knows Parquet alone; statistics come from Parquet's footers.
        "hoodie.datasource.write.row.writer.enable": "false",
        "hoodie.metadata.index.column.stats.enable": "false",
        "hoodie.metadata.index.partition.stats.enable": "false",
        "hoodie.embed.timeline.server": "false",
        "hoodie.upsert.shuffle.parallelism": "2",
        "hoodie.compact.inline.max.delta.commits": "100",
        "hoodie.index.bloom.num_entries": "64",
    }


def row(rng: random.Random, number: int, ts: int) -> dict[str, Any]:
    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.15 else value

    return {
        "id": f"k{number:05}",
        "city": CITIES[number % 3],
        "n": maybe(rng.choice([number, 7, -(2**31), rng.randrange(-(2**31), 2**31)])),
        "big": maybe(rng.choice([number, 2**40 + number, rng.randrange(-(2**63), 2**63)])),
        "price": maybe(f"{rng.randrange(-(10**12), 10**12)}.{rng.randrange(10**4):04}"),
        "day": maybe(f"{rng.randrange(1900, 2100)}-{rng.randrange(1, 13):02}-11"),
        "name": maybe(rng.choice(["", "é", f"name {rng.randrange(10**6)}"])),
        "tags": maybe([rng.choice("abc") for _ in range(rng.randrange(4))]),
        "m": maybe({f"m{key}": rng.random() for key in range(rng.randrange(3))}),
        "st": maybe({"a": maybe(number), "b": maybe([{"c": maybe("x")}] * rng.randrange(3))}),
        "ts": ts,
    }


def same(hudi: HudiOracle, base: Path) -> pyhudi.HudiTable:
    """The table, which both read alike."""
    table = pyhudi.open_table(base)
    rows = sorted(hudi.read(base)["rows"], key=lambda found: str(found["id"]))
    found = encode_table(table.scan().to_arrow())
    assert sorted(found, key=lambda each: str(each["id"])) == rows
    assert table.scan().count() == len(rows)
    some = encode_table(table.scan(["id", "st", "n"], where="n > 0 AND city = 'lima'").to_arrow())
    wanted = [
        {name: each[name] for name in ("id", "st", "n")}
        for each in rows
        if each["n"] is not None and each["n"] > 0 and each["city"] == "lima"
    ]
    assert sorted(some, key=lambda each: str(each["id"])) == wanted
    return table


@pytest.mark.parametrize("hudi", list(TYPE_OF), indirect=True)
def test_pyhudi_reads_what_hudi_writes(hudi: HudiOracle, tmp_path: Path) -> None:
    rng = random.Random(hudi.hudi)
    kind, base = TYPE_OF[hudi.hudi], tmp_path / "t"
    ddl = DDL.replace(" day date,", "") if hudi.hudi == NO_DATES else DDL

    def write(operation: str, numbers: range, ts: int) -> None:
        rows = [row(rng, number, ts) for number in numbers]
        if hudi.hudi == NO_DATES:
            rows = [{name: each[name] for name in each if name != "day"} for each in rows]
        hudi.write(base, rows=rows, schema=ddl, operation=operation, options=options(kind))

    write("upsert", range(2000), 1)
    assert list(base.glob("oslo/*.orc"))
    assert not list(base.glob("oslo/*.parquet"))
    table = same(hudi, base)
    if kind == "MERGE_ON_READ":
        write("upsert", range(1900, 2050), 2)
        write("delete", range(10), 3)
        table = same(hudi, base)
    assert not table.check(deep=True).findings
    with pytest.raises(UnsupportedTableFeature, match=r"hoodie\.table\.base\.file\.format"):
        table.upsert(table.scan(limit=1).to_arrow())
