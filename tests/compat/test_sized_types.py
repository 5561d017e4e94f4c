"""Apache Hudi stores TINYINT, SMALLINT, CHAR and VARCHAR as INT and STRING, and checks nothing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from tests.helpers.oracle.client import HudiError, HudiOracle

SIZED = "id STRING, c CHAR(4), v VARCHAR(3), t TINYINT, s SMALLINT"
LONGER = {"c": "longer", "v": "longer", "t": 300, "s": 70_000}


@pytest.mark.hudi("1.2.0")
def test_hudi_stores_sized_types_as_int_and_string(hudi: HudiOracle, tmp_path: Path) -> None:
    base = tmp_path / "t"
    create = f"""CREATE TABLE sized ({SIZED}) USING hudi LOCATION '{base}'
    TBLPROPERTIES (primaryKey = 'id')"""
    hudi.sql(base, [create, "INSERT INTO sized VALUES ('a', 'longer', 'longer', 300, 70000)"])
    table = pyhudi.open_table(base)
    types = [table.schema.field(name).type for name in "cvts"]
    assert types == [pa.string(), pa.string(), pa.int32(), pa.int32()]
    assert table.scan(columns=list("cvts")).to_arrow().to_pylist() == [LONGER]
    table.upsert([{"id": "b", **LONGER}])
    read = hudi.read(base, columns=["id", *"cvts"])["rows"]
    assert sorted(read, key=lambda row: row["id"]) == [{"id": key, **LONGER} for key in "ab"]
    hudi.sql(base, "DROP TABLE sized")


@pytest.mark.hudi("1.2.0")
def test_hudi_refuses_intervals(hudi: HudiOracle, tmp_path: Path) -> None:
    create = f"""CREATE TABLE intervals (id STRING, i INTERVAL DAY TO SECOND) USING hudi
    LOCATION '{tmp_path}/t' TBLPROPERTIES (primaryKey = 'id')"""
    with pytest.raises(HudiError, match="DayTimeIntervalType"):
        hudi.sql(tmp_path / "t", create)
