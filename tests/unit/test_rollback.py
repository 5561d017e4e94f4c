from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi import _native
from pyhudi.clock import SystemClock
from pyhudi.config.actions import REPLACE_COMMIT, ROLLBACK, Instant, State
from pyhudi.config.table_config import TableConfig
from pyhudi.config.table_version import table_version
from pyhudi.engine.protocol import Attempt
from pyhudi.errors import CommitConflict, UnsupportedTableFeature
from pyhudi.slices.markers import Marker
from pyhudi.slices.write_tokens import token_of_write
from pyhudi.storage.storage import Storage
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import CommitMetadata, Timeline, WriteStat, instant_files, serde
from pyhudi.txn import replace_commit, rollback
from pyhudi.txn.pending_instant import PendingInstant
from pyhudi.txn.rollback_plan import (
    RollbackRequest,
    requests_by_listing,
    requests_by_markers,
    without_torn_logs,
)
from pyhudi.write.write_context import WriteContext
from tests.helpers.table_builder import TableBuilder
from tests.helpers.tables import unpack
from tests.sim.crash import leftovers

PEOPLE = TableBuilder({"id": (pa.string(), str), "v": (pa.int64(), 1)})

TIME = "20240101000000200"
OLD = "20240101000000100"
BASE = f"g1-0_0-1-0_{TIME}.parquet"
OWN_LOG = f".g1-0_{TIME}.log.1_0-1-0"
OLD_LOG = f".g0-0_{OLD}.log.2_0-1-0"


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    storage = Storage(str(tmp_path))
    for name in (BASE, OWN_LOG, OLD_LOG, f".g0-0_{OLD}.log.1_0-1-0", f"g0-0_0-1-0_{OLD}.parquet"):
        storage.put(f"p/{name}", b"x")
    storage.put("p/.hoodie_partition_metadata", b"")
    return storage


def test_markers_ask_for_deletes_in_version_9(storage: Storage) -> None:
    marked = [Marker("p", BASE, "CREATE"), Marker("p", OWN_LOG, "CREATE")]
    assert requests_by_markers(storage, table_version(9), TIME, marked) == [
        RollbackRequest("p", "g1-0", TIME, files=(BASE,)),
        RollbackRequest("p", "g1-0", TIME, files=(OWN_LOG,)),
    ]


def test_append_markers_ask_for_command_blocks_in_version_6(storage: Storage) -> None:
    never_made = f".g9-0_{OLD}.log.1_0-1-0"
    names = (OWN_LOG, OLD_LOG, never_made)
    marked = [Marker("p", BASE, "MERGE"), *(Marker("p", name, "APPEND") for name in names)]
    assert requests_by_markers(storage, table_version(6), TIME, marked) == [
        RollbackRequest("p", "g1-0", TIME, files=(BASE,)),
        RollbackRequest("p", "g1-0", TIME, files=(OWN_LOG,)),
        RollbackRequest("p", "g0-0", OLD, log_blocks={OLD_LOG: 1}),
    ]


def test_append_markers_of_old_releases_name_the_base_file(storage: Storage) -> None:
    """That file is a commit's own: only blocks of its log files are called off."""
    marked = [Marker("p", f"g0-0_0-1-0_{OLD}.parquet", "APPEND")]
    logs = {f".g0-0_{OLD}.log.1_0-1-0": 1, OLD_LOG: 1}
    assert requests_by_markers(storage, table_version(6), TIME, marked) == [
        RollbackRequest("p", "g0-0", OLD, log_blocks=logs)
    ]
    own = [Marker("p", f"g1-0_0-1-0_{TIME}.parquet", "APPEND")]
    assert requests_by_markers(storage, table_version(6), TIME, own) == [
        RollbackRequest("p", "g1-0", TIME, files=(OWN_LOG,))
    ]
    never_logged = [Marker("p", f"g7-0_0-1-0_{OLD}.parquet", "APPEND")]
    assert requests_by_markers(storage, table_version(6), TIME, never_logged) == []


def test_append_markers_raise_from_version_8(storage: Storage) -> None:
    marked = [Marker("p", OLD_LOG, "APPEND")]
    with pytest.raises(UnsupportedTableFeature, match=TIME):
        requests_by_markers(storage, table_version(9), TIME, marked)


def test_rollback_of_old_release_keeps_committed_rows(tmp_path: Path) -> None:
    table = pyhudi.open_table(unpack("v6by14_mor_crash", tmp_path))
    before = sorted(table.scan(columns=["id"]).to_arrow().column("id").to_pylist())
    table.delete_keys(pa.table({"id": ["nobody"], "city": ["osaka"]}))
    assert sorted(table.scan(columns=["id"]).to_arrow().column("id").to_pylist()) == before
    assert not table.inspect.timeline().filter(pc.field("state") != "COMPLETED").num_rows


@pytest.mark.parametrize("version", [6, 9])
def test_listing_finds_files_of_the_instant(storage: Storage, version: int) -> None:
    update = WriteStat(file_id="g0-0", prev_commit=OLD, num_update_writes=1)
    profile = CommitMetadata({"p": (WriteStat(num_inserts=1), update)})
    found = requests_by_listing(storage, table_version(version), TIME, profile)
    files = [RollbackRequest("p", files=(name,)) for name in (OWN_LOG, BASE)]
    logs = {f".g0-0_{OLD}.log.1_0-1-0": 1, OLD_LOG: 1}
    commands = [RollbackRequest("p", "g0-0", OLD, log_blocks=logs)]
    assert found == (files + commands if version == 6 else files)


@pytest.mark.parametrize("version", [6, 9])
def test_listing_finds_files_of_removed_partition(storage: Storage, version: int) -> None:
    """An index of a metadata table was dropped while a writer was stalled."""
    storage.delete("p/.hoodie_partition_metadata")
    profile = CommitMetadata({"p": (WriteStat(),), "gone": (WriteStat(),)})
    found = requests_by_listing(storage, table_version(version), TIME, profile)
    assert found == [RollbackRequest("p", files=(name,)) for name in (OWN_LOG, BASE)]


@pytest.mark.parametrize(
    "told", [OLD, "20240101000000150", "20240101000000250", "20240101000000120"]
)
def test_listing_rolls_back_profile_slice_and_newest_slice(storage: Storage, told: str) -> None:
    """A compaction was pending, so it was appended to; Hudi's profile tells where the index looked.

    That of a delta commit of the metadata table tells the slice, which a compaction may have begun
    that has a later instant.
    """
    compaction, later = "20240101000000150", "20240101000000250"
    logs = {
        OLD: [f".g0-0_{OLD}.log.1_0-1-0", OLD_LOG],
        compaction: [f".g0-0_{compaction}.log.{version}_0-1-0" for version in (1, 2)],
        later: [f".g0-0_{later}.log.1_0-1-0"],
    }
    for name in (*logs[compaction], *logs[later], f".other-0_{compaction}.log.1_0-1-0"):
        storage.put(f"p/{name}", b"x")
    profile = CommitMetadata({"p": (WriteStat(file_id="g0-0", prev_commit=told),)})
    found = requests_by_listing(storage, table_version(6), TIME, profile)
    assert [request for request in found if request.log_blocks] == [
        RollbackRequest("p", "g0-0", instant, log_blocks=dict.fromkeys(logs[instant], 1))
        for instant in sorted({compaction, told} & logs.keys())
    ]


def test_rollback_deletes_torn_log_file_unless_committed(tmp_path: Path) -> None:
    table = PEOPLE.make(tmp_path, version=6, kind="mor", first=["a", "b"])
    table.upsert(PEOPLE.rows(["a"], v=2))
    timeline, storage = table.refresh().state.timeline, table.storage
    (whole,) = (file.name for file in storage.list_dir("")[1] if ".log.1_" in file.name)
    dead = whole.replace(".log.1_0", ".log.2_7")
    block = storage.read(whole)
    storage.put(dead, block[: len(block) // 2])
    request = RollbackRequest("", "g", OLD, log_blocks={whole: 1, dead: 1})
    assert without_torn_logs(storage, timeline, TIME, [request]) == [
        RollbackRequest("", "g", OLD, files=(dead,)),
        RollbackRequest("", "g", OLD, log_blocks={whole: 1}),
    ]
    storage.put(dead, block + block[: len(block) // 2])
    assert without_torn_logs(storage, timeline, TIME, [request]) == [request]
    storage.put(whole, block[: len(block) // 2])
    damaged = RollbackRequest("", "g", OLD, log_blocks={whole: 1})
    assert without_torn_logs(storage, timeline, TIME, [damaged]) == [damaged]


@pytest.mark.parametrize("is_of_target", [True, False])
def test_rollback_keeps_torn_log_file_of_another_writer(
    tmp_path: Path, *, is_of_target: bool
) -> None:
    """Up to table version 6, the log files of all writes of a slice have its base instant."""
    table = PEOPLE.make(tmp_path, version=6, kind="mor", first=["a"])
    storage, other = table.storage, "20991231235959999"
    storage.put(f".hoodie/{other}.deltacommit.inflight", b"")
    token = token_of_write(Attempt(0, 1, 0), TIME if is_of_target else other)
    torn = f".g0-0_{OLD}.log.1_{token}"
    storage.put(torn, b"#HUDI#")
    request = RollbackRequest("", "g0-0", OLD, log_blocks={torn: 1})
    deletes = RollbackRequest("", "g0-0", OLD, files=(torn,))
    found = without_torn_logs(storage, table.refresh().state.timeline, TIME, [request])
    assert found == [deletes if is_of_target else request]


GOLDEN = ["v6_cow_inflight", "v6_mor_inflight", "v8_mor_inflight", "v9_mor_inflight"]


def unpacked(name: str, folder: Path) -> Path:
    unpack(name, folder)
    base = folder / name
    file = base / ".hoodie" / "hoodie.properties"
    lines = file.read_text().splitlines()
    kept = [line for line in lines if not line.startswith("hoodie.table.metadata.partitions")]
    file.write_text("\n".join(kept) + "\n")
    return base


def timeline_of(base: Path) -> Timeline:
    storage = Storage(str(base))
    return Timeline.load(storage, TableConfig.load(storage))


def heartbeats(base: Path) -> list[Path]:
    return [path for path in (base / ".hoodie" / ".heartbeat").glob("*") if path.name.isdigit()]


@pytest.mark.parametrize("name", GOLDEN)
def test_active_writer_is_not_rolled_back(name: str, tmp_path: Path) -> None:
    base = unpacked(name, tmp_path)
    table = pyhudi.open_table(base)
    beating = heartbeats(base)
    assert beating
    for path in beating:
        path.touch()
    pending = timeline_of(base).pending()
    # Nobody knows what lock it writes under.
    with pytest.raises(UnsupportedTableFeature, match=r"lock\.provider.* is active"):
        table.upsert(table.scan().to_arrow())
    assert timeline_of(base).pending() == pending
    lock = "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider"
    table = pyhudi.open_table(base, options={"hoodie.write.lock.provider": lock})
    rows = table.scan().to_arrow()
    table.upsert(rows)
    alive = {path.name for path in beating}
    left = [instant for instant in pending if instant.requested in alive]
    assert [i for i in timeline_of(base).pending() if i.requested in alive] == left
    assert table.scan().to_arrow().num_rows == rows.num_rows


@pytest.mark.parametrize("name", GOLDEN)
def test_failed_writes_of_hudi_are_rolled_back(name: str, tmp_path: Path) -> None:
    base = unpacked(name, tmp_path)
    for path in heartbeats(base):
        path.unlink()
    table = pyhudi.open_table(base)
    failed = {instant.requested for instant in timeline_of(base).pending()}
    rows = table.scan().to_arrow()
    key = table.config.record_key_fields[0]
    result = table.upsert(rows.slice(0, 2))
    assert result.rows_updated == 2
    assert table.scan().to_arrow().sort_by(key) == rows.sort_by(key)
    timeline = timeline_of(base)
    assert timeline.pending() == ()
    assert not list((base / ".hoodie" / ".temp").glob("*"))
    rolled_back = [timeline.read(instant) for instant in timeline.filter_completed("rollback")]
    targets = {target for record in rolled_back if record for target in record["commitsRollback"]}
    assert failed <= targets
    assert all(
        instant.requested < result.instant for instant in timeline.filter_completed("rollback")
    )


def test_pending_rollback_is_executed_by_its_plan(tmp_path: Path) -> None:
    base = tmp_path / "t"
    rows = pa.table({"id": ["a", "b"], "v": [1, 2]})
    table = pyhudi.create_table(base, rows, key="id")
    orphan = base / f"g-0_0-1-0_{TIME}.parquet"
    orphan.write_bytes(b"half")
    storage, config = table.storage, table.config
    instant_files.request(config.layout, storage, TIME, "commit")
    instant_files.start(config.layout, storage, TIME, "commit")
    target = Instant(TIME, "commit", State.INFLIGHT, None, "")
    record = rollback._plan_record(
        "/moved/from/here", target, [RollbackRequest("", "g-0", TIME, files=(orphan.name,))]
    )
    from pyhudi.clock import SystemClock
    from pyhudi.timeline import serde

    plan = serde.encode_container("HoodieRollbackPlan", record, SystemClock())
    later = "20240101000000300"
    instant_files.request(config.layout, storage, later, "rollback", plan)
    table.upsert(pa.table({"id": ["a"], "v": [3]}))
    assert not orphan.exists()
    timeline = timeline_of(base)
    assert timeline.pending() == ()
    assert [instant.requested for instant in timeline.filter_completed("rollback")] == [later]


@dataclass
class Locked:
    """As much of a table as a rollback's request needs; `loses` is what the lock says."""

    storage: Storage
    loses: Callable[[], bool] = bool

    @property
    def lock_manager(self) -> Locked:
        return self

    def check_held(self, within_ms: int = 0) -> None:
        if self.loses():
            raise CommitConflict("the lock is another's")


REQUEST = RollbackRequest("p", "g0-0", OLD, log_blocks={OLD_LOG: 1})


def undo(locked: Locked) -> dict[str, Any]:
    return rollback._execute_request(
        cast("TableSnapshot", locked), REQUEST, "20240101000000300", TIME
    )


def commands(base: Path) -> list[str]:
    return sorted(path.name for path in base.glob("p/.*_1-0-1"))


def test_stalled_rollback_removes_its_second_command_block(tmp_path: Path) -> None:
    """It checked that there was none, stalled, and another writer executed the rollback."""
    storage = Storage(str(tmp_path))
    storage.put(f"p/{OLD_LOG}", b"x")

    class Sleeps(Storage):
        def put_if_absent(self, path: str, data: bytes) -> bool:
            # The other one's has a later version, since a log file came in between.
            (tmp_path / f"p/.g0-0_{OLD}.log.3_0-1-1").write_bytes(b"y")
            undo(Locked(storage))
            return super().put_if_absent(path, data)

    with pytest.raises(CommitConflict, match="another's"):
        undo(Locked(Sleeps(str(tmp_path)), lambda: True))
    assert commands(tmp_path) == [f".g0-0_{OLD}.log.4_1-0-1"]


def test_rollback_keeps_only_command_block(tmp_path: Path) -> None:
    """The next writer regards it as the rollback's own: otherwise failed blocks would count."""
    storage = Storage(str(tmp_path))
    storage.put(f"p/{OLD_LOG}", b"x")
    with pytest.raises(CommitConflict):
        undo(Locked(storage, lambda: True))
    assert commands(tmp_path) == [f".g0-0_{OLD}.log.3_1-0-1"]
    assert [*undo(Locked(storage))["rollbackLogFiles"]] == [f"{tmp_path}/p/.g0-0_{OLD}.log.3_1-0-1"]


def test_command_block_is_the_next_log_version(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    storage.put(f"p/{OLD_LOG}", b"x")
    done = undo(Locked(storage))
    path = f"p/.g0-0_{OLD}.log.3_1-0-1"
    assert done["rollbackLogFiles"] == {f"{tmp_path}/{path}": 105}
    header = _native.log_blocks(storage.native, path)[0]["header"]
    assert header["INSTANT_TIME"] == "20240101000000300"
    assert header["TARGET_INSTANT_TIME"] == TIME


def test_concurrent_rollbacks_of_one_write_agree(tmp_path: Path) -> None:
    """The writer of the first one stalled (seed 27000001 of the simulation)."""
    table = PEOPLE.make(tmp_path)
    table.upsert(PEOPLE.rows(["a", "b"]))
    opened = WriteContext.open(table.refresh(), SystemClock()).table
    dead = PendingInstant(opened, opened.generator.next(), REPLACE_COMMIT)
    dead.request(
        replace_commit.content_of_request(table.config.version, "INSERT_OVERWRITE", opened.clock)
    )
    dead.begin()
    target = {"commitTime": dead.time, "action": REPLACE_COMMIT}
    plan = {"instantToRollback": target, "RollbackRequests": [], "version": 1}
    for _ in range(2):
        begun = replace(dead, time=opened.generator.next(), action=ROLLBACK)
        begun.request(serde.encode_container("HoodieRollbackPlan", plan, opened.clock))
        begun.begin()
    pyhudi.open_table(tmp_path).cluster()
    assert table.refresh().scan().count() == 2
    assert leftovers(tmp_path) == []
