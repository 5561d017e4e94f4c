"""Texts that Parquet keeps no statistics of, which Hudi's column statistics take for nulls."""

from __future__ import annotations

from pathlib import Path

import pytest

import pyhudi
from tests.compat.test_alternating_writers import hudi_options
from tests.compat.test_metadata_writes import METADATA, STATISTICS
from tests.helpers.oracle.client import HudiOracle

DDL = "id string, city string, s string, ts long"
ROWS = [
    {"id": "a", "city": "x", "s": "x" * 3000, "ts": 1},
    {"id": "b", "city": "x", "s": "y" * 3000, "ts": 1},
]


@pytest.mark.hudi("0.15.0", "1.0.2", "1.2.0")
def test_pruning_finds_rows_with_long_strings(tmp_path: Path, hudi: HudiOracle) -> None:
    base = tmp_path / "trips"
    options = {**hudi_options("cow", partitioned=True), **METADATA, **STATISTICS}
    hudi.write(base, rows=ROWS, schema=DDL, options=options, operation="upsert")
    table = pyhudi.open_table(base)
    assert "column_stats" in table.config.metadata_partitions
    for where in ("s != 'q'", "s > 'a'", "s IS NOT NULL"):
        assert table.scan(where=where).count() == 2, where
    assert table.scan(where="s IS NULL").count() == 0
