"""The schema in which records of the metadata table are written."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

import pyhudi

ROWS = pa.table({"id": ["a", "b"], "p": ["x", "y"], "ts": [1, 1], "note": ["One", "Two"]})


@pytest.mark.parametrize("kind", ["mor", "cow"])
def test_recording_has_the_schema_of_the_metadata_table(
    tmp_path: Path, kind: Literal["mor", "cow"]
) -> None:
    """Hudi 1.2.0's `run_clustering` upgrades the metadata table of a table of version 8 alone."""
    base = tmp_path / "t"
    table = pyhudi.create_table(
        base, ROWS, key="id", partition_by="p", order_by="ts", type=kind, version=8
    )
    properties = base / ".hoodie/metadata/.hoodie/hoodie.properties"
    text = properties.read_text(encoding="utf-8")
    assert "hoodie.table.version=8" in text
    properties.write_text(text.replace("hoodie.table.version=8", "hoodie.table.version=9"))
    table = pyhudi.open_table(base)
    table.create_index("column_stats", ["note"], name="by_lower", function="lower")
    table.create_index("bloom_filters")
    changes = ROWS.set_column(2, "ts", pa.array([2, 2]))
    for _ in range(3):
        table.upsert(changes)
    table.clean(retain=1)
    metadata = table.inspect.metadata("column_stats", column="note")
    assert metadata.num_rows > 0
    findings = table.check(deep=True).findings
    assert {finding.kind for finding in findings} <= {"properties_changed"}  # by this test
    assert table.scan(where="lower(note) = 'two'").to_arrow()["id"].to_pylist() == ["b"]
