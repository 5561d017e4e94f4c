"""Filters over values with odd statistics find the same rows with every index and with none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from tests.helpers.odd_values import SCHEMA, expected, first_rows, second_rows

WITHOUT = {"hoodie.metadata.enable": "false", "hoodie.enable.data.skipping": "false"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_indexes_lose_no_row(tmp_path: Path, version: int, kind: Any) -> None:
    table = pyhudi.create_table(
        tmp_path, SCHEMA, key="id", partition_by="city", order_by="ts", type=kind, version=version
    )
    if "column_stats" not in table.config.metadata_partitions:
        table.create_index("column_stats")
    rows = {}
    for batch in (first_rows(), second_rows()):
        table.upsert(pa.Table.from_pylist(batch, SCHEMA))
        rows.update({one["id"]: one for one in batch})
        left_out = 0
        for where, ids in expected(rows).items():
            for options in ({}, WITHOUT):
                scan = pyhudi.open_table(tmp_path, options=options).scan(["id"], where=where)
                assert sorted(scan.to_arrow()["id"].to_pylist()) == ids, (where, options)
                left_out += scan.explain().pruned.num_rows
        assert left_out
