"""A writer that pauses before it publishes a commit, while others continue.

The next writer revokes a zombie commit before it plans anything on it. A commit in time counts,
however long its writer stalls afterwards.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.admin import run_service
from pyhudi.admin.run_service import open_for_service
from pyhudi.clock import SystemClock
from pyhudi.config.actions import COMPACTION, ROLLBACK
from pyhudi.config.clustering_options import ClusteringOptions
from pyhudi.config.extra_metadata import with_commit_id
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CommitConflict, HistoryUnavailable, StorageError
from pyhudi.services.clustering import ClusteringRequest
from pyhudi.slices import markers, write_base
from pyhudi.storage.storage import Storage
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline
from pyhudi.txn import zombie_commits
from pyhudi.txn.heartbeat import Heartbeat, path_of
from pyhudi.txn.locks.storage_lock import StorageLock
from pyhudi.txn.pending_instant import PendingInstant
from pyhudi.txn.planned_services import PlannedTransaction
from pyhudi.txn.transaction import Transaction
from pyhudi.write import upsert
from pyhudi.write.table_opening import Handle
from tests.sim.crash import CrashingStorage, Killed, leftovers, rows_read
from tests.sim.crash import Handle as CrashHandle
from tests.sim.interrupting_storage import StandingClock

TABLES = [(6, "cow"), (6, "mor"), (8, "mor"), (9, "cow"), (9, "mor")]
STAND_MS = 70_000
"""The lock is another's by then, and the heartbeat not dead yet."""
DEAD_MS = 400_000
"""The heartbeat is dead, too."""
Act = Callable[[], object]


def rows(ids: Any, value: int) -> pa.Table:
    return pa.table({"id": [f"k{n}" for n in ids], "v": [value for _ in ids]})


@pytest.fixture(params=TABLES, ids=lambda one: f"v{one[0]}_{one[1]}")
def base(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    version, kind = request.param
    made = tmp_path / "t"
    table = pyhudi.create_table(made, rows([0], 0).schema, key="id", type=kind, version=version)
    table.upsert(rows(range(4), 1))
    return made


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> StandingClock:
    """Everybody's."""
    return StandingClock.of_all(monkeypatch)


def nothing() -> None:
    """What others do."""


def upserted(
    base: Path,
    given: pa.Table,
    monkeypatch: pytest.MonkeyPatch,
    *,
    before: Act = nothing,
    after: Act = nothing,
    options: dict[str, str] | None = None,
) -> None:
    """Upserts, with something that happens just before the completed file is there, or just after.

    Nothing is tried again.
    """
    publish = PendingInstant.publish
    storage = CrashingStorage(str(base))

    def published(opened: PendingInstant, completion: str, content: bytes) -> None:
        is_own = opened.table.storage is storage and opened.action != ROLLBACK
        if is_own:
            before()
        publish(opened, completion, content)
        if is_own:
            try:
                after()
            except Killed:
                storage.is_dead = True
                raise

    with monkeypatch.context() as patch:
        patch.setattr(PendingInstant, "publish", published)
        upsert.upsert(CrashHandle(storage, options or {}), given)


def found(base: Path) -> dict[str, int]:
    with_metadata, without = rows_read(base, "true"), rows_read(base, "false")
    assert with_metadata == without
    return {row["id"]: row["v"] for row in with_metadata}


def assert_sound(
    base: Path, clock: StandingClock, wanted: dict[str, int], *, at_once: bool = True
) -> None:
    """at_once: else after the next write."""
    assert not at_once or found(base) == wanted
    clock.stand_still(4_000_000)
    pyhudi.open_table(base).upsert(rows([0], 9))
    assert found(base) == {**wanted, "k0": 9}
    assert leftovers(base) == []
    assert not pyhudi.open_table(base).check(deep=True).findings


BEFORE = {"k0": 1, "k1": 1, "k2": 1, "k3": 1}


def test_zombie_commit_is_revoked_by_its_writer(
    base: Path, clock: StandingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def others() -> None:
        clock.stand_still(STAND_MS)
        pyhudi.open_table(base).upsert(rows([1, 5], 4))

    with pytest.raises(CommitConflict, match="rolled back"):
        upserted(base, rows([1, 2], 3), monkeypatch, before=others)
    assert_sound(base, clock, {**BEFORE, "k1": 4, "k5": 4})


def test_file_after_rollback_is_not_read(base: Path, tmp_path: Path) -> None:
    """Its files are deleted: the rows that it replaced would be missing."""
    table = pyhudi.open_table(base)
    table.overwrite(rows([7], 3))
    late = table.refresh().state.timeline.commits[-1]
    file = base / table.state.timeline.path(late)
    shutil.copy(file, tmp_path / "kept")
    table.rollback(late.requested)
    assert found(base) == BEFORE
    shutil.copy(tmp_path / "kept", file)
    assert found(base) == BEFORE
    assert table.refresh().scan().count() == len(BEFORE)
    pyhudi.open_table(base).upsert(rows([0], 9))
    assert not file.exists()
    assert found(base) == {**BEFORE, "k0": 9}


@pytest.mark.parametrize(("version", "kind"), TABLES)
def test_file_of_first_writer_after_its_rollback_is_not_read(
    tmp_path: Path, version: int, kind: Literal["cow", "mor"]
) -> None:
    """The model of the protocol found this: it is older than the timeline, as if archived."""
    base = tmp_path / "t"
    table = pyhudi.create_table(base, rows([0], 0).schema, key="id", type=kind, version=version)
    table.upsert(rows([0, 1], 1))
    (late,) = base.glob("*.parquet")
    shutil.copy(late, tmp_path / "kept")
    table.rollback(table.refresh().state.timeline.commits[0].requested)
    table.upsert(rows([0, 2], 2))
    shutil.copy(tmp_path / "kept", late)
    wanted = {"k0": 2, "k2": 2}
    assert found(base) == wanted
    pyhudi.open_table(base).upsert(rows([1], 3))
    assert found(base) == {**wanted, "k1": 3}


@pytest.mark.parametrize(("version", "kind"), TABLES)
def test_first_write_requested_after_stall_is_not_read(
    tmp_path: Path,
    version: int,
    kind: Literal["cow", "mor"],
    clock: StandingClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A handle that was opened before the request takes its instant for an archived one."""
    base, options = tmp_path / "t", {"hoodie.metadata.enable": "false"}
    pyhudi.create_table(
        base, rows([0], 0).schema, key="id", type=kind, version=version, options=options
    )
    request, opened = PendingInstant.request, []
    storage = CrashingStorage(str(base))

    def stalls(pending: PendingInstant, plan: bytes = b"") -> None:
        monkeypatch.setattr(PendingInstant, "request", request)
        clock.stand_still(STAND_MS)
        pyhudi.open_table(base, options=options).upsert(rows([1], 2))
        opened.append(pyhudi.open_table(base, options=options))
        monkeypatch.setattr(Transaction, "_check_before_publish", dies)
        request(pending, plan)

    def dies(*_: object) -> None:
        storage.is_dead = True
        raise Killed

    monkeypatch.setattr(PendingInstant, "request", stalls)
    with pytest.raises(Killed):
        upsert.upsert(CrashHandle(storage, options), rows([0], 1))
    (held,) = opened
    assert (
        pyhudi.open_table(base, options=options).to_arrow().to_pylist() == rows([1], 2).to_pylist()
    )
    with pytest.raises(HistoryUnavailable, match="a writer that had stalled continued at"):
        held.to_arrow()
    assert held.refresh().to_arrow().to_pylist() == rows([1], 2).to_pylist()


def test_lock_loss_during_rollback_raises(
    base: Path, clock: StandingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then other writers roll it back by older markers (seed 26000082, under odds)."""
    load, checked = zombie_commits.load_timeline, Transaction._check_before_publish

    def loads(table: TableSnapshot) -> Timeline:
        timeline = load(table)
        monkeypatch.setattr(zombie_commits, "load_timeline", load)
        clock.stand_still(DEAD_MS)
        (pending,) = timeline.pending()
        kept = [
            file.rename(base / ".hoodie" / file.name)
            for file in base.glob(f"*{pending.requested}*")
        ]
        for marker in base.glob(".hoodie/.temp/*/**/*.marker.*"):
            marker.unlink()
        pyhudi.open_table(base).upsert(rows([1], 4))
        for file in kept:
            file.rename(base / file.name)
        return timeline

    def conflicts(*_: object) -> None:
        monkeypatch.setattr(Transaction, "_check_before_publish", checked)
        monkeypatch.setattr(zombie_commits, "load_timeline", loads)
        raise CommitConflict("another one was faster")

    monkeypatch.setattr(Transaction, "_check_before_publish", conflicts)
    with pytest.raises(CommitConflict):
        upsert.upsert(CrashHandle(CrashingStorage(str(base)), {}), rows([1, 2], 3))
    assert_sound(base, clock, {**BEFORE, "k1": 4})


def test_zombie_commit_with_instant_being_removed(
    base: Path, clock: StandingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its inflight file and its markers are deleted already (seed 27003046, under odds)."""
    checked = Transaction._check_before_publish

    def conflicts(txn: Transaction, *_: object) -> None:
        monkeypatch.setattr(Transaction, "_check_before_publish", checked)
        clock.stand_still(DEAD_MS)
        txn._pending.withdraw_inflight()
        txn._pending.delete_markers()
        raise CommitConflict("another one was faster")

    monkeypatch.setattr(Transaction, "_check_before_publish", conflicts)
    with pytest.raises(CommitConflict):
        upsert.upsert(CrashHandle(CrashingStorage(str(base)), {}), rows([1, 2], 3))
    assert_sound(base, clock, BEFORE)


VERBS: dict[str, Callable[[pyhudi.HudiTable], object]] = {
    "upsert": lambda table: table.upsert(rows([8], 5)),
    "compact": lambda table: table.compact(),
    "log_compact": lambda table: table.log_compact(),
    "cluster": lambda table: table.cluster(),
    "clean": lambda table: table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retain=1),
    "archive": lambda table: table.archive(min_commits=1, max_commits=2),
    "savepoint": lambda table: table.savepoint(),
    "create_index": lambda table: table.create_index("bloom_filters"),
    "beside": lambda table: table.create_index("bloom_filters", concurrently=True),
    "rebuild_metadata": lambda table: table.rebuild_metadata(),
    "upgrade": lambda table: table.upgrade(9) if table.version < 9 else table.downgrade(8),
}


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("verb", VERBS)
def test_zombie_commit_is_revoked_by_any_writer(
    base: Path, clock: StandingClock, monkeypatch: pytest.MonkeyPatch, verb: str, dies: bool
) -> None:
    kind = pyhudi.open_table(base).type
    if "compact" in verb and kind == "cow":
        pytest.skip("has no logs")

    def others() -> None:
        clock.stand_still(STAND_MS)
        # Log files of merge-on-read tables, which the new base file hides up to version 6.
        pyhudi.open_table(base).upsert(rows([1], 4))

    def planned_on_it() -> None:
        clock.stand_still(1_000)
        # What has to be alone gives way to a writer that may be alive.
        with suppress(CommitConflict):
            VERBS[verb](pyhudi.open_table(base))
        if dies:
            raise Killed

    with pytest.raises(Killed if dies else CommitConflict):
        upserted(base, rows([2, 7], 3), monkeypatch, before=others, after=planned_on_it)
    assert_sound(
        base, clock, {**BEFORE, "k1": 4} | ({"k8": 5} if verb == "upsert" else {}), at_once=not dies
    )


@pytest.mark.parametrize("version", [6, 8, 9])
def test_zombie_plan_that_others_execute_is_kept(
    tmp_path: Path, clock: StandingClock, monkeypatch: pytest.MonkeyPatch, version: Literal[6, 8, 9]
) -> None:
    """They removed its files and failed twice: by their heartbeat it comes late.

    Seed 29010687 of v9-mor-bucket-rings, under odds.
    """
    base = tmp_path / "t"
    made = pyhudi.create_table(base, rows([0], 0).schema, key="id", type="mor", version=version)
    made.upsert(rows(range(4), 1))
    made.upsert(rows([1], 2))
    publish, start = PendingInstant.publish, Heartbeat.start

    def fails(*_: object, **__: object) -> None:
        clock.stand_still(DEAD_MS)
        raise StorageError("no answer", hint="")

    def loses_its_lock(beat: Heartbeat) -> None:
        start(beat)
        clock.stand_still(DEAD_MS)

    def published(opened: PendingInstant, completion: str, content: bytes) -> None:
        if opened.action == COMPACTION and opened.table.storage.uri == str(base):
            monkeypatch.setattr(PendingInstant, "publish", publish)
            clock.stand_still(DEAD_MS)
            for where, step, by in (
                (write_base, "rewrite_base_file", fails),
                (Heartbeat, "start", loses_its_lock),
            ):
                with monkeypatch.context() as patch:
                    patch.setattr(where, step, by)
                    with pytest.raises((StorageError, CommitConflict)):
                        pyhudi.open_table(base).compact()
        publish(opened, completion, content)

    monkeypatch.setattr(PendingInstant, "publish", published)
    with pytest.raises(CommitConflict, match="rolled back"):
        pyhudi.open_table(base).compact()
    assert found(base) == {**BEFORE, "k1": 2}
    clock.stand_still(DEAD_MS)
    assert pyhudi.open_table(base).compact().instants
    assert_sound(base, clock, {**BEFORE, "k1": 2})


def test_commit_in_time_counts(
    base: Path, clock: StandingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def others() -> None:
        clock.stand_still(STAND_MS)
        pyhudi.open_table(base).upsert(rows([1, 5], 4))

    upserted(base, rows([1, 2], 3), monkeypatch, after=others)
    assert_sound(base, clock, {**BEFORE, "k1": 4, "k2": 3, "k5": 4})


@pytest.mark.parametrize(("version", "kind"), TABLES)
def test_zombie_commit_with_second_bucket_group_is_no_damage(
    tmp_path: Path,
    clock: StandingClock,
    monkeypatch: pytest.MonkeyPatch,
    version: Literal[6, 8, 9],
    kind: Literal["cow", "mor"],
) -> None:
    """The one of a commit that comes late goes with it (seed 28000557, under odds)."""
    base = tmp_path / "t"
    options = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    schema = rows([0], 0).schema
    pyhudi.create_table(base, schema, key="id", type=kind, version=version, options=options)

    def others() -> None:
        clock.stand_still(STAND_MS)
        pyhudi.open_table(base, options=options).upsert(rows([1, 5], 4))

    def finds_both() -> None:
        pyhudi.open_table(base, options=options).insert(rows([6], 5))

    with pytest.raises(CommitConflict, match="rolled back"):
        upserted(
            base, rows([1, 2], 3), monkeypatch, before=others, after=finds_both, options=options
        )
    assert found(base) == {"k1": 4, "k5": 4, "k6": 5}
    assert not pyhudi.open_table(base).check(deep=True).findings


def test_metadata_table_is_not_compacted_with_zombie_commit(
    base: Path, clock: StandingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes once another has looked, who is about to publish too (seed 24360513)."""
    publish, held = PendingInstant.publish, list[Act]()

    def published(opened: PendingInstant, completion: str, content: bytes) -> None:
        own = partial(publish, opened, completion, content)
        if opened.table.storage.uri != str(base):
            own()
        elif not held:
            held.append(own)
            clock.stand_still(STAND_MS)
            compacts = {"hoodie.metadata.compact.max.delta.commits": "1"}
            pyhudi.open_table(base, options=compacts).upsert(rows([5], 4))
        else:
            monkeypatch.setattr(PendingInstant, "publish", publish)
            held[0]()
            own()

    monkeypatch.setattr(PendingInstant, "publish", published)
    with pytest.raises(CommitConflict, match="rolled back"):
        upsert.upsert(CrashHandle(CrashingStorage(str(base)), {}), rows([1, 2], 3))
    assert_sound(base, clock, {**BEFORE, "k5": 4})


@pytest.mark.parametrize("dies", [False, True])
def test_commit_its_writer_revokes_counts_for_no_reader(
    base: Path, clock: StandingClock, monkeypatch: pytest.MonkeyPatch, *, dies: bool
) -> None:
    """According to its file times it was in time (seed 27004777, under odds)."""
    take_back = PendingInstant.delete_completed_file

    def stands() -> None:
        clock.stand_still(STAND_MS)

    def others(opened: PendingInstant, completion: str) -> None:
        stands()
        pyhudi.open_table(base).upsert(rows([1, 5], 4))
        if dies:
            raise Killed
        take_back(opened, completion)

    monkeypatch.setattr(PendingInstant, "delete_completed_file", others)
    with pytest.raises(Killed if dies else CommitConflict):
        upserted(base, rows([1, 2], 3), monkeypatch, after=stands)
    monkeypatch.undo()
    wanted = {**BEFORE, "k1": 4, "k5": 4}
    assert found(base) == wanted
    clock = StandingClock(monkeypatch)
    pyhudi.open_table(base).upsert(rows([6], 9))
    assert found(base) == {**wanted, "k6": 9}


def test_zombie_commit_is_repeated_by_commit_id(
    base: Path, clock: StandingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stands() -> None:
        clock.stand_still(STAND_MS)

    results = []

    def asked_again() -> None:
        results.append(pyhudi.open_table(base).upsert(rows([1, 2], 3), commit_id="job-1"))

    options = with_commit_id({}, "job-1")
    with pytest.raises(CommitConflict):
        upserted(
            base, rows([1, 2], 3), monkeypatch, before=stands, after=asked_again, options=options
        )
    (result,) = results
    assert not result.was_written_before
    assert pyhudi.open_table(base).upsert(rows([1, 2], 3), commit_id="job-1").was_written_before
    assert_sound(base, clock, {**BEFORE, "k1": 3, "k2": 3})


def test_commit_in_time_counts_after_archive(
    base: Path, clock: StandingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def others() -> None:
        clock.stand_still(STAND_MS)
        for value in (4, 5, 6, 7):
            pyhudi.open_table(base).upsert(rows([1], value))
        table = pyhudi.open_table(base)
        table.compact() if table.type == "mor" else None
        table.clean(retain=1)
        table.archive(min_commits=2, max_commits=3)

    upserted(base, rows([1, 2], 3), monkeypatch, after=others)
    assert_sound(base, clock, {**BEFORE, "k1": 7, "k2": 3})


def test_commit_others_accepted_counts_with_new_file_time(
    base: Path, clock: StandingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Killed):
        upserted(base, rows([1, 2], 3), monkeypatch, after=_dies)
    if pyhudi.open_table(base).version == 9:
        pyhudi.open_table(base).downgrade(8)
    else:
        clock.stand_still(STAND_MS)
        pyhudi.open_table(base).upgrade(9)
    clock.stand_still(STAND_MS)
    assert_sound(base, clock, {**BEFORE, "k1": 3, "k2": 3})


def _dies() -> None:
    raise Killed


def test_publication_needs_renewed_lock(
    base: Path, clock: StandingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though heartbeats reach the table."""
    monkeypatch.setattr(StorageLock, "_renew", lambda _: None)
    beats: list[Heartbeat] = []
    publishes = Heartbeat.begin_publication

    def slow(beat: Heartbeat) -> None:
        publishes(beat)
        for _ in range(4):
            clock.stand_still(9_000)
            beat.beat()
        beats.append(beat)

    monkeypatch.setattr(Heartbeat, "begin_publication", slow)
    with pytest.raises(CommitConflict, match="lock was lost"):
        upserted(base, rows([1, 2], 3), monkeypatch)
    assert not beats[0].is_late
    monkeypatch.undo()


def test_publication_refuses_file_older_than_its_name(
    base: Path, clock: StandingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was staged before the stand, and renamed or linked after it."""
    timeline = ".hoodie/timeline" if pyhudi.open_table(base).version > 6 else ".hoodie"

    def others() -> None:
        clock.stand_still(STAND_MS)
        pyhudi.open_table(base).upsert(rows([1, 5], 4))

    def staged_before() -> None:
        newest = max((base / timeline).glob("*commit"), key=lambda file: file.stat().st_mtime_ns)
        (beat,) = (base / ".hoodie/.heartbeat").glob("*")
        os.utime(newest, (beat.stat().st_mtime, beat.stat().st_mtime))

    with pytest.raises(CommitConflict, match="rolled back"):
        upserted(base, rows([1, 2], 3), monkeypatch, before=others, after=staged_before)
    assert_sound(base, clock, {**BEFORE, "k1": 4, "k5": 4})


def to_be_clustered(tmp_path: Path, version: int) -> Path:
    base = tmp_path / "t"
    own_files = {"hoodie.parquet.small.file.limit": "0"}
    pyhudi.create_table(base, rows([0], 0).schema, key="id", version=version)
    for ids in ([0, 1], [2, 3]):
        pyhudi.open_table(base, options=own_files).upsert(rows(ids, 1))
    return base


@pytest.mark.filterwarnings("ignore::pyhudi.errors.MetadataTableWarning")
@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("version", [6, 9])
def test_zombie_plan_taken_over_by_other_process(
    version: int, dies: bool, tmp_path: Path, clock: StandingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has removed the files, and its heartbeat is that of the instant."""
    base = to_be_clustered(tmp_path, version)
    publish, storage = PendingInstant.publish, CrashingStorage(str(base))
    overtakers: list[PlannedTransaction] = []

    def published(opened: PendingInstant, completion: str, content: bytes) -> None:
        is_own = opened.table.storage is storage and opened.action != ROLLBACK
        if is_own:
            clock.stand_still(130_000)
            handle = Handle.of(CrashHandle(Storage(str(base)), {}), SystemClock())
            table = open_for_service(handle, SystemClock(), changes=True)
            overtaker = PlannedTransaction(table, "CLUSTER", opened.time, opened.action)
            overtaker.__enter__()
            overtakers.append(overtaker)
        publish(opened, completion, content)
        if is_own:
            pyhudi.open_table(base).upsert(rows([9], 7))
            storage.is_dead = dies

    with monkeypatch.context() as patch:
        patch.setattr(PendingInstant, "publish", published)
        with pytest.raises(Killed if dies else CommitConflict):
            run_service.cluster(CrashHandle(storage, {}), ClusteringRequest(), ClusteringOptions())
    overtakers[0].__exit__(None, None, None)
    wanted = {"k0": 1, "k1": 1, "k2": 1, "k3": 1, "k9": 7}
    assert found(base) == wanted
    clock.stand_still(4_000_000)
    pyhudi.open_table(base).cluster()
    assert_sound(base, clock, wanted)


@pytest.mark.parametrize("version", [6, 9])
def test_zombie_publication_after_plan_is_archived(
    version: int, tmp_path: Path, clock: StandingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = to_be_clustered(tmp_path, version)
    create, storage = markers.create, Storage(str(base))
    stood: list[bool] = []

    def created(there: Storage, instant: str, marker: markers.Marker) -> None:
        create(there, instant, marker)
        if stood or marker.kind != "CREATE":
            return
        stood.append(True)
        clock.stand_still(130_000)
        table = pyhudi.open_table(base)
        table.cluster(schedule=False)
        for value in range(6):
            table.upsert(rows([9], value))
        table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retain=1)
        table.archive(min_commits=2, max_commits=3)

    with monkeypatch.context() as patch:
        patch.setattr(markers, "create", created)
        with pytest.raises(CommitConflict):
            run_service.cluster(CrashHandle(storage, {}), ClusteringRequest(), ClusteringOptions())
    assert stood
    assert_sound(base, clock, {"k0": 1, "k1": 1, "k2": 1, "k3": 1, "k9": 5})


def test_zombie_commit_revoked_while_it_is_read(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = Storage(str(base))
    timeline = Timeline.load(storage, TableConfig.load(storage))
    commit = timeline.commits[-1]
    Heartbeat(storage, commit.requested, SystemClock()).beat()
    assert zombie_commits.find_zombies(storage, timeline) == []
    read = Storage.read_or_none

    def gone(there: Storage, path: str) -> bytes | None:
        if path == path_of(commit.requested):
            there.delete(timeline.path(commit))
            there.delete(path)
        return read(there, path)

    monkeypatch.setattr(Storage, "read_or_none", gone)
    assert zombie_commits.find_zombies(storage, timeline) == [commit]
