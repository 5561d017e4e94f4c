"""How often a write lists what: the timeline where needed, and the partitions that it touches."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.storage.storage import Storage
from pyhudi.write import upsert

ROWS = pa.table({"id": [f"k{n}" for n in range(12)], "part": ["a", "b", "c"] * 4, "v": range(12)})


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    table = pyhudi.create_table(
        tmp_path / "t",
        ROWS.schema,
        key="id",
        partition_by="part",
        type="mor",
        options={"hoodie.metadata.enable": "false"},
    )
    table.upsert(ROWS)
    return table


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch, table: HudiTable) -> Counter[str]:  # noqa: ARG001 - made before
    """How often each folder is listed, from when the table is there."""
    counts: Counter[str] = Counter()
    for name in ("list_dir", "list"):
        plain = getattr(Storage, name)

        def counting(storage: Storage, path: str, plain: object = plain) -> object:
            counts[path] += 1
            return plain(storage, path)  # type: ignore[operator]

        monkeypatch.setattr(Storage, name, counting)
    return counts


def test_upsert_lists_timeline_five_times(table: HudiTable, listed: Counter[str]) -> None:
    """Opening, files listed, requested, written, and about to be complete."""
    upsert.upsert(table, ROWS.slice(0, 5))
    assert listed[".hoodie/timeline"] == 5
    assert not [path for path in listed if ".bucket_index" in path]


def test_merge_lists_partitions_of_source_only(table: HudiTable, listed: Counter[str]) -> None:
    source = ROWS.filter(pa.compute.equal(ROWS["part"], "b"))
    result = table.merge(source).when_matched_update({"v": "source.v + 1"}).execute()
    assert result.rows_updated == 4
    assert {path: listed[path] for path in "abc"} == {"a": 0, "b": 1, "c": 0}
    assert "" not in listed
