"""pyhudi writes to a partition that Hudi removed: Hudi lists no old file in it."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from tests.compat.test_alternating_writers import DDL, SCHEMA, Model, Row, hudi_options
from tests.compat.test_metadata_writes import METADATA, STATISTICS, check
from tests.helpers.history import deletes_of_files
from tests.helpers.oracle.client import HudiOracle

COMPACT = "hoodie.metadata.compact.max.delta.commits"


def elsewhere(model: Model) -> list[Row]:
    """A batch without rows of the partition."""
    return [row for row in model.batch(4) if row["city"] != "oslo"]


def replaced(base: Path) -> bool:
    return "replacecommit" in pyhudi.open_table(str(base)).inspect.timeline()["action"].to_pylist()


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("hudi", ["1.2.0"], indirect=True)
@pytest.mark.timeout(600)
def test_recreated_partition_lists_no_old_file(tmp_path: Path, hudi: HudiOracle, kind: str) -> None:
    base = tmp_path / "trips"
    model = Model(random.Random(kind))
    options = {**hudi_options(kind, partitioned=True), **METADATA, **STATISTICS}
    options |= {
        "hoodie.clean.automatic": "false",
        "hoodie.clean.commits.retained": "1",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        # More delta commits than this need not stay for the next compaction, which nobody does.
        "hoodie.compact.inline.max.delta.commits": "2",
    }

    def upsert(rows: list[Row]) -> None:
        mode = "append" if base.exists() else "overwrite"
        hudi.write(base, rows=rows, schema=DDL, operation="upsert", options=options, mode=mode)
        model.upsert(rows)

    options[COMPACT] = "1"
    for _ in range(2):
        upsert(model.batch(6))
    gone = {"hoodie.datasource.write.partitions.to.delete": "oslo"}
    hudi.write(base, operation="delete_partition", options=options | gone)
    model.delete([row for row in model.rows.values() if row["city"] == "oslo"])
    model.gone.clear()
    upsert(elsewhere(model))
    # The base file of `files` knows what was replaced. Now it is removed, and its commit archived:
    # while that is active, readers pass over the file groups.
    options |= {COMPACT: "50", "hoodie.clean.automatic": "true"}
    for _ in range(12):
        if deletes_of_files(base) and not replaced(base):
            break
        upsert(elsewhere(model))
    assert deletes_of_files(base)
    assert not replaced(base)
    check(hudi, base, model)
    back = [row for row in model.batch(9) if row["city"] == "oslo"]
    assert back
    table = pyhudi.open_table(str(base), options={COMPACT: "50"})
    table.upsert(pa.Table.from_pylist(back, SCHEMA))
    model.upsert(back)
    assert deletes_of_files(base)
    read = hudi.read(base, metadata=True)["rows"]
    assert sorted(read, key=lambda row: str(row["id"])) == model.sorted()
    check(hudi, base, model)
    # Hudi merges what both wrote into a base file.
    options[COMPACT] = "1"
    for _ in range(2):
        upsert(model.batch(3))
        check(hudi, base, model)
        found = pyhudi.open_table(str(base)).check(deep=True)
        assert not found, str(found)
