"""Crashes at every change of a bucket resize: readers and writers afterwards."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.admin import run_service
from pyhudi.config.clustering_options import ClusteringOptions
from pyhudi.errors import CommitConflict
from pyhudi.services.clustering import ClusteringRequest, pending
from pyhudi.slices.hashing_metadata import (
    HASHING_METADATA_FOLDER,
    HASHING_METADATA_SUFFIX,
    INITIAL_INSTANT,
)
from pyhudi.storage.storage import Storage
from pyhudi.write import upsert
from tests.sim.crash import Handle, leftovers, values_read
from tests.sim.states import recorded
from tests.unit.test_bucket_resize import MERGE, SPLIT, VISITS
from tests.unit.test_savepoints import timeline_of

pytestmark = pytest.mark.slow

CASES = [(6, SPLIT), (8, MERGE), (9, SPLIT), (9, MERGE)]


def rows(numbers: range, v: int) -> pa.Table:
    return VISITS.rows(numbers, v=v)


@pytest.mark.parametrize(("version", "options"), CASES)
@pytest.mark.parametrize("writes_first", [True, False])
def test_bucket_resize_crash_is_completed_by_next_writer(
    tmp_path: Path, version: int, options: dict[str, str], writes_first: bool
) -> None:
    table = VISITS.make(tmp_path / "t", version=version, first=rows(range(24), 0))
    table.upsert(rows(range(12, 32), 1))

    def cluster(storage: Storage) -> None:
        run_service.cluster(Handle(storage, options), ClusteringRequest(), ClusteringOptions())

    def write(base: Path) -> None:
        upsert.upsert(Handle(Storage(str(base)), options), rows(range(26, 36), 9))

    before = values_read(tmp_path / "t")
    after = {**before, **{f"k{n:03}": 9 for n in range(26, 36)}}
    whole = recorded(tmp_path / "t", tmp_path, cluster)
    assert values_read(whole.base) == before
    for n, base in whole.deaths(one_in=3):
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
        # Keys are found in their new buckets.
        write(base)
        assert values_read(base) == after, f"after change {n}"
        assert not timeline_of(base).pending(), f"after change {n}"
        assert leftovers(base) == [], f"after change {n}"
        assert not orphaned_metadata(base), f"after change {n}"
        assert not pyhudi.open_table(base).check(deep=True).findings, f"after change {n}"


def orphaned_metadata(base: Path) -> list[str]:
    """Rings of what was never complete."""
    names = (file.name for file in Storage(str(base)).list(HASHING_METADATA_FOLDER))
    instants = {
        name.removesuffix(HASHING_METADATA_SUFFIX)
        for name in names
        if name.endswith(HASHING_METADATA_SUFFIX)
    } - {INITIAL_INSTANT}
    timeline = timeline_of(base)
    return [instant for instant in sorted(instants) if not timeline.is_committed(instant)]
