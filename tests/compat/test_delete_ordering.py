"""Hudi and pyhudi read late deletes alike."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.config.meta_columns import IS_DELETED
from tests.helpers.oracle.client import HudiOracle
from tests.helpers.table_builder import set_delete_marker, with_deletes

COMPACTION = {
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.auto.upgrade": "false",
}


def found(hudi: HudiOracle, base: Path) -> tuple[str, str]:
    """The ids that Hudi finds, and pyhudi."""
    ours = pyhudi.open_table(base).scan(["id"]).to_arrow().to_pylist()
    one, two = (sorted(row["id"] for row in rows) for rows in (hudi.read(base)["rows"], ours))
    return "".join(one), "".join(two)


@pytest.mark.parametrize("hudi", ["1.2.0"], indirect=True)
@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_moments_in_milliseconds(
    hudi: HudiOracle, tmp_path: Path, version: int, zone: str | None
) -> None:
    base = tmp_path / "t"
    early, middle, late = (dt.datetime(year, 1, 1) for year in (2020, 2021, 2022))  # noqa: DTZ001
    builder = with_deletes("ts", ts=pa.timestamp("ms", zone))
    builder.make(base, version=version)
    # Up to version 6 only what a marker deletes goes to delete blocks.
    table = set_delete_marker(base, "op", "D")
    table.insert(builder.rows("abcd", ts=middle))
    table.upsert(builder.rows("a", ts=late))
    when = {"a": middle, "b": late, "c": early, "d": middle}
    table.upsert(builder.rows("abcd", ts=when.get, op="D"))
    assert found(hudi, base) == ("ac", "ac")
    hudi.call(base, "run_compaction(op => 'scheduleandexecute')", conf=COMPACTION)
    assert found(hudi, base) == ("ac", "ac")


@pytest.mark.parametrize("hudi", ["1.2.0"], indirect=True)
def test_late_delete_with_null_ordering_value_matches_hudi(
    hudi: HudiOracle, tmp_path: Path
) -> None:
    base = tmp_path / "t"
    builder = with_deletes(["a", "b", "c"], a=pa.int64(), b=pa.int64(), c=pa.string())
    table = builder.make(base)
    table.insert(builder.rows("wxyz", a=10, b=5, c="n"))
    table.upsert(builder.rows("w", a=20, b=5, c="n"))
    when = {"w": 15, "x": 5, "y": 10, "z": 15}
    table.upsert(builder.rows("wxyz", a=when.get, **{IS_DELETED: True}))
    assert found(hudi, base) == ("wxy", "wxy")
