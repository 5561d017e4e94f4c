"""A number of buckets that is not the table's, or not every partition's: no wrong answer."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.config.index_options import BUCKETS
from pyhudi.errors import ConfigError

COUNTS = {"big": 8, "other": 2, "small": 1}
KEYS = [f"k{n}" for n in range(8)]
Kind = Literal["cow", "mor"]


def rows(partition: str, v: int = 1) -> pa.Table:
    return pa.table({"id": KEYS, "p": [partition] * 8, "v": [v] * 8})


def told(base: Path, count: int) -> HudiTable:
    return pyhudi.open_table(base, options={"hoodie.index.type": "BUCKET", BUCKETS: count})


@pytest.fixture(params=["cow", "mor"])
def base(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """As a writer with `hoodie.bucket.index.partition.expressions` leaves it (Hudi 1.1)."""
    kind: Kind = request.param
    path = tmp_path / "t"
    pyhudi.create_table(
        path, rows("x").schema, key="id", partition_by="p", type=kind, index="bucket"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pyhudi.index.bucket.in_bucket", lambda *_: True)
        for partition, count in COUNTS.items():
            told(path, count).insert(rows(partition))
    for partition, count in COUNTS.items():
        files = {file.name[:8] for file in (path / partition).glob("0*.parquet")}
        assert files == {f"{number:08}" for number in range(count)}
    return path


@pytest.mark.parametrize("count", [1, 2, 3, 8, 16])
def test_filters_by_key_lose_no_row(base: Path, count: int) -> None:
    table = told(base, count)
    assert [table.scan(where=f"id = '{key}'").count() for key in KEYS] == [3] * 8
    assert [table.scan(where=f"id = '{key}' AND p = 'big'").count() for key in KEYS] == [1] * 8


@pytest.mark.parametrize("count", [1, 2, 3, 8, 16])
def test_no_write_goes_to_a_partition_with_another_number(base: Path, count: int) -> None:
    table = told(base, count)
    for partition, right in COUNTS.items():
        if count == right:
            table.upsert(rows(partition, 2))
        else:
            with pytest.raises(ConfigError, match="bucket"):
                table.upsert(rows(partition, 2))
        with pytest.raises(ConfigError, match="bucket"):
            table.upsert(pa.concat_tables(rows(each, 3) for each in COUNTS))
    assert table.refresh().scan().count() == 24


def test_a_right_number_still_leaves_slices_out(tmp_path: Path) -> None:
    pyhudi.create_table(
        tmp_path / "t", rows("a"), key="id", partition_by="p", index="bucket", options={BUCKETS: 8}
    )
    for count, gone in ((8, 7), (3, 0)):
        plan = str(told(tmp_path / "t", count).scan(where="id = 'k1'").explain())
        assert f"bucket index: left out {gone} of 8 file slices" in plan
