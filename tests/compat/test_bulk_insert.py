"""Hudi reads, looks up and rewrites what a large bulk insert wrote.

The rows are more than a page, so that pages repeat, and more than a block of the record index.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from tests.compat.test_record_index import DDL, INDEXES, TYPES, arrow, hudi_options, rows
from tests.helpers.oracle.client import HudiOracle

COUNT = 40_000
RELEASES = [(6, "0.15.0"), (8, "1.0.2"), (9, "1.2.0")]


@pytest.mark.parametrize(("version", "hudi"), RELEASES, indirect=["hudi"])
@pytest.mark.timeout(600)
def test_hudi_updates_rows_of_a_large_bulk_insert(
    tmp_path: Path, hudi: HudiOracle, version: int
) -> None:
    base, ids = tmp_path / "t", [f"k{number:07}" for number in range(COUNT)]
    table = pyhudi.create_table(
        base,
        pa.schema(TYPES),
        key="id",
        partition_by="city",
        order_by="ts",
        version=version,
        options={"hoodie.table.name": "t", **INDEXES["moving"]},
    )
    model = {row["id"]: row for row in rows(ids[::4], "lima", 1) + rows(ids[1::2], "oslo", 1)}
    table.bulk_insert(arrow([*model.values()]))
    first, last = ids[0], ids[-1]
    found = hudi.read(base, filter=f"id in ('{first}', '{last}')", metadata=True)["rows"]
    assert {row["id"]: row["v"] for row in found} == {first: 1, last: 1}

    changed = rows([first, ids[20_000]], "lima", 2) + rows([last, "new"], "oslo", 2)
    how = hudi_options(version, "cow", "moving")
    hudi.write(base, rows=changed, schema=DDL, operation="upsert", options=how, mode="append")
    model |= {row["id"]: row for row in changed}
    table = table.refresh()
    result = table.to_arrow(columns=[name for name, _ in TYPES]).sort_by("id")
    assert result.to_pylist() == [model[key] for key in sorted(model)]
    assert not [*table.check(deep=True)]
