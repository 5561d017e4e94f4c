"""Tables that Apache Hudi bootstrapped, written to by pyhudi and by Hudi in turn."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.services.clustering import pending
from pyhudi.write import upsert
from tests.helpers.bootstrap_table import (
    CITIES,
    METADATA_ONLY,
    MIXED,
    NO_STATISTICS,
    SCHEMA,
    Bootstrapped,
    Kind,
    row,
)
from tests.helpers.oracle.client import HudiOracle
from tests.sim.crash import CrashingStorage, Handle, Killed, count_native_writes

STATISTICS = dict.fromkeys(NO_STATISTICS, "true")
OFTEN = {"hoodie.compact.inline.max.delta.commits": "1"}

pytestmark = pytest.mark.timeout(900)
every_release = pytest.mark.parametrize("hudi", ["0.15.0", "1.0.2", "1.2.0"], indirect=True)
each_kind = pytest.mark.parametrize("kind", ["cow", "mor"])


@every_release
@each_kind
@pytest.mark.parametrize("layout", ["partitioned", "flat", "mixed"])
def test_both_write_in_turn(tmp_path: Path, hudi: HudiOracle, kind: Kind, layout: str) -> None:
    modes = MIXED if layout == "mixed" else METADATA_ONLY
    one = Bootstrapped(hudi, tmp_path / "t", kind, layout != "flat", modes)
    one.check()
    one.pyhudi_writes("upsert", [row(0, name="ours", ts=200), row(30, ts=200)])
    one.check()
    one.hudi_writes("upsert", [row(0, name="theirs", ts=300), row(1, name="theirs", ts=300)])
    one.check()
    one.pyhudi_writes("upsert", [row(1, name="ours", ts=400), row(2, name="ours", ts=400)])
    one.pyhudi_writes("delete", [row(3), row(4)])
    one.check()
    one.hudi_writes("delete", [row(5), row(30)])
    one.check()
    one.table.delete(pc.field("n") == 6)
    one.table.update(pc.field("n") == 7, {"name": "'updated'"})
    del one.rows["k006"]
    one.rows["k007"]["name"] = "updated"
    one.check()
    one.pyhudi_writes("insert", [row(40, ts=500)])
    one.pyhudi_writes("bulk_insert", [row(41, ts=500)])
    one.hudi_writes("upsert", [row(40, name="theirs", ts=600), row(8, name="theirs", ts=600)])
    one.check()
    given = pa.Table.from_pylist([row(9, name="merged", ts=700), row(50, ts=700)], SCHEMA)
    merge = one.table.merge(given)
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    one.rows |= {"k009": row(9, name="merged", ts=700), "k050": row(50, ts=700)}
    one.check()
    assert one.stored("city") <= {*CITIES}


@every_release
def test_overwrite_replaces_bootstrapped_partition(tmp_path: Path, hudi: HudiOracle) -> None:
    one = Bootstrapped(hudi, tmp_path / "t")
    before = one.skeletons
    new = pa.Table.from_pylist([row(0, name="new", ts=200)], SCHEMA)
    one.table.overwrite_partitions(new)
    one.rows = {k: r for k, r in one.rows.items() if r["city"] != CITIES[0]}
    one.rows["k000"] = row(0, name="new", ts=200)
    assert one.skeletons == before - 1
    one.check()
    one.hudi_writes("upsert", [row(0, name="theirs", ts=300), row(1, name="theirs", ts=300)])
    one.check()


@every_release
def test_compactions_that_the_other_planned(tmp_path: Path, hudi: HudiOracle) -> None:
    one = Bootstrapped(hudi, tmp_path / "t", "mor")
    one.pyhudi_writes("upsert", [row(0, name="ours", ts=200), row(1, name="ours", ts=200)])
    one.hudi_writes("upsert", [row(3, name="theirs", ts=200), row(1, name="theirs", ts=300)])
    assert one.skeletons == len(CITIES)
    assert one.table.compact(execute=False).scheduled
    one.pyhudi_writes("upsert", [row(0, name="later", ts=400)])
    one.check()
    hudi.call(one.base, "run_compaction(op => 'run')", conf=NO_STATISTICS)
    assert not one.table.state.timeline.pending_compactions
    assert one.skeletons == 1
    one.check()
    one.hudi_writes("upsert", [row(2, name="theirs", ts=500)])
    hudi.call(one.base, "run_compaction(op => 'schedule')", conf={**NO_STATISTICS, **OFTEN})
    assert one.table.state.timeline.pending_compactions
    one.hudi_writes("upsert", [row(5, name="theirs", ts=500)])
    one.check()
    assert one.table.compact(schedule=False).files_written
    assert one.skeletons == 0
    one.check()
    assert one.stored("city") == {*CITIES}


@every_release
@each_kind
def test_clusterings_that_the_other_planned(tmp_path: Path, hudi: HudiOracle, kind: Kind) -> None:
    for planner in ("pyhudi", "Hudi"):
        one = Bootstrapped(hudi, tmp_path / planner, kind)
        if planner == "pyhudi":
            assert one.table.cluster(sort_by=["name"], execute=False).scheduled
            assert pending(one.table.state.timeline)
            hudi.call(one.base, "run_clustering(op => 'execute')", conf=NO_STATISTICS)
        else:
            hudi.call(one.base, "run_clustering(op => 'schedule')", conf=NO_STATISTICS)
            assert pending(one.table.state.timeline)
            assert one.table.cluster(schedule=False).files_written
        assert not pending(one.table.state.timeline)
        assert one.skeletons == 0
        one.check()
        one.hudi_writes("upsert", [row(0, name="theirs", ts=300)])
        one.pyhudi_writes("upsert", [row(1, name="ours", ts=300)])
        one.check()
        assert one.stored("city") == {*CITIES}


@every_release
@each_kind
def test_bootstrapped_table_alternates_between_writers(
    tmp_path: Path, hudi: HudiOracle, kind: Kind
) -> None:
    one = Bootstrapped(hudi, tmp_path / "t", kind)
    changed = [row(0, name="ours", ts=200), row(1, name="ours", ts=200)]
    instant = one.pyhudi_writes("upsert", changed)
    by_instant = {found["requested"]: found for found in hudi.instants(one.base)}
    end = by_instant[instant]["completed"] if one.table.version >= 8 else instant
    begin = str(int(end) - 1)
    theirs = hudi.read(one.base, query="incremental", begin=begin, end=end)["rows"]
    assert sorted(theirs, key=lambda found: str(found["id"])) == changed
    before = one.table.state.timeline.last_commit
    one.hudi_writes("upsert", [row(4, name="theirs", ts=300)])
    assert before is not None
    since = before.completed if one.table.version >= 8 else before.requested
    ours = one.table.incremental(since).to_arrow().to_pylist()
    assert ours == [row(4, name="theirs", ts=300)]


@pytest.mark.parametrize("hudi", ["1.0.2", "1.2.0"], indirect=True)
@each_kind
def test_statistics_tell_of_the_rows_of_skeletons(
    tmp_path: Path, hudi: HudiOracle, kind: Kind
) -> None:
    """Hudi's own leave them out, and its filters lose them; ours do not."""
    one = Bootstrapped(hudi, tmp_path / "theirs", kind)
    hudi.write(
        one.base,
        rows=[row(100), row(101), row(102)],
        schema="id string, name string, n int, ts int, city string",
        operation="bulk_insert",
        options={**one.options, **STATISTICS},
    )
    assert hudi.read(one.base, filter="n = 2")["rows"] == [], "Hudi has mended it"
    assert _found(one, "n = 2") == ["k002"]
    assert _found(one, "n < 5") == ["k000", "k001", "k002", "k003", "k004"]

    one = Bootstrapped(hudi, tmp_path / "ours", kind)
    one.pyhudi_writes("bulk_insert", [row(100), row(101), row(102)])
    one.table.create_index("column_stats")
    assert one.skeletons == len(CITIES)
    for _ in range(2):
        for where in ("n = 2", "name = 'n2'", "n < 5", "city = 'lima'", "n = 100"):
            theirs = hudi.read(one.base, filter=where, options=STATISTICS)["rows"]
            assert sorted(found["id"] for found in theirs) == _found(one, where)
            assert _found(one, where)
        one.check()
        one.pyhudi_writes("upsert", [row(100, name="ours", ts=200), row(130, ts=200)])


def _found(one: Bootstrapped, where: str) -> list[str]:
    return sorted(one.table.scan(where=where).to_arrow()["id"].to_pylist())


@every_release
@each_kind
def test_cleaning_rollback_and_restore(tmp_path: Path, hudi: HudiOracle, kind: Kind) -> None:
    one = Bootstrapped(hudi, tmp_path / "t", kind)
    first = one.table.savepoint("as it was bootstrapped")
    rows = dict(one.rows)
    sources = sorted(one.source.rglob("*.parquet"))
    instant = one.pyhudi_writes("upsert", [row(0, name="ours", ts=200)])
    one.hudi_writes("upsert", [row(1, name="theirs", ts=200)])
    one.table.restore(first)
    one.rows = rows
    assert instant not in one.table.inspect.commits()["requested"].to_pylist()
    one.check()
    one.table.delete_savepoint(first)
    one.pyhudi_writes("upsert", [row(0, name="ours", ts=200)])
    last = one.hudi.instants(one.base)[-1]["requested"]
    hudi.call(one.base, f"rollback_to_instant(instant_time => '{last}')", conf=NO_STATISTICS)
    one.rows["k000"] = row(0)
    one.check()
    for ts in (200, 300, 400):
        one.pyhudi_writes("upsert", [row(0, name="ours", ts=ts)])
    if kind == "mor":
        one.table.compact()
    one.hudi_writes("upsert", [row(0, name="theirs", ts=500)])
    assert one.table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retain=1).files_removed
    one.check()
    assert len(list(one.base.glob("city=osaka/*_00000000000001.parquet"))) == 0
    assert sorted(one.source.rglob("*.parquet")) == sources


@every_release
@each_kind
def test_hudi_rolls_back_what_a_dead_writer_left(
    tmp_path: Path, hudi: HudiOracle, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_native_writes(monkeypatch)
    one = Bootstrapped(hudi, tmp_path / "t", kind)
    data = pa.Table.from_pylist([row(0, name="dead", ts=900), row(1, name="dead", ts=900)], SCHEMA)
    with pytest.raises(Killed):
        upsert.upsert(Handle(CrashingStorage(str(one.base), 8), dict(one.table.options)), data)
    one.hudi_writes("upsert", [row(2, name="theirs", ts=200)])
    one.pyhudi_writes("upsert", [row(1, name="ours", ts=300)])
    # Up to table version 6 a log file that was cut stays.
    one.check(severities=["error"])


@pytest.mark.hudi("1.2.0")
@each_kind
def test_hudi_writes_on_after_an_upgrade(tmp_path: Path, oracle: object, kind: Kind) -> None:
    old = oracle("0.15.0")  # type: ignore[operator]
    one = Bootstrapped(old, tmp_path / "t", kind)
    one.pyhudi_writes("upsert", [row(0, name="ours", ts=200)])
    one.table.upgrade(9)
    one.hudi = oracle("1.2.0")  # type: ignore[operator]
    one.check()
    one.hudi_writes("upsert", [row(1, name="theirs", ts=300), row(0, name="theirs", ts=300)])
    one.pyhudi_writes("upsert", [row(2, name="ours", ts=400)])
    one.check()


@every_release
def test_record_index_is_not_built_where_hudi_builds_none(tmp_path: Path, hudi: HudiOracle) -> None:
    one = Bootstrapped(hudi, tmp_path / "t")
    with pytest.raises(UnsupportedTableFeature, match=r"hoodie\.metadata\..*record"):
        one.table.create_index("record_index")
    one.check()
    one.table.cluster(sort_by=["name"])
    assert one.skeletons == 0
    one.table.create_index("record_index")
    one.pyhudi_writes("upsert", [row(0, name="ours", ts=200), row(60, ts=200)])
    one.check()


@every_release
def test_missing_source_raises_and_loses_nothing(tmp_path: Path, hudi: HudiOracle) -> None:
    one = Bootstrapped(hudi, tmp_path / "t")
    moved = tmp_path / "elsewhere"
    shutil.move(one.source, moved)
    with pytest.raises(FileNotFoundError):
        one.table.upsert(pa.Table.from_pylist([row(0, name="ours", ts=200)], SCHEMA))
    shutil.move(moved, one.source)
    assert not pyhudi.open_table(str(one.base)).state.timeline.pending()
    one.check()
    one.hudi_writes("upsert", [row(0, name="theirs", ts=200)])
    one.check()
