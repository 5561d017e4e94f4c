"""Crashes at every change of a clustering: readers, the next writer, the next clustering."""

from __future__ import annotations

from pathlib import Path

import pytest

import pyhudi
from pyhudi.admin import run_service
from pyhudi.config.clustering_options import ClusteringOptions
from pyhudi.errors import CommitConflict
from pyhudi.services.clustering import ClusteringRequest, pending
from pyhudi.storage.storage import Storage
from pyhudi.write import upsert
from tests.sim.crash import Handle, leftovers, values_read
from tests.sim.states import recorded
from tests.unit.test_savepoints import made, people, timeline_of

OPTIONS = {"hoodie.index.bloom.num_entries": "64"}
CASES = [
    (6, "mor", {}),
    (8, "cow", {}),
    (9, "mor", {}),
    (9, "cow", {"hoodie.metadata.compact.max.delta.commits": 2}),
]

pytestmark = pytest.mark.slow


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1]}-{len(case[2])}")
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A table with a metadata table, in the last case one that is compacted often."""
    version, kind, options = request.param
    made(tmp_path / "t", version, kind)
    options = {**options, "hoodie.parquet.small.file.limit": "0"}
    pyhudi.open_table(tmp_path / "t", options=options).upsert(people(range(1, 6), 3))
    return tmp_path / "t"


def cluster(storage: Storage) -> None:
    options = ClusteringOptions(sort_columns=("v",))
    run_service.cluster(Handle(storage, OPTIONS), ClusteringRequest(), options)


def write(base: Path) -> None:
    upsert.upsert(Handle(Storage(str(base)), OPTIONS), people(range(4, 10), 9))


@pytest.mark.parametrize("writes_first", [True, False])
def test_clustering_crash_is_completed_by_next_writer(
    table: Path, tmp_path: Path, writes_first: bool
) -> None:
    before = values_read(table)
    whole = recorded(table, tmp_path, cluster)
    assert values_read(whole.base) == before
    after = {**before, **{f"k{n}": 9 for n in range(4, 10)}}
    for n, base in whole.deaths(one_in=4):
        assert values_read(base) == before, f"after change {n}"
        written = False
        if writes_first:
            if pending(timeline_of(base)):
                with pytest.raises(CommitConflict, match="is pending"):
                    write(base)
            else:
                write(base)
                written = True
            assert values_read(base) == (after if written else before), f"after change {n}"
        cluster(Storage(str(base)))
        assert values_read(base) == (after if written else before), f"after change {n}"
        assert not timeline_of(base).pending(), f"after change {n}"
        assert leftovers(base) == [], f"after change {n}"
        assert not pyhudi.open_table(base).check(deep=True).findings, f"after change {n}"
