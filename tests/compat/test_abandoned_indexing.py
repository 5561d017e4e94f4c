"""An index build that a dead Hudi writer left: pyhudi revokes it, and both continue."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import pyhudi
from tests.compat.test_alternating_writers import Model, hudi_options
from tests.compat.test_metadata_writes import (
    LOCATIONS,
    METADATA,
    write_with_hudi,
    write_with_pyhudi,
)
from tests.compat.test_secondary_index import INDEX, LOCK, check
from tests.helpers.oracle.client import HudiOracle
from tests.unit.test_abandoned_indexing import died, pending


@pytest.mark.parametrize(("version", "hudi"), [(8, "1.0.2"), (9, "1.2.0")], indirect=["hudi"])
@pytest.mark.timeout(600)
def test_hudi_makes_it_again(tmp_path: Path, hudi: HudiOracle, version: int) -> None:
    base = tmp_path / "trips"
    model = Model(random.Random(f"left-{version}"))
    options = {**hudi_options("mor", partitioned=True), **METADATA, **LOCATIONS}
    write_with_hudi(hudi, base, model, options, mode="overwrite")
    hudi.sql(base, "CREATE INDEX idx_note ON {table} (note)", LOCK)
    died(base, built=True, name=INDEX)
    assert pyhudi.open_table(base).drop_index("idx_note") == (INDEX,)
    assert pending(base) == []
    write_with_hudi(hudi, base, model, options)
    write_with_pyhudi(base, model)
    hudi.sql(base, "CREATE INDEX idx_note ON {table} (note)", LOCK)
    write_with_pyhudi(base, model)
    write_with_hudi(hudi, base, model, options)
    check(hudi, base, model)
    found = pyhudi.open_table(base).check(deep=True)
    assert not [finding for finding in found.findings if finding.severity == "error"], str(found)
