"""Apache Hudi keeps the properties of constraints and generated columns, and reads and writes."""

from __future__ import annotations

from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.config.property_names import CONSTRAINTS, GENERATED_COLUMNS
from pyhudi.errors import ConstraintViolation
from tests.helpers.oracle.client import HudiOracle

UTC = timezone.utc
SCHEMA = pa.schema([("id", pa.string()), ("at", pa.timestamp("us", "UTC")), ("n", pa.int64())])
DDL = "id string, at timestamp, n long, part int, at_day date"
RELEASES = [("1.2.0", 9), ("1.2.0", 6)]
CHANGES = {9: ("downgrade_table", "EIGHT", 8), 6: ("upgrade_table", "NINE", 9)}


def row(name: str, day: int, n: int) -> dict[str, Any]:
    return {"id": name, "at": datetime(2024, 3, day, 23, 59, 59, 999999, UTC), "n": n}


def options(version: int) -> dict[str, str]:
    return {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "at_day",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.write.table.version": str(version),
        "hoodie.write.auto.upgrade": "false",
        "hoodie.embed.timeline.server": "false",
        "hoodie.upsert.shuffle.parallelism": "1",
        "spark.sql.session.timeZone": "UTC",
    }


def days(table: pyhudi.HudiTable) -> dict[str, tuple[int, date]]:
    rows = table.refresh().to_arrow().to_pylist()
    return {each["id"]: (each["n"], each["at_day"]) for each in rows}


@pytest.mark.parametrize(("hudi", "version"), RELEASES, indirect=["hudi"], ids=str)
def test_hudi_writes_a_table_with_generated_columns(
    tmp_path: Path, hudi: HudiOracle, version: int
) -> None:
    """Hudi supplies the columns; pyhudi reads, prunes and checks as before."""
    base = tmp_path / "t"
    table = pyhudi.create_table(
        base,
        pa.Table.from_pylist([row("a", 1, 1), row("b", 2, 2)], SCHEMA),
        key="id",
        version=version,
        type="mor" if version == 9 else "cow",
        index="simple",
        partition_by=pyhudi.day("at"),
        generated={"part": pyhudi.bucket("id", 4)},
        constraints={"positive": "n >= 0"},
        options={"hoodie.datasource.write.hive_style_partitioning": "true"},
    )
    stored = {name: table.properties[name] for name in (CONSTRAINTS, GENERATED_COLUMNS)}
    read = {each["id"]: each for each in hudi.read(base)["rows"]}
    assert {name: each["part"] for name, each in read.items()} == {
        each["id"]: each["part"] for each in table.to_arrow().to_pylist()
    }
    new = [
        {"id": "a", "at": "2024-03-01 12:00:00", "n": 5, "part": 2, "at_day": "2024-03-01"},
        {"id": "c", "at": "2024-03-04 00:00:00", "n": -3, "part": 2, "at_day": "2024-03-04"},
    ]
    hudi.write(base, rows=new, schema=DDL, operation="upsert", options=options(version))
    hudi.sql(base, "UPDATE {table} SET n = 6 WHERE id = 'b'", conf={})
    march = {n: date(2024, 3, n) for n in range(1, 8)}
    assert days(table) == {"a": (5, march[1]), "b": (6, march[2]), "c": (-3, march[4])}
    assert {name: table.properties[name] for name in stored} == stored
    scan = table.scan(where="at >= '2024-03-02 00:00:00' AND at < '2024-03-03 00:00:00'")
    assert scan.plan()["partition"].to_pylist() == ["at_day=2024-03-02"]
    if version in CHANGES:
        procedure, name, after = CHANGES[version]
        hudi.call(base, f"{procedure}(to_version => '{name}')")
        table = pyhudi.open_table(base)
        assert table.version == after
        assert {name: table.properties[name] for name in stored} == stored
    table.upsert([row("d", 5, 1), row("a", 1, 8)])
    with pytest.raises(ConstraintViolation, match="positive"):
        table.upsert([row("e", 5, -1)])
    with pytest.raises(ConstraintViolation, match="at_day"):
        table.upsert([{**row("e", 5, 1), "at_day": march[6]}])
    assert days(table)["d"] == (1, march[5])
    theirs = {each["id"]: each["n"] for each in hudi.read(base)["rows"]}
    assert theirs == {"a": 8, "b": 6, "c": -3, "d": 1}


@pytest.mark.parametrize("hudi", ["1.0.2", "1.2.0"], indirect=True)
def test_hudi_1_0_drops_properties_of_pyhudi_in_sql(tmp_path: Path, hudi: HudiOracle) -> None:
    """An upsert keeps them, and 1.2.0 always; a SQL UPDATE of 1.0.2 does not."""
    base = tmp_path / "t"
    table = pyhudi.create_table(
        base,
        pa.table({"id": ["a"], "n": [1]}),
        key="id",
        version=8,
        index="simple",
        generated={"twice": "n * 2"},
        constraints={"positive": "n >= 0"},
    )
    stored = {name: table.properties[name] for name in (CONSTRAINTS, GENERATED_COLUMNS)}
    write = {key: value for key, value in options(8).items() if "partition" not in key}
    ddl = "id string, n long, twice long"
    rows = [{"id": "a", "n": 5, "twice": 10}]
    hudi.write(base, rows=rows, schema=ddl, operation="upsert", options=write)
    assert {name: table.refresh().properties[name] for name in stored} == stored
    hudi.sql(base, "UPDATE {table} SET n = 6, twice = 12 WHERE id = 'a'", conf={})
    left = {name for name in stored if name in table.refresh().properties}
    assert left == (set() if hudi.hudi == "1.0.2" else stored.keys())
    assert table.to_arrow().to_pylist() == [{"id": "a", "n": 6, "twice": 12}]
