"""Savepoints, rollbacks by hand and restores, by pyhudi and by Apache Hudi in turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from tests.compat.test_write_and_continue import VERSION_OF
from tests.helpers.oracle.client import HudiOracle
from tests.helpers.rows import canonical, difference
from tests.unit.test_savepoints import people

COLUMNS = "id string, city string, v bigint"
RELEASES = ["0.15.0", "1.0.2", "1.2.0"]
CONF = {"hoodie.metadata.record.index.enable": "true"}
Rows = dict[str, int]


class Pair:
    """One table with a record index, seen by pyhudi and by Apache Hudi."""

    def __init__(self, hudi: HudiOracle, base: Path, kind: Any) -> None:
        version = VERSION_OF[hudi.hudi]
        self.hudi = hudi
        self.table: HudiTable = pyhudi.create_table(
            base,
            people(range(4), 1),
            key="id",
            partition_by="city",
            order_by="v",
            type=kind,
            version=version,
        )
        conf = dict(CONF)
        if version == 6:
            # 0.15.0 does not restore to what is older than a base file of the metadata table.
            conf["hoodie.metadata.compact.max.delta.commits"] = "100"
            self.table = pyhudi.open_table(base, options=conf)
        self.conf = conf
        self.options = {
            "hoodie.table.name": self.table.name,
            "hoodie.datasource.write.table.type": self.table.config.table_type,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "v",
            "hoodie.datasource.write.partitionpath.field": "city",
            "hoodie.compact.inline": "false",
            "hoodie.embed.timeline.server": "false",
            **conf,
        }
        if version == 6:
            payload = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
            self.options["hoodie.datasource.write.payload.class"] = payload
        else:
            self.options["hoodie.write.table.version"] = str(version)

    def pyhudi_writes(self, ids: range, v: int) -> None:
        self.table.refresh().upsert(people(ids, v))

    def hudi_writes(self, ids: range, v: int) -> None:
        rows = people(ids, v).to_pylist()
        self.hudi.write(
            self.table.uri, rows=rows, schema=COLUMNS, operation="upsert", options=self.options
        )

    def call(self, procedure: str) -> list[dict[str, Any]]:
        found = self.hudi.call(self.table.uri, procedure, conf=self.conf)["rows"]
        return list(found)

    def last(self) -> str:
        commits = self.table.refresh().inspect.commits()["requested"]
        return str(commits[-1].as_py())

    def check(self, wanted: Rows) -> None:
        """Both read the wanted rows, with and without the metadata table, which tells the truth."""
        base = self.table.uri
        plain = pyhudi.open_table(base, options={"hoodie.metadata.enable": False})
        ours = self.table.refresh().scan().to_arrow().to_pylist()
        assert {row["id"]: row["v"] for row in ours} == wanted
        assert len(ours) == len(wanted)
        assert (
            difference(map(canonical, plain.scan().to_arrow().to_pylist()), map(canonical, ours))
            is None
        )
        for metadata in (True, False):
            theirs = self.hudi.read(base, metadata=metadata)["rows"]
            assert difference(map(canonical, theirs), map(canonical, ours)) is None
        found = self.table.check(deep=True)
        assert found.ok, str(found)


@pytest.fixture(params=["cow", "mor"])
def pair(request: pytest.FixtureRequest, hudi: HudiOracle, tmp_path: Path) -> Pair:
    return Pair(hudi, tmp_path / "visits", request.param)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("hudi", RELEASES, indirect=True)
def test_each_lists_and_deletes_the_others_savepoints(pair: Pair) -> None:
    pair.hudi_writes(range(2), 2)
    ours = pair.table.refresh().savepoint("by pyhudi")
    (row,) = pair.call("show_savepoints()")
    assert ours in row.values()
    pair.hudi_writes(range(1, 5), 3)
    theirs = pair.last()
    pair.call(f"create_savepoint(commit_time => '{theirs}', user => 'u', comments => 'c')")
    found = pair.table.refresh().savepoints().to_pylist()
    assert [(one["instant"], one["comment"]) for one in found] == [
        (ours, "by pyhudi"),
        (theirs, "c"),
    ]
    pair.call(f"delete_savepoint(instant_time => '{ours}')")
    pair.table.refresh().delete_savepoint(theirs)
    assert pair.call("show_savepoints()") == []
    pair.pyhudi_writes(range(3, 6), 4)
    pair.check({"k0": 2, "k1": 3, "k2": 3, "k3": 4, "k4": 4, "k5": 4})


@pytest.mark.timeout(900)
@pytest.mark.parametrize("hudi", RELEASES, indirect=True)
def test_each_takes_back_what_the_other_wrote(pair: Pair) -> None:
    """A savepoint, commits of both, one rolled back by hand, and a restore; by each of them."""
    pair.hudi_writes(range(2), 2)
    rows = {"k0": 2, "k1": 2, "k2": 1, "k3": 1}
    saved = pair.table.refresh().savepoint("both go back to it")
    for v, ours in ((3, True), (13, False)):
        pair.pyhudi_writes(range(1, 5), v)
        pair.hudi_writes(range(3, 8), v + 1)
        written = {**rows, **{f"k{n}": v for n in range(1, 3)}}
        written |= {f"k{n}": v + 1 for n in range(3, 8)}
        pair.check(written)

        (pair.pyhudi_writes if not ours else pair.hudi_writes)(range(6, 10), v + 2)
        if ours:
            done = pair.table.refresh().rollback(pair.last())
            assert done.files_deleted + done.log_files_called_off > 0
        else:
            pair.call(f"rollback_to_instant(instant_time => '{pair.last()}')")
        pair.check(written)

        if ours:
            assert pair.table.refresh().restore(saved).restored_to == saved
        else:
            pair.call(f"rollback_to_savepoint(instant_time => '{saved}')")
        assert pair.last() == saved
        pair.check(rows)

        pair.hudi_writes(range(4, 6), v + 5)
        pair.pyhudi_writes(range(5, 7), v + 6)
        pair.check({**rows, "k4": v + 5, "k5": v + 6, "k6": v + 6})
        pair.table.refresh().restore(saved)
        pair.check(rows)
