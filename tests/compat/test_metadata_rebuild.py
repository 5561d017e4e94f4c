"""pyhudi dies while it rebuilds a metadata table; then Apache Hudi writes, then pyhudi."""

from __future__ import annotations

import copy
import random
import shutil
from pathlib import Path

import pytest

import pyhudi
from pyhudi.config.property_names import PENDING_OPERATION
from pyhudi.write import metadata_lifecycle
from tests.compat.test_alternating_writers import Model
from tests.compat.test_metadata_initialize import Layout, make, partitions
from tests.compat.test_metadata_writes import (
    METADATA,
    RELEASES,
    check,
    write_with_hudi,
    write_with_pyhudi,
)
from tests.helpers.oracle.client import HudiOracle
from tests.sim.crash import CrashingStorage, Handle, Killed

OWN = {"hoodie.metadata.record.index.enable": "true"}


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize(("version", "hudi"), RELEASES, indirect=["hudi"])
@pytest.mark.timeout(900)
def test_hudi_writes_between(tmp_path: Path, hudi: HudiOracle, version: int, kind: str) -> None:
    start = tmp_path / "start"
    layout = Layout(version, "cow" if kind == "cow" else "mor")
    model = Model(random.Random(f"unfinished-{version}-{kind}"))
    make(start, model, layout, OWN)
    made = partitions(start)
    assert "record_index" in made
    counting = CrashingStorage(str(shutil.copytree(start, tmp_path / "counted")))
    metadata_lifecycle.rebuild(Handle(counting))
    for number, dies_at in enumerate((8, counting.changes // 2, counting.changes - 6)):
        base = shutil.copytree(start, tmp_path / f"trips{number}")
        own = copy.deepcopy(model)
        with pytest.raises(Killed):
            metadata_lifecycle.rebuild(Handle(CrashingStorage(str(base), dies_at)))
        before = pyhudi.open_table(str(base)).config
        assert PENDING_OPERATION in before.properties
        assert before.metadata_partitions == ()
        write_with_hudi(hudi, base, own, layout.for_hudi(METADATA))
        after = pyhudi.open_table(str(base)).config
        assert after.properties[PENDING_OPERATION] == before.properties[PENDING_OPERATION]
        write_with_pyhudi(base, own)
        assert partitions(base) >= made
        assert PENDING_OPERATION not in pyhudi.open_table(str(base)).config.properties
        check(hudi, base, own)
        assert pyhudi.open_table(str(base)).check(deep=True).ok
