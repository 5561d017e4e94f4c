"""Columns of each Arrow type that pyhudi takes: Hudi reads the same values, and writes on."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

import pyhudi
from tests.helpers.oracle.client import HudiError, HudiOracle
from tests.helpers.rows import encode_table
from tests.helpers.type_cases import CASES, NAMES, columns

VERSION_OF = {"0.15.0": 6, "1.0.2": 8, "1.2.0": 9}
OPTIONS = {
    "hoodie.metadata.enable": "false",
    "hoodie.index.type": "SIMPLE",
    "hoodie.embed.timeline.server": "false",
}

every_release = pytest.mark.parametrize("hudi", list(VERSION_OF), indirect=True)
both_kinds = pytest.mark.parametrize("kind", ["cow", "mor"])
Kind = Literal["cow", "mor"]


def wanted(table: pyhudi.HudiTable) -> list[dict[str, object]]:
    """The rows as they were given, in the encoding of the oracle."""
    given = {name: pa.array(case.values, case.back) for name, case in CASES.items()}
    given |= {name: pa.array([1, None, 2], pa.int32()) for name in NAMES}
    chosen = [name for name in table.schema.names if name in given]
    rows = pa.table({"id": ["k0", "k1", "k2"], **{name: given[name] for name in chosen}})
    return encode_table(rows)


def by_key(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    return sorted(rows, key=lambda row: str(row["id"]))


def check(hudi: HudiOracle, base: Path, table: pyhudi.HudiTable) -> None:
    rows = wanted(table.refresh())
    assert by_key(encode_table(table.scan().to_arrow())) == rows
    assert by_key(hudi.read(base)["rows"]) == rows


def made(base: Path, given: pa.Table, release: str, kind: Kind = "cow") -> pyhudi.HudiTable:
    """A table with each row written twice: other values first."""
    table = pyhudi.create_table(
        base,
        given.schema,
        key="id",
        type=kind,
        version=VERSION_OF[release],
        index="simple",
        options={"hoodie.metadata.enable": "false"},
    )
    table.insert(given.set_column(0, "id", pa.array(["k2", "k0", "k1"])))
    table.upsert(given)
    assert bool(list(base.glob(".*.log.*"))) == (kind == "mor")
    return table


@every_release
@both_kinds
def test_hudi_reads_every_type_and_writes_on(hudi: HudiOracle, tmp_path: Path, kind: Kind) -> None:
    base = tmp_path / "t"
    given = columns("all")
    if kind == "mor" and hudi.hudi != "1.2.0":
        # Those take what is fixed in a log file for bytes, and fail.
        given = given.drop_columns(["fixed_data"])
    if kind == "mor" and hudi.hudi == "1.0.2":
        # It takes milliseconds in a log file for microseconds.
        given = given.drop_columns(["at_ms_utc", "at_ms_zone"])
    for name in NAMES:
        given = given.append_column(name, pa.array([1, None, 2], pa.int32()))
    table = made(base, given, hudi.hudi, kind)
    check(hudi, base, table)
    hudi.sql(base, "delete from {table} where id = 'none'", conf=OPTIONS)
    check(hudi, base, table)
    if kind == "mor":
        hudi.call(base, "run_compaction(op => 'scheduleAndExecute')", conf=OPTIONS)
        check(hudi, base, table)


@pytest.mark.hudi("1.2.0")
@both_kinds
def test_hudi_reads_times_of_no_zone(hudi: HudiOracle, tmp_path: Path, kind: Kind) -> None:
    base = tmp_path / "t"
    check(hudi, base, made(base, columns("local"), hudi.hudi, kind))


@pytest.mark.hudi("1.0.2")
def test_hudi_before_1_1_reads_times_of_no_zone_as_numbers(
    hudi: HudiOracle, tmp_path: Path
) -> None:
    base = tmp_path / "t"
    table = made(base, columns("local"), hudi.hudi, "mor")
    rows = table.refresh().scan().to_arrow().sort_by("id")
    numbers = [column.cast(pa.int64()) for column in rows.columns[1:]]
    wanted = pa.table([rows["id"], *numbers], rows.column_names).to_pylist()
    assert by_key(hudi.read(base)["rows"]) == wanted


@pytest.mark.hudi("1.2.0")
def test_spark_has_no_times_of_day(hudi: HudiOracle, tmp_path: Path) -> None:
    base = tmp_path / "t"
    made(base, columns("time"), hudi.hudi)
    with pytest.raises(HudiError, match="TIME"):
        hudi.read(base)
