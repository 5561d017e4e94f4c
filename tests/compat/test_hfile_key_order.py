"""Look-ups in the metadata table where bytes and UTF-16 units put keys in different orders.

pyhudi writes HFiles in the order of bytes, by which each release looks a key up.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from tests.helpers.oracle.client import HudiError, HudiOracle

KEYS = ["\uff21", "\U0001f600", "\uff22", "\U0001f601", "a", "b"]
"""Full-width letters, which come after emoji by UTF-16 units, and before them by bytes."""
RELEASES = [(6, "0.15.0"), (8, "1.0.2"), (9, "1.2.0")]
OPTIONS = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "1",
    "hoodie.metadata.record.index.max.filegroup.count": "1",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "1",
}


def made(base: Path, version: int, partition_by: str | None = None) -> None:
    """A table whose metadata table is compacted with each commit."""
    numbers = pa.array([1] * len(KEYS), pa.int32())
    rows = {"k": KEYS, "t": [f"{key}!" for key in KEYS], "n": numbers}
    table = pyhudi.create_table(
        base,
        pa.table(rows),
        key="k",
        partition_by=partition_by,
        version=version,
        options={"hoodie.table.name": "t", **OPTIONS},
    )
    if version > 6 and partition_by is None:
        table.create_index("secondary_index", ["t"], name="by_t")
    for n in (2, 3):
        table.upsert(pa.table({"k": ["a"], "t": ["a!"], "n": pa.array([n], pa.int32())}))
    assert {finding.kind for finding in table.check(deep=True)} == {"metadata_key_order"}


def keys(hudi: HudiOracle, base: Path, **asked: Any) -> list[str]:
    return [row["k"] for row in hudi.read(base, options=OPTIONS, **asked)["rows"]]


@pytest.mark.parametrize(("version", "hudi"), RELEASES, indirect=["hudi"])
@pytest.mark.timeout(600)
def test_hudi_finds_each_key_after_a_compaction(
    tmp_path: Path, hudi: HudiOracle, version: int
) -> None:
    made(tmp_path / "t", version)
    assert sorted(keys(hudi, tmp_path / "t", metadata=True)) == sorted(KEYS)
    for key in KEYS:
        for condition in (f"k = '{key}'", f"t = '{key}!'"):
            found = keys(hudi, tmp_path / "t", metadata=True, data_skipping=True, filter=condition)
            assert found == [key], condition


@pytest.mark.parametrize(("version", "hudi"), RELEASES, indirect=["hudi"])
@pytest.mark.timeout(600)
def test_hudi_lists_partitions_or_says_that_it_cannot(
    tmp_path: Path, hudi: HudiOracle, version: int
) -> None:
    """The native reader of 1.0 and later looks for several keys by UTF-16 units."""
    made(tmp_path / "t", version, partition_by="t")
    assert sorted(keys(hudi, tmp_path / "t", metadata=False)) == sorted(KEYS)
    if version == 6:
        assert sorted(keys(hudi, tmp_path / "t", metadata=True)) == sorted(KEYS)
        return
    with pytest.raises(HudiError, match="less than the current position of the cursor"):
        keys(hudi, tmp_path / "t", metadata=True)
