"""Clustering by pyhudi and by Apache Hudi, each by its own plan and by the other's."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.services.clustering import pending
from pyhudi.txn.transaction import Transaction
from tests.compat.test_write_and_continue import VERSION_OF
from tests.helpers.aged import age
from tests.helpers.oracle.client import HudiError, HudiOracle
from tests.helpers.pairwise import with_kinds
from tests.helpers.rows import canonical, difference
from tests.helpers.table_builder import SMALL, TableBuilder, numbered

COLUMNS = "id string, city string, x bigint, v bigint"
CONF = {
    # Nobody can travel to times before a clean.
    "hoodie.clean.automatic": "false",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
}
VISITS = TableBuilder(
    {
        "id": (pa.string(), numbered(3)),
        "city": (pa.string(), lambda number: ("rome", "oslo")[number % 2]),
        "x": (pa.int64(), lambda number: number * 37 % 101),
        "v": (pa.int64(), 0),
    },
    partition_by="city",
    order_by="v",
    options={**SMALL, "hoodie.parquet.small.file.limit": "0", **CONF},
)


class Pair:
    """One table with a record index and column statistics, seen by pyhudi and by Apache Hudi."""

    def __init__(self, hudi: HudiOracle, base: Path, kind: Any) -> None:
        version = VERSION_OF[hudi.hudi]
        self.hudi = hudi
        self.table: HudiTable = VISITS.make(
            base, version=version, kind=kind, index="RECORD_INDEX", first=range(20)
        )
        self.options = {
            "hoodie.table.name": self.table.name,
            "hoodie.datasource.write.table.type": self.table.config.table_type,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "v",
            "hoodie.datasource.write.partitionpath.field": "city",
            "hoodie.index.type": "RECORD_INDEX",
            "hoodie.compact.inline": "false",
            "hoodie.embed.timeline.server": "false",
            "hoodie.parquet.small.file.limit": "0",
            **CONF,
        }
        if version == 6:
            payload = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
            self.options["hoodie.datasource.write.payload.class"] = payload
        else:
            self.options["hoodie.write.table.version"] = str(version)

    def pyhudi_writes(self, ids: range, v: int) -> None:
        self.table.refresh().upsert(VISITS.rows(ids, v=v))

    def hudi_writes(self, ids: range, v: int) -> None:
        rows = VISITS.rows(ids, v=v).to_pylist()
        self.hudi.write(
            self.table.uri, rows=rows, schema=COLUMNS, operation="upsert", options=self.options
        )

    def hudi_clusters(self, what: str) -> None:
        self.hudi.call(self.table.uri, f"run_clustering({what})", conf=CONF)

    def planned(self) -> list[str]:
        return [instant.requested for instant in pending(self.table.refresh().state.timeline)]

    def seen(self) -> dict[str, Any]:
        """What both readers give: as of now, read-optimized, as of a time, and since it."""
        self.table.refresh()
        commits = self.table.inspect.commits()["requested"].to_pylist()
        first, base = str(commits[0]), self.table.uri
        ours = {
            "now": self.table.scan(),
            "optimized": self.table.scan(read_optimized=True),
            "then": self.table.scan(as_of=first),
            "since": self.table.incremental(start=first),
        }
        theirs = {
            "now": self.hudi.read(base, metadata=True),
            "optimized": self.hudi.read(base, query="read_optimized"),
            "then": self.hudi.read(base, as_of=first),
        }
        found = {
            name: sorted(map(canonical, scan.to_arrow().to_pylist())) for name, scan in ours.items()
        }
        for name, answer in theirs.items():
            assert difference(map(canonical, answer["rows"]), found[name]) is None, name
        since = self.hudi.read(base, query="incremental", begin=first)["rows"]
        found["their since"] = sorted(map(canonical, since))
        plain = self.hudi.read(base, metadata=False)["rows"]
        assert difference(map(canonical, plain), found["now"]) is None
        return found

    def check(self, before: dict[str, Any], *, logs: bool) -> None:
        """Nothing has changed, but that what was in log files is now for all to see."""
        after = self.seen()
        if logs:
            before = {**before, "optimized": before["now"]}
        assert after == before
        self.sound()

    def sound(self) -> None:
        """The metadata table tells the truth, to both, and no key is there twice."""
        found = self.table.refresh().check(deep=True)
        assert found.ok, str(found)
        base, rows = self.table.uri, self.table.scan().to_arrow()
        verdict = self.hudi.validate(base)
        assert verdict["ok"], verdict
        assert (verdict["duplicate_keys"], verdict["snapshot"]) == (0, rows.num_rows)
        for where in ("x < 20", "x > 90 AND v > 1"):
            theirs = self.hudi.read(base, metadata=True, data_skipping=True, filter=where)["rows"]
            ours = self.table.scan(where=where).to_arrow().to_pylist()
            assert difference(map(canonical, theirs), map(canonical, ours)) is None


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("hudi", "kind"), with_kinds(["0.15.0", "1.0.2", "1.2.0"]), indirect=["hudi"]
)
def test_clustering_executes_plans_of_other_writer(
    hudi: HudiOracle, kind: Literal["cow", "mor"], tmp_path: Path
) -> None:
    pair = Pair(hudi, tmp_path / "visits", kind)
    logs = pair.table.config.is_merge_on_read
    pair.hudi_writes(range(15, 40), 1)
    pair.pyhudi_writes(range(35, 60), 2)
    pair.hudi_clusters("op => 'schedule', order => 'x'")
    (planned,) = pair.planned()
    # New keys go elsewhere meanwhile.
    pair.hudi_writes(range(100, 103), 1)
    pair.pyhudi_writes(range(103, 106), 1)
    before = pair.seen()
    assert pair.table.cluster(schedule=False).instants == (planned,)
    pair.check(before, logs=logs)
    # Hudi finds the keys where pyhudi put them, and pyhudi where Hudi does.
    pair.hudi_writes(range(5), 3)
    pair.pyhudi_writes(range(3, 8), 4)
    pair.pyhudi_writes(range(60, 70), 5)
    (planned,) = pair.table.cluster(sort_by=["x", "v"], execute=False).scheduled
    pair.hudi_writes(range(106, 108), 1)
    pair.pyhudi_writes(range(108, 110), 1)
    before = pair.seen()
    assert len(before["now"]) == 80
    pair.hudi_clusters("op => 'execute'")
    assert pair.planned() == []
    assert planned in pair.table.refresh().inspect.commits()["requested"].to_pylist()
    pair.check(before, logs=logs)
    pair.hudi_writes(range(66, 72), 6)
    pair.pyhudi_writes(range(70, 74), 7)
    before = pair.seen()
    assert len(before["now"]) == 84
    done = pair.table.cluster(sort_by=["x", "v"], layout="zorder")
    assert done.rows_written == 84
    pair.check(before, logs=logs)
    pair.hudi_writes(range(72, 76), 8)
    assert len(pair.seen()["now"]) == 86
    pair.sound()


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("hudi", "kind"), with_kinds(["0.15.0", "1.2.0"]), indirect=["hudi"])
def test_clusterings_of_either_give_way_to_writers_of_the_other(
    hudi: HudiOracle, kind: Literal["cow", "mor"], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = Pair(hudi, tmp_path / "visits", kind)
    transactions = "org.apache.hudi.client.transaction"
    shared = {
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie.write.lock.provider": f"{transactions}.lock.FileSystemBasedLockProvider",
        "hoodie.write.lock.conflict.resolution.strategy": f"{transactions}."
        "PreferWriterConflictResolutionStrategy",
        "hoodie.clustering.updates.strategy": "org.apache.hudi.client.clustering.update.strategy."
        "SparkAllowUpdateStrategy",
    }
    lazily = {"hoodie.cleaner.policy.failed.writes": "LAZY"}
    lazily["hoodie.clean.failed.writes.policy"] = "LAZY"
    given = ",".join(f"{key}={text}" for key, text in {**shared, **lazily, **CONF}.items())
    pair.table = pyhudi.open_table(pair.table.uri, options={**pair.table.options, **shared})
    pair.options |= shared | lazily
    refused: list[str] = []

    def clusters() -> None:
        with pytest.raises(HudiError) as error:
            pair.hudi_clusters(f"op => 'execute', options => '{given}'")
        refused.append(str((error.value.causes, error.value.message)))

    start = Transaction.start

    def meanwhile(*args: Any) -> None:
        start(*args)
        # Hudi takes a lock of others away with its own, so pyhudi's write may be made again.
        if not refused:
            clusters()

    pair.hudi_clusters(f"op => 'schedule', options => '{given}'")
    (planned,) = pair.planned()
    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "start", meanwhile)
        pair.pyhudi_writes(range(3, 8), 4)
    # The write is complete now, which is in the way as well.
    clusters()
    assert len(refused) == 2
    assert all("WriteConflictException" in one for one in refused), refused
    assert pair.planned() == [planned]
    # Hudi's attempt stays, without a heartbeat.
    age(Path(pair.table.uri), planned)
    assert planned in pair.table.cluster(schedule=False).left[0]
    (planned,) = pair.table.cluster(sort_by=["x"], execute=False).scheduled
    pair.hudi_writes(range(6, 10), 5)
    assert planned in pair.table.refresh().cluster(schedule=False).left[0]
    pair.seen()
    rows = {row["id"]: row["v"] for row in pair.table.scan().to_arrow().to_pylist()}
    # Hudi 0.15 keeps no statistics of log files, which a check would tell.
    pair.table.cluster()
    assert [rows[f"k{n:03}"] for n in range(2, 11)] == [0, 4, 4, 4, 5, 5, 5, 5, 0]
    pair.sound()
