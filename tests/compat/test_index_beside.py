"""A record index that pyhudi makes while Apache Hudi writes; then both write under it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import pyhudi
from pyhudi.config.actions import INDEXING
from pyhudi.metadata.bootstrap import Making
from tests.compat.test_alternating import Model
from tests.compat.test_metadata_making import LOCATIONS, Kind, Layout, make, partitions
from tests.compat.test_metadata_writing import (
    METADATA,
    STATISTICS,
    check,
    write_with_hudi,
    write_with_pyhudi,
)
from tests.helpers.oracle.client import HudiOracle


@pytest.mark.parametrize(
    ("version", "kind", "hudi"),
    [(9, "mor", "1.2.0"), (9, "cow", "1.2.0"), (8, "mor", "1.0.2")],
    indirect=["hudi"],
)
@pytest.mark.timeout(600)
def test_hudi_writes_meanwhile(
    tmp_path: Path, hudi: HudiOracle, version: int, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / "trips"
    model = Model(random.Random(f"beside-{version}-{kind}"))
    layout = Layout(version, kind)
    before = {**METADATA, **STATISTICS, "hoodie.metadata.record.index.enable": "false"}
    make(base, model, layout, before)
    write_with_pyhudi(base, model)
    write_files = Making.write_files

    def slowly(self: Making) -> object:
        stats = write_files(self)
        # Hudi leaves the indexing alone, and the files, and compacts its metadata table.
        for _ in range(3):
            write_with_hudi(hudi, base, model, layout.for_hudi(before))
            write_with_pyhudi(base, model)
        return stats

    with monkeypatch.context() as patch:
        patch.setattr(Making, "write_files", slowly)
        pyhudi.open_table(str(base)).create_index("record_index", concurrently=True)
    table = pyhudi.open_table(str(base))
    assert "record_index" in partitions(base)
    assert len(table.state.timeline.completed(INDEXING)) == 1
    assert table.check(deep=True).ok
    check(hudi, base, model)
    options = layout.for_hudi({**METADATA, **STATISTICS, **LOCATIONS})
    for _ in range(2):
        write_with_hudi(hudi, base, model, options)
        write_with_pyhudi(base, model)
    check(hudi, base, model)
    assert pyhudi.open_table(str(base)).check(deep=True).ok
    assert "record_index" in partitions(base)
