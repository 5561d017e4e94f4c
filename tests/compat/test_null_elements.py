"""Lists with null elements: Hudi reads ours and writes on, under the setting that lets it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import pyhudi
from tests.helpers.oracle.client import HudiOracle
from tests.helpers.oracle_pool import OraclePool

VERSION_OF = {"0.15.0": 6, "1.0.2": 8, "1.2.0": 9}
OPTION = "parquet.avro.write-old-list-structure"
OPTIONS = {OPTION: "false", "hoodie.metadata.enable": "false"}
HUDI = {
    "hoodie.metadata.enable": "false",
    "hoodie.index.type": "SIMPLE",
    "hoodie.embed.timeline.server": "false",
}
INNER = pa.list_(pa.struct([("p", pa.int32()), ("q", pa.list_(pa.string()))]))
SCHEMA = pa.schema([("id", pa.string()), ("tags", pa.list_(pa.string())), ("inner", INNER)])

every_release = pytest.mark.parametrize("release", list(VERSION_OF))
both_kinds = pytest.mark.parametrize("kind", ["cow", "mor"])
Kind = Literal["cow", "mor"]
Row = dict[str, Any]


def row(key: str, *tags: str | None) -> Row:
    inner = [None, {"p": 1, "q": [None, "x"]}, {"p": None, "q": None}]
    return {"id": key, "tags": list(tags), "inner": inner}


def made(base: Path, release: str, kind: Kind, rows: list[Row]) -> pyhudi.HudiTable:
    return pyhudi.create_table(
        base,
        pa.Table.from_pylist(rows, SCHEMA),
        key="id",
        type=kind,
        version=VERSION_OF[release],
        index="simple",
        options=OPTIONS,
    )


def check(hudi: HudiOracle, table: pyhudi.HudiTable, base: Path, *rows: Row) -> None:
    ours = table.refresh().scan().to_arrow().to_pylist()
    assert sorted(ours, key=lambda found: str(found["id"])) == list(rows)
    assert sorted(hudi.read(base)["rows"], key=lambda found: str(found["id"])) == list(rows)


@pytest.mark.parametrize("hudi", list(VERSION_OF), indirect=True)
@both_kinds
def test_hudi_reads_them_without_any_setting(hudi: HudiOracle, tmp_path: Path, kind: Kind) -> None:
    base = tmp_path / "t"
    table = made(base, hudi.hudi, kind, [row("a", None, "x"), row("b", "y")])
    check(hudi, table, base, row("a", None, "x"), row("b", "y"))
    table.upsert(pa.Table.from_pylist([row("b", None, None)], SCHEMA))
    check(hudi, table, base, row("a", None, "x"), row("b", None, None))


@every_release
@both_kinds
def test_hudi_writes_on_under_the_setting(
    oracle: OraclePool, tmp_path: Path, release: str, kind: Kind
) -> None:
    hudi = oracle(release, {f"spark.hadoop.{OPTION}": "false"})
    base = tmp_path / "t"
    table = made(base, release, kind, [row("a", None, "x"), row("b", "y"), row("c")])
    table.upsert(pa.Table.from_pylist([row("b", None, None)], SCHEMA))
    hudi.sql(base, "update {table} set tags = array(null, 'z') where id = 'c'", conf=HUDI)
    wanted = [row("a", None, "x"), row("b", None, None), row("c", None, "z")]
    check(hudi, table, base, *wanted)
    if kind == "mor":
        hudi.call(base, "run_compaction(op => 'scheduleAndExecute')", conf=HUDI)
        check(hudi, table, base, *wanted)
    table = pyhudi.open_table(base, options=OPTIONS)
    table.upsert(pa.Table.from_pylist([row("a", "w", None)], SCHEMA))
    check(hudi, table, base, row("a", "w", None), *wanted[1:])
