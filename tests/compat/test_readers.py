"""Apache Hudi reads tables of pyhudi as `Inspect.readers` says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from tests.helpers.oracle.client import HudiError, HudiOracle

ROWS = pa.table({"id": ["a", "b"], "city": ["oslo", "rome"], "fare": [1.0, 1.0]})
AXES: dict[str, dict[str, Any]] = {
    "version 6": {"version": 6},
    "version 8": {"version": 8},
    "version 9": {"version": 9},
    "local time": {"version": 6, "at": pa.timestamp("us")},
    "orc": {"version": 6, "options": {"hoodie.table.base.file.format": "ORC"}},
}


@pytest.mark.parametrize("hudi", ["0.15.0", "1.0.2", "1.2.0"], indirect=True)
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("axes", list(AXES))
def test_hudi_reads_as_predicted(
    axes: str, kind: Any, hudi: HudiOracle, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    arguments = dict(AXES[axes])
    columns = arguments.pop("at", None)
    rows = ROWS if columns is None else ROWS.append_column("at", pa.array([1, 2], columns))
    table = pyhudi.create_table(
        tmp_path / "t", rows, key="id", partition_by="city", type=kind, **arguments
    )
    table.upsert(rows.set_column(2, "fare", pa.array([2.0, 2.0])))
    release = request.node.callspec.params["hudi"]
    answer = table.inspect.readers()[f"Spark, Hudi {release}"].answer
    try:
        read = hudi.read(table.uri)["rows"]
    except HudiError:
        assert answer == "no"
        return
    names = rows.schema.names
    expected = [
        {**row, **({"at": row["at"].strftime("%Y-%m-%dT%H:%M:%S.%f")} if columns else {})}
        for row in table.to_arrow().to_pylist()
    ]
    is_equal = [{name: row[name] for name in names} for row in read] == sorted(
        expected, key=lambda row: str(row["id"])
    )
    assert is_equal is (answer in ("yes", "partly"))
