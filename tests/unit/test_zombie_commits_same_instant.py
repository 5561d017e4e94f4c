"""A compaction that completes after a rollback of an earlier attempt at the same instant.

Hudi does so if an executor has failed (`HoodieTable.rollbackInflightInstant`, 1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.clock import SystemClock
from pyhudi.config.actions import CLUSTERING, COMPACTION, REPLACE_COMMIT, ROLLBACK, State
from pyhudi.storage.storage import Storage
from pyhudi.timeline import serde
from pyhudi.txn.pending_instant import PendingInstant
from pyhudi.write.write_context import WriteContext
from tests.helpers.tables import unpack
from tests.unit.test_savepoints import timeline_of

SPARING = {
    "hoodie.archive.automatic": False,
    "hoodie.clean.automatic": False,
    "hoodie.clean.commits.retained": 1,
    "hoodie.compact.inline.max.delta.commits": 1,
    "hoodie.metadata.compact.max.delta.commits": 1,
}


def rows(city: str, v: int) -> pa.Table:
    return pa.table({"id": [f"{city} {n}" for n in range(3)], "city": [city] * 3, "v": [v] * 3})


def roll_attempt_back(
    base: Path, planned: str, *, action: str = COMPACTION, until: State = State.COMPLETED
) -> None:
    """Leaves the rollback's files as Hudi does; nothing was written."""
    table = WriteContext.open(pyhudi.open_table(base), SystemClock()).table
    target = {"commitTime": planned, "action": action}
    plan = {"instantToRollback": target, "RollbackRequests": [], "version": 1}
    record = {
        "startRollbackTime": (time := table.generator.next()),
        "timeTakenInMillis": 1,
        "totalFilesDeleted": 0,
        "commitsRollback": [planned],
        "partitionMetadata": {},
        "version": 1,
        "instantsRollback": [target],
    }
    rollback = PendingInstant(table, time, ROLLBACK)
    with table.lock_manager.critical_section():
        rollback.request(serde.encode_container("HoodieRollbackPlan", plan, table.clock))
        if until is not State.REQUESTED:
            rollback.begin()
        if until is State.COMPLETED:
            done = serde.encode_container("HoodieRollbackMetadata", record, table.clock)
            rollback.complete(done)


def begin(base: Path, planned: str, action: str) -> None:
    """Leaves the attempt of an executor that died, as Hudi's."""
    PendingInstant(
        WriteContext.open(pyhudi.open_table(base), SystemClock()).table, planned, action
    ).begin()


def values(base: Path) -> list[int]:
    return sorted(pyhudi.open_table(base).scan().to_arrow().column("v").to_pylist())


def compacted(base: Path, version: int) -> HudiTable:
    """One whose compacted partition nothing else tells of any more, ready to be archived."""
    made = pyhudi.create_table(
        base, rows("cold", 1), key="id", partition_by="city", order_by="v", type="mor",
        version=version,
    )  # fmt: skip
    table = pyhudi.open_table(made.uri, options=SPARING)
    table.upsert(rows("cold", 2))
    (planned,) = table.compact(execute=False).scheduled
    roll_attempt_back(base, planned)
    assert table.refresh().compact(schedule=False).instants == (planned,)
    for v in range(8, 14):
        table.upsert(rows("hot", v))
    table.clean()
    return table.refresh()


@pytest.mark.parametrize("version", [6, 9])
def test_archive_crash_between_files_rolls_back_nothing(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / "t"
    table = compacted(base, version)
    delete_all = Storage.delete_all

    def dies(self: Storage, paths: Iterable[str]) -> None:
        paths = list(paths)
        if any(path.endswith("commit") and "/metadata/" not in path for path in paths):
            raise KeyboardInterrupt
        delete_all(self, paths)

    with monkeypatch.context() as patch:
        patch.setattr(Storage, "delete_all", dies)
        with pytest.raises(KeyboardInterrupt):
            table.archive(min_commits=1, max_commits=2)
    timeline = timeline_of(base)
    assert any(len(timeline.files(commit)) == 1 for commit in timeline.commits)
    assert values(base) == [2, 2, 2, 13, 13, 13]
    pyhudi.open_table(base, options=SPARING).upsert(rows("hot", 99))
    assert values(base) == [2, 2, 2, 99, 99, 99]


def test_files_of_same_instant_are_not_rolled_back(tmp_path: Path) -> None:
    """Hudi 0.15.0 wrote the table; it archives rollbacks later than commits."""
    base = unpack("v6_mor_compaction_rolled_back", tmp_path)
    table = pyhudi.open_table(base, options=SPARING)
    before = table.scan().to_arrow()
    kept = [name for name in before.column_names if not name.startswith("_hoodie")]
    row = before.slice(0, 1).select(kept).to_pylist()[0]
    for _ in range(6):
        table.upsert([{**row, "id": "another", "city": "elsewhere"}])
    table.clean()
    table.archive(min_commits=2, max_commits=3)
    timeline = timeline_of(base)
    (rolled_back,) = (timeline.read(one) or {} for one in timeline.filter_completed(ROLLBACK))
    assert all(map(timeline.is_before_start, rolled_back["commitsRollback"]))
    assert not pyhudi.open_table(base).check(repair=True).repaired
    assert pyhudi.open_table(base).scan().count() == before.num_rows + 1


BEGUN = [State.REQUESTED, State.INFLIGHT]


@pytest.mark.parametrize("until", BEGUN)
@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("metadata", [True, False])
def test_rollback_of_attempt_keeps_compaction_plan(
    metadata: bool, version: int, until: State, tmp_path: Path
) -> None:
    """Up to table version 6 the log files that were written since bear the plan's instant."""
    base = tmp_path / "t"
    table = pyhudi.create_table(
        base, rows("a", 1), key="id", order_by="v", type="mor", version=version,
        options={"hoodie.metadata.enable": metadata},
    )  # fmt: skip
    table.upsert(rows("a", 2))
    (planned,) = table.compact(execute=False).scheduled
    table.upsert(rows("a", 3))
    begin(base, planned, COMPACTION)
    roll_attempt_back(base, planned, until=until)
    pyhudi.open_table(base).upsert(rows("b", 4))
    assert values(base) == [3, 3, 3, 4, 4, 4]
    (left,) = timeline_of(base).pending()
    assert (left.requested, left.state) == (planned, State.REQUESTED)
    assert pyhudi.open_table(base).compact(schedule=False).instants == (planned,)
    assert values(base) == [3, 3, 3, 4, 4, 4]
    assert pyhudi.open_table(base).check().ok


@pytest.mark.parametrize("until", BEGUN)
@pytest.mark.parametrize("version", [6, 9])
def test_rollback_of_attempt_keeps_clustering_plan(
    version: int, until: State, tmp_path: Path
) -> None:
    base = tmp_path / "t"
    options = {"hoodie.parquet.small.file.limit": 0}
    pyhudi.create_table(base, rows("a", 1), key="id", type="cow", version=version)
    table = pyhudi.open_table(base, options=options)
    table.insert(rows("b", 2))
    (planned,) = table.cluster(execute=False).scheduled
    action = REPLACE_COMMIT if version == 6 else CLUSTERING
    begin(base, planned, action)
    roll_attempt_back(base, planned, action=action, until=until)
    pyhudi.open_table(base, options=options).insert(rows("c", 3))
    (left,) = timeline_of(base).pending()
    assert (left.requested, left.state) == (planned, State.REQUESTED)
    assert pyhudi.open_table(base).cluster(schedule=False).instants == (planned,)
    assert values(base) == [1, 1, 1, 2, 2, 2, 3, 3, 3]


@pytest.mark.parametrize("version", [6, 9])
def test_restore_removes_plan_of_attempt_to_roll_back(version: int, tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = pyhudi.create_table(
        base, rows("a", 1), key="id", order_by="v", type="mor", version=version
    )
    first = table.upsert(rows("a", 2)).instant
    (planned,) = table.compact(execute=False).scheduled
    table.upsert(rows("a", 3))
    begin(base, planned, COMPACTION)
    roll_attempt_back(base, planned, until=State.INFLIGHT)
    pyhudi.open_table(base).restore(to=first)
    assert values(base) == [2, 2, 2]
    assert not timeline_of(base).pending()
