"""Going back: rolling the newest commit back by hand, restoring to an earlier one."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.clock import SystemClock
from pyhudi.config.actions import CLEAN, COMMIT, COMPACTION, RESTORE, ROLLBACK, State
from pyhudi.errors import (
    CommitConflict,
    ConfigError,
    CorruptTable,
    HistoryUnavailable,
    UnsupportedTableFeature,
)
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.timeline import Timeline, instant_files, serde
from pyhudi.txn import heartbeat
from tests.helpers.aged import age
from tests.helpers.appended_logs import appended_to
from tests.helpers.pairwise import pairwise
from tests.helpers.tables import unpack
from tests.unit.test_rollback import GOLDEN, heartbeats, unpacked
from tests.unit.test_savepoints import made, people, timeline_of

pytestmark = pytest.mark.in_parts

CASES = pairwise((6, 8, 9), ("cow", "mor"))
COMPACT_AFTER = "hoodie.metadata.compact.max.delta.commits"
Rows = dict[str, int]


def rows_of(table: HudiTable) -> Rows:
    """What a scan gives with the metadata table, which is the same without it."""
    plain = pyhudi.open_table(table.uri, options={"hoodie.metadata.enable": False})
    found: list[Rows] = []
    for opened in (table.refresh(), plain):
        rows = opened.scan().to_arrow()
        found.append(dict(zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True)))
        assert len(found[-1]) == rows.num_rows
    assert found[0] == found[1]
    return found[0]


def sound(table: HudiTable) -> bool:
    found = table.check(deep=True)
    assert found.ok, str(found)
    return True


def files_of(table: HudiTable) -> dict[str, int]:
    """Data files with their sizes, but those that only call blocks off."""
    found = table.refresh().inspect.files().to_pylist()
    return {one["name"]: one["size"] for one in found}


@pytest.mark.parametrize(("version", "kind"), CASES)
def test_restore_returns_to_each_commit(version: int, kind: str, tmp_path: Path) -> None:
    made(tmp_path / "t", version, kind)
    # The metadata table can follow as long as it is not compacted.
    table = pyhudi.open_table(tmp_path / "t", options={COMPACT_AFTER: 100})
    states = [rows_of(table)]
    table.upsert(people(range(3, 7), 3))
    states.append(rows_of(table))
    table.delete_keys(people(range(1), 9).select(["id", "city"]))
    table.bulk_insert(people(range(20, 23), 4))
    table.upsert(people(range(1, 6), 5))
    commits = table.inspect.commits()["requested"].to_pylist()
    last = rows_of(table)

    before = files_of(table)
    told = table.restore(commits[2], dry_run=True)
    assert files_of(table) == before
    assert rows_of(table) == last
    assert told.instants == tuple(reversed(commits[3:]))
    assert (told.instant, told.restored_to, told.dry_run) == ("", commits[2], True)

    done = table.restore(commits[2])
    assert (done.files_deleted, done.bytes_deleted) == (told.files_deleted, told.bytes_deleted)
    assert done.log_files_called_off == told.log_files_called_off
    assert done.instants == told.instants
    assert done.metadata_made == told.metadata_made == ()
    after = files_of(table)
    gone = {name: size for name, size in before.items() if name not in after}
    assert (len(gone), sum(gone.values())) == (done.files_deleted, done.bytes_deleted)
    assert rows_of(table) == states[1]
    assert sound(table)
    timeline = timeline_of(tmp_path / "t")
    assert timeline.pending() == ()
    assert [one.requested for one in timeline.filter_completed(RESTORE)] == [done.instant]
    # Up to version 6 the metadata table has commits of their instants.
    assert len(timeline.filter_completed(ROLLBACK)) == (3 if version == 6 else 0)

    # Writes go on, and what they do is taken back too.
    table.upsert(people(range(2, 9), 8))
    assert rows_of(table) == {**states[1], **{f"k{n}": 8 for n in range(2, 9)}}
    assert sound(table)
    table.restore(commits[1])
    assert rows_of(table) == states[0]
    table.upsert(people(range(1), 9))
    assert rows_of(table) == {**states[0], "k0": 9}
    assert sound(table)


@pytest.mark.parametrize(("version", "kind"), CASES)
def test_rollback_removes_newest_commit(version: int, kind: str, tmp_path: Path) -> None:
    table = made(tmp_path / "t", version, kind)
    before, files = rows_of(table), files_of(table)
    table.upsert(people(range(1, 6), 3), commit_metadata={"by": "mistake"})
    commits = table.inspect.commits()["requested"].to_pylist()
    told = table.rollback(commits[-1], dry_run=True)
    assert (told.instants, told.restored_to) == ((commits[-1],), commits[-2])
    done = table.rollback(commits[-1])
    assert done.files_deleted == told.files_deleted > 0
    assert files.items() <= files_of(table).items()
    assert rows_of(table) == before
    assert sound(table)
    timeline = timeline_of(tmp_path / "t")
    assert timeline.pending() == ()
    (rolled_back,) = timeline.filter_completed(ROLLBACK)
    assert rolled_back.requested == done.instant
    assert table.history(limit=1)["rolled_back"].to_pylist() == [[commits[-1]]]
    table.upsert(people(range(1, 6), 4))
    assert rows_of(table) == {**before, **{f"k{n}": 4 for n in range(1, 6)}}
    assert sound(table)


@pytest.mark.parametrize("version", [6, 9])
def test_replaced_file_groups_come_back(version: int, tmp_path: Path) -> None:
    table = made(tmp_path / "t", version)
    before = rows_of(table)
    saved = table.savepoint()
    table.delete_partitions(["rome"])
    table.overwrite(people(range(5), 7))
    assert rows_of(table) == {f"k{n}": 7 for n in range(5)}
    last = table.inspect.commits()["requested"].to_pylist()[-1]
    table.rollback(last)
    assert rows_of(table) == {key: v for key, v in before.items() if int(key[1:]) % 2}
    table.restore(saved)
    assert rows_of(table) == before
    assert sound(table)


@pytest.mark.parametrize(("version", "kind"), [(6, "cow"), (9, "mor")])
def test_restore_rebuilds_metadata_table_that_cannot_roll_back(
    version: int, kind: str, tmp_path: Path
) -> None:
    made(tmp_path / "t", version, kind)
    table = pyhudi.open_table(tmp_path / "t", options={COMPACT_AFTER: 2})
    before = rows_of(table)
    saved = table.savepoint()
    for v in range(3, 8):
        table.upsert(people(range(v), v))
    partitions = table.config.metadata_partitions
    told = table.restore(saved, dry_run=True)
    assert set(told.metadata_made) == set(partitions)
    done = table.restore(saved)
    assert done.metadata_made == told.metadata_made
    assert table.config.metadata_partitions == partitions
    assert rows_of(table) == before
    assert sound(table)
    table.upsert(people(range(2, 6), 9))
    assert rows_of(table) == {**before, **{f"k{n}": 9 for n in range(2, 6)}}
    assert sound(table)


@pytest.mark.parametrize("version", [6, 9])
def test_restore_rebuilds_index_created_since(version: int, tmp_path: Path) -> None:
    """Its base files have what goes."""
    table = made(tmp_path / "t", version, "cow")
    table.drop_index("record_index")
    table.upsert(people(range(4, 8), 3))
    first = table.inspect.commits()["requested"][0].as_py()
    table.create_index("record_index")
    assert "record_index" in table.restore(first).metadata_made
    assert rows_of(table) == {f"k{n}": 1 for n in range(4)}
    assert sound(table)


def test_restore_to_time_uses_newest_commit_until_then(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    before = rows_of(table)
    commits = table.inspect.commits()["requested"].to_pylist()
    moment = datetime.datetime.now(tz=datetime.timezone.utc)
    table.upsert(people(range(9), 3))
    assert table.restore(moment).restored_to == commits[-1]
    assert rows_of(table) == before
    nothing = table.restore(moment)
    assert (nothing.instants, nothing.instant) == ((), "")
    assert len(timeline_of(tmp_path / "t").filter_completed(RESTORE)) == 1
    with pytest.raises(HistoryUnavailable, match="or before"):
        table.restore("2020-01-01")
    with pytest.raises(ConfigError, match="is not a time"):
        table.restore("yesterday")


def test_restore_removes_column_added_since(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    first = table.inspect.commits()["requested"].to_pylist()[-1]
    table.drop_index("column_stats")
    more = people(range(2), 4).append_column("w", pa.array([1, 2]))
    table.upsert(more, schema_mode="merge")
    table.alter().rename_column("w", "x").execute()
    assert table.schema.names == ["id", "city", "v", "x"]
    table.restore(first)
    assert table.schema.names == ["id", "city", "v"]
    table.upsert(people(range(2), 5))
    assert sound(table)


def test_restore_refuses_impossible_targets(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.upsert(people(range(9), 3))
    first, second, last = table.inspect.commits()["requested"].to_pylist()
    with pytest.raises(ConfigError, match="is not the newest"):
        table.rollback(second)
    with pytest.raises(HistoryUnavailable, match="no commit 20200101000000000"):
        table.rollback("20200101000000000")
    table.savepoint(instant=last)
    for verb, at in ((table.rollback, last), (table.restore, first)):
        with pytest.raises(ConfigError, match="has a savepoint"):
            verb(at)
    table.delete_savepoint(last)
    instant_files.request(table.config.layout, table.storage, "20990101000000000", CLEAN)
    for verb, at in ((table.rollback, last), (table.restore, first)):
        with pytest.raises(CommitConflict, match="20990101000000000"):
            verb(at)
    assert rows_of(table) == {f"k{n}": 3 for n in range(9)}
    assert not timeline_of(tmp_path / "t").pending(RESTORE, ROLLBACK)


@pytest.mark.parametrize("name", ["v9_cow_clean_commits", "v6_cow_clean_versions"])
def test_restore_misses_no_cleaned_file(name: str, tmp_path: Path) -> None:
    table = pyhudi.open_table(unpack(name, tmp_path))
    commits = table.inspect.commits()["requested"].to_pylist()
    before = table.scan().to_arrow()
    with pytest.raises(HistoryUnavailable):
        table.restore(commits[0])
    assert table.refresh().scan().to_arrow().equals(before)


def test_restore_reports_missing_savepoint_file(tmp_path: Path) -> None:
    table = made(tmp_path / "t", kind="cow")
    saved = table.savepoint()
    table.upsert(people(range(4), 3))
    old = FileSystemView(table.storage, table.config, timeline_of(tmp_path / "t").until(saved))
    lost = next(one.base.path for one in old.slices() if one.base is not None)
    (tmp_path / "t" / lost).unlink()
    with pytest.raises(CorruptTable, match=lost):
        table.restore(saved)
    assert not timeline_of(tmp_path / "t").pending()


def of_city(city: str, v: int) -> pa.Table:
    return pa.table({"id": [f"{city}{n}" for n in range(3)], "city": [city] * 3, "v": [v] * 3})


def shown(rome: int, oslo: int) -> Rows:
    return {f"{city}{n}": v for city, v in (("rome", rome), ("oslo", oslo)) for n in range(3)}


def by_city(base: Path, version: int, kind: Any = "cow") -> HudiTable:
    rows = pa.concat_tables([of_city("rome", 0), of_city("oslo", 0)])
    table = pyhudi.create_table(
        base, rows, key="id", partition_by="city", type=kind, version=version,
        options={"hoodie.metadata.enable": "false"},
    )  # fmt: skip
    kept = {"hoodie.clean.automatic": "false", "hoodie.metadata.enable": "false"}
    return pyhudi.open_table(table.uri, options=kept)


def completed_after(table: HudiTable, early: str, late: str) -> None:
    """Has a commit that was requested before another completed after it, as two writers can."""
    folder = Path(table.uri) / table.config.layout.folder
    (first,), (second,) = (list(folder.glob(f"{instant}_*.*")) for instant in (early, late))
    done = int(second.name.split("_")[1].split(".")[0]) + 1
    first.rename(folder / f"{early}_{done}{first.suffix}")


@pytest.mark.parametrize(("version", "kind"), [(6, "cow"), (8, "mor"), (9, "cow")])
@pytest.mark.parametrize("saved", ["", "before", "after"])
def test_restore_removes_clustering_completed_later(
    version: int, kind: str, saved: str, tmp_path: Path
) -> None:
    table = by_city(tmp_path / "t", version, kind)
    table.upsert(of_city("rome", 1))
    table.cluster(execute=False, sort_by=["v"], partitions=["rome"])
    to = table.upsert(of_city("oslo", 2)).instant
    if saved == "before":
        assert table.savepoint() == to
    table.cluster(schedule=False)
    if saved == "after":
        table.savepoint(instant=to)
    for v in (3, 4):
        table.upsert(of_city("rome", v))
        table.upsert(of_city("oslo", v))
    if kind == "mor":
        table.compact()
        table.upsert(of_city("oslo", 4))
    table.clean(retain=1)
    # Up to version 6 the clustering stays, and what it wrote is no part of an earlier savepoint.
    if saved == "after" or (saved and version > 6):
        table.restore(to)
        assert rows_of(table) == shown(rome=1, oslo=2)
        return
    with pytest.raises(HistoryUnavailable, match="clean"):
        table.restore(to)
    assert rows_of(table) == shown(rome=4, oslo=4)


@pytest.mark.parametrize(("version", "kind"), [(8, "cow"), (9, "mor")])
def test_restore_misses_no_file_replaced_later(version: int, kind: str, tmp_path: Path) -> None:
    table = by_city(tmp_path / "t", version, kind)
    table.upsert(of_city("rome", 1))
    table.cluster(execute=False, sort_by=["v"], partitions=["rome"])
    to = table.upsert(of_city("oslo", 2)).instant
    table.cluster(schedule=False)
    table.upsert(of_city("oslo", 3))
    table.clean(retain=2)
    with pytest.raises(HistoryUnavailable, match=f"restored to {to}"):
        table.restore(to)
    assert rows_of(table) == shown(rome=1, oslo=3)


@pytest.mark.parametrize("save", [True, False])
def test_restore_uses_completion_order_of_concurrent_commits(save: bool, tmp_path: Path) -> None:
    table = by_city(tmp_path / "t", 9)
    early = table.upsert(of_city("rome", 1)).instant
    late = table.upsert(of_city("oslo", 2)).instant
    completed_after(table, early, late)
    table = table.refresh()
    if save:
        assert table.savepoint("of what exists") == early
    table.upsert(of_city("oslo", 3))
    if not save:
        table.clean(retain=2)
        with pytest.raises(HistoryUnavailable, match=f"restored to {late}"):
            table.restore(late)
        assert rows_of(table) == shown(rome=1, oslo=3)
        return
    table.upsert(of_city("rome", 4))
    table.clean(retain=1)
    table.restore(early)
    assert rows_of(table) == shown(rome=1, oslo=2)


def test_savepoint_covers_last_completed_commit_after_clean(tmp_path: Path) -> None:
    table = by_city(tmp_path / "t", 9)
    early = table.upsert(of_city("rome", 1)).instant
    table.upsert(of_city("oslo", 2))
    late = table.upsert(of_city("oslo", 3)).instant
    completed_after(table, early, late)
    table = table.refresh()
    assert table.clean(retain=1).files_removed
    assert table.savepoint() == early


@pytest.mark.parametrize("version", [6, 8, 9])
def test_savepoint_slice_covers_base_file_of_compaction(version: int, tmp_path: Path) -> None:
    table = by_city(tmp_path / "t", version, "mor")
    table.upsert(of_city("rome", 1))
    assert table.compact(execute=False).scheduled
    to = table.upsert(of_city("oslo", 2)).instant
    assert table.savepoint() == to
    made = table.compact(schedule=False).instants[0]
    for v in (3, 4):
        table.upsert(of_city("rome", v))
        table.compact()
    table.upsert(of_city("oslo", 5))
    table.clean(retain=1)
    assert not [name for name in files_of(table) if f"_{made}." in name]
    table.restore(to)
    assert rows_of(table) == shown(rome=1, oslo=2)


@pytest.mark.parametrize("name", GOLDEN)
def test_rollback_accepts_failed_write(name: str, tmp_path: Path) -> None:
    base = unpacked(name, tmp_path)
    for path in heartbeats(base):
        path.unlink()
    table = pyhudi.open_table(base)
    rows = table.scan().to_arrow()
    failed = timeline_of(base).pending()[-1].requested
    told = table.rollback(failed, dry_run=True)
    assert timeline_of(base).pending()[-1].requested == failed
    done = table.rollback(failed)
    assert (done.instants, done.files_deleted) == (told.instants, told.files_deleted)
    assert failed not in {one.requested for one in timeline_of(base).instants}
    key = table.config.record_key_fields[0]
    assert table.scan().to_arrow().sort_by(key) == rows.sort_by(key)


@pytest.mark.parametrize("name", GOLDEN)
def test_restore_refuses_active_writer(name: str, tmp_path: Path) -> None:
    base = unpacked(name, tmp_path)
    for path in heartbeats(base):
        path.touch()
    table = pyhudi.open_table(base)
    failed, last = timeline_of(base).pending()[-1].requested, timeline_of(base).commits
    for verb, at in (
        (table.rollback, failed),
        (table.rollback, last[-1].requested),
        (table.restore, last[0].requested),
    ):
        with pytest.raises(CommitConflict, match="another writer is active"):
            verb(at)
    assert timeline_of(base).pending()[-1].requested == failed


@pytest.mark.parametrize("name", ["v6_mor_compaction", "v8_mor_compaction", "v9_mor_compaction"])
def test_restore_removes_compaction(name: str, tmp_path: Path) -> None:
    base = unpack(name, tmp_path)
    table = pyhudi.open_table(base)
    key = table.config.record_key_fields[0]
    timeline = timeline_of(base)
    compactions = timeline.filter_completed(COMMIT)
    to = [one for one in timeline.commits if one.requested < compactions[0].requested][-1]
    wanted = pyhudi.open_table(base, as_of=to.requested).scan().to_arrow().sort_by(key)
    done = table.restore(to.requested)
    assert compactions[0].requested in done.instants
    left = timeline_of(base)
    assert left.last_commit == to
    assert not left.filter_completed(COMMIT)
    assert not left.pending(COMPACTION)
    assert table.refresh().scan().to_arrow().sort_by(key).equals(wanted)
    assert sound(table)


@pytest.mark.parametrize("to", [8, 9])
def test_restore_removes_log_files_from_before_upgrade(to: int, tmp_path: Path) -> None:
    """Up to version 6 they are named by the base instant, which stays."""
    table = made(tmp_path / "t", 6, "mor")
    second = rows_of(table)
    table.delete_keys(people(range(1), 9).select(["id", "city"]))
    third = rows_of(table)
    table.upsert(people(range(4), 3))
    commits = table.inspect.commits()["requested"].to_pylist()
    assert table.upgrade(to).compaction
    for _ in range(2):
        table.refresh().rollback(table.inspect.commits()["requested"].to_pylist()[-1])
    assert rows_of(table) == third
    assert sound(table)
    told = table.restore(commits[1], dry_run=True)
    done = table.restore(commits[1])
    assert done.files_deleted == told.files_deleted == 1
    assert rows_of(table) == second
    assert sound(table)
    table.upsert(people(range(9, 10), 4))
    table.compact()
    assert rows_of(table) == {**second, "k9": 4}
    assert sound(table)


@pytest.mark.parametrize("keep", [0, 1])
def test_restore_deletes_shared_log_file_only_as_whole(keep: int, tmp_path: Path) -> None:
    table = pyhudi.create_table(
        tmp_path / "t", people(range(4), 1), key="id", type="mor", version=6,
        options={"hoodie.metadata.enable": False},
    )  # fmt: skip
    table.upsert(people(range(2), 2))
    table.upsert(people(range(3), 3))
    table = appended_to(table)
    commits = table.inspect.commits()["requested"].to_pylist()
    table.upgrade(9)
    before, files = rows_of(table), files_of(table)
    if keep:
        with pytest.raises(UnsupportedTableFeature, match=rf"{commits[1]}, which stays"):
            table.restore(commits[1])
        assert (rows_of(table), files_of(table)) == (before, files)
        return
    table.restore(commits[0])
    table.upsert(people(range(1), 4))
    assert rows_of(table) == {"k0": 4, "k1": 1, "k2": 1, "k3": 1}
    assert sound(table)


def _pending_restore(table: HudiTable, targets: list[Any], state: State) -> str:
    """Return a restore whose writer failed before it reverted anything."""
    time, storage, layout = "20990101000000000", table.storage, table.config.layout
    plan = {
        "instantsToRollback": [{"commitTime": t.requested, "action": t.action} for t in targets],
        "version": 2,
        "savepointToRestoreTimestamp": table.inspect.commits()["requested"][0].as_py(),
    }
    data = serde.encode_container("HoodieRestorePlan", plan, SystemClock())
    instant_files.request(layout, storage, time, RESTORE, data)
    if state is State.INFLIGHT:
        instant_files.start(layout, storage, time, RESTORE)
    return time


@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
@pytest.mark.parametrize("version", [6, 9])
def test_restore_is_completed_by_next_write(version: int, state: State, tmp_path: Path) -> None:
    table = made(tmp_path / "t", version)
    later = list(reversed(timeline_of(tmp_path / "t").commits[1:]))
    time = _pending_restore(table, later, state)
    with pytest.raises(CommitConflict, match=f"{time}[.]restore"):
        table.restore(time, dry_run=True)
    age(tmp_path / "t", time)
    table.refresh().upsert(people(range(7, 9), 4))
    assert rows_of(table) == {"k0": 1, "k1": 1, "k2": 1, "k3": 1, "k7": 4, "k8": 4}
    assert sound(table)
    assert [one.requested for one in timeline_of(tmp_path / "t").filter_completed(RESTORE)] == [
        time
    ]


@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
@pytest.mark.parametrize("version", [6, 9])
def test_write_waits_for_running_restore_of_hudi(
    version: int, state: State, tmp_path: Path
) -> None:
    """Hudi shows no heartbeat for it."""
    base = tmp_path / "t"
    table = made(base, version)
    later = timeline_of(base).commits
    time = _pending_restore(table, [later[-1]], state)
    with pytest.raises(CommitConflict, match="may be executing"):
        table.refresh().upsert(people(range(7, 9), 4))
    assert [one.requested for one in timeline_of(base).pending(RESTORE)] == [time]
    assert timeline_of(base).commits[-1] == later[-1]
    assert table.refresh().restore(later[-2].requested).restored_to == later[-2].requested
    assert time in {one.requested for one in timeline_of(base).filter_completed(RESTORE)}


def test_rollbacks_show_running_restore_of_hudi(tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = made(base)
    time = _pending_restore(table, [timeline_of(base).commits[-1]], State.INFLIGHT)
    age(base, time)
    layout = table.config.layout
    instant_files.request(layout, table.storage, str(int(time) + 1), ROLLBACK, b"")
    with pytest.raises(CommitConflict, match="may be executing"):
        table.refresh().upsert(people(range(7, 9), 4))


def test_restore_of_hudi_without_plan_is_left(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    instant_files.start(table.config.layout, table.storage, "20990101000000000", RESTORE)
    with pytest.raises(CommitConflict, match="has no plan"):
        table.upsert(people(range(1), 4))


def test_running_restore_is_left_alone(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    time = _pending_restore(table, [timeline_of(tmp_path / "t").commits[-1]], State.INFLIGHT)
    with (
        heartbeat.beating(table.storage, time, SystemClock()),
        pytest.raises(CommitConflict, match="another writer is executing"),
    ):
        table.refresh().upsert(people(range(1), 4))
    assert Timeline.load(table.storage, table.config).pending(RESTORE)


@pytest.mark.parametrize("name", ["v6_mor_restore", "v8_cow_restore", "v9_mor_restore"])
def test_restore_abandoned_by_hudi_is_completed(name: str, tmp_path: Path) -> None:
    """Hudi failed after it had reverted everything, and before it completed the restore."""
    base = unpack(name, tmp_path)
    (restored,) = timeline_of(base).filter_completed(RESTORE)
    (base / timeline_of(base).folder / restored.file_name).unlink()
    rollbacks = [one for one in timeline_of(base).instants if one.action == ROLLBACK]
    age(base, restored.requested, *(one.requested for one in rollbacks))
    table = pyhudi.open_table(base)
    before = table.scan().to_arrow().sort_by("id")
    assert [one.requested for one in timeline_of(base).pending(RESTORE)] == [restored.requested]
    last = table.inspect.commits()["requested"].to_pylist()[-1]
    if name.startswith("v6"):
        # Times of modification, which unpacking changes, do not tell that it can follow.
        with pytest.raises(CommitConflict, match="cannot be applied to the metadata table"):
            table.upsert(before.slice(0, 1))
        assert table.restore(last).instants == ()
    else:
        table.upsert(before.slice(0, 1))
    assert [one.requested for one in timeline_of(base).filter_completed(RESTORE)] == [
        restored.requested
    ]
    assert not timeline_of(base).pending()
    assert table.scan().to_arrow().sort_by("id").equals(before)
    # Which log files call blocks off is not told any more.
    assert {one.kind for one in table.check().findings} <= {"unnamed_file"}
