"""Data files that commits name and storage has lost: no older slice is read in their place."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import CorruptTable, HistoryUnavailable, HudiTable, MissingFile
from pyhudi.clock import SystemClock
from pyhudi.config.options import CHECK_SIZES
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.missing_files import find_lost_files
from pyhudi.storage.lru_cache import LruCache
from pyhudi.timeline import Timeline
from pyhudi.write.table_opening import Handle, open_for_change
from tests.helpers.pairwise import Case, pairwise
from tests.helpers.table_builder import SMALL, TableBuilder
from tests.helpers.tables import unpack

TABLE = TableBuilder(
    {
        "id": (pa.string(), str),
        "part": (pa.string(), lambda name: "x" if name in "abc" else "y"),
        "v": (pa.int64(), 1),
    },
    partition_by="part",
    options={
        **SMALL,
        "hoodie.clean.automatic": "false",
        "hoodie.clean.commits.retained": "1",
        "hoodie.archive.automatic": "false",
    },
)
VERSIONS = (6, 8, 9)
LISTED = {"hoodie.metadata.enable": "false"}
AS_HUDI = {CHECK_SIZES: "false"}


def made(base: Path, version: int = 9, kind: str = "mor", **more: Any) -> HudiTable:
    """A table of two partitions, the first of which was updated twice."""
    table = TABLE.make(base, version=version, kind=kind, first="abcd", **more)
    table.upsert(TABLE.rows("ab", v=2))
    table.upsert(TABLE.rows("a", v=3))
    return table


def archive(table: HudiTable) -> tuple[str, ...]:
    """As much as can be."""
    return table.archive(min_commits=2, max_commits=3).instants


def base_files(base: Path) -> list[Path]:
    return sorted(base.glob("x/*.parquet"), key=lambda path: path.name.rsplit("_", 1)[-1])


def log_files(base: Path) -> list[Path]:
    return sorted(base.glob("x/.*.log.*"), key=lambda path: path.stat().st_mtime_ns)


def lose_base(base: Path) -> str:
    """The newest base file goes."""
    base_files(base)[-1].unlink()
    return ".parquet"


def lose_log(base: Path) -> str:
    """The newest log file goes."""
    log_files(base)[-1].unlink()
    return ".log."


def lose_partition(base: Path) -> str:
    """All of a partition goes, with its folder."""
    shutil.rmtree(base / "x")
    return "x/"


LOSSES: dict[str, Callable[[Path], str]] = {
    "base": lose_base,
    "log": lose_log,
    "partition": lose_partition,
}
CALLS: dict[str, Callable[[HudiTable], Any]] = {
    "scan": lambda t: t.scan().to_arrow(),
    "upsert": lambda t: t.upsert(TABLE.rows("b", v=4)),
    "insert": lambda t: t.insert(TABLE.rows("c", v=4)),
    "update": lambda t: t.update("part = 'x'", {"v": 4}),
    "delete": lambda t: t.delete("id = 'b'"),
    "delete_keys": lambda t: t.delete_keys(TABLE.rows("b")),
    "merge": lambda t: t.merge(TABLE.rows("b", v=4)).when_matched_update_all().execute(),
    "partial": lambda t: t.upsert(TABLE.rows("b", v=4), partial=True),
    "cluster": lambda t: t.cluster(),
    "maintain": lambda t: t.maintain(),
    "savepoint": lambda t: t.savepoint(),
    "compact": lambda t: t.compact(),
    "log_compact": lambda t: t.log_compact(min_log_files=2),
    "rebuild_metadata": lambda t: t.rebuild_metadata(),
    "upgrade": lambda t: t.upgrade(9),
}
OF_LOGS = ("compact", "log_compact")


def can_be(version: int, kind: str, metadata: bool, loss: str, call: str) -> bool:
    if kind == "cow" and (loss == "log" or call in OF_LOGS):
        return False
    return call != "upgrade" or version < 9


CASES = pairwise(VERSIONS, ("cow", "mor"), (True, False), list(LOSSES), list(CALLS), allowed=can_be)


def files_of(base: Path) -> dict[str, int]:
    """What lies there, but for the lock."""
    found = (path for path in base.rglob("*") if path.is_file() and ".locks" not in path.parts)
    return {str(path.relative_to(base)): path.stat().st_size for path in found}


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_missing_file_is_raised_before_anything_changes(tmp_path: Path, case: Case) -> None:
    version, kind, metadata, loss, call = case
    made(tmp_path, version, kind, metadata=metadata)
    lost = LOSSES[loss](tmp_path)
    before = files_of(tmp_path)
    with pytest.raises(MissingFile) as raised:
        CALLS[call](pyhudi.open_table(tmp_path))
    assert lost in str(raised.value.file)
    assert "restore()" in raised.value.hint
    assert CHECK_SIZES in raised.value.hint
    assert files_of(tmp_path) == before


LISTING = [case for case in CASES if not case[2] and case[-1] != "upgrade"]


@pytest.mark.parametrize("case", LISTING, ids=lambda case: "-".join(map(str, case)))
def test_option_reads_and_writes_what_is_left(tmp_path: Path, case: Case) -> None:
    version, kind, metadata, loss, call = case
    made(tmp_path, version, kind, metadata=metadata)
    LOSSES[loss](tmp_path)
    CALLS[call](pyhudi.open_table(tmp_path, options={**AS_HUDI, **LISTED}))


@pytest.mark.parametrize("version", VERSIONS)
def test_read_optimized_scan_needs_base_files_alone(tmp_path: Path, version: int) -> None:
    made(tmp_path, version, metadata=False)
    lose_log(tmp_path)
    table = pyhudi.open_table(tmp_path)
    assert table.scan(read_optimized=True).to_arrow().num_rows == 4
    lose_base(tmp_path)
    with pytest.raises(MissingFile):
        table.scan(read_optimized=True).to_arrow()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_filter_on_another_partition_is_answered(tmp_path: Path, version: int, kind: str) -> None:
    made(tmp_path, version, kind, metadata=False)
    lose_partition(tmp_path)
    table = pyhudi.open_table(tmp_path)
    assert table.scan(where="part = 'y'").count() == 1
    table.upsert(TABLE.rows("d", v=9))
    with pytest.raises(MissingFile, match="its partition is empty"):
        table.scan(where="part = 'x'").to_arrow()


@pytest.mark.parametrize(("version", "kind"), pairwise(VERSIONS, ("cow", "mor")))
def test_older_slices_matter_where_they_are_read(tmp_path: Path, version: int, kind: str) -> None:
    table = made(tmp_path, version, kind, metadata=False)
    if kind == "mor":
        table.compact()
    first, second = (commit.requested for commit in table.state.timeline.commits[:2])
    (base_files(tmp_path)[0]).unlink()
    table = pyhudi.open_table(tmp_path)
    assert sorted(table.scan(["v"]).to_arrow()["v"].to_pylist()) == [1, 1, 2, 3]
    with pytest.raises(MissingFile):
        table.scan(as_of=first).to_arrow()
    if kind == "cow":
        assert table.scan(as_of=second).to_arrow().num_rows == 4


# --- what commits that are archived wrote ---------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("call", ["upsert", "cluster", "savepoint"])
def test_metadata_table_tells_of_archived_commits(tmp_path: Path, version: int, call: str) -> None:
    options = {"hoodie.metadata.compact.max.delta.commits": "1"}
    table = TABLE.make(tmp_path, version=version, first="abcd", options=options)
    for turn in range(6):
        table.upsert(TABLE.rows("d", v=turn))
    assert archive(table)
    assert table.upsert(TABLE.rows("b", v=0)).rows_updated == 1
    for turn in range(6):
        table.upsert(TABLE.rows("d", v=turn))
    assert archive(table)
    lose_base(tmp_path)
    before = files_of(tmp_path)
    with pytest.raises(MissingFile):
        CALLS[call](pyhudi.open_table(tmp_path))
    assert files_of(tmp_path) == before


def test_log_tells_of_the_base_file_of_an_archived_commit(tmp_path: Path) -> None:
    """Up to table version 6, where statistics name it."""
    table = made(tmp_path, 6, metadata=False)
    for turn in range(6):
        table.upsert(TABLE.rows("a", v=turn))
    assert archive(table)
    lose_base(tmp_path)
    with pytest.raises(MissingFile):
        pyhudi.open_table(tmp_path).compact()


# --- what is no loss ------------------------------------------------------------------------------


def nothing_is_lost(base: Path) -> bool:
    """By commits, and by the metadata table."""
    clock = SystemClock()
    table = open_for_change(Handle.of(pyhudi.open_table(base), clock), clock)
    return not find_lost_files(table, FileSystemView(table.storage, table.config, table.timeline))


def roll_back(table: HudiTable) -> None:
    table.upsert(TABLE.rows("ab", v=7))
    last = table.state.timeline.last_commit
    assert last is not None
    table.rollback(last.requested)


def restore(table: HudiTable) -> None:
    table.savepoint()
    saved = table.state.timeline.last_commit
    assert saved is not None
    table.upsert(TABLE.rows("abcd", v=8))
    table.upsert(TABLE.rows("ab", v=9))
    table.restore(saved.requested)
    table.delete_savepoint(saved.requested)


STEPS: tuple[tuple[str, Callable[[HudiTable], Any]], ...] = (
    ("upsert", lambda t: t.upsert(TABLE.rows("abcd", v=4))),
    ("clean", lambda t: t.clean(retain=1)),
    ("log_compact", lambda t: t.log_compact(min_log_files=2)),
    ("compact", lambda t: t.compact()),
    ("clean", lambda t: t.clean(retain=1)),
    ("rollback", roll_back),
    ("cluster", lambda t: t.cluster()),
    ("upsert", lambda t: t.upsert(TABLE.rows("abcd", v=5))),
    ("restore", restore),
    ("overwrite_partitions", lambda t: t.overwrite_partitions(TABLE.rows("ab", v=6))),
    ("upsert", lambda t: t.upsert(TABLE.rows("abcd", v=6))),
    ("delete_partitions", lambda t: t.delete_partitions(["x"])),
    ("upsert", lambda t: t.upsert(TABLE.rows("cd", v=6))),
    ("clean", lambda t: t.clean(retain=1)),
    ("upsert", lambda t: t.upsert(TABLE.rows("abcd", v=7))),
    ("archive", archive),
    ("overwrite", lambda t: t.overwrite(TABLE.rows("abcd", v=7))),
    ("upsert", lambda t: t.upsert(TABLE.rows("abcd", v=7))),
    ("clean", lambda t: t.clean(retain=1)),
    ("archive", archive),
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "kind", "metadata"), pairwise(VERSIONS, ("cow", "mor"), (True, False))
)
def test_find_lost_files_accepts_every_step_of_history(
    tmp_path: Path, version: int, kind: str, metadata: bool
) -> None:
    options = {"hoodie.metadata.compact.max.delta.commits": "2"}
    table = made(tmp_path, version, kind, metadata=metadata, options=options)
    for name, step in STEPS:
        if kind == "mor" or name not in OF_LOGS:
            step(table)
        assert nothing_is_lost(tmp_path), name
        assert table.refresh().scan().to_arrow().num_rows


@pytest.mark.parametrize("version", [6, 9])
def test_cleaned_slice_of_an_earlier_time_is_history(tmp_path: Path, version: int) -> None:
    table = made(tmp_path, version, "cow", metadata=False)
    first = table.state.timeline.commits[0].requested
    table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retain=1)
    with pytest.raises(HistoryUnavailable):
        pyhudi.open_table(tmp_path).scan(as_of=first).to_arrow()


# --- how to go on ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "kind", "loss", "metadata"),
    pairwise(
        VERSIONS,
        ("cow", "mor"),
        list(LOSSES),
        (True, False),
        allowed=lambda _, kind, loss, __: kind == "mor" or loss != "log",
    ),
)
def test_delete_partitions_gives_a_lost_partition_up(
    tmp_path: Path, version: int, kind: str, loss: str, metadata: bool
) -> None:
    made(tmp_path, version, kind, metadata=metadata, index="SIMPLE")
    LOSSES[loss](tmp_path)
    pyhudi.open_table(tmp_path).delete_partitions(["x"])
    table = pyhudi.open_table(tmp_path)
    assert table.scan(["id"]).to_arrow()["id"].to_pylist() == ["d"]
    table.upsert(TABLE.rows("ab", v=4))
    table.cluster()
    assert sorted(table.scan(["id"]).to_arrow()["id"].to_pylist()) == ["a", "b", "d"]


@pytest.mark.parametrize(("version", "kind"), pairwise(VERSIONS, ("cow", "mor")))
def test_restore_to_before_the_loss(tmp_path: Path, version: int, kind: str) -> None:
    table = TABLE.make(tmp_path, version=version, kind=kind, first="abcd", metadata=False)
    table.savepoint()
    saved = table.state.timeline.commits[-1].requested
    table.upsert(TABLE.rows("ab", v=2))
    if kind == "mor":
        table.compact()
    lose_base(tmp_path)
    pyhudi.open_table(tmp_path).restore(saved)
    table = pyhudi.open_table(tmp_path)
    assert table.scan(["v"]).to_arrow()["v"].to_pylist() == [1] * 4
    table.upsert(TABLE.rows("ab", v=5))


def test_plan_of_a_service_with_a_lost_file_is_taken_off(tmp_path: Path) -> None:
    table = made(tmp_path)
    assert table.compact(execute=False).scheduled
    lose_log(tmp_path)
    with pytest.raises(MissingFile, match="the plan of a table service needs it") as raised:
        table.refresh().compact()
    assert "rollback()" in raised.value.hint


# --- what is said ---------------------------------------------------------------------------------


def test_message_counts_the_files_and_names_the_first(tmp_path: Path) -> None:
    made(tmp_path, metadata=False)
    for path in log_files(tmp_path):
        path.unlink()
    with pytest.raises(
        MissingFile, match="and 1 more, but the table needs it; no clean on the timeline removed it"
    ):
        pyhudi.open_table(tmp_path).scan().to_arrow()


def test_message_names_the_clean_that_took_a_current_file(tmp_path: Path) -> None:
    """As after a cleaner that went by commits which the timeline has lost."""
    table = made(tmp_path, 6, "cow", metadata=False)
    commits = table.state.timeline.commits
    table.clean(retain=1)
    for commit in commits[1:]:
        for path in tmp_path.glob(f".hoodie/{commit.requested}.*"):
            path.unlink()
    with pytest.raises(MissingFile, match=r"the clean \d+ removed it"):
        pyhudi.open_table(tmp_path).scan().to_arrow()


def test_partition_that_no_listing_finds_is_told(tmp_path: Path) -> None:
    made(tmp_path, metadata=False)
    (mark,) = tmp_path.glob("x/.hoodie_partition_metadata*")
    mark.unlink()
    with pytest.raises(MissingFile, match="its directory has no file"):
        pyhudi.open_table(tmp_path).scan().to_arrow()


def test_moved_source_of_a_bootstrapped_table_is_told(tmp_path: Path) -> None:
    base = unpack("v6_cow_bootstrap_metadata", tmp_path)
    for path in sorted(tmp_path.glob("*.source/**/*.parquet")):
        path.unlink()
    with pytest.raises(
        MissingFile, match="a source file of a bootstrapped table, and was moved or lost"
    ) as raised:
        pyhudi.open_table(base).scan().to_arrow()
    assert "hoodie.bootstrap.base.path" in raised.value.hint


@pytest.mark.parametrize("name", ["v9_mor_pending_clusterings", "v6by14_mor_restore"])
def test_golden_table_without_one_of_its_files(tmp_path: Path, name: str) -> None:
    base = unpack(name, tmp_path)
    table = pyhudi.open_table(base, options=LISTED)
    timeline = table.state.timeline
    view = FileSystemView(table.storage, table.state.config, timeline)
    read = {file.path for slice_ in view.slices() for file in slice_.files}
    named = {file.path for _, files in timeline.files_of_commits() for file in files}
    for path in sorted(read & named):
        data = (base / path).read_bytes()
        (base / path).unlink()
        with pytest.raises(MissingFile) as raised:
            table.scan().to_arrow()
        assert raised.value.file == path
        (base / path).write_bytes(data)


@pytest.mark.parametrize(
    "name", ["v9_mor_pending_clusterings", "v6by14_mor_restore", "v6_cow_bootstrap_metadata"]
)
def test_files_of_commits_are_those_of_their_metadata(tmp_path: Path, name: str) -> None:
    """The core decodes them on its own."""
    table = pyhudi.open_table(unpack(name, tmp_path))
    timeline, again = (Timeline.load(table.storage, table.config) for _ in range(2))
    decoded = dict(timeline.files_of_commits())
    assert any(decoded.values())
    table.storage.cache = LruCache(0)
    assert decoded == {commit: again.commit_metadata(commit).files for commit in again.commits}


def test_damaged_commit_is_reported_by_the_search_for_lost_files(tmp_path: Path) -> None:
    TABLE.make(tmp_path, first="ab", metadata=False).upsert(TABLE.rows("a", v=2))
    first = min(tmp_path.glob(".hoodie/timeline/*.*commit"), key=lambda path: path.name)
    first.write_bytes(first.read_bytes()[:-20])
    with pytest.raises(CorruptTable) as raised:
        pyhudi.open_table(tmp_path).scan().to_arrow()
    assert raised.value.file == f".hoodie/timeline/{first.name}"


@pytest.mark.parametrize("version", VERSIONS)
def test_metadata_table_is_not_compacted_over_a_lost_log_file(tmp_path: Path, version: int) -> None:
    options = {"hoodie.metadata.compact.max.delta.commits": "3"}
    table = TABLE.make(tmp_path, version=version, first="abcd", options=options, index="SIMPLE")
    for _ in range(2):
        table.upsert(TABLE.rows("ab", v=2))
    logs = tmp_path.glob(".hoodie/metadata/files/.*.log.*")
    max(logs, key=lambda path: path.stat().st_mtime_ns).unlink()
    table = pyhudi.open_table(tmp_path, options=options)
    with pytest.warns(UserWarning, match="services of the metadata table failed"):
        _ = [table.upsert(TABLE.rows("ab", v=2)) for _ in range(3)]
    pyhudi.open_table(tmp_path).rebuild_metadata()
    found = pyhudi.open_table(tmp_path).scan(["v"]).to_arrow()["v"].to_pylist()
    assert sorted(found) == [1, 1, 2, 2]
