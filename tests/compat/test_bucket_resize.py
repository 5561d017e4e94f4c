"""Buckets split and merged by pyhudi and Apache Hudi, each by its own plan and by the other's."""

from __future__ import annotations

from pathlib import Path

import pytest

import pyhudi
from pyhudi.errors import CommitConflict
from pyhudi.services.clustering import pending
from pyhudi.slices.hashing_metadata import read_committed_hashing_metadata
from pyhudi.timeline import Timeline
from tests.compat.test_write_and_continue import VERSION_OF
from tests.helpers.oracle.client import HudiError, HudiOracle
from tests.helpers.rows import canonical, difference
from tests.unit.test_bucket_resize import MERGE, SPLIT, VISITS

DDL = "id string, city string, v bigint"
UPDATES = "org.apache.hudi.client.clustering.update.strategy."
TWICE = {
    "hoodie.clustering.updates.strategy": f"{UPDATES}SparkConsistentBucketDuplicateUpdateStrategy"
}


class Turns:
    """A table with consistent hashing that both write to; both see the model's rows each time."""

    def __init__(self, hudi: HudiOracle, base: Path) -> None:
        version = VERSION_OF[hudi.hudi]
        self.hudi, self.base = hudi, base
        self.model = {f"k{n:03}": 0 for n in range(40)}
        name = {"hoodie.table.name": "t"}
        self.table = VISITS.make(base, version=version, first=range(40), options=name)
        self.options = {
            **name,
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "v",
            "hoodie.datasource.write.partitionpath.field": "city",
            "hoodie.embed.timeline.server": "false",
            "hoodie.clean.automatic": "false",
            "hoodie.compact.inline.max.delta.commits": "100",
            "hoodie.index.type": "BUCKET",
            **SPLIT,
        }
        if version == 6:
            payload = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
            self.options["hoodie.datasource.write.payload.class"] = payload
        else:
            self.options["hoodie.write.table.version"] = str(version)

    def both_write(self, v: int) -> None:
        """Some rows that are there, and new ones."""
        for writer, first in ((self.hudi_writes, 5 * v), (self.pyhudi_writes, 5 * v + 3)):
            writer(range(first, first + 10), v)
            writer(range(100 + first, 103 + first), v)

    def hudi_writes(self, ids: range, v: int, **more: str) -> None:
        rows = VISITS.rows(ids, v=v).to_pylist()
        options = {**self.options, **more}
        self.hudi.write(self.base, rows=rows, schema=DDL, operation="upsert", options=options)
        self._check(ids, v)

    def pyhudi_writes(self, ids: range, v: int) -> None:
        pyhudi.open_table(self.base, options=SPLIT).upsert(VISITS.rows(ids, v=v))
        self._check(ids, v)

    def _check(self, ids: range, v: int) -> None:
        self.model |= {f"k{n:03}": v for n in ids}
        self.check()

    def hudi_clusters(self, op: str, options: dict[str, str]) -> None:
        conf = {**options, "hoodie.index.type": "BUCKET"}
        given = ",".join(f"{name}={value}" for name, value in conf.items())
        self.hudi.call(self.base, f"run_clustering(op => '{op}', options => '{given}')", conf=conf)

    def planned(self) -> list[str]:
        return [found.requested for found in pending(self.table.refresh().state.timeline)]

    def check(self) -> list[int]:
        """Both see the model's rows; how many buckets the partitions have."""
        ours = self.table.refresh().scan().to_arrow().to_pylist()
        assert {row["id"]: row["v"] for row in ours} == self.model
        assert len(ours) == len(self.model)
        for metadata in (True, False):
            theirs = self.hudi.read(self.base, metadata=metadata)["rows"]
            assert difference(map(canonical, theirs), map(canonical, ours)) is None
        timeline = Timeline.load(self.table.storage, self.table.config)
        all_metadata = [
            read_committed_hashing_metadata(self.table.storage, timeline, city)
            for city in ("oslo", "rome")
        ]
        return [len(metadata.nodes) for metadata in all_metadata if metadata is not None]


@pytest.fixture
def turns(hudi: HudiOracle, tmp_path: Path) -> Turns:
    return Turns(hudi, tmp_path / "t")


RELEASES = pytest.mark.parametrize("hudi", ["0.15.0", "1.0.2", "1.2.0"], indirect=True)


@pytest.mark.timeout(900)
@RELEASES
def test_bucket_resize_executes_plans_of_other_writer(turns: Turns) -> None:
    turns.both_write(1)
    turns.hudi_clusters("schedule", SPLIT)
    (planned,) = turns.planned()
    # Both give way to a plan by default.
    with pytest.raises(CommitConflict, match="is pending"):
        turns.pyhudi_writes(range(4), 9)
    with pytest.raises(HudiError, match=r"Failed to upsert"):
        turns.hudi_writes(range(4), 9)
    done = pyhudi.open_table(turns.base, options=SPLIT).cluster(schedule=False)
    assert done.instants == (planned,)
    assert turns.check() == [4, 4]
    turns.both_write(2)
    merging = pyhudi.open_table(turns.base, options=MERGE)
    (planned,) = merging.cluster(execute=False).scheduled
    turns.hudi_clusters("execute", MERGE)
    assert turns.planned() == []
    assert planned in turns.table.refresh().inspect.commits()["requested"].to_pylist()
    assert turns.check() == [1, 1]
    turns.both_write(3)
    # Each one's own, and the other one goes on.
    assert pyhudi.open_table(turns.base, options=SPLIT).cluster().instants
    turns.both_write(4)
    turns.hudi_clusters("scheduleAndExecute", SPLIT)
    assert turns.check() == [4, 4]
    turns.both_write(5)
    found = turns.table.check(deep=True)
    assert found.ok, str(found)


@pytest.mark.timeout(900)
@RELEASES
def test_bucket_resize_keeps_rows_hudi_writes_concurrently(turns: Turns) -> None:
    turns.both_write(1)
    turns.hudi_clusters("schedule", SPLIT)
    (planned,) = turns.planned()
    turns.hudi_writes(range(5), 2, **TWICE)
    assert pyhudi.open_table(turns.base, options=SPLIT).cluster(schedule=False).instants == (
        planned,
    )
    assert turns.check() == [4, 4]
    turns.both_write(3)
    (planned,) = pyhudi.open_table(turns.base, options=MERGE).cluster(execute=False).scheduled
    turns.hudi_writes(range(7), 4, **TWICE)
    turns.hudi_clusters("execute", MERGE)
    assert turns.planned() == []
    assert turns.check() == [1, 1]
    turns.both_write(5)
    found = turns.table.check(deep=True)
    assert found.ok, str(found)
